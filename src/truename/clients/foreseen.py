"""What a client is going to make of the names at its new addresses: told before, where a tool would be lost."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.clients.plan import Note
from truename.clients.upcoming import client_of
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.dialects import Dialect, Simulation

    Tool = tuple[str, str]

__all__ = ["Foreseen", "foresee", "to_know", "unforeseen"]

# Programs that read the same files and treat names otherwise.
_READERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"continue": ("continue-cli",), "codex-cli": ("codex-code-mode",), "qwen-code": ("qwen-code-deferred",)}
)
_UNKNOWN: Final = "unknown"
_MOST: Final = 4


@dataclass(frozen=True)
class Foreseen:
    """What one program makes of the tools of its servers: those that it can't call, and those that it may not call.

    ``uncertain`` are tools that share a name in this program, and which of them a call runs is not known.
    """

    rules: Dialect
    tools: int
    lost: tuple[Tool, ...]
    uncertain: tuple[Tool, ...]
    outcome: Simulation[Tool]

    @property
    def count(self) -> int:
        """How many tools are not certain to be called."""
        return len(self.lost) + len(self.uncertain)

    @property
    def text(self) -> str:
        """A sentence without its full stop; "" where every tool can be called."""
        title, outcome = self.rules.title, self.outcome
        clauses = []
        if self.lost:
            told = _some([_told(tool, outcome) for tool in self.lost])
            clauses.append(f"{title} can't call {len(self.lost)} of {self.tools} tools this way: {told}")
        if self.uncertain:
            told = _some([f"{excerpt(name)} of {excerpt(server)}" for server, name in self.uncertain])
            shared = f"{len(self.uncertain)} of {self.tools} tools share a name"
            clauses.append(
                f"{title} is shown names that mean several tools, and which one it calls is not known: "
                f"{shared} ({told})"
            )
        return ". ".join(clauses)


def foresee(dialect: str, servers: Mapping[str, Iterable[str]]) -> list[Foreseen]:
    """Return what each program that reads the client's files makes of its servers' tools.

    ``servers`` are the names at the new addresses by the client's keys. Nothing is returned for a client whose
    treatment of names is not known.
    """
    if client_of(dialect) is None:
        return []
    listed = [(server, tuple(names)) for server, names in servers.items()]
    tools = [(server, name) for server, names in listed for name in names]
    found = []
    for rules in map(dialects.get, (dialect, *_READERS.get(dialects.get(dialect).name, ()))):
        outcome = rules.simulate_all(listed)
        gone = [tool for tool in tools if tool not in outcome.shown]
        uncertain = () if _is_certain(rules) else tuple(one for one in gone if _shares(one, outcome))
        lost = tuple(one for one in gone if one not in uncertain)
        found.append(Foreseen(rules, len(tools), lost, uncertain, outcome))
    return found


def unforeseen(keys: Iterable[str], *, answers: bool) -> Iterator[Note]:
    """Yield that nothing can be foreseen of servers whose tools are not known; ``answers``: a gateway is there."""
    told = ", ".join(map(excerpt, keys))
    if told:
        fact = f"Which tools there are is not known of {told}, so whether their names stay could not be checked"
        advice = f"To have that done, {to_know(answers=answers)}, or give a list of them (--catalog DUMP)."
        yield Note(kind="info", subject=told, fact=fact, advice=advice)


def to_know(*, answers: bool) -> str:
    """Return what to do where the gateway did not tell of a server's tools."""
    if answers:
        return "see why the gateway that answers does not list them (its output says which servers failed)"
    return "start the gateway first (`truename serve`)"


def _is_certain(rules: Dialect) -> bool:
    return _UNKNOWN not in {rules.mangling.equal, rules.mangling.across or rules.mangling.equal}


def _shares(tool: Tool, outcome: Simulation[Tool]) -> bool:
    return any(tool in group for group in outcome.merged.values())


def _some(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    return f"{', '.join(texts[:_MOST])}{more}"


def _told(tool: Tool, outcome: Simulation[Tool]) -> str:
    server, name = tool
    what = f"{excerpt(name)} of {excerpt(server)}"
    shown = next((text for text, group in outcome.merged.items() if tool in group), None)
    if tool in outcome.refused:
        return f"{what} (refused)"
    if shown is None:
        return f"{what} (left out)"
    winner = outcome.winner(shown)
    others = dict.fromkeys(other for other in (outcome.merged[shown] if winner is None else [winner]) if other != tool)
    named = " or ".join(f"{excerpt(one)} of {excerpt(at)}" for at, one in others)
    return f"{what} (a call {'may run' if winner is None else 'runs'} {named or 'nothing'})"
