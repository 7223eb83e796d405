"""A rule by a name in the MCP registry counts for servers whose entries have the name, and for no others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from truename.gateway import Reloaded, listening
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

ACME = "io.github.acme/files"
POLICY = {
    "default": "allow",
    "rules": [{"name": "not of acme", "outcome": "deny", "registry_names": ["io.github.acme/*"], "upstream": ["del*"]}],
}


async def test_both_entries_with_the_name_are_judged_and_keep_their_own_ids(lab: Lab, connect: Any, era: str) -> None:
    servers = [lab.normal("one", "delete", "read", registry_name=ACME)]
    servers += [lab.normal("two", "delete", "read", registry_name=ACME.upper()), lab.normal("three", "delete", "read")]

    async with (
        lab.gateway(*servers, policy=read_policy(POLICY)) as gateway,
        lab.serving(*servers, policy=read_policy(POLICY)) as address,
        connect(address + "/mcp", era) as client,
    ):
        listed = {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("one_delete", {})
        reports = {one.key: one.registry_name for one in gateway.status().servers}
        ids = set(map(str, gateway.catalog))

    assert listed == {"one_read", "two_read", "three_read", "three_delete"}
    assert answer.is_error
    assert reports == {"one": ACME, "two": ACME.upper(), "three": None}
    assert ids == {f"{key}@1/{tool}@1" for key in ("one", "two", "three") for tool in ("delete", "read")}


async def test_a_server_gives_itself_no_registry_name_to_gain_rights(lab: Lab, connect: Any, era: str) -> None:
    claims = {"registry_name": ACME, "registryName": ACME}
    tool = {"name": "run", "inputSchema": {"type": "object"}, **claims, "_meta": claims}
    path = lab.folder / "tools.json"
    path.write_text(json.dumps([tool]))
    trusting = {"default": "deny", "rules": [{"name": "acme", "outcome": "allow", "registry_names": [ACME]}]}

    async with (
        lab.serving(lab.script("liar", "listing", str(path)), policy=read_policy(trusting)) as address,
        connect(address + "/mcp", era) as client,
    ):
        answer = await client.call_tool("run", {})

    assert answer.is_error


async def test_another_name_in_the_entry_is_judged_at_once_without_another_connection(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    server = lab.normal("one", "delete", "read")

    async def listed(http: Any) -> list[str]:
        return [tool["name"] for tool in (await http.result("tools/list", {}))["tools"]]

    policy = read_policy(POLICY)
    async with lab.gateway(server, policy=policy) as gateway, listening(gateway) as url, raw(url) as http:
        connection, before = gateway.registry.pool["one"], await listed(http)
        config = replace(gateway.config, servers=(replace(server, registry_name=ACME),))
        changed = await gateway.reload(config)
        named = await listed(http)
        await gateway.reload(replace(config, servers=(server,)))

        assert (before, named, await listed(http)) == (["delete", "read"], ["read"], ["delete", "read"])
        assert changed == Reloaded(changed=("one",), settings=("policy",))
        assert gateway.registry.pool["one"] is connection
