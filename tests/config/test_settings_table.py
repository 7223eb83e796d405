"""Each field is declared once: the page, the schema, masking and reload all say the same of it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.shared import ROOT
from truename.config import Access, Issuer, KnownToken, ServerConfig, Settings, SignIn, json_schema, parse
from truename.config.approvals import Asking
from truename.config.audit import Audit
from truename.config.credentials import AUTH_ROWS, ClientCredentials, Login, TokenExchange
from truename.config.fields import fixed_changes, rows_of
from truename.config.reference import main, page
from truename.config.servers import SERVER
from truename.config.settings import SETTINGS
from truename.config.telemetry import Telemetry
from truename.config.trust import Trust
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.config.fields import Setting

CANARY: Final = "canary-1234567890-1234567890-1234567890"
TABLES: Final = (Settings, Access, Asking, Audit, Issuer, KnownToken, SignIn, Telemetry, Trust)
SECRETS: Final = {"token", "access.tokens.n.hash", "access.oauth.n.client_secret", "access.sign_in.client_secret"} | {
    "audit.key",
    "tls_key_password",
}


def walk(rows: Mapping[str, Setting], path: str = "") -> Iterator[tuple[str, Setting]]:
    for key, row in rows.items():
        yield f"{path}{key}", row
        yield from walk(row.type.rows, f"{path}{key}.{'n.' if row.type.key else ''}")


ALL: Final = (
    *walk(SETTINGS),
    *walk(SERVER, "mcpServers.s."),
    *(one for rows in AUTH_ROWS.values() for one in walk(rows, "mcpServers.s.auth.")),
)


def test_the_page_of_settings_is_made_from_the_table(tmp_path: Path) -> None:
    assert main([str(tmp_path / "settings.md")]) == 0
    assert (tmp_path / "settings.md").read_text("utf-8") == page()
    assert (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8") == page(), (
        "python -m truename.config.reference FILE"
    )
    assert main([]) == 2


@pytest.mark.parametrize("table", TABLES)
def test_every_field_of_a_table_is_declared(table: type[Any]) -> None:
    names = {row.attribute or key for key, row in rows_of(table).items()}

    assert {field.name for field in fields(table)} - names <= ({"name"} if table is KnownToken else set())


@pytest.mark.parametrize(("key", "row"), ALL, ids=[key for key, _ in ALL])
def test_a_meaning_is_one_sentence(key: str, row: Setting) -> None:
    assert row.meaning[0].isupper() or row.meaning.startswith("email:")
    assert row.meaning.endswith(".")


def test_the_schema_has_the_meaning_unit_and_default_of_a_setting() -> None:
    assert json_schema()["properties"]["max_waiting"] == {
        "type": "integer",
        "minimum": 1,
        "default": 512,
        "description": "Calls that may wait for a free slot at one server; one more is refused. Unit: calls.",
    }


def test_the_secrets_are_these() -> None:
    secrets = {key for key, row in ALL if row.secret}

    assert secrets == SECRETS | {"mcpServers.s.env", "mcpServers.s.headers", "mcpServers.s.auth.client_secret"}


def document(key: str, value: Any) -> dict[str, Any]:
    content: dict[str, Any] = {}
    place = content
    *way, last = key.split(".")
    for step in way:
        place = place.setdefault(step, {})
    place[last] = value
    return content


@pytest.mark.parametrize("value", [4242424242, [CANARY], {CANARY: [CANARY]}, f"{CANARY} \x7f\x00", CANARY])
@pytest.mark.parametrize("key", sorted(key for key, row in ALL if row.secret))
def test_no_error_shows_a_secret(key: str, value: Any) -> None:
    is_server = key.startswith("mcpServers.")
    content = document(key, {"a": value, "b": [value]} if key.endswith(("env", "headers")) else value)
    if is_server:
        content["mcpServers"]["s"] |= {"url": "https://a.example"}
        if "auth" in key:
            content["mcpServers"]["s"]["auth"]["type"] = "client_credentials"
    else:
        content = {"mcpServers": {}, "truename": content}
    shown = ""
    try:
        shown = repr(parse(json.dumps(content), Path("/m.json"), {}))
    except ConfigError as error:
        shown = repr(error)
    except ExceptionGroup as group:
        shown = repr(group.exceptions)

    # A key of a table is no value.
    is_key = isinstance(value, dict) and not key.endswith(("env", "headers"))
    hidden = ["4242424242"] if is_key else ["4242424242", CANARY]
    assert [one for one in hidden if one in shown] == []


VALUES: Final[tuple[Any, ...]] = (
    Settings(token=CANARY, tls_key_password=CANARY),
    KnownToken(name="n", hash=CANARY),
    Issuer(issuer="https://a.example", client_secret=CANARY),
    SignIn(client_id="c", allow=("*",), client_secret=CANARY),
    Audit(key=CANARY),
    ServerConfig(key="s", env={"A": CANARY}, headers={"A": CANARY}),
    ClientCredentials(client_id="c", client_secret=CANARY),
    Login(client_id="c", issuer="https://a.example", client_secret=CANARY),
    TokenExchange(client_id="c", client_secret=CANARY),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_repr_shows_a_secret(value: Any) -> None:
    secrets = [row.attribute or key for key, row in rows_of(type(value)).items() if row.secret]

    assert secrets
    assert [name for name in secrets if CANARY not in repr(getattr(value, name))] == []
    assert CANARY not in f"{value!r}{value}"


@pytest.mark.parametrize("key", SETTINGS)
def test_a_change_of_a_setting_is_fixed_unless_it_is_declared_live(key: str) -> None:
    row = SETTINGS[key]
    other: Any = object()
    changed = replace(Settings(), **{key: other})

    assert fixed_changes(Settings(), Settings()) == ()
    assert fixed_changes(Settings(), changed) == (() if row.live else (key,))


@pytest.mark.parametrize(
    ("before", "after", "fixed"),
    [
        (Audit(), Audit(required=True, arguments="digest", hide=("a",)), ()),
        (Audit(), Audit(path="/a", required=True, key=CANARY), ("audit.path", "audit.key")),
        (Asking(), Asking(ask="both", wait=1.0), ()),
        (Trust(), Trust(drift="block", lock="/a"), ()),
        (Trust(), Trust(pins="/a"), ("trust.pins",)),
    ],
)
def test_a_table_is_judged_field_by_field(before: Any, after: Any, fixed: tuple[str, ...]) -> None:
    name = next(key for key, row in SETTINGS.items() if type(row.default) is type(before))
    one, other = (replace(Settings(), **{name: table}) for table in (before, after))

    assert fixed_changes(one, other) == fixed


def test_a_table_that_comes_or_goes_is_judged_as_a_whole() -> None:
    sign_in = SignIn(client_id="c", allow=("*",), issuer="https://a.example")

    assert fixed_changes(Access(), Access(sign_in=sign_in)) == ("sign_in",)
    assert fixed_changes(Access(sign_in=sign_in), Access(sign_in=replace(sign_in, allow=("a",)))) == ("sign_in.allow",)
    assert fixed_changes(Access(), Access(tokens={"n": KnownToken(name="n", hash="h")}, token_name="x")) == ()
