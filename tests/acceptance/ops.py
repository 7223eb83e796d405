"""The table of ops: each returns what is observed when its row is executed, and never looks at what is expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.acceptance.rows import SEEDS
from tests.acceptance.verdict import Facts

__all__ = ["OPS", "Facts", "Given", "Op", "op"]

Given = Mapping[str, Any]
Observe = Callable[[Given], Facts]

# Any row of a table may say who looks, with which aliases, in which style.
_WHO: Final = frozenset(
    {"op", "explain", "aliases", "profile", "client", "headers", "user_agent", "strategy", "scheme", "max_len"}
)


@dataclass(frozen=True)
class Op:
    """How to execute an op: what its row has to give, what else it may give.

    ``names``: its row is about names of one set of tools, which are the same with a ledger and without one.
    """

    observe: Observe
    needs: frozenset[str]
    takes: frozenset[str]
    names: bool = False


# By the shape of the file, which is the vocabulary, and the op's name.
OPS: Final[dict[tuple[str, str], Op]] = {}


def op(
    *ops: str, needs: str = "", takes: str = "", shape: str = SEEDS, names: bool = False
) -> Callable[[Observe], Observe]:
    """Enter a function under these ops; ``needs`` and ``takes`` are words of ``given``, ``a|b`` is either."""

    def enter(observe: Observe) -> Observe:
        needed = frozenset(needs.split())
        either = {word for group in needed for word in group.split("|")}
        for name in ops:
            OPS[shape, name] = Op(observe, needed, _WHO | either | set(takes.split()), names)
        return observe

    return enter
