"""witness.py FILE: writes its start, each message that it gets, and its end into a file, each in one write.

``note`` answers at once, ``hold`` when FILE.gate is there. A test sees from the file which processes got messages when.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, send, tool

FILE = Path(sys.argv[1])
_FILE = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def write(*words: str) -> None:
    os.write(_FILE, (" ".join((str(os.getpid()), *words)) + "\n").encode())


class Witness(Fake):
    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        text = str((params.get("arguments") or {}).get("text", ""))
        write(method, text)
        if params.get("name") == "hold":
            threading.Thread(target=self.hold, args=(params, request_id), daemon=True).start()
            return None
        return super().answer(method, params, request_id)

    def hold(self, params: dict[str, Any], request_id: Any) -> None:
        pause = threading.Event()
        while not FILE.with_suffix(".gate").exists():
            pause.wait(0.02)
        send({"id": request_id, "result": self.echo(params)})

    def notified(self, method: str, _: dict[str, Any]) -> None:
        write(method)


write("start")
Witness("witness", [tool("note"), tool("hold")]).run()
write("end")
