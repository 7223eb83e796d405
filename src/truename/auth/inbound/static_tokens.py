"""Issue and check static access tokens: each is shown once, and kept as a digest."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from truename.errors import StoreError
from truename.files.lock import locked
from truename.files.private import make_private, read_own, sync_directory, write_new
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from truename.config import KnownToken

__all__ = [
    "PREFIX",
    "SharedFile",
    "StaticToken",
    "StaticTokenStore",
    "digest_of",
    "fresh",
    "minted",
    "named_id",
    "readable_name",
]

T = TypeVar("T")
_LARGEST: Final = 16 * 1024 * 1024
_SCHEMA: Final = 1
# Which file it is, as far as a look at it says: each one that is put in place is another file.
_Seen = tuple[int, int, int]


class SharedFile(Generic[T]):
    """What a JSON file holds, as values: ``read`` makes them of its content, ``write`` the content of them.

    Without a path it is kept in memory only. All methods raise `StoreError`: ``corrupt`` (what ``read`` does not
    take is), ``newer``, ``busy``, ``unusable``. A file that was there and is gone is ``unusable`` too: what was
    revoked in it would be good again.
    """

    def __init__(
        self,
        path: Path | None,
        read: Callable[[dict[str, Any]], T],
        write: Callable[[T], dict[str, Any]],
    ) -> None:
        self.path = path
        self._read = read
        self._write = write
        self._lock = threading.RLock()
        self._seen: _Seen | None = None
        self._value = read({})

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept; what can't be looked at, or leads nowhere, counts as something."""
        if self.path is None or self._seen is not None:
            return self._seen is not None
        try:
            self.path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def now(self) -> T:
        """Return what is kept now, for looking only: it costs a look at the file."""
        if self.path is None:
            return self._value
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if self._seen is None:
                return self._value
            self._fail("it was there, and is gone")
        except OSError as error:
            self._fail(error.strerror or str(error), error)
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            with self._lock:
                self._value = self._load(self.path)
                self._seen = seen
        return self._value

    @contextmanager
    def change(self) -> Iterator[T]:
        """Keep everybody else out; what is done to the value is kept when the block ends well."""
        with self._lock:
            if self.path is None:
                draft = self._read(self._write(self._value))
                yield draft
                self._value = draft
                return
            with self._alone(self.path):
                # Values are made anew, so that a block that fails has changed nothing.
                draft = self._read(self._write(self.now()))
                yield draft
                self._replace(self.path, draft)

    def _load(self, path: Path) -> T:
        try:
            content = json.loads(read_own(path, _LARGEST))
        except OSError as error:
            self._fail(error.strerror or str(error), error)
        except (ValueError, RecursionError) as error:
            self._corrupt("it is not JSON", error)
        if not isinstance(content, dict) or not isinstance(schema := content.pop("schema", None), int):
            self._corrupt("it is no file of Truename's")
        if schema > _SCHEMA:
            problem = f"it was written by a newer Truename (schema {schema})"
            raise StoreError(file=str(path), key="schema", problem=problem, remedy="Upgrade Truename.", code="newer")
        try:
            return self._read(content)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            self._corrupt("it holds what can't be understood", error)

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        try:
            make_private(path.parent)
            lock = locked(path, shared=False)
            lock.__enter__()
        except TimeoutError as error:
            problem, remedy = "another process has its lock", "Wait for it, or end it, and try again."
            raise StoreError(file=str(path), key="", problem=problem, remedy=remedy, code="busy") from error
        except OSError as error:
            self._fail(error.strerror or str(error), error)
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _replace(self, path: Path, value: T) -> None:
        raw = json.dumps({"schema": _SCHEMA, **self._write(value)}, indent=1, sort_keys=True).encode()
        if len(raw) > _LARGEST:
            problem, remedy = "it would be larger than 16 MiB", "Revoke what is not needed."
            raise StoreError(file=str(path), key="", problem=problem, remedy=remedy, code="full")
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            draft.unlink(missing_ok=True)
            write_new(draft, raw)
            draft.replace(path)
            sync_directory(path.parent)
            found = path.stat()
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            self._fail(error.strerror or str(error), error)
        self._value, self._seen = value, (found.st_ino, found.st_mtime_ns, found.st_size)

    def _corrupt(self, problem: str, cause: Exception | None = None) -> NoReturn:
        remedy = "Restore it from a copy; nothing was changed."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="corrupt") from cause

    def _fail(self, problem: str, cause: OSError | None = None) -> NoReturn:
        remedy = "Check the path and the disk; nobody is let in by it meanwhile."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="unusable") from cause


MOST_TOKENS: Final = 10_000
PREFIX: Final = "tn1_"
"""What static tokens begin with."""
_TOKEN: Final = re.compile(PREFIX + r"(?P<id>[0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_ID: Final = re.compile(r"[0-9a-f]{16}")
_SHA: Final = re.compile(r"[0-9a-f]{64}")
# Compared with where an id is not known, so that this takes as long as where it is.
_NOBODY: Final = hashlib.sha256(b"nobody's").hexdigest()


@dataclass(frozen=True, kw_only=True)
class StaticToken:
    """One token as it is kept. Times are in seconds since 1970; ``expires`` None is never."""

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
            message = "a token's name, groups and scopes are words"
            raise ValueError(message)
        if not _ID.fullmatch(self.id) or not _SHA.fullmatch(self.digest):
            message = "a token's id and digest are hexadecimal"
            raise ValueError(message)

    @property
    def principal(self) -> Principal:
        """Who has it. No issuer vouches for that but the gateway's own operator."""
        return Principal(name=self.name, groups=frozenset(self.groups), scopes=frozenset(self.scopes))

    def is_good(self, now: float) -> bool:
        """Tell whether it has not expired."""
        return self.expires is None or now < self.expires


def readable_name(text: str) -> bool:
    """Tell whether somebody with a token can be called this."""
    return _NAME.fullmatch(text) is not None


def minted() -> tuple[str, str]:
    """Return a new token and its id. The token is what its owner sends; it is nowhere else.

    >>> token, id = minted()
    >>> named_id(token) == id, len(token)
    (True, 64)
    """
    id = secrets.token_hex(8)
    return f"tn1_{id}_{secrets.token_urlsafe(32)}", id


def named_id(token: str) -> str | None:
    """Return the id that a text names if it has the form of a static token.

    >>> named_id("tn1_0123"), named_id("eyJhbGciOiJub25lIn0.e30.")
    (None, None)
    """
    found = _TOKEN.fullmatch(token)
    return found["id"] if found else None


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


class StaticTokenStore:
    """The tokens of a configuration, and those in its state directory, which may change at any time."""

    def __init__(self, path: Path | None, configured: Mapping[str, KnownToken]) -> None:
        self._configured = {token.id: token for token in map(_configured, configured.values())}
        self._kept: SharedFile[dict[str, StaticToken]] = SharedFile(path, _read, _write)

    @property
    def exists(self) -> bool:
        """Whether a token was ever made for this gateway: from then on it asks for one."""
        return bool(self._configured) or self._kept.exists

    def now(self) -> dict[str, StaticToken]:
        """Return all tokens by id. Raises `StoreError`."""
        return {**self._kept.now(), **self._configured}

    def is_configured(self, id: str) -> bool:
        """Tell whether a token stands in the configuration, and so can't be revoked here."""
        return id in self._configured

    def holder(self, token: str, now: float) -> StaticToken | None:
        """Return the kept token that this text is, unless it has expired or was revoked. Raises `StoreError`."""
        id = named_id(token) or ""
        found = self._configured.get(id) or self._kept.now().get(id)
        wanted = _NOBODY if found is None else found.digest
        if not hmac.compare_digest(digest_of(token), wanted) or found is None:
            return None
        return found if found.is_good(now) else None

    def stands(self, token: StaticToken, now: float) -> bool:
        """Tell whether a token that was good still is. Raises `StoreError`."""
        kept = self._configured.get(token.id) or self._kept.now().get(token.id)
        return kept == token and token.is_good(now)

    def add(self, token: StaticToken) -> None:
        """Keep a new token. Raises `StoreError`."""
        with self._kept.change() as tokens:
            if len(tokens) >= MOST_TOKENS:
                problem, remedy = f"it holds {MOST_TOKENS:,} tokens", "Revoke those that are not needed."
                raise StoreError(file=str(self._kept.path), key="", problem=problem, remedy=remedy, code="full")
            tokens[token.id] = token

    def revoke(self, ids: frozenset[str]) -> None:
        """Forget tokens: running gateways refuse them from their next look at the file on. Raises `StoreError`."""
        with self._kept.change() as tokens:
            for id in ids:
                tokens.pop(id, None)


def fresh(
    name: str, *, groups: tuple[str, ...], scopes: tuple[str, ...], expires: float | None
) -> tuple[str, StaticToken]:
    """Return a new token for somebody, and what is kept of it. Raises `ValueError` for what can't be a name."""
    text, id = minted()
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


def _read(content: dict[str, Any]) -> dict[str, StaticToken]:
    # What says something else than tokens is damaged, and not without any.
    rows = content["tokens"] if content else {}
    return {
        id: StaticToken(
            id=id,
            name=row["name"],
            digest=row["sha256"],
            groups=_words(row["groups"]),
            scopes=_words(row["scopes"]),
            made=float(row["made"]),
            expires=None if row["expires"] is None else float(row["expires"]),
        )
        for id, row in rows.items()
    }


def _words(said: object) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
        message = "words are a list of texts"
        raise TypeError(message)
    return tuple(said)


def _write(tokens: dict[str, StaticToken]) -> dict[str, Any]:
    return {
        "tokens": {
            id: {
                "name": token.name,
                "sha256": token.digest,
                "groups": list(token.groups),
                "scopes": list(token.scopes),
                "made": token.made,
                "expires": token.expires,
            }
            for id, token in tokens.items()
        }
    }
