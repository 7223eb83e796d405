"""Prints what is no message, before and between its messages, and to standard error with escape sequences."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, tool


class Noisy(Fake):
    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        sys.stdout.write(f"DEBUG: got {method} \x1b[31mred\x1b[0m\n[1, 2]\n\n\xff\n")
        return super().answer(method, params, request_id)


sys.stdout.write("Starting up...\nhttp://localhost:1234\n")
sys.stderr.write("\x1b[31mwarming up\x1b[0m\n")
Noisy("noisy", [tool("shout")]).run()
