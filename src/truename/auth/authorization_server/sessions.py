"""Store sign-in sessions: one row for each sign-in of a person with a client, whatever tokens it received since."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.auth.inbound.static_tokens import LONGEST_SILENCE
from truename.cache import LRUCache
from truename.errors import StoreError
from truename.policy.principal import Principal
from truename.storage import Schema, StateLocation, import_tables, insert, open_database, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from truename.config import Config

__all__ = ["PLACE", "SCHEMA", "SignInSession", "SignInSessions", "end_sessions", "load_sessions"]

PLACE: Final = "truename:sign-in"

SCHEMA: Final = Schema(
    "sign_in",
    (
        (
            """
CREATE TABLE sign_in (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, issuer TEXT NOT NULL, client TEXT NOT NULL, client_name TEXT NOT NULL,
    groups TEXT NOT NULL, scopes TEXT NOT NULL, turn INTEGER NOT NULL, made INTEGER NOT NULL, until INTEGER NOT NULL
)
""",
            "CREATE INDEX sign_in_whose ON sign_in (issuer, name, made)",
        ),
    ),
)
_MOST: Final = 20_000
_MOST_OF_ONE: Final = 50
_COLUMNS: Final = ("id", "name", "issuer", "client", "client_name", "groups", "scopes", "turn", "made", "until")
_INSERT: Final = insert("sign_in", _COLUMNS)
_ONE: Final = select("sign_in", _COLUMNS, where=("id",))
_GOOD: Final = select("sign_in", _COLUMNS, then="WHERE until > ? ORDER BY name, made")
_TURNS: Final = "SELECT id, turn FROM sign_in WHERE until > ?"
_import_former: Final = partial(import_tables, names={"sign_in": ("sign_in", "session")})


@dataclass(frozen=True, kw_only=True)
class SignInSession:
    """A sign-in session. ``turn`` counts the uses of its refresh token; ``client`` is a digest of the client's id."""

    id: str
    name: str
    issuer: str
    client: str
    client_name: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    turn: int = 0
    made: int = 0
    until: int = 0

    @property
    def principal(self) -> Principal:
        """The principal of the session."""
        return Principal(name=self.name, issuer=self.issuer, client=self.client, groups=self.groups, scopes=self.scopes)


class _Turns(NamedTuple):
    """The turn of each session, as of some news."""

    news: int
    of: Mapping[str, int]


class SignInSessions:
    """The sessions of all gateways of one configuration.

    What requests ask (`good`, `stands`) is known without a look at the database until some session changes; then the
    turns of all are read in one query. All methods raise `StoreError` unless they say otherwise.
    """

    def __init__(self, where: StateLocation | Path | None, clock: Callable[[], float]) -> None:
        self._file = open_database(where, SCHEMA, import_former=_import_former)
        self._clock = clock
        # How many times something changed: what was read before the last time counts no more.
        self._news = 0
        self._turns = _Turns(-1, {})
        self._reading = threading.Lock()
        self._known: LRUCache[str, SignInSession] = LRUCache(_MOST)

    def begin(self, session: SignInSession) -> frozenset[str]:
        """Store a session; return the ids of those that end: expired ones, and the person's oldest over the limit."""
        with self._file.change() as data:
            ended = [id for (id,) in data.execute("SELECT id FROM sign_in WHERE until <= ?", (self._clock(),))]
            query = "SELECT id FROM sign_in WHERE issuer = ? AND name = ? ORDER BY made DESC"
            ended += [
                id for (id,) in data.execute(query, (session.issuer, session.name)).fetchall()[_MOST_OF_ONE - 1 :]
            ]
            data.executemany("DELETE FROM sign_in WHERE id = ?", [(id,) for id in ended])
            (count,) = data.execute("SELECT count(*) FROM sign_in").fetchone()
            if count >= _MOST:
                self._file.refuse(f"{count:,} people are signed in already", "full", "Revoke sessions.")
            said = (
                session.id,
                session.name,
                session.issuer,
                session.client,
                session.client_name,
                _plain(session.groups),
                _plain(session.scopes),
            )
            data.execute(_INSERT, (*said, session.turn, session.made, session.until))
        self._changed()
        return frozenset(ended)

    def is_current(self) -> bool:
        """Return whether no session changed since the sessions were read."""
        if self._file.has_news():
            self._news += 1
        return self._turns.news == self._news

    def refresh(self) -> None:
        """Read the turns of all sessions, if some changed."""
        with self._reading:
            if not self.is_current():
                news = self._news
                self._turns = _Turns(news, dict(self._file.rows(_TURNS, self._clock())))

    def _changed(self) -> None:
        """Read the sessions at once after an own change: the database may be away later."""
        self._news += 1
        with suppress(StoreError):
            self.refresh()

    def asks(self, id: str) -> bool:
        """Return whether `good` has to ask the database about a session."""
        return not self.is_current() or not self._is_known(id)

    def _is_known(self, id: str) -> bool:
        found = self._known.get(id)
        return found is not None and found.turn == self._turns.of.get(id)

    def good(self, id: str) -> SignInSession | None:
        """Return a session that is good as far as this process heard.

        While the database is away, what was read from it counts for 15 minutes (`LONGEST_SILENCE`), as tokens do.
        """
        self.refresh()
        if self._is_over_long():
            problem = (
                f"it has not answered for {LONGEST_SILENCE // 60:.0f} minutes, and sign-ins may have ended meanwhile"
            )
            self._file.refuse(problem, "unusable", "Check the server and the network.")
        # One that began a moment ago, at another gateway, may not have been heard of.
        found = self._known.get(id) if self._is_known(id) else self.get(id)
        if found is None:
            return None
        self._known[id] = found
        return found if self._clock() < found.until else None

    def _is_over_long(self) -> bool:
        return self._file.silence > LONGEST_SILENCE

    def stands(self, id: str) -> bool:
        """Return whether a session that was good had not ended when the sessions were read. Raises nothing."""
        found = self._known.get(id)
        is_there = id in self._turns.of and (found is None or self._clock() < found.until)
        return is_there and not self._is_over_long()

    def get(self, id: str) -> SignInSession | None:
        """Return a session that is good now, as it is in the database."""
        rows = self._file.rows(_ONE, id)
        found = self._read(rows[0]) if rows else None
        return found if found is not None and self._clock() < found.until else None

    def all(self) -> tuple[SignInSession, ...]:
        """Return all that are good now, by name."""
        rows = self._file.rows(_GOOD, self._clock())
        return tuple(map(self._read, rows))

    def _read(self, row: tuple[object, ...]) -> SignInSession:
        try:
            return _session(row)
        except (ValueError, TypeError, RecursionError):
            self._file.refuse("a row is not a session")

    def turn(self, session: SignInSession) -> SignInSession | None:
        """Count a use of the session's refresh token, and store its groups.

        Returns None if the token was used meanwhile or the session has ended: of two concurrent uses, only one
        succeeds.
        """
        after = replace(session, turn=session.turn + 1)
        with self._file.change() as data:
            done = data.execute(
                "UPDATE sign_in SET turn = ?, groups = ? WHERE id = ? AND turn = ?",
                (after.turn, _plain(after.groups), after.id, session.turn),
            ).rowcount
        self._changed()
        return after if done else None

    def end(self, id: str) -> bool:
        """End a session; return whether it existed."""
        with self._file.change() as data:
            is_gone = data.execute("DELETE FROM sign_in WHERE id = ?", (id,)).rowcount > 0
        self._changed()
        return is_gone

    def close(self) -> None:
        """Close the database."""
        self._file.close()


def load_sessions(config: Config) -> tuple[SignInSession, ...]:
    """Return the sessions of people who are signed in at this configuration's gateway. Raises `StoreError`."""
    location = config.state_location()
    if not location.has(SCHEMA.part):
        return ()
    with closing(SignInSessions(location, time.time)) as sessions:
        return sessions.all()


def end_sessions(config: Config, ids: Iterable[str]) -> None:
    """End sessions, and delete the provider's tokens of them. Raises `StoreError`."""
    from truename.auth.vault import Vault  # noqa: PLC0415 - costly, and who lists needs none

    location = config.state_location()
    # To remove a secret needs no key.
    with closing(SignInSessions(location, time.time)) as sessions, Vault(location, ()) as vault:
        for id in ids:
            sessions.end(id)
            vault.remove(PLACE, id)


def _plain(words: frozenset[str]) -> str:
    return json.dumps(sorted(words))


def _session(row: tuple[Any, ...]) -> SignInSession:
    id, name, issuer, client, client_name, groups, scopes, turn, made, until = row
    if not all(isinstance(text, str) for text in row[:7]) or not all(isinstance(number, int) for number in row[7:]):
        message = "a column has the wrong type"
        raise TypeError(message)
    return SignInSession(
        id=id,
        name=name,
        issuer=issuer,
        client=client,
        client_name=client_name,
        groups=frozenset(json.loads(groups)),
        scopes=frozenset(json.loads(scopes)),
        turn=turn,
        made=made,
        until=until,
    )
