"""The material of a linting: what is declared together, the convention for it, and indexes made once for all rules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.policy.convention import Convention
    from truename.policy.declaration import Declaration

__all__ = ["Material"]


@dataclass(frozen=True)
class Material:
    """All that is linted together. ``peers`` are tools beside which these will stand: nothing is found about them."""

    declarations: tuple[Declaration, ...]
    convention: Convention
    peers: tuple[Declaration, ...] = ()

    @cached_property
    def everything(self) -> tuple[Declaration, ...]:
        """The declarations and their peers."""
        return self.declarations + self.peers

    @cached_property
    def alike(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by its name folded: what some clients take for the same."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[fold(one.name)].append(one)
        return found

    @cached_property
    def by_server(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by its server."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[one.server].append(one)
        return found
