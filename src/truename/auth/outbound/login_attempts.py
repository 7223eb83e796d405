"""Record the logins that people are asked to make, for all gateways of one state.

The page, the redirect and the response of a login may reach different ones.
Links and states are secrets, so the tables have their digests, and what belongs to them is sealed.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from truename.auth.sealed_values import SealedValues
from truename.storage import Database, Schema, StateLocation, insert, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SCHEMA", "LoginAttempts"]

SCHEMA: Final = Schema(
    "login_attempt",
    (
        (
            """
CREATE TABLE login_attempt (
    link TEXT PRIMARY KEY, place TEXT NOT NULL, whose TEXT NOT NULL, sealed TEXT NOT NULL, begun INTEGER NOT NULL,
    until REAL NOT NULL
)
""",
            "CREATE INDEX login_attempt_place ON login_attempt (place)",
            "CREATE INDEX login_attempt_whose ON login_attempt (whose)",
            """
CREATE TABLE login_attempt_request (
    state TEXT PRIMARY KEY, link TEXT NOT NULL, sealed TEXT NOT NULL, until REAL NOT NULL
)
""",
        ),
    ),
)
SECONDS: Final = 600.0
"""How long a person may take for a login."""

_MOST_BEGUN: Final = 20
MOST_OF_ONE: Final = 50
"""How many logins of one person are open."""

_ATTEMPT: Final = insert("login_attempt", ("link", "place", "whose", "sealed", "begun", "until"))
_REQUEST: Final = insert("login_attempt_request", ("state", "link", "sealed", "until"))
_AT_PLACE: Final = "SELECT link, sealed FROM login_attempt WHERE place = ? AND until > ?"
_TRIMMED: Final = """
DELETE FROM login_attempt WHERE whose = ? AND link NOT IN
    (SELECT link FROM login_attempt WHERE whose = ? ORDER BY until DESC LIMIT ?)
"""
_BEGUN: Final = "UPDATE login_attempt SET begun = begun + 1 WHERE link = ? AND begun < ?"
_LOGIN: Final = "login attempt"
_REDIRECT: Final = "login request"

Content = dict[str, Any]


class LoginAttempts:
    """The logins that people are asked to make, and the redirects to authorization servers that are under way.

    All methods wait for the database, and raise `StoreError` and `ConfigError`. A content is JSON.
    """

    def __init__(self, location: StateLocation, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values = SealedValues(location, clock=clock)
        self._values.open()
        self._file: Database = open_database(location, SCHEMA)

    def begin(self, place: str, whose: str, link: str, content: Mapping[str, object]) -> Content:
        """Record a login, and return its content; if one is open at this place, return that one's."""
        now, where = self._clock(), _digest(place)
        with self._file.change() as data:
            data.execute("DELETE FROM login_attempt WHERE until <= ?", (now,))
            data.execute("DELETE FROM login_attempt_request WHERE until <= ?", (now,))
            for name, sealed in data.execute(_AT_PLACE, (where, now)).fetchall():
                if (known := self._opened(_LOGIN, name, sealed)) is not None:
                    return known
            # Who begins many loses their own, and nobody else's.
            data.execute(_TRIMMED, (_digest(whose), _digest(whose), MOST_OF_ONE - 1))
            name = _digest(link)
            sealed = self._values.seal(_LOGIN, [name], content, lasts=SECONDS)
            data.execute(_ATTEMPT, (name, where, _digest(whose), sealed, 0, now + SECONDS))
        return dict(content)

    def at_place(self, place: str) -> Content | None:
        """Return the open login at a place."""
        rows = self._file.rows(_AT_PLACE, _digest(place), self._clock())
        return self._opened(_LOGIN, *rows[0]) if rows else None

    def at(self, link: str) -> Content | None:
        """Return the open login of a link."""
        query = "SELECT sealed FROM login_attempt WHERE link = ? AND until > ?"
        rows = self._file.rows(query, _digest(link), self._clock())
        return self._opened(_LOGIN, _digest(link), *rows[0]) if rows else None

    def start(self, link: str) -> bool:
        """Count a start of a login; return False if it was started too often, or is over."""
        with self._file.change() as data:
            return data.execute(_BEGUN, (_digest(link), _MOST_BEGUN)).rowcount > 0

    def send(self, link: str, state: str, content: Mapping[str, object]) -> None:
        """Record a redirect to the authorization server by its state parameter."""
        name = _digest(state)
        sealed = self._values.seal(_REDIRECT, [name], content, lasts=SECONDS)
        with self._file.change() as data:
            data.execute(_REQUEST, (name, _digest(link), sealed, self._clock() + SECONDS))

    def sent(self, state: str) -> Content | None:
        """Return the redirect with a state parameter."""
        query = "SELECT sealed FROM login_attempt_request WHERE state = ? AND until > ?"
        rows = self._file.rows(query, _digest(state), self._clock())
        return self._opened(_REDIRECT, _digest(state), *rows[0]) if rows else None

    def take(self, state: str) -> bool:
        """End a redirect; return whether it was open: of two responses at once, one is taken."""
        with self._file.change() as data:
            query = "DELETE FROM login_attempt_request WHERE state = ?"
            return data.execute(query, (_digest(state),)).rowcount > 0

    def end(self, link: str) -> None:
        """End a login that was made, with all its redirects."""
        with self._file.change() as data:
            data.execute("DELETE FROM login_attempt WHERE link = ?", (_digest(link),))
            data.execute("DELETE FROM login_attempt_request WHERE link = ?", (_digest(link),))

    def close(self) -> None:
        """Close the database."""
        self._file.close()
        self._values.close()

    def _opened(self, kind: str, name: str, sealed: str) -> Content | None:
        found = self._values.opened(kind, [name], sealed)
        return None if found is None else found.content


def _digest(text: str) -> str:
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()
