"""Answers calls with an error of its own choice, as its transport might: faking.py CODE TEXT."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, Fault, tool


class Faking(Fake):
    def call(self, _: dict[str, Any], __: Any) -> dict[str, Any] | None:
        raise Fault(int(sys.argv[1]), sys.argv[2])


Faking("faking", [tool("get")]).run()
