"""The survivors that are named: each with the reason why it is equivalent or harmless (`survivors.toml`).

A mutant is known by its module, its function and its changed line, so that the table outlives moved lines.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ANY", "TABLE", "Mutant", "mutant", "named"]

ANY: Final = "*"
TABLE: Final = ROOT / "tests" / "mutants" / "survivors.toml"


class Mutant(NamedTuple):
    """One mutant; ``text`` is its changed line, "without LINE" where a line is gone.

    Of those that are the same so far, the second ends with " (2)". In the table `ANY` stands for all of a function.
    """

    module: str
    function: str
    text: str

    def __str__(self) -> str:
        return f"{self.module} {self.function}: {self.text}"


def mutant(name: str, diff: str) -> Mutant:
    """Return which mutant mutmut means by a name and its difference."""
    module, _, mangled = name.partition("__mutmut_")[0].rpartition(".")
    # Of a function x_NAME, of a method xǁCLASSǁNAME.
    function = mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    added, gone = (" ".join(line[1:].strip() for line in lines if line[:1] == sign) for sign in "+-")
    return Mutant(module, function, added or f"without {gone}")


def named() -> Mapping[Mutant, str]:
    """Return the table: the reason by mutant."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return {
        Mutant(module, function, text): reason
        for module, functions in table.items()
        for function, rows in functions.items()
        for text, reason in rows.items()
    }
