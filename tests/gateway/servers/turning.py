"""Its tools are what a file says: `turn` reads it again. Arguments: the file, and the server's key."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, changed, tool


def turn(params: dict[str, Any], _: Any) -> dict[str, Any]:
    server.tools[:] = _tools()
    changed()
    return server.echo(params)


def _tools() -> list[dict[str, Any]]:
    return [tool("turn"), *json.loads(Path(sys.argv[1]).read_text())]


server = Fake(sys.argv[2], _tools())
server.calls["turn"] = turn
server.run()
