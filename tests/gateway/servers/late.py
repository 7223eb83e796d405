"""late.py GATE: says nothing until the file GATE is there."""

import sys
import time
from pathlib import Path

from tests.gateway.servers.fake import Fake, tool

while not Path(sys.argv[1]).exists():
    time.sleep(0.02)
Fake("late", [tool("arrive")]).run()
