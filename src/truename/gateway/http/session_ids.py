"""The ids of handshake sessions: each says, sealed, all that is needed to go on with its session after a restart.

An id opens for the principal and the address that it was issued for, and for nobody and nothing else. So a gateway
holds nothing of a session that it does not serve now, and whoever makes ids up is told what everybody is told.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from truename.auth.vault import decrypt, encrypt
from truename.gateway.mcp.client import ClientDescription
from truename.gateway.mcp.methods import negotiated
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import HANDSHAKE_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LONGEST", "Handshake", "Opened", "SessionIds", "handshake_of"]

LONGEST: Final = 1_024
"""Characters of an id: with the other headers of an answer it fits into what proxies keep for these (nginx: 4 KiB)."""

_SALT: Final = 16
_MOST_SAID: Final = 64 * 1024
# What is sealed otherwise one day is opened by another gateway than this one.
_PURPOSE: Final = b"truename session 1:"


@dataclass(frozen=True)
class Handshake:
    """What a client and the gateway agreed on: the version, and what the client said of itself."""

    version: str
    client: ClientDescription


@dataclass(frozen=True)
class Opened:
    """What an id says: when it was issued, and how long its session lasted without a request then, in seconds.

    ``owner`` is the id of the replica that issued it. Without a handshake the session ends with that.
    """

    issued: float
    lasts: float
    handshake: Handshake | None
    owner: str | None = None


def handshake_of(message: Mapping[str, Any]) -> Handshake | None:
    """Return what a request for a session offers; None for anything else."""
    if message.get("method") != "initialize":
        return None
    try:
        return Handshake(*negotiated(message.get("params")))
    except MCPError:
        return None


class SessionIds:
    """Issues ids under a key of 32 bytes, and opens them again. ``place`` is whose the session is, and its address.

    >>> ids = SessionIds(bytes(32))
    >>> client = {"name": "x", "version": "1"}
    >>> said = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": client}
    >>> hello = {"method": "initialize", "params": said}
    >>> id = ids.issue("ann at /mcp", handshake_of(hello), now=1.0, lasts=60)
    >>> ids.open("ann at /mcp", id).handshake.client.name, ids.open("bob at /mcp", id)
    ('x', None)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(
        self, place: str, handshake: Handshake | None, *, now: float, lasts: float, owner: str | None = None
    ) -> str:
        """Return the id of a session that begins at the replica ``owner``.

        One without a handshake, or whose client says too much of itself, is good while this gateway runs.
        """
        salt = secrets.token_bytes(_SALT)
        # What is no text, or nested beyond reason, has JSON give up.
        with suppress(ValueError, RecursionError):
            for plain in () if handshake is None else _plain(handshake, now, lasts, owner):
                id = self._sealed(salt, plain, place)
                if len(id) <= LONGEST:
                    return id
        if owner is not None:
            return self._sealed(salt, _packed("", now, lasts, None, owner), place)
        return _text(salt)

    def _sealed(self, salt: bytes, plain: bytes, place: str) -> str:
        return _text(salt + encrypt(self._sealing(salt), plain, _bound(place)))

    def open(self, place: str, id: str) -> Opened | None:
        """Return what an id says; None for one that was not issued so, or for another place."""
        if len(id) > LONGEST or not id.isascii():
            return None
        try:
            whole = urlsafe_b64decode(id + "=" * (-len(id) % 4))
        except ValueError:
            return None
        # A decoder passes over what it does not know, and each id is one text: an ended one has no second spelling.
        if _text(whole) != id:
            return None
        plain = decrypt(self._sealing(whole[:_SALT]), whole[_SALT:], _bound(place))
        return None if plain is None else _said(plain)

    def _sealing(self, salt: bytes) -> AESGCM:
        # One for each id: a client may begin more sessions than one key may seal.
        return AESGCM(hmac.digest(self._key, _PURPOSE + salt, hashlib.sha256))


def _plain(handshake: Handshake, now: float, lasts: float, owner: str | None) -> Iterator[bytes]:
    """Give what is sealed: all that the client said, then less of who it is, which nothing but reports need."""
    said = handshake.client.said()
    yield _packed(handshake.version, now, lasts, said, owner)
    info = said.get("clientInfo", {})
    named = {key: info[key] for key in ("name", "version") if key in info}
    yield _packed(handshake.version, now, lasts, {**said, "clientInfo": named}, owner)


def _packed(version: str, now: float, lasts: float, said: dict[str, Any] | None, owner: str | None) -> bytes:
    content = [round(now, 3), lasts, version, said, *([] if owner is None else [owner])]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    raw = text.encode("utf-8", "surrogatepass")
    packing = zlib.compressobj(9, wbits=-15)
    return packing.compress(raw) + packing.flush() if len(raw) <= _MOST_SAID else raw


def _said(plain: bytes) -> Opened | None:
    try:
        raw = zlib.decompressobj(wbits=-15).decompress(plain, _MOST_SAID)
        issued, lasts, version, said, *more = json.loads(raw.decode("utf-8", "surrogatepass"))
        owner = str(more[0]) if more else None
        if said is None and owner is not None:
            return Opened(float(issued), float(lasts), None, owner)
        # Another version of the gateway may read what its predecessor wrote otherwise.
        if version not in HANDSHAKE_VERSIONS:
            return None
        client = ClientDescription.of(said)
        if client is None:
            return None
        return Opened(float(issued), float(lasts), Handshake(version, client), owner)
    except (ValueError, TypeError, AttributeError, zlib.error):
        return None


def _bound(place: str) -> bytes:
    return place.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
