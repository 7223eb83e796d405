"""stubborn.py PIDFILE [silent]: writes its process id; outlives the end of its input; silent: never answers."""

import os
import sys
import time
from pathlib import Path

from tests.gateway.servers.fake import Fake, tool

part = Path(f"{sys.argv[1]}.part")
part.write_text(str(os.getpid()))
part.rename(sys.argv[1])
if "silent" not in sys.argv:
    Fake("stubborn", [tool("stay")]).run()
while True:
    time.sleep(60)
