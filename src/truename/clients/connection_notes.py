"""Tell what a connection means for a client: names it would lose, lists it must search, entries it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.auth.inbound.authentication import asks_for_token
from truename.clients.gateway_address import TOKEN, WAY, client_of, entry_for, reference
from truename.clients.kept_names import matches
from truename.clients.plan import PlanNote
from truename.clients.selection import READ_ONLY, SelectedServer, document_of
from truename.editing import ABSENT, reached
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.find import FoundFile, Sighting
    from truename.clients.gateway_address import GatewayAddress
    from truename.clients.selection import ServerSelection
    from truename.clients.table import ConfigFile
    from truename.dialects import Dialect, Simulation

Tool = tuple[str, str]

__all__ = [
    "ForeseenNames",
    "crowded",
    "foresee",
    "lists_about",
    "lost_settings",
    "other_files",
    "restricted",
    "searched_beside_lists",
    "stdio_notes",
    "to_know",
    "token_notes",
    "unforeseen",
    "way_of",
]

# Programs that read the same files and treat names otherwise.
_READERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"continue": ("continue-cli",), "codex-cli": ("codex-code-mode",), "qwen-code": ("qwen-code-deferred",)}
)
_UNKNOWN: Final = "unknown"
_MAX_FORESEEN: Final = 4


@dataclass(frozen=True)
class ForeseenNames:
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


def foresee(dialect: str, servers: Mapping[str, Iterable[str]]) -> list[ForeseenNames]:
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
        found.append(ForeseenNames(rules, len(tools), lost, uncertain, outcome))
    return found


def unforeseen(keys: Iterable[str], *, answers: bool) -> Iterator[PlanNote]:
    """Yield that nothing can be foreseen of servers whose tools are not known; ``answers``: a gateway is there."""
    told = ", ".join(map(excerpt, keys))
    if told:
        fact = f"Could not list the tools of {told}; their names were not verified"
        advice = f"To have that done, {to_know(answers=answers)}, or give a list of them (--catalog DUMP)."
        yield PlanNote(kind="info", subject=told, fact=fact, advice=advice)


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
    more = f", and {len(texts) - _MAX_FORESEEN} more" if len(texts) > _MAX_FORESEEN else ""
    return f"{', '.join(texts[:_MAX_FORESEEN])}{more}"


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


# A call through `call_tool` goes around these: a permission that denies or asks, a list of the tools that are offered
# or left out, a hook.
LIMITING: Final = frozenset({"deny", "ask", "only", "without", "hook"})
_MAX_SEARCHING: Final = 3


def restricted(found: FoundFile, sighting: Sighting) -> bool:
    """Tell whether an entry says which tools it offers, if only that it offers none."""
    former = None if found.document is None else reached(found.document.value, sighting.where)
    return any(reached(former, kind.path) is not ABSENT for kind in found.file.entry if kind.effect == "only")


def lists_about(mine: Sequence[FoundFile], choice: ServerSelection) -> Iterator[tuple[str, Path]]:
    """Yield what of a client's lists limits its servers at the gateway, and in which file."""
    servers = [*(one.sighting for one in choice.taken), *choice.already]
    keys = dict.fromkeys(one.server.key for one in servers)
    for found in mine:
        for kept in found.kept:
            if kept.effect in LIMITING and any(matches(kept, key, None) for key in keys):
                yield kept.text, kept.path
        for one in found.servers:
            if one in servers and restricted(found, one):
                yield f"tools of {one.server.key}", one.path


def searched_beside_lists(client: str, lists: Iterable[tuple[str, Path]], *, is_asked: bool) -> ConfigError:
    """Return why a client with lists of tools can't be given an address that searches."""
    texts: dict[str, Path] = dict(lists)
    told = ", ".join(map(excerpt, list(texts)[:_MAX_SEARCHING]))
    more = f" and {len(texts) - _MAX_SEARCHING} more" if len(texts) > _MAX_SEARCHING else ""
    why = "with --search" if is_asked else "as tool_search is set"
    instead = (
        "Connect without --search" if is_asked else "Set tool_search to off, and connect other clients with --search"
    )
    return ConfigError(
        code="searched_beside_lists",
        file=str(next(iter(texts.values()))),
        key="",
        problem=f"it limits the tools of {client} ({told}{more}), and {why} the model could call each of them",
        remedy=f"{instead}. To have the gateway say what these lists say: truename policy from-client {client}",
    )


def crowded(dialect: str, number: int, *, has_lists: bool) -> Iterator[PlanNote]:
    """Yield that a client gets more tools than it is known to take."""
    rules = dialects.get(dialect)
    if rules.max_tools is None or number <= rules.max_tools:
        return
    fact = f"{rules.title} takes {rules.max_tools:,} tools, and these are {number:,}"
    advice = "Connect with --search: few tools are listed, and the others searched."
    if has_lists:
        advice = "Switch off servers that it does not need, or show it fewer tools with a profile."
    yield PlanNote(kind="crowded", subject=rules.name, fact=fact, advice=advice)


_READ_ONLY_ADVICE = "It was left unchanged: another owner manages it."
_LEGACY_ADVICE = "It was left unchanged: the client reads its servers from another file now."
_PROJECT_ADVICE = "It is not changed; --scope project does that, for everybody who has the file."


def way_of(one: SelectedServer) -> str:
    """Return how a server was reached so far, in short: arguments and queries may be secret."""
    server = one.sighting.server
    if server.url is not None:
        return server.url.partition("?")[0]
    return " ".join([server.command or "", *(["..."] if server.args else [])])


def lost_settings(group: Iterable[SelectedServer], entry: Mapping[str, Any]) -> Iterator[PlanNote]:
    """Yield the settings of single servers that the one entry in their place does not have."""
    for one in group:
        former = reached(document_of(one.found).value, one.sighting.where)
        told = entry_for(one.sighting.server, one.found.file.shape)
        kept = entry.keys() | told.keys() | WAY
        lost = [key for key in former if key not in kept] if isinstance(former, dict) else []
        if lost:
            fact = f"{excerpt(one.key)} had settings of its own: {', '.join(map(excerpt, lost))}"
            advice = "The one entry does not have them; set them there if they are for all."
            yield PlanNote(kind="info", subject=one.key, fact=fact, advice=advice)


def token_notes(kinds: Sequence[ConfigFile], address: GatewayAddress) -> Iterator[PlanNote]:
    """Yield what has to be done so that the client can show the gateway's token."""
    if not asks_for_token(address.config):
        return
    client = kinds[0].client
    if reference(client) is None:
        fact = "The gateway asks for a token, and this client is not known to read one from the environment"
        advice = "Write the header Authorization: Bearer TOKEN into its entries, or connect with --stdio."
    else:
        fact = f"The gateway asks for a token, which the entries take from {TOKEN}"
        advice = f"Set {TOKEN} where the client is started."
    yield PlanNote(kind="token", subject=client, fact=fact, advice=advice)


def stdio_notes(kinds: Sequence[ConfigFile]) -> Iterator[PlanNote]:
    """Yield what to see to where the client starts the gateway, which it does in an environment of its own."""
    fact = "The client starts the gateway itself"
    advice = "What the configuration takes from the environment has to be set there too, or stand in its env_file."
    yield PlanNote(kind="info", subject=kinds[0].client, fact=fact, advice=advice)


def other_files(mine: Iterable[FoundFile], files: Sequence[FoundFile]) -> Iterator[PlanNote]:
    """Yield the files with servers that were not asked for, and those whose names can't be looked at."""
    for one in mine:
        if one.problem is not None and one not in files:
            fact = f"{one.path} can't be read ({one.problem.problem}), so no name in it was carried over"
            yield PlanNote(kind="file", subject=str(one.path), fact=fact, advice=one.problem.remedy)
        if one.servers and one not in files:
            keys = ", ".join(excerpt(sighting.server.key) for sighting in one.servers)
            fact = f"{one.path} ({one.file.scope}) has servers too: {keys}"
            advice = _READ_ONLY_ADVICE if one.file.scope in READ_ONLY else ""
            if one.file.scope == "project":
                advice = _PROJECT_ADVICE
            if one.file.legacy:
                advice = _LEGACY_ADVICE
            yield PlanNote(kind="left", subject=str(one.path), fact=fact, advice=advice)
