"""Issue and check static access tokens: each is shown once, and stored as a digest."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from truename.errors import StoreError
from truename.files.private import read_own
from truename.policy.principal import Principal
from truename.storage import FORMER_REMEDY, Database, Schema, StateLocation, Transaction, insert, open_database, select

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from truename.config import KnownToken

__all__ = [
    "PREFIX",
    "SCHEMA",
    "BarredPrincipal",
    "StaticToken",
    "StaticTokenStore",
    "create_token",
    "digest_of",
    "generate_token",
    "is_token_name",
    "token_id",
]

_LARGEST: Final = 16 * 1024 * 1024
_FORMER_SCHEMA: Final = 1
# `token_begun` has a row from the first token on, also when all are revoked: the gateway then goes on to ask for one.
SCHEMA: Final = Schema(
    "token",
    (
        (
            """
CREATE TABLE token (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, groups TEXT NOT NULL, scopes TEXT NOT NULL,
    made REAL NOT NULL, expires REAL
)
""",
            "CREATE TABLE token_begun (at REAL NOT NULL)",
        ),
        ("CREATE TABLE token_barred (principal TEXT PRIMARY KEY, at REAL NOT NULL, by TEXT NOT NULL)",),
    ),
)
_COLUMNS: Final = ("id", "name", "digest", "groups", "scopes", "made", "expires")
_SELECT: Final = select("token", _COLUMNS)
_INSERT: Final = insert("token", _COLUMNS)
_BARRED: Final = ("principal", "at", "by")
_SELECT_BARRED: Final = select("token_barred", _BARRED, then="ORDER BY principal")
_BAR: Final = insert("token_barred", _BARRED, then="ON CONFLICT (principal) DO NOTHING")


MOST_TOKENS: Final = 10_000
LONGEST_SILENCE: Final = 900.0
"""For how many seconds tokens count as they were read last, while a database on another machine cannot be reached."""
PREFIX: Final = "tn1_"
"""The prefix of static tokens."""
_TOKEN: Final = re.compile(PREFIX + r"(?P<id>[0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_ID: Final = re.compile(r"[0-9a-f]{16}")
_SHA: Final = re.compile(r"[0-9a-f]{64}")
# Compared for an unknown id, so that it takes as long as for a known one.
_NOBODY: Final = hashlib.sha256(b"nobody's").hexdigest()


@dataclass(frozen=True, kw_only=True)
class StaticToken:
    """A static token as it is stored. Times are in seconds since 1970; ``expires`` None means never."""

    id: str
    name: str
    digest: str = field(repr=False)
    groups: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    made: float = 0.0
    expires: float | None = None

    def __post_init__(self) -> None:
        texts = (self.id, self.name, self.digest, *self.groups, *self.scopes)
        if not all(isinstance(text, str) for text in texts) or not _NAME.fullmatch(self.name):
            message = "a token's name, groups and scopes must be words"
            raise ValueError(message)
        if not _ID.fullmatch(self.id) or not _SHA.fullmatch(self.digest):
            message = "a token's id and digest must be hexadecimal"
            raise ValueError(message)

    @property
    def principal(self) -> Principal:
        """The principal of the token. It has no issuer: the operator of the gateway assigned the name."""
        return Principal(name=self.name, groups=frozenset(self.groups), scopes=frozenset(self.scopes))

    def is_good(self, now: float) -> bool:
        """Return whether the token has not expired."""
        return self.expires is None or now < self.expires


@dataclass(frozen=True, kw_only=True)
class BarredPrincipal:
    """A principal who is let in by nothing: its key, since when (seconds since 1970), and who decided it."""

    principal: str
    at: float
    by: str


def is_token_name(text: str) -> bool:
    """Return whether a text can be the name of a token's owner."""
    return _NAME.fullmatch(text) is not None


def generate_token() -> tuple[str, str]:
    """Generate a token and its id. Only its owner has the token; it is stored nowhere.

    >>> token, id = generate_token()
    >>> token_id(token) == id, len(token)
    (True, 64)
    """
    id = secrets.token_hex(8)
    return f"tn1_{id}_{secrets.token_urlsafe(32)}", id


def token_id(token: str) -> str | None:
    """Return the id in a text that has the form of a static token.

    >>> token_id("tn1_0123"), token_id("eyJhbGciOiJub25lIn0.e30.")
    (None, None)
    """
    found = _TOKEN.fullmatch(token)
    return found["id"] if found else None


def digest_of(token: str) -> str:
    """Return the digest under which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


class StaticTokenStore:
    """The tokens of a configuration, and those in the state database, which may change at any time.

    The database also has the principals who are barred, whatever credentials they have.

    All methods raise `StoreError`: ``corrupt``, ``newer``, ``busy``, ``unusable``; a database that cannot be
    read lets nobody in. Reading creates no database. Without a location, tokens are kept in memory.
    """

    def __init__(self, where: StateLocation | Path | None, configured: Mapping[str, KnownToken]) -> None:
        self._configured = {token.id: token for token in map(_configured, configured.values())}
        self._location = StateLocation.of(where)
        self._data: Database | None = None
        self._tokens: Mapping[str, StaticToken] = {}
        self._barred: Mapping[str, BarredPrincipal] = {}
        self._has_begun = False
        self._is_current = False

    def _open(self) -> Database:
        if self._data is None:
            self._data = open_database(self._location, SCHEMA, import_former=_import_former)
        return self._data

    def _read(self) -> Mapping[str, StaticToken]:
        """Return the tokens of the database, by id."""
        if self._data is None and not self._location.has(SCHEMA.part):
            return self._tokens
        data = self._open()
        if data.is_begun and (data.has_news() or not self._is_current):
            self._reload(data)
        if data.silence > LONGEST_SILENCE:
            problem = (
                f"it has not answered for {LONGEST_SILENCE // 60:.0f} minutes, and tokens may be revoked meanwhile"
            )
            data.refuse(problem, "unusable", "Check the server and the network.")
        return self._tokens

    def _reload(self, data: Database) -> None:
        # What cannot be read now lets nobody in the next time either.
        self._is_current = False
        self._has_begun = self._has_begun or bool(data.rows("SELECT 1 FROM token_begun LIMIT 1"))
        try:
            found = [_of_row(row) for row in data.rows(_SELECT)]
        except (ValueError, TypeError, RecursionError):
            data.refuse("a token is damaged")
        self._tokens = {token.id: token for token in found}
        barred = (BarredPrincipal(**dict(zip(_BARRED, row, strict=True))) for row in data.rows(_SELECT_BARRED))
        self._barred = {one.principal: one for one in barred}
        self._is_current = True

    @property
    def exists(self) -> bool:
        """Whether a token was ever made for this gateway: from then on it asks for one. Raises nothing.

        A database that cannot be read counts as one with tokens.
        """
        if self._configured or self._has_begun:
            return True
        try:
            self._read()
        except StoreError:
            return True
        return self._has_begun

    def now(self) -> dict[str, StaticToken]:
        """Return all tokens by id."""
        return {**self._read(), **self._configured}

    def followed_by(self, store: StaticTokenStore) -> StaticTokenStore:
        """Return a store with the configured tokens of another one, and close the one that is not needed any more.

        What was read from the same database goes on to count: it may be away at the moment.
        """
        if not self._location.is_same(store._location):
            self.close()
            return store
        self._configured = store._configured
        store.close()
        return self

    def is_configured(self, id: str) -> bool:
        """Return whether a token is written in the configuration, so that it cannot be revoked here."""
        return id in self._configured

    def holder(self, token: str, now: float) -> StaticToken | None:
        """Return the stored token with this text; None if it has expired or was revoked."""
        id = token_id(token) or ""
        found = self._configured.get(id) or self._read().get(id)
        wanted = _NOBODY if found is None else found.digest
        if not hmac.compare_digest(digest_of(token), wanted) or found is None:
            return None
        return found if found.is_good(now) else None

    def stands(self, token: StaticToken, now: float) -> bool:
        """Return whether a token that was accepted before is still valid."""
        kept = self._configured.get(token.id) or self._read().get(token.id)
        return kept == token and token.is_good(now)

    def add(self, token: StaticToken) -> None:
        """Store a new token."""
        data = self._open()
        with data.change() as connection:
            ((count,),) = connection.execute("SELECT count(*) FROM token").fetchall()
            if count >= MOST_TOKENS:
                data.refuse(f"it holds {MOST_TOKENS:,} tokens", "full", "Revoke those that are not needed.")
            _insert(connection, token)
        self._reload(data)

    def revoke(self, ids: frozenset[str]) -> None:
        """Remove tokens: running gateways refuse them from their next look at the database on."""
        data = self._open()
        with data.change() as connection:
            connection.executemany("DELETE FROM token WHERE id = ?", [(id,) for id in ids])
        self._reload(data)

    @property
    def barred(self) -> Mapping[str, BarredPrincipal]:
        """The principals who are barred, by their keys."""
        self._read()
        return self._barred

    def is_barred(self, principal: str) -> bool:
        """Return whether a principal is barred. Raises nothing: while the database is away, the last list counts."""
        with suppress(StoreError):
            self._read()
        return principal in self._barred

    def bar(self, principal: str, by: str) -> None:
        """Let a principal in no more, by any credentials: gateways refuse it from their next look at the database."""
        data = self._open()
        with data.change() as connection:
            connection.execute(_BAR, (principal, float(int(time.time())), by))
        self._reload(data)

    def readmit(self, principal: str) -> bool:
        """Bar a principal no longer; return whether it was barred."""
        data = self._open()
        with data.change() as connection:
            done = connection.execute("DELETE FROM token_barred WHERE principal = ?", (principal,)).rowcount > 0
        self._reload(data)
        return done

    def close(self) -> None:
        """Close the database."""
        if self._data is not None:
            self._data.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _insert(data: Transaction, token: StaticToken) -> None:
    if data.execute("SELECT 1 FROM token_begun").fetchone() is None:
        data.execute("INSERT INTO token_begun (at) VALUES (?)", (token.made,))
    words = json.dumps(token.groups), json.dumps(token.scopes)
    data.execute(_INSERT, (token.id, token.name, token.digest, *words, token.made, token.expires))


def _of_row(row: tuple[Any, ...]) -> StaticToken:
    """Return the token of a row. Raises `ValueError` and `TypeError`."""
    id, name, digest, groups, scopes, made, expires = row
    if not isinstance(made, float) or not isinstance(expires, float | None):
        message = "times are numbers"
        raise TypeError(message)
    return StaticToken(
        id=id,
        name=name,
        digest=digest,
        groups=_words(json.loads(groups)),
        scopes=_words(json.loads(scopes)),
        made=made,
        expires=expires,
    )


def _import_former(data: Transaction, path: Path) -> None:
    """Import the tokens that an earlier version kept as JSON. Raises `StoreError`."""
    try:
        for token in _former_tokens(json.loads(read_own(path, _LARGEST)), path):
            _insert(data, token)
        # The file was there, so the gateway asked for a token, though all may be revoked.
        if data.execute("SELECT 1 FROM token_begun").fetchone() is None:
            data.execute("INSERT INTO token_begun (at) VALUES (?)", (time.time(),))
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
        raise StoreError(file=str(path), key="", problem=problem, remedy=FORMER_REMEDY, code="unusable") from error
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        problem = "it holds no tokens of Truename"
        raise StoreError(file=str(path), key="", problem=problem, remedy=FORMER_REMEDY, code="corrupt") from error


def create_token(
    name: str, *, groups: tuple[str, ...], scopes: tuple[str, ...], expires: float | None
) -> tuple[str, StaticToken]:
    """Create a token; return its text and its stored form. Raises `ValueError` for an unusable name."""
    text, id = generate_token()
    kept = StaticToken(
        id=id,
        name=name,
        digest=digest_of(text),
        groups=groups,
        scopes=scopes,
        made=float(int(time.time())),
        expires=expires,
    )
    return text, kept


def _configured(token: KnownToken) -> StaticToken:
    _, id, digest = token.hash.split(":")
    return StaticToken(
        id=id, name=token.name, digest=digest, groups=token.groups, scopes=token.scopes, expires=token.expires
    )


def _former_tokens(content: dict[str, Any], path: Path) -> list[StaticToken]:
    schema = content["schema"]
    if not isinstance(schema, int):
        message = "the number of the schema is none"
        raise TypeError(message)
    if schema > _FORMER_SCHEMA:
        problem = f"it was written by a newer Truename (schema {schema})"
        raise StoreError(file=str(path), key="schema", problem=problem, remedy="Upgrade Truename.", code="newer")
    return [
        StaticToken(
            id=id,
            name=row["name"],
            digest=row["sha256"],
            groups=_words(row["groups"]),
            scopes=_words(row["scopes"]),
            made=float(row["made"]),
            expires=None if row["expires"] is None else float(row["expires"]),
        )
        for id, row in content["tokens"].items()
    ]


def _words(said: object) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
        message = "groups and scopes must be lists of strings"
        raise TypeError(message)
    return tuple(said)
