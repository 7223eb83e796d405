"""What a client is going to make of the names at its new addresses: told before, where a tool would be lost."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.clients.plan import Note
from truename.clients.upcoming import client_of
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.dialects import Dialect, Simulation

    Tool = tuple[str, str]

__all__ = ["foreseen", "to_know", "unforeseen"]

# Programs that read the same files and treat names otherwise.
_READERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"continue": ("continue-cli",), "codex-cli": ("codex-code-mode",), "qwen-code": ("qwen-code-deferred",)}
)
_UNKNOWN: Final = "unknown"
_MOST: Final = 4
_ONE = "Connect with --one: a single entry has a name of its own for each of them."


def foreseen(dialect: str, servers: Mapping[str, Iterable[str]], *, one: bool) -> Iterator[Note]:
    """Yield how many tools would be lost, and which, by each program that reads the client's files.

    ``servers`` are the names at the new addresses by the client's keys. Nothing is said of a client whose treatment of
    names is not known.
    """
    if client_of(dialect) is None:
        return
    listed = [(server, tuple(names)) for server, names in servers.items()]
    for rules in map(dialects.get, (dialect, *_READERS.get(dialects.get(dialect).name, ()))):
        outcome = rules.simulate_all(listed)
        tools = [(server, name) for server, names in listed for name in names]
        lost = [tool for tool in tools if tool not in outcome.shown and _is_certain(rules, outcome, tool)]
        if lost:
            told = ", ".join(_told(tool, outcome) for tool in lost[:_MOST])
            more = f", and {len(lost) - _MOST} more" if len(lost) > _MOST else ""
            fact = f"{rules.title} can't call {len(lost)} of {len(tools)} tools this way: {told}{more}"
            yield Note(kind="names", subject=rules.name, fact=fact, advice="" if one else _ONE)


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


def _is_certain(rules: Dialect, outcome: Simulation[Tool], tool: Tool) -> bool:
    modes = {rules.mangling.equal, rules.mangling.across or rules.mangling.equal}
    return _UNKNOWN not in modes or not any(tool in group for group in outcome.merged.values())


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
