"""Seal requests between replicas and their responses, so that only replicas of one scope can make and read them.

A request is one encrypted text (AES-256-GCM). It names its sender and its target with their fencing tokens, the
target's last heartbeat that the sender read, which is the time of the request, and a number that the sender uses once.
A response is a sequence of encrypted frames, bound to the request and to their place, the last of which says so: what
is changed, left out, moved or cut off is found. Each request has a key of its own, derived from that of the scope.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "LONGEST_FRAME",
    "FrameReader",
    "FrameWriter",
    "RequestHead",
    "SealError",
    "SealedRequest",
    "SenderWindow",
    "open_request",
    "seal_request",
]

_REQUEST: Final = b"truename replica request 1:"
_RESPONSE: Final = b"truename replica response 1:"
_SALT: Final = 16
_SIZE: Final = 4
_PIECE: Final = 64 * 1024
LONGEST_FRAME: Final = _PIECE + 64
"""Bytes of an encrypted frame."""
_WINDOW: Final = 4_096
_HEAD, _BODY, _END = b"h", b"b", b"e"


class SealError(Exception):
    """A text that no replica of this scope sealed for this purpose."""


class RequestHead(msgspec.Struct, frozen=True):
    """What a request says of itself. ``kind`` names its handler, ``about`` is for that.

    ``beat`` is the heartbeat of the target that the sender read last, and ``number`` counts the sender's requests.
    """

    sender: str
    sender_fence: int
    target: str
    target_fence: int
    beat: int
    number: int
    kind: str
    about: dict[str, Any]


@dataclass(frozen=True)
class SealedRequest:
    """A request that was opened, and the salt of its keys."""

    head: RequestHead
    body: bytes
    salt: bytes


_DECODER: Final = msgspec.json.Decoder(RequestHead)
_ENCODER: Final = msgspec.json.Encoder()
_ANY: Final = msgspec.json.Decoder(dict[str, Any])


def seal_request(key: bytes, head: RequestHead, body: bytes) -> tuple[bytes, bytes]:
    """Return a sealed request, and the salt by which its response is read.

    >>> head = RequestHead("ann", 1, "bob", 2, 7, 1, "http", {"path": "/mcp"})
    >>> sealed, salt = seal_request(bytes(32), head, b"body")
    >>> open_request(bytes(32), sealed) == SealedRequest(head, b"body", salt)
    True
    """
    salt, said = secrets.token_bytes(_SALT), _ENCODER.encode(head)
    plain = b"".join((len(said).to_bytes(_SIZE), said, body))
    return salt + _cipher(key, _REQUEST, salt).encrypt(_nonce(0), plain, None), salt


def open_request(key: bytes, sealed: bytes) -> SealedRequest:
    """Open a sealed request. Raises `SealError`."""
    salt, plain = sealed[:_SALT], _opened(_cipher(key, _REQUEST, sealed[:_SALT]), 0, sealed[_SALT:])
    end = _SIZE + int.from_bytes(plain[:_SIZE])
    try:
        return SealedRequest(_DECODER.decode(plain[_SIZE:end]), plain[end:], salt)
    except msgspec.DecodeError as error:
        raise SealError(str(error)) from error


class FrameWriter:
    """Seals one response: its head, the pieces of its body, its end."""

    def __init__(self, key: bytes, salt: bytes) -> None:
        self._cipher = _cipher(key, _RESPONSE, salt)
        self._count = 0

    def head(self, about: dict[str, Any]) -> bytes:
        """Return the frame of the head."""
        return self._frame(_HEAD + _ENCODER.encode(about))

    def body(self, text: bytes) -> bytes:
        """Return the frames of a piece of the body."""
        return b"".join(self._frame(_BODY + text[at : at + _PIECE]) for at in range(0, len(text), _PIECE))

    def end(self) -> bytes:
        """Return the last frame."""
        return self._frame(_END)

    def _frame(self, plain: bytes) -> bytes:
        sealed = self._cipher.encrypt(_nonce(self._count), plain, None)
        self._count += 1
        return len(sealed).to_bytes(_SIZE) + sealed


class FrameReader:
    """Reads a sealed response as its bytes arrive. Raises `SealError`."""

    def __init__(self, key: bytes, salt: bytes) -> None:
        self._cipher = _cipher(key, _RESPONSE, salt)
        self._count = 0
        self._buffer = bytearray()
        self.is_over = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any] | bytes]:
        """Take bytes, and yield what has come whole: the head as an object, then pieces of the body."""
        self._buffer += data
        while len(self._buffer) >= _SIZE:
            size = int.from_bytes(self._buffer[:_SIZE])
            if self.is_over or size > LONGEST_FRAME:
                message = "a frame is too long or comes after the end"
                raise SealError(message)
            if len(self._buffer) < _SIZE + size:
                return
            plain = _opened(self._cipher, self._count, bytes(self._buffer[_SIZE : _SIZE + size]))
            del self._buffer[: _SIZE + size]
            yield from self._content(plain[:1], plain[1:])

    def _content(self, kind: bytes, text: bytes) -> Iterator[dict[str, Any] | bytes]:
        is_first, self._count = self._count == 0, self._count + 1
        if is_first != (kind == _HEAD):
            message = "a response begins with its head, and has one"
            raise SealError(message)
        if kind == _HEAD:
            yield _ANY.decode(text)
        elif kind == _BODY:
            yield text
        else:
            self.is_over = True


@dataclass
class SenderWindow:
    """The numbers of one sender's requests that were used: each counts once, also out of order.

    >>> window = SenderWindow()
    >>> [window.admits(number) for number in (1, 3, 2, 3, 1, 9_000, 4)]
    [True, True, True, False, False, True, False]
    """

    _last: int = 0
    _used: int = field(default=0)

    def admits(self, number: int) -> bool:
        """Return whether a number was not used yet, and note it. One that is too old to tell counts as used."""
        if number > self._last:
            self._used = ((self._used << min(number - self._last, _WINDOW)) | 1) & ((1 << _WINDOW) - 1)
            self._last = number
            return True
        bit = 1 << (self._last - number) if self._last - number < _WINDOW else 0
        if not bit or self._used & bit:
            return False
        self._used |= bit
        return True


def _cipher(key: bytes, purpose: bytes, salt: bytes) -> AESGCM:
    return AESGCM(hmac.digest(key, purpose + salt, hashlib.sha256))


def _nonce(number: int) -> bytes:
    # A key seals one request, or the frames of one response.
    return number.to_bytes(12)


def _opened(cipher: AESGCM, number: int, sealed: bytes) -> bytes:
    try:
        return cipher.decrypt(_nonce(number), sealed, None)
    except (InvalidTag, ValueError) as error:
        message = "a text was changed, or sealed with another key"
        raise SealError(message) from error
