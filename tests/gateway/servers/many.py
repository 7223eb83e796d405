"""many.py COUNT: lists so many tools."""

import sys

from tests.gateway.servers.fake import Fake, tool

Fake("many", [tool(f"tool_{number}") for number in range(int(sys.argv[1]))]).run()
