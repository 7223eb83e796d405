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
        {"name": "no deleting", "outcome": "deny", "tools": ["files/delete*"], "reason": "it can't be undone"},
        {"name": "look first", "outcome": "ask", "tools": ["files/write"]},
        {"name": "not from cursor", "outcome": "deny", "tools": ["files/read"], "clients": ["cursor"]},
    ],
}


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        ("/mcp", "delete_all", "is not allowed here (rule no deleting: it can't be undone); nothing was run"),
        ("/mcp", "files@1/delete_all@1", "rule no deleting"),
        ("/mcp", "files%401~delete_all", "rule no deleting"),
        ("/mcp/only/files", "delete_all", "rule no deleting"),
        ("/mcp", "write", "needs an approval; nothing was run"),
        ("/mcp/for/cursor", "read", "rule not from cursor"),
        ("/mcp/for/cursor/only/files", "read", "rule not from cursor"),
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


async def test_what_the_policy_allows_runs(lab: Lab, connect: Any, era: str) -> None:
    policy = read_policy({**POLICY, "rules": POLICY["rules"][:2]})

    async with (
        lab.serving(lab.normal("files", "read"), policy=policy) as address,
        connect(address + "/mcp", era) as client,
    ):
        answer = await client.call_tool("read", {})

    assert not answer.is_error
