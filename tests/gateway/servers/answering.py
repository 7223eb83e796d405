"""answering.py FILE: lists the tools in a JSON file, answers each call, and then announces if the file changed."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.gateway.servers.fake import Fake, changed

FILE = Path(sys.argv[1])


class Answering(Fake):
    """Reads its file at each look."""

    listed = ""

    def list_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        self.listed = FILE.read_text("utf-8")
        return {"tools": json.loads(self.listed)}

    def call(self, params: dict[str, Any], request_id: Any) -> dict[str, Any]:  # noqa: ARG002 - of the base class
        if FILE.read_text("utf-8") != self.listed:
            changed()
        sys.stderr.write(f"called {params.get('name')}\n")
        sys.stderr.flush()
        return self.echo(params)


Answering("answering", []).run()
