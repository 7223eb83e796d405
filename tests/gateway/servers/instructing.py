"""instructing.py TEXT TOOL...: says this of its use, and lists these tools."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, tool


class Instructing(Fake):
    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().initialize(params), "instructions": sys.argv[1]}


Instructing("instructing", [tool(name) for name in sys.argv[2:]]).run()
