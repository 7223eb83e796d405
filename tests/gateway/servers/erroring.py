"""Answers tools/list with an error, a wrong shape, or pages without end: erroring.py error|shape|endless."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, Fault, tool


class Erroring(Fake):
    pages = 0

    def list_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        if sys.argv[1] == "error":
            raise Fault(-32603, "database \x1b[31mdown")
        if sys.argv[1] == "shape":
            return {"tools": {"name": "x"}}
        self.pages += 1
        return {"tools": [tool(f"t{self.pages}_{i}") for i in range(20)], "nextCursor": str(self.pages)}


Erroring("erroring", []).run()
