"""What a profile hides cannot be measured: two gateways that differ only in that answer the same, word for word."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.support.gateway_memory import in_memory
from truename.config import ServerConfig, Settings
from truename.errors import TruenameError
from truename.gateway.endpoint.endpoint import Endpoint
from truename.gateway.registry import Registry
from truename.gateway.upstream.known import Known
from truename.gateway.upstream.lists import Lists
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.view import Asked, ViewSpec
from truename.ledger import Ledger
from truename.naming import resolve
from truename.policy.principal import LOCAL
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from truename.gateway.mcp.requests import Request
    from truename.naming import NameTable

pytestmark = pytest.mark.slow

ME = Profile(servers=("open*",), tools=("mixed/shown*",), excluded=("open/hidden*",), prompts=("open",), everyone=True)
WORDS = ("read", "read_file", "readFile", "list", "files_list", "open_read", "search_tools", "pay", "hiddenpay")
SERVERS = ("open", "mixed", "secret", "opened", "open-er")
Tools = dict[str, list[dict[str, Any]]]


class Server(Known):
    """A server as the gateway knows it, which nobody calls here."""

    follower: Any = SimpleNamespace(on_update=None, expect=None, on_task=None, level=None)

    def offers(self, capability: str) -> bool:
        return capability in {"prompts", "resources"} and self.key in {"secret", "open"}

    def lacks(self, capability: str) -> bool:
        return not self.offers(capability)

    async def awake(self) -> None:
        raise UpstreamError(server=self.key, kind="unavailable", problem="nobody is there", remedy="Leave it.")

    @property
    def instructions(self) -> str:
        return f"Of {self.key}: call read, then hidden_pay."


def is_hidden(server: str, name: str) -> bool:
    if server in {"open", "opened", "open-er"}:
        return server == "open" and name.startswith("hidden")
    return not (server == "mixed" and name.startswith("shown"))


def tool(server: str, name: str, about: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"region": {"type": "string"}}}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": {"title": f"{server} {name}"}}


NAMES = st.sampled_from(WORDS).flatmap(lambda word: st.sampled_from([word, f"shown_{word}", f"hidden_{word}"]))
ABOUT = st.sampled_from(["", "Reads a file.", "Use read, then shown_list and hidden_pay.", "pay list files secret"])
OFFERED = st.lists(
    st.builds(lambda server, name, about: (server, tool(server, name, about)), st.sampled_from(SERVERS), NAMES, ABOUT),
    max_size=12,
    unique_by=lambda one: (one[0], one[1]["name"]),
)


class Bench:
    """One gateway without servers: first what is seen is listed, then what is hidden, if it is there at all."""

    def __init__(self, offered: Sequence[tuple[str, dict[str, Any]]], *, hides: bool, **more: Any) -> None:
        known = Settings(**{"profiles": Profiles({"me": ME}), **more})
        shown = {server for server, one in offered if not is_hidden(server, one["name"])}
        keys = [key for key in SERVERS if hides or key in shown or key.startswith("open")]
        self.pool = {key: Server(ServerConfig(key=key, command="true"), known) for key in keys}
        self.registry = Registry(self.pool, Ledger.memory(), known)  # type: ignore[arg-type]
        profiles = self.registry.profiled.of(LOCAL)
        self.spec = ViewSpec("universal", profiles=profiles)
        self.endpoint = Endpoint(self.registry, self.spec, self._choose, Asked())
        self._list(offered, hides=False)
        self.registry.changes()
        self.registry.other_changes()
        self._list(offered, hides=hides)
        self.told = self.spec in self.registry.changes()
        self.others = [one for one in self.registry.other_changes() if self.registry.sight(self.spec.limits).has(*one)]

    def _choose(self, _: Request) -> ViewSpec:
        return self.spec

    def _list(self, offered: Sequence[tuple[str, dict[str, Any]]], *, hides: bool) -> None:
        for key, server in self.pool.items():
            mine = [one for of, one in offered if of == key]
            server.tools = tuple(one for one in mine if hides or not is_hidden(key, one["name"]))
            if key == "open" or (hides and key == "secret"):
                prompts = ({"name": "greet", "description": "Greets with read and hidden_pay."},)
                uri = f"{key}://a"
                server.lists = Lists(
                    prompts, ({"uri": uri, "name": "a"},), ({"uriTemplate": f"{key}://{{x}}", "name": "t"},)
                )
        self.registry.rebuild()
        for kind in ("tools", "prompts"):
            self.registry.view(replace(self.spec, profiles=None, kind=kind))
            self.registry.view(replace(self.spec, kind=kind))

    @property
    def table(self) -> NameTable:
        return self.registry.view(self.spec).table


def plain(found: Any) -> Any:
    return found.model_dump(mode="json", by_alias=True)


async def answered(ask: Callable[..., Any], *args: Any) -> Any:
    try:
        return plain(await ask(*args))
    except MCPError as error:
        return error.error.code, error.error.message, error.error.data


async def transcript(bench: Bench, probes: Sequence[str], era: str) -> list[Any]:
    async with Client(in_memory(bench.endpoint), mode=era, raise_exceptions=False) as client:
        said: list[Any] = [client.instructions, plain(client.server_capabilities)]
        said += [
            plain(await client.list_tools(cache_mode="bypass")),
            plain(await client.list_prompts(cache_mode="bypass")) if client.server_capabilities.prompts else None,
            await answered(client.list_resources),
            await answered(client.list_resource_templates),
        ]
        for name in probes:
            said += [(name, await answered(client.call_tool, name, {"region": "eu"}))]
            said += [(name, await answered(client.get_prompt, name))]
        own = [name for name in bench.registry.view(bench.spec).table.values() if "search_tools" in name]
        for query in ("read a file", "secret pay", "hidden list"):
            said += [await answered(client.call_tool, "search_tools", {"query": query})] if not own else []
        said += [await answered(client.call_tool, "describe_tools", {"names": list(probes)[:20]})]
        for uri in ("secret://a", "secret://b", "truename://secret/secret://a", "nothing://a"):
            said += [(uri, await answered(client.read_resource, uri))]
        return said


def spellings(table: NameTable) -> list[str]:
    found: dict[str, None] = {}
    for id, name in table.items():
        origin = table.catalog[id].origin
        texts = (name, str(id), id.short, origin.name, f"{origin.server}:{origin.name}", name.upper(), f"{name}x")
        found |= dict.fromkeys(texts)
    return list(found)


def meaning(text: str, table: NameTable) -> object:
    try:
        return resolve(text, table).id
    except TruenameError as error:
        return str(error)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
@given(
    offered=OFFERED, search=st.sampled_from(["off", "on", "auto"]), style=st.sampled_from(["prefixed", "on-conflict"])
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_two_gateways_that_differ_in_hidden_tools_answer_the_same(
    era: str, offered: list[tuple[str, dict[str, Any]]], search: str, style: str
) -> None:
    benches = [Bench(offered, hides=hides, tool_search=search, style=style, max_listed=4) for hides in (True, False)]
    whole = benches[0].registry.view(ViewSpec("universal")).table
    probes = [*spellings(whole), "secret/greet", "secret_greet", "greet"]
    tables = [bench.table for bench in benches]
    assert dict(tables[0]) == dict(tables[1])
    # One name never means two tools: a hidden tool's is unknown, also where it is another spelling of one that is seen.
    kept = {text for id, name in whole.items() if id not in tables[0] for text in (name, str(id), id.short)}
    assert all(isinstance(meaning(text, tables[0]), str) for text in kept)
    probes = [text for text in probes if text not in kept]
    assert [meaning(text, tables[0]) for text in probes] == [meaning(text, tables[1]) for text in probes]
    assert not benches[0].told
    assert not benches[0].others
    # What is seen leads to a server, of which there is none here.
    safe = [text for text in probes if isinstance(meaning(text, tables[1]), str)][-16:]
    transcripts = [anyio.run(transcript, bench, safe, era) for bench in benches]
    for hiding, without in zip(*transcripts, strict=True):
        assert json.dumps(hiding) == json.dumps(without)
