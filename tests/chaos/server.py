"""server.py KEY JOURNAL: an upstream over standard input and output that misbehaves as its key says.

``loud`` prints garbage, answers twice, too much, or without an end for a long time; ``shifting`` has other tools after
each start. All others behave, and are tormented from outside.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

from tests.chaos.direct import door_of, open_door
from tests.chaos.journal import Journal
from tests.gateway.servers.fake import Fake, send, tool

TOO_MUCH: Final = 400_000
ENDLESS: Final = 3_000_000
GARBAGE: Final = '{"jsonrpc":"2.0","id":1,"resu\nTraceback: \x1b[31m\n[]\nnull\n{"id":99999999,"result":{}}\n\xff\n'
SLOW: Final = 0.008


def tools(key: str, generation: int) -> list[str]:
    if key == "shifting":
        return ["echo", "left" if generation % 2 else "right"]
    return ["echo", "slow"]


def answer(key: str, name: str, nonce: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"{key}:{name}:{nonce}"}]}


class Upstream(Fake):
    def __init__(self, key: str, path: Path) -> None:
        self._journal = Journal(path, key)
        self._journal.write()
        super().__init__(key, [tool(name) for name in tools(key, len(self._journal.starts()))])
        open_door(door_of(path))

    def echo(self, params: dict[str, Any]) -> dict[str, Any]:
        name, nonce = params["name"], params["arguments"]["text"]
        self._journal.write(name, nonce)
        if name == "slow":
            time.sleep(SLOW)
        return answer(self.label, name, nonce)

    def call(self, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        result = super().call(params, request_id)
        if self.label == "loud" and result is not None:
            self._be_loud(int(params["arguments"]["text"].rpartition("-")[2]), request_id, result)
        return result

    @staticmethod
    def _be_loud(number: int, request_id: Any, result: dict[str, Any]) -> None:
        if number % 10 == 0:
            sys.stdout.write(GARBAGE)
        if number % 10 == 1:
            # The answer twice: the second is nobody's.
            send({"id": request_id, "result": result})
        if number % 50 == 2:
            result["content"][0]["text"] += "x" * TOO_MUCH
        if number % 100 == 3:
            sys.stdout.write("y" * ENDLESS + "\n")


if __name__ == "__main__":
    Upstream(sys.argv[1], Path(sys.argv[2])).run()
