"""A principal: who calls, as whoever checked the credentials says, and never as the caller says it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

__all__ = ["LOCAL", "Principal"]


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Somebody who was let in.

    ``name`` is the subject of a token or the name of a static one; ``issuer`` says who vouches for it, "" for the
    gateway's own configuration; ``client`` is the OAuth client that acts. ``groups`` and ``scopes`` are the issuer's
    words.

    Two issuers may know the same name, and mean two people:

    >>> ann, other = Principal(name="ann", issuer="https://a.example"), Principal(name="ann", issuer="https://b.example")
    >>> ann.key == other.key
    False
    """

    name: str
    issuer: str = ""
    client: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """One text for one person, whatever client and groups: what approvals, credentials and audit are kept under."""
        return self.name if not self.issuer and not self.name.startswith("[") else json.dumps([self.issuer, self.name])


LOCAL: Final = Principal(name="local")
"""Whoever can reach a gateway that asks for no credentials, over a loopback address or its own standard input."""
