"""Which server of the gateway is the one that a client has: equal in everything that decides what it does.

Values are compared, in memory: with another token, the same program is another account. Where the gateway's entry
refers to a variable that is not set here, its value is not known, and a record of what the entry was made of decides.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import zip_longest
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.config.entries import Seen, address, program
from truename.config.templates import Ref, translate
from truename.files.person import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from truename.config import ServerConfig

__all__ = ["Match", "counterpart"]

# Stands for what is not known: no configuration holds a NUL.
_UNKNOWN: Final = re.compile(r"\0[^\0]*\0")
# Fields with credentials that the gateway can't have from the entry.
_CREDENTIALS: Final = frozenset({"envFile", "headersHelper"})
_MAIN: Final = frozenset({"command", "args", "url"})


class _Likeness(IntEnum):
    OTHER = 0
    UNKNOWN = 1
    SAME = 2


class Match(NamedTuple):
    """The gateway's server that is a client's; or None, with the key of one that is near and where it differs.

    ``unset`` are the variables without which it can't be told whether the near one is it.
    """

    server: ServerConfig | None
    near: str = ""
    differing: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


class _Texts(NamedTuple):
    """A server's texts as they are compared: by their place, what is not known is marked."""

    words: tuple[str, ...]
    others: Mapping[str, str]


def counterpart(
    seen: Seen,
    known: Iterable[ServerConfig],
    environ: Mapping[str, str],
    was_made: Callable[[str, Seen], bool] = lambda _, __: False,
) -> Match:
    """Return the gateway's server that an entry is, the one of the same key first.

    ``environ`` has what the client's references stand for; ``was_made`` tells whether a server, by its key, was made of
    the entry, which counts where a variable of that server has no value.
    """
    mine = _of_client(seen, environ)
    enabled = sorted((one for one in known if not one.disabled), key=lambda one: one.key != seen.server.key)
    compared = [
        (one, _compared(mine, _of_gateway(one), str(seen.base), exactly=exactly))
        for exactly in (True, False)
        for one in enabled
    ]
    untold = tuple(name for name in seen.left_out if name in _CREDENTIALS)
    possible = [(one, places) for one, places in compared if _Likeness.OTHER not in places.values()]
    if possible and untold:
        return Match(None, possible[0][0].key, untold)
    if same := next((one for one, places in possible if not places), None):
        return Match(same)
    if made := next((one for one, _ in possible if was_made(one.key, seen)), None):
        return Match(made)
    if possible:
        one, places = possible[0]
        return Match(None, one.key, tuple(places), one.unset)
    near = ((one, places) for one, places in compared if one.key == seen.server.key or not _MAIN & places.keys())
    return next((Match(None, one.key, tuple(places)) for one, places in near), Match(None))


def _of_client(seen: Seen, environ: Mapping[str, str]) -> _Texts:
    def told(text: str) -> str:
        return "".join(
            part if isinstance(part, str) else _value(part, environ) if isinstance(part, Ref) else f"\0{part.said}\0"
            for part in translate(text, seen.spelling, seen.base)
        )

    return _texts(seen.server, lambda text: told(text.replace("\0", "\ufffd")))


def _value(part: Ref, environ: Mapping[str, str]) -> str:
    found = environ.get(part.name, "")
    if found or (part.default is None and part.name in environ):
        return found
    return f"\0${part.name}\0" if part.default is None else part.default


def _of_gateway(server: ServerConfig) -> _Texts:
    def told(text: str) -> str:
        for name in server.unset:
            text = text.replace(f"${{{name}}}", f"\0${name}\0")
        return text

    return _texts(server, told)


def _texts(server: ServerConfig, told: Callable[[str], str]) -> _Texts:
    if server.url is not None:
        headers = {f"headers.{name.lower()}": told(value) for name, value in server.headers.items()}
        return _Texts((), {"url": address(told(server.url)), **headers})
    words = program([told(word) for word in (server.command or "", *server.args)])
    env = {f"env.{name}": told(value) for name, value in server.env.items()}
    return _Texts(words, {**env, **({"cwd": str(at_home(told(server.cwd)))} if server.cwd else {})})


def _compared(mine: _Texts, theirs: _Texts, base: str, *, exactly: bool) -> dict[str, _Likeness]:
    """Return the places that are not known to be the same."""
    found: dict[str, _Likeness] = {}
    for at, (one, other) in enumerate(zip_longest(mine.words, theirs.words)):
        place = "args" if at else "command"
        like = _likeness(one, other)
        if not at and not exactly and one and other and _is_same_program(one, other):
            like = _Likeness.SAME
        found[place] = min(like, found.get(place, like))
    for place in dict.fromkeys((*mine.others, *theirs.others)):
        found[place] = _likeness(mine.others.get(place), theirs.others.get(place))
    if _is_elsewhere(mine.others.get("cwd")):
        found["cwd"] = _Likeness.UNKNOWN
    elif not exactly and "cwd" not in theirs.others and mine.others.get("cwd") == base:
        # The client starts it in the project unasked, and so may the gateway.
        found["cwd"] = _Likeness.SAME
    return {place: like for place, like in found.items() if like is not _Likeness.SAME}


def _likeness(one: str | None, other: str | None) -> _Likeness:
    if one == other:
        return _Likeness.SAME
    if one is None or other is None:
        return _Likeness.OTHER
    return _Likeness.UNKNOWN if _covers(one, other) or _covers(other, one) else _Likeness.OTHER


def _covers(pattern: str, text: str) -> bool:
    # Part by part instead of a regular expression: what strangers wrote must not cost more than its length.
    first, *parts = _UNKNOWN.split(pattern)
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


def _is_same_program(one: str, other: str) -> bool:
    """Tell whether two commands are one program: one with its path, one as it is found."""
    bare = [name for name in (one, other) if "/" not in name and "\\" not in name]
    return bool(bare) and _stem(one) == _stem(other)


def _stem(command: str) -> str:
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    for ending in (".cmd", ".exe", ".bat"):
        if name.lower().endswith(ending):
            return name[: -len(ending)].lower()
    return name


def _is_elsewhere(directory: str | None) -> bool:
    """Tell whether a client's directory is relative to wherever it was started."""
    return bool(directory) and not (
        PurePosixPath(directory or "").is_absolute() or PureWindowsPath(directory or "").is_absolute()
    )
