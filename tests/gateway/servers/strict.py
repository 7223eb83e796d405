"""Ends when the first message is not the handshake, as some older servers do."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, tool


class Strict(Fake):
    greeted = False

    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        if method != "initialize" and not self.greeted:
            sys.exit("expected initialize")
        self.greeted = True
        return super().answer(method, params, request_id)


Strict("strict", [tool("obey")]).run()
