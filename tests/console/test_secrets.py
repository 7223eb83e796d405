"""No page shows a secret: of the configuration, of arguments, of tokens and cookies; and no error does."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.console.conftest import called, serving
from truename.audit.redaction import Redaction
from truename.config import Access, Config, Settings
from truename.config.access import KnownToken
from truename.config.audit import Audit
from truename.config.credentials import Login
from truename.console import ROUTES
from truename.console.secret_texts import SecretTexts, hidden_arguments
from truename.gateway.trust.forms import shown_arguments
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from tests.console.conftest import World
    from tests.gateway.conftest import Lab
    from truename.config import ServerConfig

pytestmark = pytest.mark.anyio
MARK = "s3cr3t"
# Writes all that it was given to its standard error, and ends.
TELLS_ALL = """import os, sys
for line in (*sys.argv, *(f"{name}={value}" for name, value in sorted(os.environ.items()))):
    print(line[:250], file=sys.stderr)
sys.exit(3)
"""


def secret(place: str) -> str:
    """Return a secret that is found again wherever it is shown, also where only its end is."""
    return f"{place}-{MARK}-0123456789"


def servers(lab: Lab) -> list[ServerConfig]:
    """Return servers with a secret at each place of an entry; none of them can be reached but the first."""
    talking = lab.script("talking", "answering", str(lab.folder / "tools.json"))
    env = {
        "API_TOKEN": secret("token"),
        "DATABASE_URL": f"postgresql://ann:{secret('dsn')}@db.example/x",
        "MISC": secret("of-no-name"),
    }
    told = lab.at("a", "http://127.0.0.1:1/mcp")
    return [
        replace(talking, env={**talking.env, **env}),
        replace(
            talking,
            key="telling",
            command=sys.executable,
            args=("-c", TELLS_ALL, "--api-key", secret("arg"), f"--password={secret('option')}"),
            env=env,
        ),
        replace(told, key="header", headers={"Authorization": f"Bearer {secret('bearer')}", "X-Own": secret("header")}),
        replace(told, key="address", url=f"http://ann:{secret('url')}@127.0.0.1:1/mcp?access_token={secret('query')}"),
        replace(
            told, key="login", auth=Login(client_id="x", issuer="http://127.0.0.1:1", client_secret=secret("oauth"))
        ),
    ]


def settings(lab: Lab) -> dict[str, Any]:
    (lab.folder / "tools.json").write_text(
        json.dumps([{"name": name, "description": "It.", "inputSchema": {"type": "object"}} for name in ("say", "ask")])
    )
    return {
        "token": secret("gateway"),
        "access": Access(tokens={"ci": KnownToken(name="ci", hash=f"tn1:{'0' * 16}:{'0' * 64}")}),
        "audit": Audit(path=str(lab.folder / "audit"), key=secret("audit") * 2, hide=("*mine*",)),
    }


# Each line is a call whose secret the audit log hides.
BESIDE_ITS_NAME: tuple[dict[str, Any], ...] = (
    {"fields": [{"name": "password", "value": MARK}]},
    {"args": ["--token", MARK]},
    {"pass\nword": MARK},
    {"body": f"x\npassword: {MARK}\n"},
    {"deep": {"by_mine": {"y": MARK}}},
    {"type": "password", "text": MARK},
    {"element": "Password field", "text": MARK},
    # What is cut is no JSON any more.
    {"fields": [{"text": "x" * 9_000}, {"name": "password", "value": MARK}]},
    {"deep": {"text": "x" * 9_000, "by_mine": {"y": MARK}}},
    {"element": "Password field", "text": MARK + "x" * 9_000},
)
PLACES = ("token", "dsn", "of-no-name", "arg", "option", "bearer", "header", "url", "query", "oauth", "gateway")
ARGUMENTS: dict[str, Any] = {
    "password": secret("password"),
    "text": f"use Bearer {secret('in-text')}",
    "nested": {"api_key": secret("nested")},
    "is_mine": secret("by-glob"),
    "url": f"https://ann:{secret('argument-url')}@x.example/",
    "plain": "shown",
}
PATHS = (
    *(f"/console{route.path}" for route in ROUTES if route.method == "GET" and "{" not in route.path),
    *(f"/console/servers/{key}" for key in ("talking", "telling", "header", "address", "login", "nothing")),
    "/console/tools/talking@1/say@1",
    "/console/tools/nothing",
    "/console/nothing",
    "/console/names?name=talking_say",
    "/console/connect?client=cursor",
)


async def pages(world: World) -> dict[str, str]:
    """Return all pages of an operator, errors too."""
    async with world.browser("op") as browser:
        found = {path: (await browser.get(path)).text for path in PATHS}
        csrf = await browser.csrf()
        for path in ("/console/approvals/0/decision", "/console/approvals/0/revocation", "/console/reviews/x/decision"):
            for fields in ({}, {"answer": "grant", "scope": "call"}, {"answer": "accept", "digest": "x"}):
                found[f"{path} {fields}"] = (await browser.post(path, csrf=csrf, **fields)).text
        return found | {"login": (await browser.post("/console/login", token="tnp_wrong")).text}


async def test_no_page_and_no_error_shows_a_secret_of_any_setting_or_argument(lab: Lab) -> None:
    async with serving(lab, *servers(lab), **settings(lab)) as world:
        await called(world, "talking_say", who="op", **ARGUMENTS)
        await lab.saw("failed", "telling")
        found = await pages(world)
        for path, page in found.items():
            assert MARK not in page, (path, page[max(0, page.find(MARK) - 200) : page.find(MARK) + 40])
            assert not [name for name, token in world.tokens.items() if token in page], path
        assert "plain: &#34;shown&#34;" in found["/console/approvals"]
        assert "API_TOKEN" in found["/console/servers/telling"]


@pytest.mark.parametrize("written", [lambda one: one, json.dumps, quote, repr, lambda one: f"x{one}y"])
def test_a_secret_is_hidden_however_a_text_quotes_it(lab: Lab, written: Any) -> None:
    texts = SecretTexts(configured(lab))
    for place in PLACES:
        error = UpstreamError(server="x", kind="lost", problem=written(secret(place)), remedy="")
        assert MARK not in texts.hidden(str(error)), place


def test_the_beginning_of_a_secret_that_was_cut_off_is_hidden_too(lab: Lab) -> None:
    texts = SecretTexts(configured(lab))
    for place in PLACES:
        whole = secret(place)
        for length in range(4, len(whole)):
            text = f"a.b: refused {whole[:length]}..."
            assert texts.hidden(text) == "a.b: refused [redacted]...", (place, length)
    assert texts.hidden("Waiting for the server...") == "Waiting for the server..."


@pytest.mark.parametrize("arguments", BESIDE_ITS_NAME)
def test_arguments_are_hidden_wherever_the_audit_log_hides_them(arguments: dict[str, Any]) -> None:
    globs = ("*mine*",)
    assert MARK not in json.dumps(Redaction("redacted", globs).of(arguments))
    assert MARK in shown_arguments(arguments)
    shown = hidden_arguments(shown_arguments({"plain": ["shown", {"x": 1}], **arguments}), globs)
    assert MARK not in shown
    assert shown.startswith('plain: ["shown", {"x": 1}]\n')


@pytest.mark.parametrize(
    "arguments", [{}, {"a": "b: c", "n": [1.5, None, True], "long": "x y " * 5_000, "t": "[redacted]"}]
)
def test_arguments_without_a_secret_are_shown_as_they_are(arguments: dict[str, Any]) -> None:
    assert hidden_arguments(shown_arguments(arguments), ()) == shown_arguments(arguments)


@pytest.mark.parametrize("text", ["x" * 1_000_000, "x y " * 250_000, "x" * 1_000_000 + "...", "ab..." * 200_000])
def test_a_long_line_is_searched_in_its_time(lab: Lab, text: str) -> None:
    texts, began = SecretTexts(configured(lab)), time.monotonic()
    assert texts.hidden(text) == text
    # A pattern that tries 500 characters at each takes half a minute.
    assert time.monotonic() - began < 8


def configured(lab: Lab) -> Config:
    return Config(servers=tuple(servers(lab)), settings=Settings(**settings(lab)))


def test_the_texts_of_this_process_stay_as_they_are(lab: Lab) -> None:
    texts = SecretTexts(configured(lab))
    for text in ("Server 'x' exited with status 4.", str(Path.cwd()), "ready", "listing 12 tools of talking"):
        assert texts.hidden(text) == text
