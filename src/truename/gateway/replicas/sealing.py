"""Seal requests between replicas and their responses, so that only replicas of one scope can make and read them.

A request is two encrypted texts (AES-256-GCM). The short one goes before: it proves that a replica asks, while nothing
else was read. It names the sender and the target with their fencing tokens, the target's last heartbeat that the sender
read, which is the time of the request, a number that the sender uses once, and how many bytes the long one has. A
response is a sequence of encrypted frames, bound to the request and to their place, the last of which says so: what
is changed, left out, moved or cut off is found. Each request has a key of its own, derived from that of the scope.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "LONGEST_FRAME",
    "FrameReader",
    "FrameWriter",
    "OpenedHead",
    "RequestHead",
    "SealError",
    "SealedRequest",
    "SenderWindow",
    "open_content",
    "open_head",
    "seal_request",
]

_REQUEST: Final = b"truename replica request 1:"
_RESPONSE: Final = b"truename replica response 1:"
_SALT: Final = 16
_SIZE: Final = 4
_LONGEST_PROOF: Final = 1_024
_PIECE: Final = 64 * 1024
LONGEST_FRAME: Final = _PIECE + 64
"""Bytes of an encrypted frame."""
_WINDOW: Final = 4_096
_HEAD, _BODY, _END = b"h", b"b", b"e"


class SealError(Exception):
    """A text that no replica of this scope sealed for this purpose."""


class RequestHead(msgspec.Struct, frozen=True):
    """What a request says of itself first. ``kind`` names its handler.

    ``beat`` is the heartbeat of the target that the sender read last, and ``number`` counts the sender's requests.
    ``size`` is how many bytes follow.
    """

    sender: str
    sender_fence: int
    target: str
    target_fence: int
    beat: int
    number: int
    kind: str
    size: int = 0


class SealedRequest(NamedTuple):
    """A sealed request: its head as text for a header, what follows, and the salt by which its response is read."""

    proof: bytes
    content: bytes
    salt: bytes


class OpenedHead(NamedTuple):
    """The head of a request, and the salt of its keys."""

    head: RequestHead
    salt: bytes


_DECODER: Final = msgspec.json.Decoder(RequestHead)
_ENCODER: Final = msgspec.json.Encoder()
_ANY: Final = msgspec.json.Decoder(dict[str, Any])


def seal_request(key: bytes, head: RequestHead, about: dict[str, Any], body: bytes) -> SealedRequest:
    """Return a sealed request; ``about`` is for its handler. The size in the head is filled in.

    >>> head = RequestHead("ann", 1, "bob", 2, 7, 1, "http")
    >>> sealed = seal_request(bytes(32), head, {"path": "/mcp"}, b"body")
    >>> opened = open_head(bytes(32), sealed.proof)
    >>> opened.head.sender, opened.head.size == len(sealed.content)
    ('ann', True)
    >>> open_content(bytes(32), opened, sealed.content)
    ({'path': '/mcp'}, b'body')
    """
    salt, said = secrets.token_bytes(_SALT), _ENCODER.encode(about)
    cipher = _cipher(key, _REQUEST, salt)
    content = cipher.encrypt(_nonce(1), b"".join((len(said).to_bytes(_SIZE), said, body)), None)
    first = _ENCODER.encode(msgspec.structs.replace(head, size=len(content)))
    return SealedRequest(b64encode(salt + cipher.encrypt(_nonce(0), first, None)), content, salt)


def open_head(key: bytes, proof: bytes) -> OpenedHead:
    """Open the head of a request. Raises `SealError`."""
    try:
        sealed = b64decode(proof[:_LONGEST_PROOF], validate=True)
        salt = sealed[:_SALT]
        return OpenedHead(_DECODER.decode(_opened(_cipher(key, _REQUEST, salt), 0, sealed[_SALT:])), salt)
    except (ValueError, msgspec.DecodeError) as error:
        raise SealError(str(error)) from error


def open_content(key: bytes, opened: OpenedHead, content: bytes) -> tuple[dict[str, Any], bytes]:
    """Open what follows the head of a request: what its handler has to know, and the body. Raises `SealError`."""
    plain = _opened(_cipher(key, _REQUEST, opened.salt), 1, content)
    end = _SIZE + int.from_bytes(plain[:_SIZE])
    try:
        return _ANY.decode(plain[_SIZE:end]), plain[end:]
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
