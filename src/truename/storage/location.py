"""Name the place of the state: a file, a PostgreSQL database or memory, and the files that earlier versions kept."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlencode

from truename.errors import StoreError
from truename.files.private import state_directory
from truename.files.user import at_home
from truename.storage.vault_keys import KeySource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.storage.revision_file import Revision

__all__ = ["StateLocation", "is_server_url"]

_SCHEMES: Final = ("postgresql", "postgres")
# Those of libpq's parameters that are secrets themselves; others only name the files of some.
_SECRETS: Final = frozenset({"password", "sslpassword", "oauth_client_secret"})
_SCOPE: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_DEFAULT_SCOPE: Final = "default"
# What a URL may show of its parameters: none of the others is needed to find the server.
_SHOWN: Final = ("host", "port", "dbname", "user", "service")
# As libpq reads it: a person, any number of servers with their ports, a database, parameters. Where a special character
# of a password is not escaped, what follows would be read as a server, which messages show.
_HOST: Final = r"(?:\[[0-9A-Fa-f:.%]+\]|[^@/?#:,\[\]]*)(?::[0-9]{0,5})?"
_URL: Final = re.compile(
    rf"[^:]+://(?:[^@/?#]*@)?{_HOST}(?:,{_HOST})*(?:/[^@?#]*)?(?:\?(?:[A-Za-z0-9_%]+=[^=&#]*(?:&|$))*)?"
)
_WRONG_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_CHECK: Final = "Check host and port, and write special characters of a password as %XX (/ as %2F, @ as %40, % as %25)."


def is_server_url(text: str) -> bool:
    """Return whether a text is the URL of a PostgreSQL database.

    >>> is_server_url("postgresql://db.example/truename"), is_server_url("gateway.db")
    (True, False)
    """
    return text.partition("://")[0].lower() in _SCHEMES and "://" in text


@dataclass(frozen=True)
class StateLocation:
    """A state database: its file, or the URL and scope of one that a server keeps; without both it is in memory.

    One database of a server has any number of scopes, each with tables of its own: gateways of different scopes share
    the server and nothing else. A file is one scope.

    ``former`` names for each owner the file that an earlier version kept its state in; the owner imports it when it
    makes its tables. ``known`` is a revision that the database had according to the audit log. ``beside`` is a file
    in the user's state directory that belongs to a URL. ``keys`` says where the keys of its secrets are.

    >>> StateLocation.of("gateway.db").path, StateLocation.of(None).path
    (PosixPath('gateway.db'), None)
    >>> StateLocation.of("postgresql://ann:secret@db.example/truename?scope=team_a").name
    'postgresql://ann@db.example/truename?scope=team_a'
    """

    path: Path | None = None
    former: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    known: Revision | None = None
    url: str | None = field(default=None, repr=False)
    scope: str = _DEFAULT_SCOPE
    beside: Path | None = None
    keys: KeySource = field(default_factory=KeySource, compare=False)

    @property
    def is_memory(self) -> bool:
        """Whether nothing outlives the process."""
        return self.path is None and self.url is None

    @property
    def name(self) -> str:
        """The path, or the URL without its password, or ``memory``."""
        if self.url is None:
            return "memory" if self.path is None else str(self.path)
        address, _, query = self.url.partition("?")
        who, at, where = address.partition("://")[2].rpartition("@")
        shown = [(key, value) for key, value in _parameters(query) if key in _SHOWN]
        if self.scope != _DEFAULT_SCOPE:
            shown.append(("scope", self.scope))
        query = f"?{urlencode(shown, safe='/')}" if shown else ""
        return f"postgresql://{who.partition(':')[0]}{at}{where}{query}"

    @property
    def public_address(self) -> str:
        """The address without what is secret in it: with another way to sign in, it leads to the place as it is.

        >>> StateLocation.of("postgresql://ann:secret@db.example/tn?sslmode=verify-full&password=x").public_address
        'postgresql://ann@db.example/tn?sslmode=verify-full'
        """
        if self.url is None:
            return self.name
        address, _, query = self.url.partition("?")
        who, at, where = address.partition("://")[2].rpartition("@")
        shown = [part for part in query.split("&") if part and unquote(part.partition("=")[0]) not in _SECRETS]
        if self.scope != _DEFAULT_SCOPE:
            shown.append(f"scope={self.scope}")
        return f"postgresql://{who.partition(':')[0]}{at}{where}{'?' if shown else ''}{'&'.join(shown)}"

    @property
    def address(self) -> str | None:
        """What `of` reads as this place: the path, or the URL with its password and scope; None for memory."""
        if self.url is None:
            return None if self.path is None else str(self.path)
        return f"{self.url}{'&' if '?' in self.url else '?'}scope={self.scope}"

    @property
    def recorded_beside(self) -> Path | None:
        """The file beside which the revision is recorded, and keys are kept; None if there is none."""
        return self.path if self.url is None else self.beside

    def vault_keys(self) -> tuple[bytes, ...]:
        """Return the keys of the secrets in it, the one to encrypt with first. Raises `ConfigError`."""
        source, beside = self.keys, self.recorded_beside
        if source.own is None and beside is not None:
            # A path alone may be the default place of a configuration, which has its keys elsewhere.
            is_default = beside.parent == state_directory() / "ledgers"
            directory = beside.with_name(f"{beside.name}.keys")
            source = replace(
                source, own=(beside.parents[1] / "access" / beside.stem if is_default else directory) / "vault.key"
            )
        return source.keys()

    @property
    def exists(self) -> bool:
        """Whether the file, or the record of its revision, is there: a lost database is refused, not created again.

        A database of a server counts as one that exists.
        """
        if self.url is not None:
            return True
        places = () if self.path is None else (self.path, self.path.with_name(f"{self.path.name}.revision"))
        return any(place.is_symlink() or place.exists() for place in places)

    def has(self, part: str) -> bool:
        """Return whether an owner may have state, in the database or in the file of an earlier version."""
        return self.exists or ((former := self.former.get(part)) is not None and former.exists())

    def is_same(self, other: StateLocation) -> bool:
        """Return whether another location is the same place."""
        return (self.path, self.url, self.scope) == (other.path, other.url, other.scope)

    @classmethod
    def of(cls, where: StateLocation | Path | str | None) -> StateLocation:
        """Return a location for a path, a URL, a location itself, or for None (memory).

        A URL is libpq's, with the parameter ``scope`` besides. Raises `StoreError` for another scheme or an unusable
        scope.
        """
        if isinstance(where, StateLocation):
            return where
        if isinstance(where, str) and "://" in where:
            return _of_url(where)
        return cls(None if where is None else at_home(where))


def _of_url(text: str) -> StateLocation:
    if not is_server_url(text):
        scheme = text.partition("://")[0]
        raise _unusable(f"{scheme}://", "no such database can hold the state", "Give a path, or postgresql://... .")
    # No message may repeat what cannot be read: it may be a password.
    if not _URL.fullmatch(text) or _WRONG_ESCAPE.search(text):
        raise _unusable("postgresql://", "the URL is not valid", _CHECK)
    address, _, query = text.partition("?")
    scopes = [value for key, value in _parameters(query) if key == "scope"] or [_DEFAULT_SCOPE]
    if len(scopes) > 1 or not _SCOPE.fullmatch(scopes[0]):
        remedy = "Use one, of up to 40 of a-z, 0-9, '_', beginning with a letter."
        raise _unusable("postgresql://", "the scope in the URL is not valid", remedy)
    # Libpq reads what is left as it was written: a form would have a space as "+".
    rest = [part for part in query.split("&") if part and unquote(part.partition("=")[0]) != "scope"]
    found = StateLocation(url=f"{address}{'?' if rest else ''}{'&'.join(rest)}", scope=scopes[0])
    # A password that is changed does not change the place.
    digest = hashlib.sha256(found.name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return replace(found, beside=state_directory() / "servers" / f"{found.scope}-{digest}")


def _parameters(query: str) -> list[tuple[str, str]]:
    pairs = (part.partition("=") for part in query.split("&"))
    return [(unquote(key), unquote(value)) for key, _, value in pairs]


def _unusable(file: str, problem: str, remedy: str) -> StoreError:
    return StoreError(file=file, key="", problem=problem, remedy=remedy, code="unusable")
