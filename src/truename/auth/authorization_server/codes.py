"""Keep authorization codes for a minute, sealed, where all gateways of one state redeem them: each once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.auth.sealed_values import SealedValues
from truename.storage import Schema, StateLocation, insert, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SCHEMA", "AuthorizationCodes", "FoundCode"]

SCHEMA: Final = Schema(
    "authorization_code",
    (
        (
            # `session` is that of a code that was redeemed.
            """
CREATE TABLE authorization_code (
    code TEXT PRIMARY KEY, whose TEXT NOT NULL, sealed TEXT NOT NULL, session TEXT NOT NULL, until REAL NOT NULL
)
""",
            "CREATE INDEX authorization_code_whose ON authorization_code (whose)",
        ),
    ),
)
SECONDS: Final = 60.0
"""How long a client may take to redeem a code."""

MOST_OF_ONE: Final = 50
"""How many codes of one person are kept that were not redeemed."""

_INSERT: Final = insert("authorization_code", ("code", "whose", "sealed", "session", "until"))
_TRIMMED: Final = """
DELETE FROM authorization_code WHERE whose = ? AND session = '' AND code NOT IN
    (SELECT code FROM authorization_code WHERE whose = ? AND session = '' ORDER BY until DESC LIMIT ?)
"""
_FIND: Final = "SELECT sealed, session FROM authorization_code WHERE code = ? AND until > ?"
_REDEEM: Final = """
UPDATE authorization_code SET sealed = '', session = ?, until = ? WHERE code = ? AND session = '' AND until > ?
"""
_KIND: Final = "authorization code"


@dataclass(frozen=True, kw_only=True)
class FoundCode:
    """What belongs to a code; of one that was redeemed only the ``session`` that it began."""

    content: Mapping[str, Any]
    session: str


class AuthorizationCodes:
    """The codes of one state; ``spent_seconds`` is how long one that was redeemed is remembered.

    All methods wait for the database, and raise `StoreError`.
    """

    def __init__(self, location: StateLocation, clock: Callable[[], float], *, spent_seconds: float) -> None:
        self._clock = clock
        self._spent_seconds = spent_seconds
        self._values = SealedValues(location, clock=clock)
        self._values.open()
        self._file = open_database(location, SCHEMA)

    def put(self, code: str, content: Mapping[str, object], *, whose: str) -> None:
        """Store a code; who has many loses the oldest."""
        now, name, owner = self._clock(), _digest(code), _digest(whose)
        sealed = self._values.seal(_KIND, [name], content, lasts=SECONDS)
        with self._file.change() as data:
            data.execute("DELETE FROM authorization_code WHERE until <= ?", (now,))
            data.execute(_TRIMMED, (owner, owner, MOST_OF_ONE - 1))
            data.execute(_INSERT, (name, owner, sealed, "", now + SECONDS))

    def find(self, code: str) -> FoundCode | None:
        """Return what belongs to a code; None if it is unknown or expired."""
        for sealed, session in self._file.rows(_FIND, _digest(code), self._clock()):
            if session:
                return FoundCode(content={}, session=session)
            opened = self._values.opened(_KIND, [_digest(code)], sealed)
            return None if opened is None else FoundCode(content=opened.content, session="")
        return None

    def redeem(self, code: str, session: str) -> bool:
        """Mark a code as redeemed by a session; return whether it was not before: of two at once, one redeems it."""
        now = self._clock()
        with self._file.change() as data:
            values = session, now + self._spent_seconds, _digest(code), now
            return data.execute(_REDEEM, values).rowcount > 0

    def close(self) -> None:
        """Close the database."""
        self._file.close()
        self._values.close()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
