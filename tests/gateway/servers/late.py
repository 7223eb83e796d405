"""late.py GATE [INSTRUCTIONS]: says nothing until the file GATE is there."""

import sys
import time
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, tool


class _Instructing(Fake):
    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().initialize(params), **({"instructions": sys.argv[2]} if len(sys.argv) > 2 else {})}


while not Path(sys.argv[1]).exists():
    time.sleep(0.02)
_Instructing("late", [tool("arrive")]).run()
