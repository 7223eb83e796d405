"""Issue and check static access tokens: each is shown once, and stored as a digest."""

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
    "create_token",
    "digest_of",
    "generate_token",
    "is_token_name",
    "token_id",
]

T = TypeVar("T")
_LARGEST: Final = 16 * 1024 * 1024
_SCHEMA: Final = 1
# The identity of a file as far as its metadata shows it: each replacement is another file.
_Seen = tuple[int, int, int]


class SharedFile(Generic[T]):
    """A JSON file of values: ``read`` decodes its content, ``write`` encodes it.

    Without a path the values are in memory only. All methods raise `StoreError`: ``corrupt`` (``read`` does not accept
    the content), ``newer``, ``busy``, ``unusable``. A file that existed and is missing is ``unusable`` too: otherwise
    everything revoked in it would become valid again.
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
        """Whether anything was ever stored; a path that cannot be inspected, or a broken link, counts as stored."""
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
        """Return the current value, read-only, after checking whether the file changed."""
        if self.path is None:
            return self._value
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if self._seen is None:
                return self._value
            self._fail("the file is missing")
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
        """Lock the file, and store the changes that the block makes unless it raises."""
        with self._lock:
            if self.path is None:
                draft = self._read(self._write(self._value))
                yield draft
                self._value = draft
                return
            with self._alone(self.path):
                # Decoded again, so that a block that raises has changed nothing.
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
            self._corrupt("it is not a file of Truename")
        if schema > _SCHEMA:
            problem = f"it was written by a newer Truename (schema {schema})"
            raise StoreError(file=str(path), key="schema", problem=problem, remedy="Upgrade Truename.", code="newer")
        try:
            return self._read(content)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            self._corrupt("its content is not valid", error)

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        try:
            make_private(path.parent)
            lock = locked(path, shared=False)
            lock.__enter__()
        except TimeoutError as error:
            problem, remedy = "another process holds its lock", "Wait for that process, or end it, and try again."
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
        remedy = "Restore it from a backup; nothing was changed."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="corrupt") from cause

    def _fail(self, problem: str, cause: OSError | None = None) -> NoReturn:
        remedy = "Check the path and the disk; static tokens are refused until then."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="unusable") from cause


MOST_TOKENS: Final = 10_000
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
    """The tokens of a configuration, and those in its state directory, which may change at any time."""

    def __init__(self, path: Path | None, configured: Mapping[str, KnownToken]) -> None:
        self._configured = {token.id: token for token in map(_configured, configured.values())}
        self._kept: SharedFile[dict[str, StaticToken]] = SharedFile(path, _read, _write)

    @property
    def exists(self) -> bool:
        """Whether a token was ever created for this gateway: from then on the gateway requires one."""
        return bool(self._configured) or self._kept.exists

    def now(self) -> dict[str, StaticToken]:
        """Return all tokens by id. Raises `StoreError`."""
        return {**self._kept.now(), **self._configured}

    def is_configured(self, id: str) -> bool:
        """Return whether a token is in the configuration, and so cannot be revoked in the store."""
        return id in self._configured

    def holder(self, token: str, now: float) -> StaticToken | None:
        """Return the stored token of a text, unless it has expired or was revoked. Raises `StoreError`."""
        id = token_id(token) or ""
        found = self._configured.get(id) or self._kept.now().get(id)
        wanted = _NOBODY if found is None else found.digest
        if not hmac.compare_digest(digest_of(token), wanted) or found is None:
            return None
        return found if found.is_good(now) else None

    def stands(self, token: StaticToken, now: float) -> bool:
        """Return whether a token that was valid still is. Raises `StoreError`."""
        kept = self._configured.get(token.id) or self._kept.now().get(token.id)
        return kept == token and token.is_good(now)

    def add(self, token: StaticToken) -> None:
        """Store a new token. Raises `StoreError`."""
        with self._kept.change() as tokens:
            if len(tokens) >= MOST_TOKENS:
                problem, remedy = f"it holds {MOST_TOKENS:,} tokens", "Revoke those that are not needed."
                raise StoreError(file=str(self._kept.path), key="", problem=problem, remedy=remedy, code="full")
            tokens[token.id] = token

    def revoke(self, ids: frozenset[str]) -> None:
        """Delete tokens: running gateways refuse them from their next check of the file. Raises `StoreError`."""
        with self._kept.change() as tokens:
            for id in ids:
                tokens.pop(id, None)


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


def _read(content: dict[str, Any]) -> dict[str, StaticToken]:
    # A file with other content is damaged, not empty.
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
        message = "groups and scopes must be lists of strings"
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
