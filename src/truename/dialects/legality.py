"""What makes a name legal for a dialect, and everything that is wrong with one that is not.

Legal means that the name arrives at the model as it is, apart from the prefix that the client itself adds, and that
the provider behind accepts it. All patterns are matched in full, and none can backtrack without bound.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from truename.dialects.transformation import machine
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.dialects.dialect import Dialect

__all__ = ["NameContext", "Reason", "brackets", "breaks", "legal_pattern", "problems", "seat"]

_MOST = 5  # reasons of one code: enough to see the pattern, too few to flood a log
_HEAD = 10_000  # characters in which an unprintable one is looked for
_STRICTEST = 64  # the shortest limit of any provider in the table
_PROBE = "qzxjvk"
_RUNS = {"snake": ("__+", "underscore"), "single-hyphens": ("--+", "hyphen")}
_RANGES = (("a-z", string.ascii_lowercase), ("A-Z", string.ascii_uppercase), ("0-9", string.digits))


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is wrong with a name: a code for programs and a text for people.

    Codes: ``empty``, ``character``, ``control``, ``first``, ``last``, ``shape``, ``length``, ``reserved``,
    ``prefix``, ``server``.
    """

    code: str
    text: str


class NameContext(NamedTuple):
    """A dialect together with the key of the server that a name is listed by: what can be known beforehand.

    ``plain`` is the length up to which a legal name is shown as ``prefix + name + suffix``; -1 if never.
    """

    prefix: str
    suffix: str
    room: int | None
    plain: float
    legal: Callable[[str], object]
    avoid: tuple[str, ...]
    once: str
    problem: str


def brackets(chars: frozenset[str]) -> str:
    """Return a set of characters as people write it.

    >>> brackets(frozenset("-_.") | frozenset("abcdefghijklmnopqrstuvwxyz"))
    '[a-z_.-]'
    """
    left, text = set(chars), ""
    for label, members in _RANGES:
        if left.issuperset(members):
            left.difference_update(members)
            text += label
    return f"[{text}{''.join(sorted(left, key=lambda char: (char == '-', char != '_', char)))}]"


def _class(chars: frozenset[str]) -> str:
    return f"[{''.join(re.escape(char) for char in sorted(chars))}]"


@lru_cache(maxsize=512)
def legal_pattern(dialect: Dialect) -> re.Pattern[str]:
    """Return the pattern of the dialect's legal names, without the length, to be matched in full."""
    if dialect.chars is None or dialect.first is None or dialect.last is None:
        message = f"{dialect.name} takes any printable text"
        raise ValueError(message)
    first, some, last = _class(dialect.first), _class(dialect.chars), _class(dialect.last)
    if dialect.words == "snake":
        word = _class(dialect.chars - {"_"})
        return re.compile(f"{first}{word}*(?:_{word}+)*")
    alone = "(?!.*--)" if dialect.words == "single-hyphens" else ""
    return re.compile(f"{alone}{first}(?:{some}*{last})?")


def _room(dialect: Dialect, overhead: int) -> int | None:
    fixed = dialect.mangling.room
    if fixed is not None or dialect.max_length is None:
        return fixed
    if "max_length" in dialect.unknown:
        return max(0, min(dialect.max_length, _STRICTEST - overhead))
    return max(0, dialect.max_length - overhead)


def _problem(dialect: Dialect, server: str, *, changed: bool) -> str:
    engine = machine(dialect.mangling)
    if engine.ignores(server):
        return f"{dialect.title} never connects a server with the key {excerpt(server)}"
    if changed and dialect.mangling.digest and "lossy" in dialect.mangling.digest.when:
        return f"{dialect.title} adds a digest to every name of a server with the key {excerpt(server)}"
    return ""


@lru_cache(maxsize=4096)
def seat(dialect: Dialect, server: str) -> NameContext:
    """Return what is known about names in this dialect listed by the server of this key (compiled once)."""
    engine, rules = machine(dialect.mangling), dialect.mangling
    probe = engine.spell(server, _PROBE)
    cut = probe.text.partition if rules.join.startswith("{tool}") else probe.text.rpartition
    prefix, found, suffix = cut(_PROBE)
    own = engine.server(server)
    problem = _problem(dialect, server, changed=probe.text != probe.raw)
    plain = float("inf") if found and not problem else -1.0
    if plain > 0 and rules.over == "shrink" and dialect.max_length is not None:
        plain = dialect.max_length - len(prefix)
    return NameContext(
        prefix=prefix,
        suffix=suffix,
        room=_room(dialect, probe.size - len(_PROBE)),
        plain=plain,
        legal=str.isprintable if dialect.chars is None else legal_pattern(dialect).fullmatch,
        avoid=tuple(change(server) + "_" for change in engine.avoid),
        once=own if rules.once else "",
        problem=problem,
    )


def breaks(dialect: Dialect, server: str, name: str) -> bool:
    """Say whether a name breaks what is *known* of the dialect's rules; what is unknown is let pass."""
    here = seat(dialect, server)
    if not name or name in dialect.reserved:
        return True
    if "chars" not in dialect.unknown and not here.legal(name):
        return True
    return "max_length" not in dialect.unknown and here.room is not None and len(name) > here.room


def problems(dialect: Dialect, server: str, name: str) -> tuple[Reason, ...]:
    """Return everything that is wrong with a name: at most five reasons of each code, in linear time."""
    here = seat(dialect, server)
    found = chain(
        _about_characters(dialect, name) if dialect.chars is not None else _about_print(name),
        _about_ends(dialect, name),
        _about_shape(dialect, name),
        _about_the_rest(dialect, here, name, server),
    )
    return tuple(found) if name else (Reason("empty", "it is empty"), *_about_server(here))


def _assumed(dialect: Dialect, field: str) -> str:
    return f" (assumed; {dialect.title}'s rule is not known)" if field in dialect.unknown else ""


def _unprintable(char: str, at: int) -> Reason:
    return Reason("control", f"U+{ord(char):04X} at {at} can't be printed")


def _about_print(name: str) -> Iterator[Reason]:
    if name.isprintable():
        return
    places = ((char, at) for at, char in enumerate(name[:_HEAD]) if not char.isprintable())
    found = [_unprintable(char, at) for char, at in islice(places, _MOST)]
    yield from found or [Reason("control", f"a character after {_HEAD:,} others can't be printed")]


def _about_characters(dialect: Dialect, name: str) -> Iterator[Reason]:
    chars = dialect.chars or frozenset()
    allowed, assumed = brackets(chars), _assumed(dialect, "chars")
    outside = re.compile(f"[^{_class(chars)[1:]}")
    for match in islice(outside.finditer(name), _MOST):
        char, at = match[0], match.start()
        if char.isprintable():
            yield Reason("character", f"{char!r} at {at} is not in {allowed}{assumed}")
        else:
            yield _unprintable(char, at)


def _about_ends(dialect: Dialect, name: str) -> Iterator[Reason]:
    chars = dialect.chars
    if chars is None or dialect.first is None or dialect.last is None:
        return
    assumed = _assumed(dialect, "chars")
    if name[0] in chars and name[0] not in dialect.first:
        yield Reason("first", f"it begins with {name[0]!r}, not with {brackets(dialect.first)}{assumed}")
    if name[-1] in chars and name[-1] not in dialect.last:
        yield Reason("last", f"it ends with {name[-1]!r}, not with {brackets(dialect.last)}{assumed}")


def _about_shape(dialect: Dialect, name: str) -> Iterator[Reason]:
    if dialect.words in _RUNS:
        runs, mark = _RUNS[dialect.words]
        assumed = _assumed(dialect, "chars")
        for match in islice(re.finditer(runs, name), _MOST):
            yield Reason("shape", f"{match[0][:8]!r} at {match.start()} is more than one {mark}{assumed}")


def _about_the_rest(dialect: Dialect, here: NameContext, name: str, server: str) -> Iterator[Reason]:
    if here.room is not None and len(name) > here.room:
        assumed = _assumed(dialect, "max_length")
        where = (
            f" for the server key {excerpt(server)}"
            if "{server}" in dialect.mangling.join + dialect.mangling.measure
            else ""
        )
        yield Reason("length", f"it has {len(name):,} characters, {here.room} are allowed{where}{assumed}")
    if name in dialect.reserved:
        yield Reason("reserved", f"{excerpt(name)} is a word that clients, providers or languages keep for themselves")
    if here.avoid and name.startswith(here.avoid):
        yield Reason("prefix", f"it begins with the server's own name {excerpt(server)}, which a client may take off")
    yield from _about_server(here)


def _about_server(here: NameContext) -> Iterator[Reason]:
    if here.problem:
        yield Reason("server", here.problem)
