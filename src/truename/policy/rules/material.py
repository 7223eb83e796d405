"""The material of a linting: what is declared together, the convention for it, and indexes made once for all rules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from truename import dialects
from truename.dialects.dialect import DEFAULT_SERVER
from truename.identity import fold
from truename.policy.classification import classify
from truename.policy.rules.mentions import mentions
from truename.policy.rules.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.dialects import Dialect, Reason
    from truename.policy.classification import Classification
    from truename.policy.convention import Convention
    from truename.policy.declaration import Declaration
    from truename.policy.matching import Fault
    from truename.policy.rules.mentions import Mention
    from truename.policy.rules.texts import Texts

__all__ = ["LENGTH", "Material", "Refusal"]

# The code of the reason that a name is too long.
LENGTH: Final = "length"


class Refusal(NamedTuple):
    """A name that some clients do not take, with those clients, and what is wrong with it by client."""

    declaration: Declaration
    clients: Sequence[Dialect]
    reasons: Mapping[str, tuple[Reason, ...]]

    @property
    def for_length(self) -> Sequence[Dialect]:
        """The clients for which the name is too long."""
        return [one for one in self.clients if any(reason.code == LENGTH for reason in self.reasons[one.name])]

    @property
    def for_spelling(self) -> Sequence[Dialect]:
        """The clients that would not take the name if it were shorter, either."""
        return [one for one in self.clients if any(reason.code != LENGTH for reason in self.reasons[one.name])]


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
    def called(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by what it is called, folded: by its name, and by those that clients are shown."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            for name in {fold(one.name), *map(fold, one.shown)}:
                found[name].append(one)
        return found

    @cached_property
    def classes(self) -> Mapping[str, Classification]:
        """What each name says under the convention, by the name."""
        return {name: classify(name, self.convention) for name in {one.name for one in self.everything}}

    @cached_property
    def faults(self) -> Mapping[str, Sequence[tuple[Declaration, Fault]]]:
        """What is wrong with the spelling of names, by the name of the rule that says so."""
        found: defaultdict[str, list[tuple[Declaration, Fault]]] = defaultdict(list)
        for one in self.declarations:
            for fault in self.classes[one.name].faults:
                found[fault.rule].append((one, fault))
        return found

    @cached_property
    def refusals(self) -> Sequence[Refusal]:
        """The declarations whose names some client of the convention does not take as they are."""
        clients = [dialects.get(name) for name in self.convention.clients]
        found = []
        for one in self.declarations if clients else ():
            server = one.server or DEFAULT_SERVER
            reasons = {client.name: client.check(one.name, server) for client in clients}
            if any(reasons.values()):
                found.append(Refusal(one, [client for client in clients if reasons[client.name]], reasons))
        return found

    @cached_property
    def scopes(self) -> Sequence[Sequence[Declaration]]:
        """Everything, parted into what has to have different names."""
        if self.convention.unique == "everywhere":
            return (self.everything,) if self.everything else ()
        return tuple(self.by_server.values())

    @cached_property
    def own(self) -> frozenset[int]:
        """The declarations that something may be found about, by their place in memory."""
        return frozenset(map(id, self.declarations))

    @cached_property
    def by_server(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by its server."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[one.server].append(one)
        return found

    @cached_property
    def texts(self) -> Sequence[tuple[Declaration, Texts]]:
        """Each declaration with all that a model may read of it; of peers nothing is read."""
        return [(one, read_texts(one)) for one in self.declarations]

    @cached_property
    def mentions(self) -> Sequence[tuple[Declaration, Texts, Sequence[Mention]]]:
        """Each declaration with the tools that its texts tell a model to use."""
        return [(one, texts, mentions(texts)) for one, texts in self.texts]
