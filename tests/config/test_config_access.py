"""Who may come in, as a configuration says it: every doubt is a fault, for it may be what keeps somebody out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from truename.config import Access, Issuer, json_schema, parse
from truename.config.settings import SETTINGS
from truename.errors import ConfigError

HASH = f"tn1:{'0' * 16}:{'a' * 64}"
WHOLE = f"""
[mcpServers.a]
command = "true"
[access]
public_url = "https://tools.example.com/"
token_name = "ops"
[access.tokens.ci]
hash = "{HASH}"
groups = ["robots"]
scopes = ["read"]
expires = 2027-02-01T00:00:00Z
[access.oauth.work]
issuer = "https://idp.example/tenant"
audience = ["https://tools.example.com/mcp"]
scopes = ["use"]
clients = ["cli"]
algorithms = ["ES256"]
name_claim = "email"
groups_claim = "realm_access.roles"
leeway = 5
introspection = "always"
client_id = "gate"
client_secret = "${{SECRET}}"
[access.sign_in]
issuer = "https://idp.example/tenant"
client_id = "gate"
client_secret = "${{SECRET}}"
allow = ["email:*@example.com", "group:eng", "sub:7"]
name_claim = "email"
redirect_schemes = ["cursor"]
"""


def read(text: str) -> Access:
    return parse(text, Path("/home/me/truename.toml"), {"SECRET": "s3cret"}).settings.access


def test_everything_is_read() -> None:
    access = read(WHOLE)
    assert access.public_url == "https://tools.example.com"
    assert access.tokens["ci"].expires == 1_801_440_000
    assert (access.oauth["work"].algorithms, access.oauth["work"].leeway) == (("ES256",), 5.0)
    assert access.sign_in is not None
    assert access.sign_in.client_secret == "s3cret"
    assert access.asks
    assert "s3cret" not in repr(access)
    assert "a" * 64 not in repr(access)


def test_nothing_said_asks_for_nothing() -> None:
    assert not read('[mcpServers.a]\ncommand = "true"').asks


SIGN_IN = '[access.sign_in]\nissuer = "https://i.e"\nclient_id = "x"\nallow = ["*"]'
WRONG: list[tuple[str, str]] = [
    ("access = 7", "access"),
    ("[access]\nzzz = 1", "access.zzz"),
    ('[access]\npublic_url = "https://a.example/mcp"', "access.public_url"),
    ('[access]\npublic_url = "http://a.example"', "access.public_url"),
    ('[access]\npublic_url = "https://me@a.example"', "access.public_url"),
    ('[access]\npublic_url = "https://a.example:x"', "access.public_url"),
    ('[access]\npublic_url = "ftp://a.example"', "access.public_url"),
    ('[access]\ntoken_name = "a b"', "access.token_name"),
    ("[access.tokens]\nci = 7", "access.tokens.ci"),
    ("[access.tokens.ci]\ngroups = []", "access.tokens.ci.hash"),
    ('[access.tokens.ci]\nhash = "secret"', "access.tokens.ci.hash"),
    (f'[access.tokens."a b"]\nhash = "{HASH}"', "access.tokens.a b"),
    (f'[access.tokens.ci]\nhash = "{HASH}"\nexpires = "soon"', "access.tokens.ci.expires"),
    (f'[access.tokens.ci]\nhash = "{HASH}"\ngroups = ["a b"]', "access.tokens.ci.groups"),
    ("[access.oauth.a]\nscopes = []", "access.oauth.a.issuer"),
    ('[access.oauth.a]\nissuer = "http://idp.example"', "access.oauth.a.issuer"),
    ('[access.oauth.a]\nissuer = "https://idp.example"\nalgorithms = ["HS256"]', "access.oauth.a.algorithms"),
    ('[access.oauth.a]\nissuer = "https://idp.example"\nalgorithms = ["none"]', "access.oauth.a.algorithms"),
    ('[access.oauth.a]\nissuer = "https://idp.example"\nalgorithms = []', "access.oauth.a.algorithms"),
    ('[access.oauth.a]\nissuer = "https://idp.example"\nleeway = -1', "access.oauth.a.leeway"),
    ('[access.oauth.a]\nissuer = "https://idp.example"\nintrospection = "opaque"', "access.oauth.a"),
    ('[access.oauth.a]\nissuer = "https://i.e"\n[access.oauth.b]\nissuer = "https://i.e"', "access.oauth.b"),
    ('[access.sign_in]\nclient_id = "x"\nallow = ["*"]', "access.sign_in.issuer"),
    ('[access.sign_in]\nissuer = "https://i.e"\nallow = ["*"]', "access.sign_in.client_id"),
    ('[access.sign_in]\nissuer = "https://i.e"\nclient_id = "x"', "access.sign_in.allow"),
    ('[access.sign_in]\nissuer = "https://i.e"\nclient_id = "x"\nallow = []', "access.sign_in.allow"),
    ('[access.sign_in]\nissuer = "https://i.e"\nclient_id = "x"\nallow = ["me@x"]', "access.sign_in.allow"),
    (f'{SIGN_IN}\n[access.oauth.a]\nissuer = "https://i.e"\nname_claim = "email"', "access.oauth.a.name_claim"),
    (
        '[access.sign_in]\nissuer = "https://i.e"\nclient_id = "x"\nallow = ["*"]\nredirect_schemes = ["javascript"]',
        "access.sign_in.redirect_schemes",
    ),
    (
        '[access.sign_in]\nissuer = "https://i.e"\ntoken_url = "https://i.e/t"\nclient_id = "x"\nallow = ["*"]',
        "access.sign_in.token_url",
    ),
]


@pytest.mark.parametrize(("text", "key"), WRONG)
def test_what_can_t_be_meant_is_a_fault_at_its_key(text: str, key: str) -> None:
    top, tables = (text, "") if text.startswith("access =") else ("", text)
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        read(f'{top}\n[mcpServers.a]\ncommand = "true"\n{tables}')
    found = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else (caught.value,)
    assert key in [error.key for error in found if isinstance(error, ConfigError)]


def issuer_of(**said: Any) -> Issuer:
    fields = {"issuer": "https://idp.example", **said}
    rows = "\n".join(
        f"{key} = {value if isinstance(value, bool) else json.dumps(value)}" for key, value in fields.items()
    )
    return read(f'[mcpServers.a]\ncommand = "true"\n[access.oauth.a]\n{rows}').oauth["a"]


@pytest.mark.parametrize(
    "url",
    [
        "https://idp.example",
        "https://idp.example:8443/tenant?x=1",
        "HTTPS://idp.example/",
        "https://[2001:db8::1]/",
        "http://localhost:8080/x",
        "http://LOCALHOST",
        "http://127.8.8.8/",
        "http://[::1]:1/",
    ],
)
def test_an_address_that_secrets_go_to_is_https_or_on_this_machine(url: str) -> None:
    assert issuer_of(issuer=url).issuer == url


NO_ADDRESS = "it is not an address"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", NO_ADDRESS),
        ("idp.example", NO_ADDRESS),
        ("//idp.example", NO_ADDRESS),
        ("https:", NO_ADDRESS),
        ("https:///x", NO_ADDRESS),
        ("https://:443/", NO_ADDRESS),
        ("https://idp.example:x", NO_ADDRESS),
        ("https://idp.example:65536", NO_ADDRESS),
        ("https://[::1", NO_ADDRESS),
        ("https://id\u00df.example", NO_ADDRESS),
        ("https://idp.example/\x7f", NO_ADDRESS),
        ("https://idp.example/a b", NO_ADDRESS),
        ("https://me@idp.example", NO_ADDRESS),
        ("https://:word@idp.example", NO_ADDRESS),
        ("https://@idp.example", NO_ADDRESS),
        ("https://idp.example/#x", NO_ADDRESS),
        ("ftp://localhost/", NO_ADDRESS),
        ("javascript://localhost/", NO_ADDRESS),
        ("http://idp.example", "it is plain HTTP to another machine"),
        ("http://localhost.evil.example", "it is plain HTTP to another machine"),
        ("http://0.0.0.0/", "it is plain HTTP to another machine"),
        ("http://10.0.0.1/", "it is plain HTTP to another machine"),
    ],
)
def test_secrets_go_nowhere_else(url: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        issuer_of(issuer=url)

    assert (caught.value.key, caught.value.problem, caught.value.remedy) == (
        "access.oauth.a.issuer",
        problem,
        "Write https://HOST/..., or http:// on a loopback address.",
    )


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://tools.example", "https://tools.example"),
        ("https://tools.exampleX//", "https://tools.exampleX"),
        ("https://tools.example:8443/", "https://tools.example:8443"),
    ],
)
def test_the_gateway_s_own_address_is_an_origin(url: str, origin: str) -> None:
    assert read(f'[mcpServers.a]\ncommand = "true"\n[access]\npublic_url = "{url}"').public_url == origin


@pytest.mark.parametrize("rest", ["/mcp", "/mcp/", "/X", "//x", "?x=1", "/?x=1"])
def test_an_address_with_a_path_is_no_origin(rest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f'[mcpServers.a]\ncommand = "true"\n[access]\npublic_url = "https://tools.example{rest}"')

    assert (caught.value.key, caught.value.problem, caught.value.remedy) == (
        "access.public_url",
        "it has a path",
        "Write scheme, host and port alone: https://HOST.",
    )


@pytest.mark.parametrize(
    ("said", "key", "problem", "remedy"),
    [
        (
            {"algorithms": ["ES256", "HS256"]},
            "algorithms",
            "'HS256' is not a signature with a public key",
            "Did you mean 'RS256'?",
        ),
        ({"algorithms": []}, "algorithms", "it is empty", "Leave it out, or name one."),
        (
            {"introspection": "opaqe"},
            "introspection",
            "'opaqe' is not one of: never, opaque, always",
            "Did you mean 'opaque'?",
        ),
    ],
)
def test_a_choice_that_there_is_not_is_told_with_the_nearest(
    said: dict[str, Any], key: str, problem: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        issuer_of(**said)

    assert (caught.value.key, caught.value.problem) == (f"access.oauth.a.{key}", problem)
    assert caught.value.remedy == remedy


def expires(said: str) -> float | None:
    text = f'[mcpServers.a]\ncommand = "true"\n[access.tokens.ci]\nhash = "{HASH}"\nexpires = {said}'
    return read(text).tokens["ci"].expires


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2027-02-01T00:00:00Z", 1_801_440_000),
        ('"2027-02-01T00:00:00Z"', 1_801_440_000),
        ("2027-02-01T00:00:00+05:00", 1_801_422_000),
        ('"2027-02-01T00:00:00-05:00"', 1_801_458_000),
    ],
)
def test_a_time_is_where_it_says(said: str, moment: float) -> None:
    assert expires(said) == moment


@pytest.mark.parametrize("said", ["2027-02-01T00:00:00", "2027-02-01", '"2027-02-01T00:00"'])
def test_a_time_that_says_no_place_is_in_utc(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert expires(said) == 1_801_440_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_scheme_that_browsers_know_is_no_program_s_own() -> None:
    with pytest.raises(ConfigError) as caught:
        read(f'[mcpServers.a]\ncommand = "true"\n{SIGN_IN}\nredirect_schemes = ["cursor", "data"]')

    assert (caught.value.key, caught.value.problem, caught.value.remedy) == (
        "access.sign_in.redirect_schemes",
        "'data' is not a program's own scheme",
        "Leave it out.",
    )


def test_two_issuers_are_not_both_shown_a_token_that_says_nothing() -> None:
    one = 'introspection = "opaque"\nclient_id = "x"\nclient_secret = "y"'
    text = f'[access.oauth.a]\nissuer = "https://a.e"\n{one}\n[access.oauth.b]\nissuer = "https://b.e"\n{one}'
    with pytest.raises(ConfigError, match="would be shown to a and b"):
        read(f'[mcpServers.a]\ncommand = "true"\n{text}')


@pytest.mark.parametrize("null", ["access", "access.oauth", "access.tokens.ci", "access.sign_in", "access.public_url"])
def test_null_is_not_nothing(null: str) -> None:
    content: dict[str, Any] = {"mcpServers": {"a": {"command": "true"}}, "truename": {}}
    place = content["truename"]
    *way, last = null.split(".")
    for step in way:
        place = place.setdefault(step, {})
    place[last] = None
    with pytest.raises((ConfigError, ExceptionGroup)):
        parse(json.dumps(content), Path("/home/me/mcp.json"), {})


def test_the_schema_knows_every_key() -> None:
    import tomllib  # noqa: PLC0415

    content = tomllib.loads(WHOLE.replace("2027-02-01T00:00:00Z", '"2027-02-01T00:00:00Z"'))
    jsonschema.validate(content, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "access": {"zzz": 1}}, json_schema())
    assert SETTINGS["access"].type.schema["properties"].keys() == {
        *("public_url", "token_name", "tokens", "oauth", "sign_in")
    }
