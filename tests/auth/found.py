"""A server that says where to log in, for the tests of logins with nothing set up by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.conformance.fixture import Everything
from tests.support.auth_client_tokens import Guarded
from tests.support.gateway_questions import Handshaking
from truename.auth.inbound.authentication import METADATA

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from tests.auth.authority import Authority

__all__ = ["Telling"]


class Telling:
    """A server with real tools behind tokens of ``idp``; its 401 says where its metadata is, unless it is ``shy``.

    One that is ``old`` knows the handshake only.
    """

    def __init__(self, idp: Authority, *, old: bool = False) -> None:
        server = Everything().server
        if old:
            server.middleware.append(Handshaking.only_the_handshake)
        self.guarded = Guarded(server.streamable_http_app(), idp)
        self.issuers = [idp.issuer]
        self.shy = False
        self.more: dict[str, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.guarded(scope, receive, send)
            return
        host = dict(scope["headers"])[b"host"].decode()
        place = f"http://{host}{METADATA}/mcp"
        if scope["path"] == f"{METADATA}/mcp":
            said = {"resource": f"http://{host}/mcp", "authorization_servers": self.issuers, **self.more}
            head = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": json.dumps(said).encode()})
            return

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401 and not self.shy:
                challenge = f'Bearer resource_metadata="{place}", scope="read"'
                message = {**message, "headers": [(b"www-authenticate", challenge.encode())]}
            await send(message)

        await self.guarded(scope, receive, telling)
