"""Profiles at the gateway: what somebody may not see does not exist for them, whoever else sees it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from tests.support.gateway_memory import in_memory
from truename.auth.inbound.static_tokens import create_token
from truename.config import Access, Config, KnownToken, Settings
from truename.gateway import Gateway, UnknownView
from truename.gateway.views.view import Asked, read_path
from truename.policy import read_policy
from truename.policy.principal import LOCAL, Principal
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

FILES = ("read", "write", "delete")
PROFILES = Profiles(
    {
        "readers": Profile(tools=("files/read",), groups=("staff",)),
        "writers": Profile(tools=("files/*",), excluded=("files/delete",), scopes=("write",)),
        "bank": Profile(servers=("bank",), principals=("ann",)),
        "rest": Profile(tools=("clock/*",), default=True),
    }
)
STAFF = Principal(name="joe", groups=frozenset({"staff"}))
ANN = Principal(name="ann", groups=frozenset({"staff"}))
BOT = Principal(name="bot", scopes=frozenset({"write"}))


@asynccontextmanager
async def running(lab: Lab, **more: Any) -> AsyncIterator[Gateway]:
    servers = lab.normal("files", *FILES), lab.normal("bank", "read", "pay"), lab.normal("clock", "now")
    async with lab.gateway(*servers, **{"profiles": PROFILES, "style": "prefixed", **more}) as gateway:
        yield gateway


def names_for(gateway: Gateway, principal: Principal, path: str | None = None) -> set[str]:
    spec = gateway.endpoint(path, principal=principal)._spec
    return {str(tool["name"]) for tool in gateway.registry.view(spec).tools}


async def test_somebody_sees_what_any_of_their_profiles_shows(lab: Lab) -> None:
    async with running(lab) as gateway:
        assert names_for(gateway, STAFF) == {"files_read"}
        assert names_for(gateway, ANN) == {"files_read", "bank_read", "bank_pay"}
        assert names_for(gateway, BOT) == {"files_read", "files_write"}
        assert names_for(gateway, LOCAL) == names_for(gateway, Principal(name="new")) == {"clock_now"}
        assert len(gateway.table()) == 6


async def test_who_is_in_no_profile_sees_nothing(lab: Lab, connect: Any) -> None:
    only_staff = Profiles({"readers": PROFILES["readers"]})
    async with running(lab, profiles=only_staff) as gateway, connect(in_memory(gateway.endpoint()), "legacy") as client:
        assert (await client.list_tools()).tools == []
        assert (await client.call_tool("files_read", {})).is_error


async def test_a_path_narrows_to_a_profile_that_one_is_in(lab: Lab) -> None:
    async with running(lab) as gateway:
        assert names_for(gateway, ANN, "/mcp/profile/bank") == {"bank_read", "bank_pay"}
        assert names_for(gateway, ANN, "/mcp/for/cursor/profile/readers") == {"files_read"}
        assert names_for(gateway, ANN, "/mcp/profile/bank/only/bank") == {"read", "pay"}
        texts = []
        for name in ("bank", "nobodys"):
            with pytest.raises(UnknownView) as caught:
                gateway.endpoint(f"/mcp/profile/{name}", principal=STAFF)
            texts.append(str(caught.value).replace(name, "NAME"))
        assert texts[0] == texts[1]
        assert len(gateway.table("/mcp/profile/bank")) == 2


@pytest.mark.parametrize(
    ("path", "principal"),
    [("/mcp/only/{}", STAFF), ("/mcp/profile/readers/only/{}", ANN)],
)
async def test_a_server_of_others_is_a_server_that_is_not_there(lab: Lab, path: str, principal: Principal) -> None:
    async with running(lab) as gateway:
        texts = []
        for name in ("bank", "tank"):
            with pytest.raises(UnknownView) as caught:
                gateway.endpoint(path.format(name), principal=principal)
            texts.append(str(caught.value).replace(name, "NAME"))
        assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "name",
    ["bank_pay", "bank/pay", "bank@1/pay@1", "BANK-PAY", "bank:pay", "pay", "bank%401~pay%401", "bank@latest/pay"],
)
async def test_a_hidden_tool_is_answered_as_one_that_never_was(lab: Lab, connect: Any, said: Any, name: str) -> None:
    profiles = Profiles({"readers": Profile(tools=("files/read",), everyone=True)})
    async with running(lab, profiles=profiles) as gateway, connect(in_memory(gateway.endpoint()), "legacy") as client:
        hidden = await client.call_tool(name, {})
        other = await client.call_tool(name.lower().replace("bank", "tank").replace("pay", "say"), {})
        assert hidden.is_error
        swapped = said(hidden).lower().replace("bank", "tank").replace("pay", "say")
        assert swapped == said(other).lower()
        assert hidden.meta == other.meta


@pytest.mark.parametrize(
    ("path", "settings"), [("/mcp/search", {}), ("/mcp", {"tool_search": "auto", "max_listed": 1})]
)
async def test_somebody_can_search_what_is_shown_to_them(
    lab: Lab, connect: Any, path: str, settings: dict[str, Any]
) -> None:
    everybodys = Profiles({"all": Profile(servers=("files", "clock"), everyone=True)})
    async with (
        running(lab, profiles=everybodys, **settings) as gateway,
        connect(in_memory(gateway.endpoint(path)), "legacy") as client,
    ):
        listed = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"query": "read"})
        called = await client.call_tool("call_tool", {"name": "files_read", "arguments": {}})
    assert listed == ["search_tools", "describe_tools", "call_tool"]
    assert [tool["name"] for tool in found.structured_content["tools"]] == ["files_read"]
    assert not called.is_error


async def over_http(lab: Lab, address: str, token: str, path: str = "/mcp", name: str | None = None) -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    method = "tools/list" if name is None else "tools/call"
    params = {"_meta": meta} if name is None else {"_meta": meta, "name": name, "arguments": {}}
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({} if name is None else {"mcp-name": name}),
    }
    async with httpx2.AsyncClient(timeout=15) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await http.post(address + path, json=body, headers=headers)


async def test_tokens_lead_to_profiles_over_http(lab: Lab) -> None:
    text, kept = create_token("ann", groups=("staff",), scopes=(), expires=None)
    other, rest = create_token("new", groups=(), scopes=(), expires=None)
    known = {
        one.name: KnownToken(name=one.name, hash=f"tn1:{one.id}:{one.digest}", groups=tuple(one.groups))
        for one in (kept, rest)
    }
    servers = lab.normal("files", *FILES), lab.normal("bank", "read", "pay"), lab.normal("clock", "now")
    settings = {"profiles": PROFILES, "style": "prefixed", "access": Access(tokens=known)}
    async with lab.serving(*servers, **settings) as address:
        listed = {
            token: {tool["name"] for tool in (await over_http(lab, address, token)).json()["result"]["tools"]}
            for token in (text, other)
        }
        assert listed == {text: {"files_read", "bank_read", "bank_pay"}, other: {"clock_now"}}
        called = (await over_http(lab, address, other, name="bank_pay")).json()["result"]
        assert called["isError"]
        assert "does not exist" in called["content"][0]["text"]
        assert (await over_http(lab, address, text, name="bank_pay")).json()["result"].get("isError") is not True
        assert (await over_http(lab, address, other, "/mcp/profile/bank")).status_code == 404
        assert (await over_http(lab, address, text, "/mcp/profile/bank")).status_code == 200


async def test_each_sees_their_own_at_one_address(lab: Lab, connect: Any, era: str) -> None:
    tokens = {name: create_token(name, groups=(), scopes=(), expires=None) for name in ("ann", "new")}
    known = {name: KnownToken(name=name, hash=f"tn1:{one.id}:{one.digest}") for name, (_, one) in tokens.items()}
    servers = lab.normal("bank", "read", "pay"), lab.normal("clock", "now")
    settings = {"profiles": PROFILES, "style": "prefixed", "access": Access(tokens=known)}
    seen: dict[str, set[str]] = {}
    answers: dict[str, bool | None] = {}
    async with lab.serving(*servers, **settings) as address:
        for name, (text, _) in tokens.items():
            async with (
                httpx2.AsyncClient(headers={"authorization": f"Bearer {text}"}) as http,
                connect(streamable_http_client(f"{address}/mcp", http_client=http), era) as client,
            ):
                seen[name] = {tool.name for tool in (await client.list_tools()).tools}
                answers[name] = bool((await client.call_tool("bank_pay", {})).is_error)
    assert seen == {"ann": {"bank_read", "bank_pay"}, "new": {"clock_now"}}
    assert answers == {"ann": False, "new": True}


async def test_another_configuration_takes_from_an_open_session_what_is_no_longer_its_own(
    lab: Lab, connect: Any
) -> None:
    everyone = Profiles({"all": Profile(tools=("*",), everyone=True)})
    async with running(lab, profiles=everyone) as gateway, connect(in_memory(gateway.endpoint()), "legacy") as client:
        assert len((await client.list_tools(cache_mode="bypass")).tools) == 6
        config = gateway.config
        settings = Settings(**{**vars(config.settings), "profiles": PROFILES})
        await gateway.reload(Config(path=config.path, servers=config.servers, settings=settings))
        assert [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools] == ["clock_now"]
        assert (await client.call_tool("files_read", {})).is_error


async def test_rules_and_contexts_hold_within_a_profile(lab: Lab) -> None:
    policy = read_policy({"rules": [{"outcome": "deny", "tools": ["files/write"]}]})
    async with running(lab, policy=policy) as gateway:
        endpoint = gateway.endpoint(principal=BOT)
        view, access = gateway.registry.view(endpoint._spec), gateway.registry.access
        assert {str(tool["name"]) for tool in access.limited(view, access.contexts.default).tools} == {"files_read"}


async def test_the_digest_of_the_catalogue_is_of_what_is_seen(lab: Lab) -> None:
    async with running(lab) as gateway:
        views = [gateway.registry.view(gateway.endpoint(principal=one)._spec) for one in (STAFF, ANN, STAFF)]
        assert views[0].digest == views[2].digest != views[1].digest


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/mcp/profile/p", Asked(profile="p")),
        ("/mcp/profile/p/", Asked(profile="p")),
        ("/mcp/for/cursor/profile/p/in/c/only/a/b", Asked("cursor", "a/b", "c", "p")),
        ("/mcp/only/profile/p", Asked(server="profile/p")),
    ],
)
def test_a_path_may_have_a_profile_in_it(path: str, asked: Asked) -> None:
    assert read_path(path, ["a/b", "profile/p"], ["c"], ["p"]) == asked


@pytest.mark.parametrize("path", ["/mcp/profile", "/mcp/profile/", "/mcp/profile/x", "/mcp/in/c/profile/p"])
def test_a_path_to_no_profile_leads_nowhere(path: str) -> None:
    with pytest.raises(UnknownView):
        read_path(path, ["a"], ["c"], ["p"])


HEADED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


async def test_headers_of_a_hidden_tools_arguments_are_not_checked(lab: Lab, raw: Any) -> None:
    (lab.folder / "far.json").write_text(json.dumps([{"name": "headed", "inputSchema": HEADED}]))
    denied = read_policy({"rules": [{"outcome": "deny", "tools": ["far/headed"]}]})
    answers = []
    for policy in (denied, None):
        far = lab.script("far", "turning", str(lab.folder / "far.json"), "far")
        async with lab.serving(far, policy=policy, style="prefixed") as address, raw(address) as http:
            params = {"name": "far_headed", "arguments": {"region": "eu"}}
            answers.append((await http.post("tools/call", params, headers={"mcp-param-region": "us"})).status_code)
    assert answers == [200, 400]
