"""Tools declared where they are written: for whom each is, and where it works. One session sees what is for it.

Two names share one function, one tool is kept from models, the calls of one are never recorded. The same declarations
are run by a loop of one's own, replayed from a recording, and served by FastMCP. It runs as it is:
`python examples/declared_tools.py`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fastmcp import Client, FastMCP

from truename import project
from truename.adapters.fastmcp import mount, register
from truename.adapters.toolbox import Toolbox, ToolboxNames, error_text
from truename.conventions import Convention, catalog_of, implementations, tool
from truename.errors import TruenameError
from truename.migration import CallRecorder, read_recording, replay
from truename.policy import Call, Caller, Context, Exposure, Policy

PHONE = Caller(principal="ada", session="monday", platform="ios", app="myapp")
EXPOSURE = Exposure(convention=Convention.of("trailblaze", apps=["myapp", "payments"]))


@tool("myapp_ios_open", platforms=["IOS"], owner="myapp-team")
def open_on_ios(permissions: list[str], *, virtual_card: bool = False) -> str:
    """Open the app with these permissions, perhaps with a virtual card."""
    return opened(permissions, "a virtual card" if virtual_card else "")


@tool("myapp_android_open", platforms=["ANDROID"], owner="myapp-team")
def open_on_android(permissions: list[str], *, overlay: bool = False) -> str:
    """Open the app with these permissions, perhaps over others."""
    return opened(permissions, "an overlay" if overlay else "")


def opened(permissions: list[str], more: str) -> str:
    """Do what the tools of both platforms have in common."""
    return f"opened with {', '.join([*permissions, *filter(None, [more])])}"


@tool("myapp_close", owner="myapp-team")
@tool("payments_close", owner="payments-team")
def close() -> str:
    """Close the app."""
    return "closed"


@tool("tap", owner="core")
def tap(x: int, y: int) -> str:
    """Tap the screen."""
    return f"tapped at {x},{y}"


@tool("payments_addFunds", is_recordable=False, owner="payments-team")
def add_funds(cents: int) -> str:
    """Add funds to the account."""
    return f"{cents} cents more"


@tool("myapp_ios_tapOld", is_for_llm=False, owner="myapp-team")
def tap_old() -> str:
    """Tap as it was done before; recordings still have it."""
    return "tapped the old way"


TOOLS = (open_on_ios, open_on_android, close, tap, add_funds, tap_old)
RUN = implementations(*TOOLS)


def run(call: Call) -> str:
    """Run a call that was decided on."""
    return str(RUN[call.origin.name](**call.arguments))


def answer(box: Toolbox, name: str, call_id: str, arguments: object) -> str:
    """Run what the model asked for if it is for this session; else return what it is to read instead."""
    try:
        call = box.call(name, call_id, arguments)
        with box.running(call):
            return run(call)
    except TruenameError as error:
        return error_text(error)


async def served() -> list[str]:
    """Serve the same tools with FastMCP, and return what this session is shown."""
    phone, app = FastMCP("phone"), FastMCP("all")
    register(phone, *TOOLS)
    policy, naming = Policy(default="allow", exposure=EXPOSURE), ToolboxNames(dialect="openai", style="declared")
    mount(app, {"phone": phone}, naming=naming, policy=policy, caller=PHONE)
    async with Client(app) as client:
        return [one.name for one in await client.list_tools()]


def main() -> None:
    """Play a model in a session on iOS, replay what was recorded, and serve the tools."""
    names = project(catalog_of(*TOOLS, server="phone"), "openai", style="declared")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        policy = Policy(default="allow", exposure=EXPOSURE, recorder=CallRecorder(path, EXPOSURE).write)
        box = Toolbox(names=names, policy=policy, caller=PHONE)
        sys.stdout.write(f"shown: {', '.join(offer.key.name for offer in box.offered)}\n")
        asked = [
            ("tap", {"x": 3, "y": 4}),
            ("myapp_ios_open", {"permissions": ["camera"], "virtual_card": True}),
            ("myapp_android_open", {"permissions": []}),
            ("payments_addFunds", {"cents": 500}),
            ("myapp_ios_tapOld", {}),
        ]
        for number, (name, arguments) in enumerate(asked):
            sys.stdout.write(f"{name}: {answer(box, name, f'call_{number}', arguments)}\n")
        again = Policy(default="allow", exposure=EXPOSURE)
        for one in replay(read_recording(path), names, run, policy=again, context=Context(platform="ios", app="myapp")):
            sys.stdout.write(f"replayed line {one.line}: {one.result}\n")
    sys.stdout.write(f"served: {', '.join(asyncio.run(served()))}\n")


if __name__ == "__main__":
    main()
