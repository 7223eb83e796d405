"""Ends right after the handshake, with a word on standard error."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake


class Dying(Fake):
    def list_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        sys.stderr.write("no database \x1b[31mhere\x1b[0m\n")
        sys.exit(7)


Dying("dying", []).run()
