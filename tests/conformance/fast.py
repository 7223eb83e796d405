"""`python -m tests.conformance.fast --port PORT`: a part of what the suite asks for, on FastMCP as people use it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Audio, Image

from tests.conformance.contents import PNG, WAV, decoded

mcp = FastMCP("fast", instructions="A part of what a conformance suite asks for.")


@dataclass
class User:
    username: str
    email: str


@mcp.tool
def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@mcp.tool
def test_image_content() -> Image:
    """Show a picture."""
    return Image(data=decoded(PNG), format="png")


@mcp.tool
def test_audio_content() -> Audio:
    """Play a sound."""
    return Audio(data=decoded(WAV), format="wav")


@mcp.tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@mcp.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Tell what happens."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(said)
        await anyio.sleep(0.05)
    return "Logged three times."


@mcp.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell how far it is."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await anyio.sleep(0.05)
    return "Went from 0 to 100."


@mcp.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit(message, response_type=User)
    return f"User response: action={answer.action}, content={getattr(answer, 'data', None)}"


@mcp.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Give a text."""
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Give a picture."""
    return decoded(PNG)


@mcp.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> dict[str, object]:
    """Give what an id is of."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@mcp.prompt
def test_simple_prompt() -> str:
    """Say something."""
    return "This is a simple prompt for testing."


@mcp.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Say something with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    mcp.run(transport="http", host="127.0.0.1", port=parser.parse_args().port, show_banner=False, log_level="warning")
