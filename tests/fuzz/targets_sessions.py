"""The ids of sessions: whatever a client says at its beginning, and whatever it does to the id that it was given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import changed, mutated, mutated_bytes, text
from truename.gateway.http.session_ids import LONGEST, SessionIds, handshake_of
from truename.gateway.mcp.messages import parse
from truename.gateway.protocol.errors import MCPError

if TYPE_CHECKING:
    from random import Random

__all__ = ["TARGETS"]

_PLACE: Final = "ann at /mcp"
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": True}},
        "clientInfo": {"name": "client", "version": "1"},
    },
}


def session_ids(chance: Random) -> None:
    ids, said = SessionIds(bytes(32)), _HELLO
    for _ in range(chance.choice((0, 0, 1, 2))):
        said = changed(chance, said)
    body = json.dumps(said).encode()
    try:
        _, message = parse(mutated_bytes(chance, body) if chance.random() < 0.3 else body)
    except MCPError:
        message = {}
    handshake = handshake_of(message)
    owner = chance.choice((None, "a-replica"))
    id = ids.issue(_PLACE, handshake, now=1.0, lasts=60.0, owner=owner)
    must(len(id) <= LONGEST and id.isascii() and id.isprintable() and " " not in id, "an id is short and visible")
    opened = ids.open(_PLACE, id)
    must((opened is None or opened.handshake is None) or handshake is not None, "what is no handshake says nothing")
    must(owner is None or (opened is not None and opened.owner == owner), "an id names its owner whatever it says")
    if opened is not None and opened.handshake is not None and handshake is not None:
        must(opened.handshake.version == handshake.version, "the version is the one that was agreed on")
        must(opened.handshake.client.capabilities == handshake.client.capabilities, "so is what the client can do")
    other = chance.choice((mutated(chance, id), text(chance), mutated(chance, mutated(chance, id)), id + "="))
    must(other == id or ids.open(_PLACE, other) is None, "an altered id is no session's")
    must(ids.open(_PLACE + text(chance) + "x", id) is None, "an id is for its place alone")


TARGETS: Final = (session_ids,)
