"""A tool that has its function's name is renamed in its declaration, and the real library then lists the new name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lint.library_sources import AGENTS, FASTMCP, LANGCHAIN, OURS, SDK
from tests.support.lint_python_sources import listed, module, of_fastmcp, of_langchain, of_ours, of_sdk
from truename.lint.python_tools import read_functions
from truename.migration import RenamePlan, plan, rewrite, survey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from tests.support.lint_python_sources import Listed


def renamed(text: str, old: str = "search", new: str = "find_it", file: str = "server.py") -> str:
    return rewrite(text, {old: new}, functions=read_functions(text, file)).text


FUNCTION = "def search(q: str) -> str: ...\n"
MCP = "from fastmcp import FastMCP\nmcp = FastMCP('x')\n"
# What is written in front of the function, and what it becomes.
DECORATORS = [
    ("@mcp.tool", '@mcp.tool(name="find_it")'),
    ("@mcp.tool()", '@mcp.tool(name="find_it")'),
    ("@mcp.tool( )", '@mcp.tool(name="find_it" )'),
    ("@mcp.tool  # why", '@mcp.tool(name="find_it")  # why'),
    ("@(mcp.tool)", '@(mcp.tool)(name="find_it")'),
    ("@(mcp.tool)()", '@(mcp.tool)(name="find_it")'),
    ('@mcp.tool(description="x")', '@mcp.tool(name="find_it", description="x")'),
    ('@mcp.tool(\n    description="x",\n)', '@mcp.tool(name="find_it",\n    description="x",\n)'),
    ('@mcp.tool(  # ")" \n    tags={"a"},\n)', '@mcp.tool(name="find_it",  # ")" \n    tags={"a"},\n)'),
    ("@mcp.tool(name=None)", '@mcp.tool(name="find_it")'),
    ("@mcp.tool(None)", '@mcp.tool("find_it")'),
    ("@mcp.tool\n@mcp.tool()", '@mcp.tool(name="find_it")\n@mcp.tool(name="find_it")'),
    ('@mcp.tool("search")', '@mcp.tool("find_it")'),
    ('@mcp.tool(name="other")', '@mcp.tool(name="other")'),
    ("@mcp.tool(**options)", "@mcp.tool(**options)"),
    ("@mcp.resource", "@mcp.resource"),
]
# What declares the function behind it.
CALLS = [
    ("mcp.tool(search)", 'mcp.tool(search, name="find_it")'),
    ("mcp.tool((search), tags={1, 2})", 'mcp.tool((search), name="find_it", tags={1, 2})'),
    ("mcp.tool(search,)", 'mcp.tool(search, name="find_it",)'),
    ("mcp.tool()(search)", 'mcp.tool(name="find_it")(search)'),
    ("mcp.tool(search, **more)", "mcp.tool(search, **more)"),
    ("mcp.add_tool(search)", "mcp.add_tool(search)"),
    ("Tool.from_function(fn=search)", 'Tool.from_function(name="find_it", fn=search)'),
    ("Tool.from_function(search, *more)", "Tool.from_function(search, *more)"),
]


@pytest.mark.parametrize(("before", "after"), DECORATORS)
def test_a_decorator_gets_the_name_and_the_function_keeps_its_own(before: str, after: str) -> None:
    assert renamed(f"{MCP}{before}\n{FUNCTION}") == f"{MCP}{after}\n{FUNCTION}"


@pytest.mark.parametrize(("before", "after"), CALLS)
def test_a_call_gets_the_name_where_its_library_takes_one(before: str, after: str) -> None:
    head = f"from fastmcp.tools import Tool\n{MCP}{FUNCTION}"

    assert renamed(f"{head}{before}\n") == f"{head}{after}\n"


def test_line_ends_a_mark_and_other_scripts_move_nothing() -> None:
    text = f"\ufeff# é\r\n{MCP}x = 'ü'; y = '𝕏'\r@mcp.tool\r\n{FUNCTION}".replace("\n", "\r\n").replace("\r\r", "\r")

    assert renamed(text) == text.replace("@mcp.tool", '@mcp.tool(name="find_it")')


@pytest.mark.parametrize("text", ["@mcp.tool\ndef search(: pass\n", "\ud800@mcp.tool", "x = (", ""])
def test_what_is_no_python_has_no_functions(text: str) -> None:
    assert read_functions(text, "server.py") == ()
    assert read_functions(f"{MCP}@mcp.tool\n{FUNCTION}", "server.md") == ()


def test_a_declaration_that_says_its_name_leaves_nothing_to_do_at_the_function() -> None:
    text = f'{MCP}@mcp.tool(name="get_it")\ndef get_it(): ...\n'
    done = rewrite(text, {"get_it": "fetch_it"}, functions=read_functions(text, "a.py"))

    assert done.text == text.replace('"get_it"', '"fetch_it"')
    assert done.leftovers == ()


def test_a_function_that_no_name_can_be_added_to_is_left_over() -> None:
    text = f"{MCP}{FUNCTION}mcp.add_tool(search)\n"
    done = rewrite(text, {"search": "find_it"}, functions=read_functions(text, "a.py"))

    assert (done.text, [(left.line, left.reason) for left in done.leftovers]) == (text, [(3, "code")])


def of_agents(made: ModuleType) -> Listed:
    return listed((one.name, one.params_json_schema) for one in made.tools)


LIBRARIES: list[tuple[str, Callable[[ModuleType], Listed]]] = [
    (FASTMCP, of_fastmcp),
    (SDK, of_sdk),
    (AGENTS, of_agents),
    (LANGCHAIN, of_langchain),
    (OURS, of_ours),
]


@pytest.mark.parametrize(("text", "listing"), LIBRARIES, ids=["fastmcp", "mcp", "agents", "langchain", "truename"])
def test_what_the_library_lists_after_the_rename_has_the_new_names(
    text: str, listing: Callable[[ModuleType], Listed], source: Path
) -> None:
    before = listing(module(source, text))
    done: RenamePlan = plan({one.name: f"{one.name}_anew" for one in read_functions(text, "a.py") if one.gaps})
    assert done.renames

    found = survey(done, [source], functions=read_functions)
    (change,) = found.changes
    assert change.after is not None
    after = listing(module(source, change.after.decode()))

    assert after == {done.renames.get(name, name): required for name, required in before.items()}


@given(st.lists(st.sampled_from([before for before, _ in DECORATORS]), min_size=1, max_size=3), st.booleans())
def test_a_second_run_finds_nothing_more(decorators: list[str], crlf: bool) -> None:
    lines = "\n".join(decorators)
    text = f"{MCP}{lines}\n{FUNCTION}"
    text = text.replace("\n", "\r\n") if crlf else text
    once = renamed(text)
    done = rewrite(once, {"search": "find_it"}, functions=read_functions(once, "a.py"))

    assert done.text == once
    assert [one.name for one in read_functions(once, "a.py") if one.gaps] == []
