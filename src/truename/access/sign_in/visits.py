"""Visits to the identity provider: nothing is held of somebody who is there, so nobody can push them out.

All that is to be known when they are back is sealed into the ``state`` that they take there. It opens for the browser
that they left with, for what they were sent for, until its time is over, and is good once. What proves to the provider
that the code is ours (the PKCE verifier) is not even in it: it follows from the visit's id by a key of this process.
"""

from __future__ import annotations

import binascii
import hmac
import json
import secrets
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from truename.access.sealing import sealed, unsealed
from truename.access.sign_in.held import Held

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Visit", "Visits"]

_SECONDS: Final = 600.0
_ID: Final = 16


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Somebody is at the provider; ``said`` is what was kept for their return."""

    id: str
    said: Sequence[Any]
    verifier: str = field(repr=False)
    nonce: str = field(repr=False)


class Visits:
    """Seals visits and opens them again. ``clock`` is in seconds since 1970.

    >>> visits = Visits(lambda: 0.0)
    >>> state, _ = visits.begin("sign-in", "the browser's cookie", ["what to do then"])
    >>> back = visits.back("sign-in", "the browser's cookie", state)
    >>> back.said, visits.back("sign-in", "another's cookie", state)
    (['what to do then'], None)
    >>> visits.finish(back, "ann"), visits.finish(back, "ann")
    (True, False)
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        # Only who signed in at the provider gets here, so a stranger can't fill it.
        self._finished: Held[bool] = Held(_SECONDS, clock)

    def begin(self, kind: str, browser: str, said: Sequence[Any]) -> tuple[str, Visit]:
        """Return a visit and its state. ``browser`` is the cookie of who leaves, ``said`` is JSON."""
        id = secrets.token_bytes(_ID)
        plain = json.dumps([int(self._clock() + _SECONDS), *said], ensure_ascii=False, separators=(",", ":"))
        whole = id + sealed(self._seal(id), plain.encode(), _bound(kind, browser))
        return _text(whole), self._visit(id, said)

    def back(self, kind: str, browser: str, state: str) -> Visit | None:
        """Return the visit of a state; None if it is none of this kind and browser, or too old."""
        try:
            whole = b64decode(state + "=" * (-len(state) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        id, rest = whole[:_ID], whole[_ID:]
        plain = unsealed(self._seal(id), rest, _bound(kind, browser))
        if plain is None:
            return None
        until, *said = json.loads(plain)
        return self._visit(id, said) if self._clock() < until else None

    def is_finished(self, visit: Visit) -> bool:
        """Tell whether somebody came back from it before."""
        return self._finished.look(visit.id) is not None

    def finish(self, visit: Visit, who: str) -> bool:
        """Have a visit be good no more; tell whether it was until now. ``who`` signed in at the provider."""
        is_first = not self.is_finished(visit)
        self._finished.put(visit.id, value=True, whose=who)
        return is_first

    def _visit(self, id: bytes, said: Sequence[Any]) -> Visit:
        verifier, nonce = (_text(self._derived(what, id)) for what in (b"verifier", b"nonce"))
        return Visit(id=_text(id), said=said, verifier=verifier, nonce=nonce)

    def _seal(self, id: bytes) -> AESGCM:
        # One for each visit: a stranger may have more visits sealed than one key may seal.
        return AESGCM(self._derived(b"seal", id))

    def _derived(self, what: bytes, id: bytes) -> bytes:
        return hmac.digest(self._key, what + b":" + id, "sha256")


def _bound(kind: str, browser: str) -> bytes:
    return json.dumps([kind, browser]).encode()


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
