"""Which server of the gateway is the one that a client has: the same program and arguments, or the same address.

A client's texts are verbatim, the gateway's have their references replaced, so a reference stands for any text. What
was found only with the help of references counts under the same key alone.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from truename.config.entries import program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.config import ServerConfig

__all__ = ["Match", "counterpart", "same_text"]

# ${VAR}, ${env:VAR}, ${input:id}, ${{ secrets.X }}, $VAR, %VAR%, {env:VAR}, {file:path}.
_REFERENCE: Final = re.compile(
    r"\$\{\{[^{}]{0,200}\}\}|\$\{[^{}]{0,200}\}|\$[A-Za-z_]\w{0,200}|%\w{1,200}%|\{(?:env|file):[^{}]{0,200}\}"
)


class Match(NamedTuple):
    """The gateway's server, and the names of environment variables or headers that have another value there."""

    server: ServerConfig
    differing: tuple[str, ...]


def counterpart(server: ServerConfig, known: Iterable[ServerConfig]) -> Match | None:
    """Return the gateway's server that is this one, the one of the same key first.

    Two that start alike and differ in their secrets are two accounts: under another key only equal ones are the same.
    """
    candidates = [one for one in known if not one.disabled and _alike(server, one)]
    for one in candidates:
        if one.key == server.key:
            return Match(one, _differing(server, one))
    for one in candidates:
        if _alike(server, one, literally=True) and not _differing(server, one) and _same_directory(server, one):
            return Match(one, ())
    return None


def same_text(one: str, other: str, *, literally: bool = False) -> bool:
    """Tell whether two texts are the same, references in either standing for any text.

    >>> same_text("Bearer ${TOKEN}", "Bearer abc"), same_text("Bearer ${TOKEN}", "Basic abc")
    (True, False)
    """
    return one == other or (not literally and (_covers(one, other) or _covers(other, one)))


def _covers(pattern: str, text: str) -> bool:
    # Part by part instead of a regular expression: what strangers wrote must not cost more than its length.
    first, *parts = _REFERENCE.split(pattern)
    if not parts or not text.startswith(first):
        return False
    *middle, last = parts
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(last) and text.endswith(last)


def _alike(one: ServerConfig, other: ServerConfig, *, literally: bool = False) -> bool:
    if one.url is not None or other.url is not None:
        both = one.url is not None and other.url is not None
        return both and same_text(_address(one.url or ""), _address(other.url or ""), literally=literally)
    if one.command is None or other.command is None:
        return False
    # As `truename init` sees it, or `connect` would not know what that merged.
    (mine, *words), (theirs, *others) = (program([side.command or "", *side.args]) for side in (one, other))
    return (
        len(words) == len(others)
        and _same_program(mine, theirs, literally=literally)
        and all(same_text(a, b, literally=literally) for a, b in zip(words, others, strict=True))
    )


def _same_program(one: str, other: str, *, literally: bool) -> bool:
    if same_text(one, other, literally=literally):
        return True
    bare = [name for name in (one, other) if "/" not in name and "\\" not in name]
    return bool(bare) and _stem(one) == _stem(other)


def _stem(program: str) -> str:
    name = PureWindowsPath(program).name if "\\" in program else PurePosixPath(program).name
    for ending in (".cmd", ".exe", ".bat"):
        if name.lower().endswith(ending):
            return name[: -len(ending)].lower()
    return name


def _address(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def _differing(one: ServerConfig, other: ServerConfig) -> tuple[str, ...]:
    found = (*_unequal(one.env, other.env), *_unequal(one.headers, other.headers))
    return tuple(dict.fromkeys(found))


def _unequal(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return [
        name
        for name in dict.fromkeys([*one, *other])
        if name not in one or name not in other or not same_text(one[name], other[name])
    ]


def _same_directory(one: ServerConfig, other: ServerConfig) -> bool:
    return one.cwd is None or other.cwd is None or one.cwd == other.cwd
