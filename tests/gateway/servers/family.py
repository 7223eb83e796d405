"""family.py PIDFILE: starts a child that outlives the end of input; writes its process id."""

import subprocess
import sys
from pathlib import Path

from tests.gateway.servers.fake import Fake, tool

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(sys.argv[1]).write_text(str(child.pid))
Fake("family", [tool("talk")]).run()
