"""Test support: entrance, used by tests of several modules."""

from __future__ import annotations

from truename.auth.inbound.static_tokens import digest_of, generate_token
from truename.config import Access, KnownToken

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


ACCEPT = {"accept": "application/json, text/event-stream"}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def known(*names: str) -> tuple[dict[str, str], Access]:
    """Return tokens by name, and the access that knows them."""
    pairs = {name: generate_token() for name in names}
    tokens = {
        name: KnownToken(name=name, hash=f"tn1:{id}:{digest_of(text)}", groups=(f"of-{name}",))
        for name, (text, id) in pairs.items()
    }
    return {name: text for name, (text, _) in pairs.items()}, Access(tokens=tokens)
