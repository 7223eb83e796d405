"""Sources that declare tools in every way that a library has, as its users would write them."""

from __future__ import annotations

FASTMCP = '''
from typing import Annotated, Literal
from fastmcp import Context, FastMCP
from fastmcp.tools import Tool
from pydantic import Field

mcp = FastMCP("lab")
NAME = "constant_name"
PREFIX = "lab"


class Names:
    INNER = "of_a_class"


@mcp.tool
def bare(x: int, y: str = "a", *, ctx: Context) -> str:
    """Bare."""
    return ""


@mcp.tool()
async def called(q: str | None, limit: int = 3) -> str:
    """Called."""
    return ""


@mcp.tool(name="fs.list", description="Named.")
def third(path: Annotated[str, Field(description="where")], kind: Literal["a", "b"] = "a") -> str:
    return ""


@mcp.tool("positional")
def fourth(tags: list[str], more: dict[str, int] | None = None) -> str:
    return ""


@mcp.tool(name=NAME)
def fifth(flag: bool, deep: Annotated[int, Field(ge=1)] = 2) -> str:
    return ""


@mcp.tool(name=f"{PREFIX}_{Names.INNER}")
def sixth(a: float, c: str = Field(description="c"), b: str = Field("x", description="b")) -> str:
    return ""


def plain(z: int) -> str:
    """Plain."""
    return ""


def other(w: int) -> str:
    return ""


mcp.add_tool(plain)
mcp.add_tool(Tool.from_function(other, name="from_function"))
mcp.tool(name="by_hand")(other)
mcp.tool(plain, name="given")


class Box:
    def method(self, v: str) -> str:
        return ""


mcp.tool(Box().method)


@mcp.tool(name="twice_a")
@mcp.tool(name="twice_b")
def shared(p: int) -> str:
    return ""
'''

SDK = '''
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

app = MCPServer("lab")


@app.tool()
def first(x: int, ctx: Context, y: int = 1) -> str:
    """First."""
    return ""


@app.tool(name="second.tool", description="Second.")
async def second(x: str) -> str:
    return ""


@app.tool("third")
def whatever() -> str:
    return ""


def added(a: int, b: int = 2) -> str:
    return ""


app.add_tool(added, name="added-tool")
app.add_tool(added, "added_too")
'''

AGENTS = '''
from agents import Agent, FunctionTool, RunContextWrapper
from agents import function_tool as ft
import agents

async def invoke(context, arguments):
    return ""


@ft
def first(a: int, b: str = "x") -> str:
    """First.

    Args:
        a: The first.
    """
    return ""


@agents.function_tool(name_override="second.tool", description_override="Second.")
def second(context: RunContextWrapper[None], q: list[str]) -> str:
    return ""


@ft(strict_mode=False)
def loose(a: int, b: str = "x") -> str:
    return ""


def plain(z: int) -> str:
    return ""


tools = [
    first, second, loose, ft(plain, name_override="by_hand"), ft(plain),
    FunctionTool("fourth", "Fourth.", {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
                 invoke, strict_json_schema=False),
    Agent(name="Helper").as_tool(tool_name="ask_helper", tool_description="Ask."),
]
'''

LANGCHAIN = '''
from typing import Optional
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from pydantic import BaseModel, Field


class Arguments(BaseModel):
    query: str = Field(description="what")
    limit: int = 10


@tool
def first(a: int, b: str = "x") -> str:
    """First."""
    return ""


@tool("second.tool")
def renamed(q: Optional[str]) -> str:
    """Second."""
    return ""


@tool("third", args_schema=Arguments)
def third(query: str, limit: int = 10) -> str:
    """Third."""
    return ""


def plain(z: int, y: int = 2) -> str:
    """Plain."""
    return ""


class Search(BaseTool):
    name: str = "search_web"
    description: str = "Searches."
    args_schema: type[BaseModel] = Arguments

    def _run(self, query: str, limit: int = 10) -> str:
        return ""


class Fetch(BaseTool):
    name: str = "fetch"
    description: str = "Fetches."

    def _run(self, url: str) -> str:
        return ""


tools = [
    first, renamed, third, Search(), Fetch(),
    StructuredTool.from_function(plain, name="structured", description="S."),
    StructuredTool.from_function(func=plain),
    Tool.from_function(plain, "plain_tool", "T."),
    Tool(name="plain_too", func=plain, description="T."),
]
'''

OURS = '''
from truename.conventions import tool


@tool("myapp_ios_open", platforms=["IOS"], owner="mine")
@tool(name="myapp_android_open", platforms=["ANDROID"], is_for_llm=False)
def open_app(permissions: list[str], quick: bool = False) -> str:
    """Open the app."""
    return ""


@tool()
def tap(x: int) -> str:
    """Tap."""
    return ""
'''
