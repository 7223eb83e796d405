"""accounting.py [KEY TOOL...]: tools that tell which was called, of which server, and the credential that it has.

Without arguments it has one tool, whoami, which tells the credential alone.
"""

import os
import sys
from functools import partial
from typing import Any

from tests.gateway.servers.fake import Fake, tool


def answer(about: str, _params: dict[str, Any], _request_id: Any) -> dict[str, Any]:
    text = f"{about}I see {os.environ.get('ACCOUNT_TOKEN', 'no token')}."
    return {"content": [{"type": "text", "text": text}]}


key, *names = sys.argv[1:] or ("", "whoami")
server = Fake(key or "accounting", [tool(name) for name in names])
server.calls |= {name: partial(answer, f"{key} {name}: " if key else "") for name in names}
server.run()
