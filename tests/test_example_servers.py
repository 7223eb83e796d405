"""The example servers, which the blocks of the documentation start, are real, small and always the same."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from tests.shared import ROOT

_SERVERS: Final = ROOT / "examples" / "servers"
# The file of a server, an argument -> a call, and its answer.
_CALLS: Final[dict[tuple[str, ...], tuple[str, dict[str, str], str]]] = {
    ("tickets.py",): ("search", {"query": "slow"}, "T-3: Search is slow on large accounts"),
    ("notes.py",): ("notes.list", {}, "onboarding"),
    ("notes.py", "--revised"): ("notes.write", {"name": "n", "text": "four"}, "Wrote n: 4 characters."),
    ("agenda.py",): ("delete_event", {"key": "E-3"}, "Deleted E-3."),
    ("wiki.py",): ("getPage", {"title": "Home"}, "# Home"),
}


async def _session(arguments: tuple[str, ...]) -> tuple[dict[str, str], list[str], str]:
    file, *rest = arguments
    name, values, _ = _CALLS[arguments]
    async with Client(StdioServerParameters(command=sys.executable, args=[str(_SERVERS / file), *rest])) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(name, values)
    (content,) = result.content[:1]
    assert isinstance(content, TextContent)
    destructive = [tool.name for tool in tools if tool.annotations is not None and tool.annotations.destructive_hint]
    return {tool.name: tool.description or "" for tool in tools}, destructive, content.text


@pytest.mark.parametrize("arguments", _CALLS, ids=" ".join)
def test_a_server_lists_the_tools_that_the_page_names_and_answers(arguments: tuple[str, ...]) -> None:
    page = (_SERVERS / "README.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| `{arguments[0]}` \|(.*?)\|", page, re.MULTILINE)

    tools, destructive, answer = asyncio.run(_session(arguments))

    assert answer == _CALLS[arguments][2]
    assert set(re.findall(r"`([^`]+)`", row)) <= set(tools)
    assert len(destructive) == {"agenda.py": 1, "wiki.py": 1}.get(arguments[0], 0)
    assert ("publish" in tools.get("notes.write", "")) == ("--revised" in arguments)


def test_every_server_is_tested() -> None:
    assert {path.name for path in _SERVERS.glob("*.py")} == {arguments[0] for arguments in _CALLS}
