"""What became of the mutants, in figures by module; and what is wrong with that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.mutants.survivors import ANY, Mutant

if TYPE_CHECKING:
    from collections.abc import Collection

    Found = dict[str, list[tuple[int | None, Mutant]]]

__all__ = ["JUDGED", "report"]

# How the process that judged a mutant ended, as mutmut has it; 5 and 33: no test reaches the function.
_SURVIVED: Final = frozenset({0, 5, 33})
_KILLED: Final = frozenset({1, 3})
_TIMED_OUT: Final = frozenset({24, -24, 36, 152})
JUDGED: Final = _KILLED | _TIMED_OUT


def report(found: Found, named: Collection[Mutant]) -> tuple[list[str], list[str]]:
    """Return a line for each module and one for all; and the mutants that nothing kills or names, or only names."""
    lines, errors, total = [], [], Counter[str]()
    for module, mutants in found.items():
        counts = Counter(_outcome(code) for code, _ in mutants)
        survived = {one for code, one in mutants if code in _SURVIVED}
        about = {each for one in named if one.module == module for each in _meant(one, survived)}
        errors += [f"survives: {one}" for one in sorted(survived - about)]
        errors += [f"is named, and does not survive: {one}" for one in sorted(about - survived)]
        errors += [f"ended with {code}: {one}" for code, one in mutants if _outcome(code) == "?"]
        counts += Counter({"mutants": len(mutants), "named": len(survived & about)})
        lines.append(_figures(module, counts))
        total += counts
    return [*lines, _figures("all", total)], errors


def _meant(one: Mutant, survived: Collection[Mutant]) -> set[Mutant]:
    """Return which mutants a row of the table is about."""
    return ({other for other in survived if other.function == one.function} if one.text == ANY else set()) or {one}


def _outcome(code: int | None) -> str:
    if code in _SURVIVED:
        return "survived"
    return "killed" if code in _KILLED else "timed out" if code in _TIMED_OUT else "?"


def _figures(name: str, counts: Counter[str]) -> str:
    words = ("mutants", "killed", "survived", "timed out")
    number, killed, survived, late = (counts[word] for word in words)
    of_these = f"{survived:4} survived ({counts['named']} named)"
    return f"{name:38} {number:5} mutants: {killed:5} killed, {of_these}, {late:3} timed out"
