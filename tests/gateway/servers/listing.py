"""listing.py FILE: lists the tools in a JSON file, and one more, `reread`, which announces that the file changed."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, changed, tool


class Listing(Fake):
    """Reads its file at each look."""

    def list_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"tools": [*json.loads(Path(sys.argv[1]).read_text("utf-8")), tool("reread")]}


def reread(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    changed()
    return server.echo(params)


server = Listing("listing", [])
server.calls |= {"reread": reread}
server.run()
