"""What the lab tells a framework's script, and how the script ends: read from the environment, used by all of them.

``LAB_MODEL``: base URL of the scripted model. ``LAB_SERVERS``: a JSON list of ``{"name", "url"}`` or
``{"name", "command", "args"}``. ``LAB_PREFIX``: names of tools get the server's in front, where a framework can.
``LAB_API``: which of a framework's two model APIs to use.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODEL = os.environ["LAB_MODEL"]
MODEL_V1 = MODEL + "/v1"
SERVERS: list[dict[str, Any]] = json.loads(os.environ["LAB_SERVERS"])
PREFIX = bool(os.environ.get("LAB_PREFIX"))
API = os.environ.get("LAB_API", "")
PROMPT = "Use the tools."
TURNS = 400
KEY = "lab"


def _told(failure: BaseException) -> str:
    """Return the innermost text of a failure: groups of tasks hide it behind their own."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return f"{type(failure).__name__}: {failure}"


def run(main: Callable[[], Awaitable[object] | object]) -> None:
    """Run the script's agent once, print what it said or why it failed, and end the program whatever still runs."""
    try:
        answer = main()
        if asyncio.iscoroutine(answer):
            answer = asyncio.run(answer)
        print("LAB ANSWER", answer)
        code = 0
    except BaseException as failure:  # whatever a framework raises is the result of this run
        traceback.print_exc()
        print("LAB FAILURE", _told(failure))
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # some frameworks leave threads behind that never end
