"""The ways in which Python libraries have a tool declared, each a row of a table.

Read in the libraries' own code: FastMCP 4.1, the MCP SDK 2.3 (and its FastMCP of before), the OpenAI Agents SDK 0.24,
langchain-core 1.7, pydantic-ai 2.68; tests compare with what each of them lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OURS", "Way", "is_base_tool", "way"]

OURS: Final = "truename"
_LANGCHAIN: Final = "langchain"
_SERVER: Final = "server"
_AGENTS: Final = "agents"
# Which library a dotted name belongs to, by its first part.
_LIBRARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fastmcp": _SERVER,
        "mcp": _SERVER,
        "mcp_types": _SERVER,
        "pydantic_ai": _SERVER,
        "agents": _AGENTS,
        "langchain": _LANGCHAIN,
        "langchain_core": _LANGCHAIN,
        "langchain_classic": _LANGCHAIN,
        "langchain_community": _LANGCHAIN,
        "truename": OURS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where one library has the name, the function, the description and the schema.

    Each has a keyword, and a place among the arguments without one (-1: none). ``needs_function``: without a function
    there is no tool. ``strict``: every parameter is required. ``takes_name``: a name can be added where there is none.
    """

    library: str = ""
    name: str = "name"
    name_at: int = -1
    function: tuple[str, ...] = ("fn",)
    function_at: int = -1
    description: str = "description"
    description_at: int = -1
    schemas: tuple[str, ...] = ()
    schema_at: int = -1
    needs_function: bool = True
    strict: bool = False
    takes_name: bool = True


_MCP_SCHEMAS: Final = ("inputSchema", "input_schema", "parameters")
_WAYS: Final[Mapping[tuple[str, str], Way]] = MappingProxyType(
    {
        (_SERVER, "tool"): Way(library=_SERVER, name_at=0, function_at=0),
        (_SERVER, "tool_plain"): Way(library=_SERVER, function_at=0),
        (_SERVER, "add_tool"): Way(library=_SERVER, name_at=1, function_at=0),
        (_SERVER, "from_function"): Way(library=_SERVER, name_at=1, function_at=0),
        (_SERVER, "Tool"): Way(library=_SERVER, needs_function=False, schemas=_MCP_SCHEMAS, function=("function",)),
        (_AGENTS, "function_tool"): Way(
            library=_AGENTS,
            name="name_override",
            function=("func",),
            function_at=0,
            description="description_override",
            strict=True,
        ),
        (_AGENTS, "FunctionTool"): Way(
            library=_AGENTS,
            name_at=0,
            description_at=1,
            schemas=("params_json_schema",),
            schema_at=2,
            needs_function=False,
        ),
        (_AGENTS, "as_tool"): Way(
            library=_AGENTS,
            name="tool_name",
            name_at=0,
            description="tool_description",
            description_at=1,
            needs_function=False,
        ),
        (_LANGCHAIN, "tool"): Way(library=_LANGCHAIN, name="", name_at=0, function_at=0, schemas=("args_schema",)),
        (_LANGCHAIN, "from_function"): Way(
            library=_LANGCHAIN,
            name_at=2,
            function=("func", "coroutine"),
            function_at=0,
            description_at=3,
            schemas=("args_schema",),
        ),
        (_LANGCHAIN, "Tool"): Way(
            library=_LANGCHAIN, name_at=0, function=("func",), function_at=1, description_at=2, needs_function=False
        ),
        (_LANGCHAIN, "StructuredTool"): Way(
            library=_LANGCHAIN, function=("func", "coroutine"), schemas=("args_schema",), needs_function=False
        ),
        (OURS, "tool"): Way(library=OURS, name_at=0, function_at=0),
    }
)
# LangChain's Tool.from_function has another order than StructuredTool's.
_PLAIN_TOOL: Final = Way(
    library=_LANGCHAIN, name_at=1, function=("func",), function_at=0, description_at=2, schemas=("args_schema",)
)
# FastMCP's takes a tool or a function, and no name.
_ADDED: Final = replace(_WAYS[_SERVER, "add_tool"], takes_name=False)
# What an object of unknown origin may be: a server that another file made, or an agent.
_OF_ANYBODY: Final[Mapping[str, Way]] = MappingProxyType(
    {
        "tool": _WAYS[_SERVER, "tool"],
        "add_tool": _ADDED,
        "as_tool": _WAYS[_AGENTS, "as_tool"],
    }
)
_BASES: Final = "BaseTool"
_FROM_FUNCTION: Final = "from_function"


def way(dotted: str, *, is_attribute: bool) -> Way | None:
    """Return how the thing of this full name declares tools, None if it declares none as far as is known.

    ``is_attribute``: it stands behind a dot, as in ``mcp.tool``; a bare name of unknown origin may be anything.
    """
    root, _, rest = dotted.partition(".")
    last = rest.rpartition(".")[2]
    library = _LIBRARIES.get(root)
    if library == _LANGCHAIN and dotted.endswith(".Tool.from_function"):
        return _PLAIN_TOOL
    if last == _FROM_FUNCTION and not dotted.endswith(f"Tool.{_FROM_FUNCTION}"):
        # Resources and prompts are made in the same way.
        return None
    if library is not None:
        return _ADDED if (root, last) == ("fastmcp", "add_tool") else _WAYS.get((library, last))
    return _OF_ANYBODY.get(last) if root and is_attribute else None


def is_base_tool(dotted: str) -> bool:
    """Tell whether a class of this full name is the base of LangChain's tools."""
    root, _, _ = dotted.partition(".")
    return _LIBRARIES.get(root) == _LANGCHAIN and dotted.rpartition(".")[2] in {_BASES, "StructuredTool"}
