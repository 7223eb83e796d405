"""Who is let in to a real gateway, and what ends when that is taken back."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.gateway.reloads import another
from tests.support.auth_entrance import ACCEPT, HELLO, bearer, known
from tests.support.gateway_holding import ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from truename.auth.inbound.authentication import asks_for_token, token_store
from truename.auth.inbound.static_tokens import create_token
from truename.config import Access, Config, Issuer, ServerConfig, Settings, load
from truename.errors import ConfigError
from truename.gateway import Gateway, listening, require_guard
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


IDP = {"idp": Issuer(issuer="https://idp.example")}


async def test_a_call_is_made_by_who_has_the_token_in_both_eras(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    tokens, access = known("ann", "bob")
    rules = {"default": "deny", "rules": [{"outcome": "allow", "principals": ["ann"]}]}
    async with lab.serving(lab.normal("w", "get"), access=access, policy=read_policy(rules)) as address:
        for name, allowed in (("ann", True), ("bob", False)):
            async with (
                httpx2.AsyncClient(headers=bearer(tokens[name])) as http,
                connect(_over(address, http), era) as client,
            ):
                done = await client.call_tool("w_get", {}) if allowed else None
                if done is None:
                    result = await client.call_tool("w_get", {})
                    assert result.is_error
                else:
                    assert not done.is_error


def _over(address: str, http: httpx2.AsyncClient) -> Any:
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    return streamable_http_client(f"{address}/mcp", http_client=http)


async def test_a_session_is_good_for_who_opened_it(lab: Lab) -> None:
    tokens, access = known("ann", "bob")
    async with lab.serving(lab.normal("w", "get"), access=access) as address, httpx2.AsyncClient() as http:
        opened = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(tokens["ann"])})
        session = {"mcp-session-id": opened.headers["mcp-session-id"], **ACCEPT, "mcp-protocol-version": "2025-06-18"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        told = {}
        for who in ("bob", "ann"):
            answer = await http.post(f"{address}/mcp", json=listing, headers={**session, **bearer(tokens[who])})
            told[who] = answer.status_code
        nobody = await http.post(f"{address}/mcp", json=listing, headers=session)
        unknown = await http.post(
            f"{address}/mcp", json=listing, headers={**session, "mcp-session-id": "0" * 32, **bearer(tokens["bob"])}
        )
        stolen = await http.post(f"{address}/mcp", json=listing, headers={**session, **bearer(tokens["bob"])})
        ended = await http.delete(f"{address}/mcp", headers={**session, **bearer(tokens["bob"])})

    assert told == {"bob": 404, "ann": 200}
    assert nobody.status_code == 401
    # As if there were no such session, to the letter.
    assert stolen.text == unknown.text
    assert ended.status_code == 404


async def test_a_held_call_is_met_by_who_made_it(lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams) -> None:
    tokens, access = known("ann", "bob")
    far = Handshaking()
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url), access=access) as address,
        raw(address) as http,
    ):
        ann, bob = bearer(tokens["ann"]), bearer(tokens["bob"])
        asked = await http.result("tools/call", ASK, headers=ann)
        again = {**ASK, "inputResponses": ANSWER, "requestState": asked["requestState"]}
        stolen = (await http.post("tools/call", again, headers=bob)).json()
        assert "No call waits" in stolen["error"]["message"]
        done = await http.result("tools/call", again, headers=ann)
    assert done["structuredContent"]["content"] == {"name": "ada"}


async def test_a_revoked_token_ends_what_it_has_open(lab: Lab, tmp_path: Path) -> None:
    config = _configured(lab, tmp_path)
    store = token_store(config)
    text, kept = create_token("ann", groups=(), scopes=(), expires=None)
    store.add(kept)
    async with Gateway(config) as gateway, listening(gateway) as address, httpx2.AsyncClient(timeout=20) as http:
        opened = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(text)})
        session = {"mcp-session-id": opened.headers["mcp-session-id"], **ACCEPT, **bearer(text)}
        with anyio.fail_after(15):
            async with http.stream("GET", f"{address}/mcp", headers=session) as stream:
                assert stream.status_code == 200
                store.revoke(frozenset({kept.id}))
                with pytest.raises(httpx2.RemoteProtocolError):
                    async for _ in stream.aiter_raw():
                        pass
        refused = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(text)})
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


async def test_a_call_whose_token_is_revoked_meanwhile_is_refused(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("truename.gateway.http.sessions.PATIENCE", 60.0)
    caplog.set_level(logging.ERROR)
    journal = tmp_path / "ran"
    config = _configured(lab, tmp_path, lab.script("j", "journal", str(journal), "wait"))
    store = token_store(config)
    text, kept = create_token("ann", groups=(), scopes=(), expires=None)
    store.add(kept)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    async with Gateway(config) as gateway, listening(gateway) as address, httpx2.AsyncClient(timeout=20) as http:
        opened = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(text)})
        session = {"mcp-session-id": opened.headers["mcp-session-id"], **ACCEPT, **bearer(text)}

        async def revoke() -> None:
            while not journal.exists():
                await anyio.sleep(0.01)
            store.revoke(frozenset({kept.id}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(revoke)
            refused = await http.post(f"{address}/mcp", json=call, headers=session)
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert caplog.records == []


async def test_a_stream_ends_with_its_token(lab: Lab, tmp_path: Path) -> None:
    config = _configured(lab, tmp_path)
    text, kept = create_token("ann", groups=(), scopes=(), expires=time.time() + 1.5)
    token_store(config).add(kept)
    async with Gateway(config) as gateway, listening(gateway) as address, httpx2.AsyncClient(timeout=20) as http:
        opened = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(text)})
        session = {"mcp-session-id": opened.headers["mcp-session-id"], **ACCEPT, **bearer(text)}
        with anyio.fail_after(15):
            async with http.stream("GET", f"{address}/mcp", headers=session) as stream:
                assert stream.status_code == 200
                with pytest.raises(httpx2.RemoteProtocolError):
                    async for _ in stream.aiter_raw():
                        pass


async def test_the_first_token_closes_a_running_gateway(lab: Lab, tmp_path: Path) -> None:
    config = _configured(lab, tmp_path)
    async with Gateway(config) as gateway, listening(gateway) as address, httpx2.AsyncClient() as http:
        opened = await http.post(f"{address}/mcp", json=HELLO, headers=ACCEPT)
        token_store(config).add(create_token("ann", groups=(), scopes=(), expires=None)[1])
        session = {"mcp-session-id": opened.headers["mcp-session-id"], **ACCEPT}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        refused = await http.post(f"{address}/mcp", json=listing, headers=session)
        health = await http.get(f"{address}/healthz")
    assert (opened.status_code, refused.status_code, health.status_code) == (200, 401, 200)


def _configured(lab: Lab, tmp_path: Path, server: ServerConfig | None = None) -> Config:
    servers = (server or lab.normal("w", "get"),)
    return Config(path=tmp_path / "truename.toml", servers=servers, settings=Settings(state=str(tmp_path / "state.db")))


@pytest.mark.parametrize(
    ("settings", "host", "is_let"),
    [
        ({}, "127.0.0.1", True),
        ({}, "0.0.0.0", False),
        ({"token": "t"}, "0.0.0.0", True),
        ({"access": known("ann")[1]}, "0.0.0.0", True),
        ({"access": Access(public_url="https://tools.example.com")}, "127.0.0.1", False),
        ({"access": Access(public_url="https://tools.example.com"), "token": "t"}, "127.0.0.1", True),
        ({"access": Access(public_url="http://127.0.0.1:8750")}, "127.0.0.1", True),
        ({"access": Access(oauth=IDP)}, "127.0.0.1", True),
        ({"access": Access(oauth=IDP)}, "0.0.0.0", False),
        ({"access": Access(oauth=IDP, public_url="https://tools.example.com")}, "0.0.0.0", True),
    ],
)
def test_others_are_let_in_only_if_they_prove_who_they_are(settings: dict[str, Any], host: str, is_let: bool) -> None:
    config = Config(settings=Settings(**settings))
    if is_let:
        require_guard(config, host)
        return
    with pytest.raises(ConfigError, match=r"can be reached from other machines|which is not configured"):
        require_guard(config, host)


def test_a_token_that_was_made_is_enough_to_listen_to_others(tmp_path: Path) -> None:
    config = Config(path=tmp_path / "truename.toml")
    with pytest.raises(ConfigError):
        require_guard(config, "0.0.0.0")
    token_store(config).add(create_token("ann", groups=(), scopes=(), expires=None)[1])
    require_guard(config, "0.0.0.0")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "tools.example.com"}, 401),
        ({"host": "tools.example.com:443"}, 401),
        ({"host": "tools.example.com", "origin": "https://tools.example.com"}, 401),
        ({"host": "tools.example.com:8443"}, 421),
        ({"host": "tools.example.com.evil.com"}, 421),
        ({"host": "tools.example.com", "origin": "http://tools.example.com"}, 403),
        ({"host": "tools.example.com", "origin": "https://evil.com"}, 403),
    ],
)
async def test_the_public_name_is_a_host_too(
    lab: Lab, raw: Callable[[str], Any], headers: dict[str, str], status: int
) -> None:
    access = Access(public_url="https://tools.example.com")
    async with lab.serving(lab.normal("w", "get"), access=access, token="t") as address, raw(address) as http:
        assert (await http.post("tools/list", {}, headers=headers)).status_code == status


async def test_another_configuration_brings_other_tokens(lab: Lab, raw: Callable[[str], Any]) -> None:
    tokens, access = known("ann", "bob")
    both = access.tokens
    async with (
        lab.gateway(lab.normal("w", "get"), access=Access(tokens={"ann": both["ann"]})) as gateway,
        listening(gateway) as address,
        raw(address) as http,
    ):

        async def statuses() -> dict[str, int]:
            return {
                name: (await http.post("tools/list", {}, headers=bearer(text))).status_code
                for name, text in tokens.items()
            }

        assert await statuses() == {"ann": 200, "bob": 401}
        await gateway.reload(another(gateway, access=Access(tokens={"bob": both["bob"]})))
        assert await statuses() == {"ann": 401, "bob": 200}
        idp = Access(tokens={"bob": both["bob"]}, oauth={"idp": Issuer(issuer="https://idp.example")})
        with pytest.raises(ConfigError, match="cannot change while the gateway runs"):
            await gateway.reload(another(gateway, access=idp))
        assert await statuses() == {"ann": 401, "bob": 200}


async def test_tokens_of_a_command_count_in_a_gateway(lab: Lab, tmp_path: Path) -> None:
    path = lab.config_file(lab.normal("w", "get"), state=str(tmp_path / "state.db"))
    made = await anyio.run_process([sys.executable, "-m", "truename", "token", "add", "ann", str(path)])
    text = made.stdout.decode().strip()
    async with Gateway(load(path)) as gateway, listening(gateway) as address, httpx2.AsyncClient() as http:
        hello = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(text)})
        await anyio.run_process([sys.executable, "-m", "truename", "token", "revoke", "ann", str(path)])
        refused = await http.post(f"{address}/mcp", json=HELLO, headers={**ACCEPT, **bearer(text)})
    assert (hello.status_code, refused.status_code) == (200, 401)
    assert text.encode() not in made.stderr


def test_clients_are_given_a_token_only_where_they_have_to_send_one(tmp_path: Path) -> None:
    path = tmp_path / "truename.toml"

    def asks(**settings: Any) -> bool:
        return asks_for_token(Config(path=path, settings=Settings(**settings)))

    assert [asks(), asks(token="t"), asks(access=known("ann")[1])] == [False, True, True]
    assert not asks(token="t", access=Access(oauth=IDP))
    token_store(Config(path=path)).add(create_token("ann", groups=(), scopes=(), expires=None)[1])
    assert asks()
