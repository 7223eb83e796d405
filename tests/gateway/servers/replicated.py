"""replicated.py FILE: notes each call that it runs as a line of FILE, whichever gateway started it.

``note`` answers at once, ``progress`` tells three times how far it is, ``wait`` answers once FILE.go is there or is
cancelled, and ``ask`` asks its client.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, send, tool

FILE = Path(sys.argv[1])
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


def note(text: str) -> None:
    with FILE.open("a") as file:
        file.write(f"{text}\n")


class Replicated(Fake):
    def __init__(self) -> None:
        super().__init__("replicated", [tool(name) for name in ("note", "progress", "wait", "ask")])
        self.calls = {"note": self.noted, "progress": self.progressing, "wait": self.waiting, "ask": self.asking}
        self.cancelled = set[Any]()
        self.asked = dict[Any, Any]()

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().initialize(params), "capabilities": {"tools": {"listChanged": True}}}

    def noted(self, params: dict[str, Any], _: Any) -> dict[str, Any]:
        note(text := params["arguments"].get("text", ""))
        return {"content": [{"type": "text", "text": f"{text} by {os.getppid()}"}]}

    def progressing(self, params: dict[str, Any], request_id: Any) -> None:
        token = params["_meta"]["progressToken"]

        def tell() -> None:
            for step in (1, 2, 3):
                progress = {"progressToken": token, "progress": step, "total": 3}
                send({"method": "notifications/progress", "params": progress})
                time.sleep(0.05)
            send({"id": request_id, "result": {"content": [{"type": "text", "text": "told"}]}})

        threading.Thread(target=tell, daemon=True).start()

    def waiting(self, params: dict[str, Any], request_id: Any) -> None:
        note(f"wait {params['arguments'].get('text', '')}")

        def wait() -> None:
            while not FILE.with_suffix(".go").exists() and request_id not in self.cancelled:
                time.sleep(0.01)
            if request_id not in self.cancelled:
                send({"id": request_id, "result": {"content": [{"type": "text", "text": "waited"}]}})

        threading.Thread(target=wait, daemon=True).start()

    def asking(self, _: dict[str, Any], request_id: Any) -> None:
        number = f"q{len(self.asked)}"
        self.asked[number] = request_id
        send({"id": number, "method": "elicitation/create", "params": FORM})

    def answered(self, message: dict[str, Any]) -> None:
        told = {"answer": message.get("result"), "error": message.get("error")}
        send({"id": self.asked[message["id"]], "result": {"content": [], "structuredContent": told}})

    def notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            self.cancelled.add(params["requestId"])
            note("cancelled")


Replicated().run()
