"""The policy of the configuration stands before every call, whatever name was used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename.policy import read_policy

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

POLICY = {
    "default": "allow",
    "rules": [
        {"name": "no deleting", "outcome": "deny", "tools": ["files/delete*"], "reason": "it cannot be undone"},
        {"name": "look first", "outcome": "ask", "tools": ["files/write"]},
        {"name": "not from cursor", "outcome": "deny", "tools": ["files/read"], "clients": ["cursor"]},
    ],
}


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        ("/mcp", "delete_all", "Tool 'delete_all' does not exist; nothing was run."),
        ("/mcp", "files@1/delete_all@1", "Tool 'files@1/delete_all@1' does not exist; nothing was run."),
        ("/mcp", "files%401~delete_all", "does not exist; nothing was run."),
        ("/mcp/only/files", "delete_all", "Tool 'delete_all' does not exist"),
        ("/mcp", "write", "needs an approval; nothing was run"),
        ("/mcp/for/cursor", "read", "Tool 'read' does not exist"),
        ("/mcp/for/cursor/only/files", "read", "Tool 'read' does not exist"),
    ],
)
async def test_a_call_that_the_policy_refuses_never_reaches_the_server(
    lab: Lab, connect: Any, era: str, *, path: str, name: str, said: str
) -> None:
    policy = read_policy(POLICY)

    async with (
        lab.serving(lab.normal("files", "delete_all", "write", "read"), policy=policy) as address,
        connect(address + path, era) as client,
    ):
        answer = await client.call_tool(name, {})

    assert answer.is_error
    assert said in answer.content[0].text


@pytest.mark.parametrize(("whom", "runs"), [({"principals": ["annex"]}, True), ({"principals": ["*"]}, False)])
async def test_a_rule_about_one_caller_takes_a_tool_from_nobody_else(
    lab: Lab, connect: Any, era: str, *, whom: dict[str, Any], runs: bool
) -> None:
    rule = {"name": "not for all", "outcome": "deny", "tools": ["files/read"], **whom}
    policy = read_policy({"default": "allow", "rules": [rule]})

    async with (
        lab.serving(lab.normal("files", "read"), policy=policy) as address,
        connect(address + "/mcp", era) as client,
    ):
        listed = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("read", {})

    assert listed == ["read"]
    assert answer.is_error is not runs
    assert runs or "not for all" in answer.content[0].text


async def test_what_the_policy_denies_is_as_if_it_were_not_there(lab: Lab, connect: Any, era: str) -> None:
    policy = read_policy(POLICY)

    async with lab.serving(lab.normal("files", "delete_all", "write", "read"), policy=policy) as address:
        async with connect(address + "/mcp/for/claude-code", era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["write", "read"]
            # Neither the text, nor the count of repeats, nor the suggestions tell it from a name of nothing.
            for times in (1, 2, 3):
                denied, nothing = [
                    (await client.call_tool(name, {})).content[0].text for name in ("delete_all", "delete_any")
                ]
                assert denied.replace("delete_all", "delete_any") == nothing, times
        async with connect(address + "/mcp/for/cursor", era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["write"]


async def test_what_the_policy_allows_runs(lab: Lab, connect: Any, era: str) -> None:
    policy = read_policy({**POLICY, "rules": POLICY["rules"][:2]})

    async with (
        lab.serving(lab.normal("files", "read"), policy=policy) as address,
        connect(address + "/mcp", era) as client,
    ):
        answer = await client.call_tool("read", {})

    assert not answer.is_error
