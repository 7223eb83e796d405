"""The protocol version as files state it: ``PROTOCOL_VERSION = "0.2"`` in any language, or a pattern of one's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from truename.errors import MigrationError, excerpt
from truename.migration.versions import bump, version_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULT_PATTERN", "Protocol", "pattern_for", "stated"]

DEFAULT_PATTERN: Final = 'PROTOCOL_VERSION = "{version}"'
# The setting of the gateway, which is no constant of a program.
_SETTING: Final = 'protocol = "{version}"'
_SETTINGS_FILE: Final = "truename.toml"
_PLACE: Final = "{version}"
_LONGEST: Final = 200
_NUMBERS: Final = r"(?P<version>v?[0-9]{1,9}(?:\.[0-9]{1,9}){0,3})(?![\w.-]*\w)"
# A type may stand between name and value (Rust, TypeScript), a quote after the name (JSON).
_USUAL: Final = re.compile(
    rf"(?<![\w-])(?:PROTOCOL_VERSION|protocol_version)\b[\"'`]?"
    rf"(?:[ \t]{{0,8}}:[ \t]{{0,8}}&?[\w' ]{{1,40}})?[ \t]{{0,40}}[=:][ \t]{{0,40}}[\"'`]?{_NUMBERS}"
)

# Only above all tables: below them it is somebody else's.
_SET: Final = re.compile(rf"\A\ufeff?(?:[^\[\n][^\n]*\n|\n)*?protocol[ \t]{{0,40}}=[ \t]{{0,40}}[\"']{_NUMBERS}[\"']")
_OWN: Final = {DEFAULT_PATTERN: _USUAL, _SETTING: _SET}


@dataclass(frozen=True, slots=True)
class Protocol:
    """A step from one protocol version to the next, and how files state it.

    ``pattern`` is a text with ``{version}`` in it, read as it is but for the amount of space; the default one is read
    more widely, with a type between, with ``:``, in small letters. ``file`` is the only file to look in, a glob.
    """

    old: str
    new: str
    pattern: str = DEFAULT_PATTERN
    file: str = ""

    @classmethod
    def after(cls, version: str, change: str = "rename", *, pattern: str = DEFAULT_PATTERN, file: str = "") -> Protocol:
        """Count a version up. Raises `MigrationError` for what is no version or no pattern.

        >>> Protocol.after("0.9").new
        '0.10'
        """
        _compiled(pattern)
        return cls(version, bump(version, change), pattern, file)

    def statements(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield where a text states a version, and which."""
        for found in _compiled(self.pattern).finditer(text):
            yield found.start("version"), found["version"]


def stated(text: str, pattern: str = DEFAULT_PATTERN) -> tuple[str, ...]:
    """Return the versions that a text states, each once. Raises `MigrationError` for what is no pattern.

    >>> stated('pub const PROTOCOL_VERSION: &str = "0.2";')
    ('0.2',)
    """
    found = dict.fromkeys(each["version"] for each in _compiled(pattern).finditer(text))
    return tuple(version for version in found if version_parts(version))


def pattern_for(name: str, pattern: str) -> str:
    """Return how a file of this name states the version: truename.toml by its setting, unless another way is set.

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
            problem=f"{excerpt(pattern)} is no pattern of a protocol version",
            remedy='Write a text with {version} in it, as in VERSION = "{version}".',
        )
    return re.compile(f"{_spaced(before)}{_NUMBERS}{_spaced(after)}")


def _spaced(text: str) -> str:
    parts = (re.escape(part) for part in re.split(r"\s+", text))
    return r"\s{0,40}".join(parts)
