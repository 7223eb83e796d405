"""Compare, read and bump protocol versions, and resolve calls between peers of two versions."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.errors import MigrationError, UnknownTool, excerpt
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.naming import NameTable, Resolution

__all__ = [
    "CHANGES",
    "DEFAULT_PATTERN",
    "ProtocolStatement",
    "VersionSkew",
    "bump",
    "compare_peers",
    "compare_versions",
    "pattern_for",
    "resolve_between",
    "stated_versions",
    "version_parts",
]

_VERSION: Final = re.compile(r"(v?)((?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){0,3})")
# The position of the number that a change increments: from 1.0 on, and below 1.0, where the second one is for breaking
# changes.
CHANGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"rename": (0, 1), "removed": (0, 1), "breaking": (0, 1), "added": (1, 1), "fixed": (2, 2)}
)


def version_parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: one to four, separated by dots, optionally after a ``v``.

    Raises `MigrationError` (``invalid_version``) for anything else, also for ``0.3-beta``.

    >>> version_parts("v0.10")
    (0, 10)
    """
    return tuple(int(part) for part in _parsed(version)[1].split("."))


def bump(version: str, change: str = "rename") -> str:
    """Return the version after a change: ``rename``, ``removed``, ``breaking``, ``added`` or ``fixed``.

    A rename breaks callers of the old name (0.2 becomes 0.3). The count of numbers stays, or grows as the change needs.
    Raises `MigrationError` for an invalid version, `ValueError` for an unknown change.

    >>> bump("0.9"), bump("1.4.2"), bump("1.4", "added"), bump("0.2", "fixed")
    ('0.10', '2.0.0', '1.5', '0.2.1')
    """
    if change not in CHANGES:
        message = f"{excerpt(change)} is not a kind of change. Use one of {', '.join(CHANGES)}."
        raise ValueError(message)
    lead, text = _parsed(version)
    numbers = [int(part) for part in text.split(".")]
    place = CHANGES[change][numbers[0] == 0]
    numbers += [0] * (place + 1 - len(numbers))
    counted = [*numbers[:place], numbers[place] + 1, *(0 for _ in numbers[place + 1 :])]
    return lead + ".".join(map(str, counted))


def compare_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1 if the left version is older than, equal to or newer than the right one, number by number.

    Raises `MigrationError` like `version_parts`.

    >>> compare_versions("0.10", "0.9"), compare_versions("0.3", "v0.3.0")
    (1, 0)
    """
    pairs = zip_longest(version_parts(left), version_parts(right), fillvalue=0)
    return next((1 if one > other else -1 for one, other in pairs if one != other), 0)


def _parsed(version: str) -> tuple[str, str]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise MigrationError(
            code="invalid_version",
            problem=f"{excerpt(version)} is not a protocol version",
            remedy="Write one to four numbers separated by dots, as in 0.3.",
        )
    return found[1], found[2]


DEFAULT_PATTERN: Final = 'PROTOCOL_VERSION = "{version}"'
# The setting of the gateway, which is not a constant in a program.
_SETTING: Final = 'protocol = "{version}"'
_SETTINGS_FILE: Final = "truename.toml"
_PLACE: Final = "{version}"
_LONGEST: Final = 200
_NUMBERS: Final = r"(?P<version>v?[0-9]{1,9}(?:\.[0-9]{1,9}){0,3})(?![\w.-]*\w)"
# A type may follow the name (Rust, TypeScript), or a quote (JSON).
_USUAL: Final = re.compile(
    rf"(?<![\w-])(?:PROTOCOL_VERSION|protocol_version)\b[\"'`]?"
    rf"(?:[ \t]{{0,8}}:[ \t]{{0,8}}&?[\w' ]{{1,40}})?[ \t]{{0,40}}[=:][ \t]{{0,40}}[\"'`]?{_NUMBERS}"
)

# Only before all tables: in a table it is another setting.
_SET: Final = re.compile(rf"\A\ufeff?(?:[^\[\n][^\n]*\n|\n)*?protocol[ \t]{{0,40}}=[ \t]{{0,40}}[\"']{_NUMBERS}[\"']")
_OWN: Final = {DEFAULT_PATTERN: _USUAL, _SETTING: _SET}


@dataclass(frozen=True, slots=True)
class ProtocolStatement:
    """A step from one protocol version to the next, and the way in which files state it.

    ``pattern`` is a text with ``{version}``, matched literally except for white space; the default one also matches a
    type after the name, ``:`` instead of ``=``, and lower case. ``file`` is a glob of the files to search.
    """

    old: str
    new: str
    pattern: str = DEFAULT_PATTERN
    file: str = ""

    @classmethod
    def after(
        cls, version: str, change: str = "rename", *, pattern: str = DEFAULT_PATTERN, file: str = ""
    ) -> ProtocolStatement:
        """Return the step from a version to the one after a change (see `bump`).

        Raises `MigrationError` for an invalid version or pattern, `ValueError` for an unknown change.


        >>> ProtocolStatement.after("0.9").new
        '0.10'
        """
        _compiled(pattern)
        return cls(version, bump(version, change), pattern, file)

    def statements(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield each version that a text states, with its offset."""
        for found in _compiled(self.pattern).finditer(text):
            yield found.start("version"), found["version"]


def stated_versions(text: str, pattern: str = DEFAULT_PATTERN) -> tuple[str, ...]:
    """Return the versions that a text states, without duplicates. Raises `MigrationError` for an invalid pattern.

    >>> stated_versions('pub const PROTOCOL_VERSION: &str = "0.2";')
    ('0.2',)
    """
    found = dict.fromkeys(each["version"] for each in _compiled(pattern).finditer(text))
    return tuple(version for version in found if version_parts(version))


def pattern_for(name: str, pattern: str) -> str:
    """Return the pattern for a file of this name: that of the setting for truename.toml, unless the pattern is set.

    >>> pattern_for("truename.toml", DEFAULT_PATTERN), pattern_for("truename.toml", "VERSION: {version}")
    ('protocol = "{version}"', 'VERSION: {version}')
    """
    return _SETTING if name == _SETTINGS_FILE and pattern == DEFAULT_PATTERN else pattern


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    if pattern in _OWN:
        return _OWN[pattern]
    before, place, after = pattern.partition(_PLACE)
    if not place or not before.strip() or len(pattern) > _LONGEST or _PLACE in after:
        raise MigrationError(
            problem=f"{excerpt(pattern)} is not a pattern of a protocol version",
            remedy='Write a text that contains {version}, as in VERSION = "{version}".',
        )
    return re.compile(f"{_spaced(before)}{_NUMBERS}{_spaced(after)}")


def _spaced(text: str) -> str:
    parts = (re.escape(part) for part in re.split(r"\s+", text))
    return r"\s{0,40}".join(parts)


# The steps that find names which were shown, and ids.
_EXACT: Final = frozenset({"table", "ledger", "canonical"})


@dataclass(frozen=True, kw_only=True)
class VersionSkew:
    """A comparison of two protocol versions: whether they are equal, and whether names mean the same in both.

    ``compatible`` versions have no breaking change between them: they have the same first number, and below 1.0 also
    the same second one.
    """

    server: str
    peer: str
    same: bool
    compatible: bool

    def __str__(self) -> str:
        versions = f"the server speaks protocol {self.server}, the peer {excerpt(self.peer, 40)[1:-1]}"
        if self.compatible:
            return f"{versions}: names mean the same in both."
        return f"{versions}: names may have changed between them. Upgrade the older side, or both together."


def compare_peers(*, server: str, peer: str) -> VersionSkew:
    """Compare the protocol versions of two peers. An invalid version of the peer is compatible with none.

    Raises `MigrationError` (``invalid_version``) for the server's own version.

    >>> compare_peers(server="0.3", peer="0.2").compatible, compare_peers(server="1.10", peer="1.9").compatible
    (False, True)
    >>> compare_peers(server="0.3", peer="newest").compatible
    False
    """
    own = _breaking(version_parts(server))
    try:
        same = compare_versions(server, peer) == 0
        compatible = own == _breaking(version_parts(peer))
    except MigrationError:
        return VersionSkew(server=server, peer=peer, same=False, compatible=False)
    return VersionSkew(server=server, peer=peer, same=same, compatible=compatible)


def resolve_between(text: str, names: NameTable, *, server: str, peer: str) -> Resolution:
    """Resolve the name that a peer with another version uses; only shown names and ids count.

    A spelling that the peer derived with other rules could mean another tool now. Raises the errors of `resolve`; a
    name that is unknown, or known only as a derived spelling, is `UnknownTool` (``moved``) with both versions.

    >>> from truename import Catalog, project
    >>> agent = project(Catalog.from_mcp({"kenny": ["powershell.exec"]}), "native", style="declared")
    >>> resolve_between("powershell_exec", agent, server="0.2", peer="0.3")
    Traceback (most recent call last):
        ...
    truename.errors.UnknownTool: Tool 'powershell_exec' does not exist in protocol 0.2 (the call is of 0.3); ...
    """
    both = compare_peers(server=server, peer=peer)
    if both.same:
        return resolve(text, names)
    detail = f" in protocol {server} (the call is of {excerpt(peer, 40)[1:-1]})"
    try:
        found = resolve(text, names)
    except UnknownTool as error:
        raise (replace(error, detail=detail) if error.reason in {"unknown", "moved"} else error) from error
    is_id = found.step == "folded" and "/" in text
    if both.compatible or found.step in _EXACT or is_id or found.id is None:
        return found
    raise UnknownTool(
        text=text, trail=found.trail, reason="moved", suggestions=(names[found.id],), id=found.id, detail=detail
    )


def _breaking(parts: tuple[int, ...]) -> tuple[int, ...]:
    padded = (*parts, 0)
    return padded[:2] if padded[0] == 0 else padded[:1]
