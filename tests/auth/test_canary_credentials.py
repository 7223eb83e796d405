"""Canaries of people and of OAuth: secrets of clients, tokens, codes and verifiers, the vault's key, asked addresses.

Somebody logs in at a server with `truename login`, signs in at a real `truename serve` with the SDK's client, and calls
servers that take their token, the gateway's own, and a password; then all is searched that was written or sent.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.auth.canaries import ASKED_URL, Far, canary, environment, farther, found_in, served, written
from tests.auth.person import Person
from tests.auth.signing import Browser, close_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp import Client

    from tests.auth.authority import Authority

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

ROBOT, LOGIN, GATE, PASSWORD, HEADER = map(canary, ("robot", "login", "gate", "password", "header"))
RING = canary("keyring")
VAULT_KEY = base64.b64encode(b"canary of the vault, 32 bytes!!!").decode()
GIVEN = {
    "robot": ROBOT,
    "login": LOGIN,
    "gate": GATE,
    "password": PASSWORD,
    "header": HEADER,
    "keyring": RING,
    "vault key": VAULT_KEY,
}
OURS = {"truename.toml", "robot.secret"}


@pytest.fixture
def far() -> Iterator[Far]:
    with farther() as server:
        yield server


def configuration(folder: Path, far: Far, idp: Authority) -> Path:
    """Write one in which each secret comes from another place."""
    idp.client("robot", secret=ROBOT)
    idp.client("person", secret=LOGIN).check_redirect_uri = lambda redirect_uri: True  # type: ignore[method-assign]  # noqa: ARG005
    secret = folder / "robot.secret"
    secret.touch(mode=0o600)
    secret.write_text(ROBOT + "\n")
    path = folder / "truename.toml"
    path.write_text(f"""
[access.sign_in]
issuer = "{idp.issuer}"
client_id = "gate"
client_secret = "${{GATE}}"
allow = ["*"]
[audit]
path = "audit"
arguments = "redacted"
[telemetry]
metrics = true
traces = true
[policy]
default = "allow"
[mcpServers.robot]
url = "{far.address}/mcp/robot"
headers = {{ X-Key = "${{HEADER}}", X-Ring = "${{keyring:truename/far}}" }}
[mcpServers.robot.auth]
type = "client_credentials"
issuer = "{idp.issuer}"
client_id = "robot"
client_secret = "${{file:{secret}}}"
[mcpServers.person]
url = "{far.address}/mcp/person"
isolation = "user"
[mcpServers.person.auth]
type = "login"
issuer = "{idp.issuer}"
client_id = "person"
client_secret = "${{LOGIN}}"
[mcpServers.walled]
url = "{far.address.replace("//", "//ann:${PASSWORD}@")}/mcp/walled"
[mcpServers.gone]
url = "http://ann:${{PASSWORD}}@127.0.0.1:9/mcp"
""")
    return path


def truename(environ: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "truename", *words], env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


async def logged_in(environ: dict[str, str], path: Path, who: str) -> str:
    """Log in as somebody does, in a browser; return what was said."""
    command = [sys.executable, "-m", "truename", "login", "person", str(path), "--json", "--for", who]
    async with await anyio.open_process(command, env=environ, stderr=subprocess.STDOUT) as process:
        said, assert_out = b"", process.stdout
        assert assert_out is not None
        with anyio.fail_after(30):
            while b"}" not in said:
                said += await assert_out.receive()
            async with httpx2.AsyncClient(follow_redirects=True) as browser:
                await browser.get(json.loads(said)["url"])
            async for more in assert_out:
                said += more
    assert b'"logged_in": true' in said, said
    return said.decode()


async def opened(_: Any, asked: Any) -> types.ElicitResult:
    assert asked.url == ASKED_URL
    return types.ElicitResult(action="accept")


async def called(client: Client, name: str) -> str:
    try:
        return (await client.call_tool(name, {"text": "x"})).model_dump_json()
    except MCPError as error:
        return str(error.error)


def taken(idp: Authority, person: Person) -> dict[str, str]:
    """Return the secrets that came to be: tokens of all kinds, codes, verifiers."""
    found = {}
    for number, token in enumerate(idp.tokens):
        found[f"access token {number}"] = token.access_token
        found[f"refresh token {number}"] = token.refresh_token
    for number, form in enumerate(form for path, form in idp.seen if path == "/token"):
        found |= {f"{name} {number}": form[name] for name in ("code", "code_verifier") if name in form}
    tokens = person.pocket.tokens
    assert tokens is not None
    assert tokens.refresh_token is not None
    found |= {"own access token": tokens.access_token, "own refresh token": tokens.refresh_token}
    return {name: secret for name, secret in found.items() if secret}


async def test_no_credential_leaves_the_place_where_it_belongs(tmp_path: Path, far: Far, idp: Authority) -> None:
    path = configuration(tmp_path, far, idp)
    own = {"GATE": GATE, "LOGIN": LOGIN, "PASSWORD": PASSWORD, "HEADER": HEADER, "TRUENAME_VAULT_KEY": VAULT_KEY}
    own["PYTHON_KEYRING_BACKEND"] = "tests.auth.ring.Ring"
    environ = environment(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"{far.address}/otlp", **own)
    # The lists are fetched as the gateway's own user.
    told = [await logged_in(environ, path, who) for who in ("local", json.dumps([idp.issuer, "ann"]))]
    person = Person(Browser())
    with served(tmp_path, path, environ) as (process, url):
        address = url.removesuffix("/mcp")
        idp.client("gate", f"{address}/sign-in/callback", secret=GATE)
        async with person.connected(url, "legacy", elicitation_callback=opened) as client:
            told.append((await client.list_tools()).model_dump_json())
            for name in ("robot_read", "robot_fails", "person_read", "person_ask", "walled_read", "gone_read"):
                told += [await called(client, name)]
        async with httpx2.AsyncClient(timeout=30) as http:
            for page in ("/readyz", "/metrics", "/.well-known/oauth-protected-resource/mcp", "/authorize?x=1", "/mcp"):
                told += [(await http.get(address + page)).text]
        process.send_signal(signal.SIGTERM)
        await anyio.to_thread.run_sync(process.wait)
    await close_all()
    for words in (["names"], ["audit", "export"]):
        told += [truename(environ, *words, str(path))]
    told += [
        truename(environ, "doctor"),
        truename({**environ, "TRUENAME_VAULT_KEY": "x" + VAULT_KEY}, "logins", str(path)),
    ]
    path.write_text(path.read_text().replace('type = "login"', f'type = "login"\nunheard = "{LOGIN}"'))
    told.append(truename(environ, "names", str(path)))

    secrets = {**GIVEN, **taken(idp, person), "elicited address": canary("elicited-url")}
    # The search finds what is there: each server was shown what it is to be shown, and the question was asked.
    robot, own_token = far.at("/mcp/robot"), far.at("/mcp/person")
    assert any(HEADER in text and RING in text for text in robot)
    assert {name for _, name in found_in({"x": own_token}, secrets)} & {f"access token {n}" for n in range(9)}
    assert far.told.is_set()
    assert any("Basic " in text for text in far.at("/mcp/walled"))
    assert len(secrets) > len(GIVEN) + 10
    assert "truename.tool.id" in "".join(text for where, text in far.heard if where.startswith("/otlp"))

    meant = [text for where, text in far.heard if where.startswith("/mcp")]
    places = {
        "answers": told,
        "spans": [text for where, text in far.heard if not where.startswith("/mcp")],
        **written(tmp_path, OURS),
    }
    assert found_in(places, secrets) == []
    # A server is shown what is for itself, and nothing that is for another, or for the gateway.
    for name in ("gate", "robot", "login", "vault key", "own access token", "own refresh token"):
        assert found_in({"servers": meant}, {name: secrets[name]}) == []
    assert found_in({"others": [*robot, *far.at("/mcp/walled")]}, taken_by(own_token, secrets)) == []


def taken_by(heard: list[str], secrets: dict[str, str]) -> dict[str, str]:
    """Return the tokens that a server was shown."""
    names = {name for _, name in found_in({"x": heard}, secrets) if name.startswith("access token")}
    return {name: secrets[name] for name in names}
