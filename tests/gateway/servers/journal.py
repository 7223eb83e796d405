"""journal.py FILE TOOL...: writes a line for each call that it runs, and does what the tool's name says.

``wait`` never answers, ``once`` dies at its first call, ``die`` at each, ``hold`` answers once FILE.gate is there, and
``hold_large`` then at length.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, tool

FILE = Path(sys.argv[1])


class Journal(Fake):
    def call(self, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        name = params["name"]
        with FILE.open("a") as file:
            file.write(f"{name} {os.getpid()}\n")
        ran = FILE.read_text().split("\n")
        if name == "die" or (name == "once" and sum(line.startswith("once ") for line in ran) == 1):
            os._exit(3)
        while name.startswith("hold") and not FILE.with_suffix(".gate").exists():
            time.sleep(0.02)
        if name == "hold_large":
            return {"content": [{"type": "text", "text": "large" * 100_000}]}
        return None if name == "wait" else super().call(params, request_id)


Journal("journal", [tool(name) for name in sys.argv[2:]]).run()
