"""accounting.py: one tool, whoami, which tells the credential that this process was given."""

import os
from typing import Any

from tests.gateway.servers.fake import Fake, tool


def whoami(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"I see {os.environ.get('ACCOUNT_TOKEN', 'no token')}."}]}


server = Fake("accounting", [tool("whoami")])
server.calls["whoami"] = whoami
server.run()
