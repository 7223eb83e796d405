"""Notes about a connection plan: tools that the client would lose, lists that it bypasses, entries left unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.auth.inbound.authentication import asks_for_token
from truename.clients.gateway_address import ADDRESS_FIELDS, TOKEN_VARIABLE, client_of, entry_for, token_reference
from truename.clients.kept_names import matches
from truename.clients.plan import PlanNote
from truename.clients.selection import READ_ONLY, SelectedServer, document_of
from truename.editing import ABSENT, value_at
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.find import ClientServer, FoundFile
    from truename.clients.gateway_address import GatewayAddress
    from truename.clients.selection import ServerSelection
    from truename.clients.table import ConfigFile
    from truename.dialects import Dialect, Simulation

Tool = tuple[str, str]

__all__ = [
    "PredictedLosses",
    "crowded_notes",
    "former_address",
    "how_to_list_tools",
    "limiting_names",
    "limits_offered_tools",
    "lost_setting_notes",
    "other_file_notes",
    "predict_losses",
    "search_bypasses_lists",
    "stdio_notes",
    "token_notes",
    "unapplied_rule_notes",
    "unverified_notes",
]

# Programs that read the files of another client, and treat names differently.
_READERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"continue": ("continue-cli",), "codex-cli": ("codex-code-mode",), "qwen-code": ("qwen-code-deferred",)}
)
_UNKNOWN: Final = "unknown"
_MAX_FORESEEN: Final = 4


@dataclass(frozen=True)
class PredictedLosses:
    """The tools that one program could not call (``lost``), or not reliably (``uncertain``).

    Uncertain tools share a name in this program, and it is unknown which of them a call runs.
    """

    rules: Dialect
    tools: int
    lost: tuple[Tool, ...]
    uncertain: tuple[Tool, ...]
    outcome: Simulation[Tool]

    @property
    def count(self) -> int:
        """The number of tools that cannot be called reliably."""
        return len(self.lost) + len(self.uncertain)

    @property
    def text(self) -> str:
        """The losses as a sentence without a full stop; "" if every tool can be called."""
        title, outcome = self.rules.title, self.outcome
        clauses = []
        if self.lost:
            tools = _first_few([_describe_loss(tool, outcome) for tool in self.lost])
            clauses.append(f"{title} cannot call {len(self.lost)} of {self.tools} tools this way: {tools}")
        if self.uncertain:
            tools = _first_few([f"{excerpt(name)} of {excerpt(server)}" for server, name in self.uncertain])
            clauses.append(
                f"In {title}, {len(self.uncertain)} of {self.tools} tools share a name with another tool, "
                f"and it is unknown which one a call runs ({tools})"
            )
        return ". ".join(clauses)


def unapplied_rule_notes(
    files: Iterable[FoundFile], added: Iterable[str], name: str, harmless: Collection[str]
) -> Iterator[PlanNote]:
    """Yield a note for each rule of the client about a server that it gets now, as part of a common entry.

    The rule names the server by its own key, under which the client has nothing: it does not hold for the tools there.
    """
    keys = tuple(added)
    for found in files:
        for kept in found.kept:
            about = [key for key in keys if matches(kept, key, None)]
            if kept.server is None or kept.effect in harmless or not about:
                continue
            rule, tools = f"{excerpt(kept.text)} in {found.path}", f"the tools of {excerpt(about[0])}"
            fact = f"{rule} does not hold for {tools} that the client gets through {excerpt(name)}"
            yield PlanNote(kind="names", subject=kept.text, fact=fact, advice="Write the rule for their names there.")


def predict_losses(dialect: str, servers: Mapping[str, Iterable[str]]) -> list[PredictedLosses]:
    """Predict the lost tools for each program that reads the client's files.

    ``servers`` maps the client's server keys to the tool names at the new addresses. The list is empty for a client
    whose treatment of names is unknown.
    """
    if client_of(dialect) is None:
        return []
    listed = [(server, tuple(names)) for server, names in servers.items()]
    tools = [(server, name) for server, names in listed for name in names]
    found = []
    for rules in map(dialects.get, (dialect, *_READERS.get(dialects.get(dialect).name, ()))):
        outcome = rules.simulate_all(listed)
        gone = [tool for tool in tools if tool not in outcome.shown]
        is_unknown = _UNKNOWN in {rules.mangling.equal, rules.mangling.across or rules.mangling.equal}
        shared = {tool for group in outcome.merged.values() for tool in group} if is_unknown else set()
        uncertain = tuple(one for one in gone if one in shared)
        lost = tuple(one for one in gone if one not in uncertain)
        found.append(PredictedLosses(rules, len(tools), lost, uncertain, outcome))
    return found


def unverified_notes(keys: Iterable[str], *, answers: bool) -> Iterator[PlanNote]:
    """Yield a note about servers whose tools are unknown; ``answers`` tells whether the gateway is running."""
    servers = ", ".join(map(excerpt, keys))
    if servers:
        fact = f"Could not list the tools of {servers}; their names were not verified"
        advice = f"To verify them, {how_to_list_tools(answers=answers)}, or pass a list of tools (--catalog DUMP)."
        yield PlanNote(kind="info", subject=servers, fact=fact, advice=advice)


def how_to_list_tools(*, answers: bool) -> str:
    """Return the advice for a server whose tools the gateway did not list."""
    if answers:
        return "check why the running gateway does not list them (its output names the servers that failed)"
    return "start the gateway first (`truename serve`)"


def _first_few(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - _MAX_FORESEEN} more" if len(texts) > _MAX_FORESEEN else ""
    return f"{', '.join(texts[:_MAX_FORESEEN])}{more}"


def _describe_loss(tool: Tool, outcome: Simulation[Tool]) -> str:
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


# Effects that a call through `call_tool` bypasses: permissions that deny or ask, lists of offered or hidden tools,
# hooks.
LIMITING: Final = frozenset({"deny", "ask", "only", "without", "hook"})
_MAX_SEARCHING: Final = 3


def limits_offered_tools(found: FoundFile, client_server: ClientServer) -> bool:
    """Return whether an entry has a list of the tools that it offers, even an empty one."""
    former = None if found.document is None else value_at(found.document.value, client_server.where)
    return any(value_at(former, kind.path) is not ABSENT for kind in found.file.entry if kind.effect == "only")


def limiting_names(client_files: Sequence[FoundFile], choice: ServerSelection) -> Iterator[tuple[str, Path]]:
    """Yield the names in a client's lists that limit its servers at the gateway, each with its file."""
    servers = [*(one.client_server for one in choice.selected), *choice.already]
    keys = dict.fromkeys(one.server.key for one in servers)
    for found in client_files:
        for kept in found.kept:
            if kept.effect in LIMITING and any(matches(kept, key, None) for key in keys):
                yield kept.text, kept.path
        for one in found.servers:
            if one in servers and limits_offered_tools(found, one):
                yield f"tools of {one.server.key}", one.path


def search_bypasses_lists(client: str, lists: Iterable[tuple[str, Path]], *, is_asked: bool) -> ConfigError:
    """Return the error for a client whose lists of tools an address with tool search would bypass."""
    texts: dict[str, Path] = dict(lists)
    named = ", ".join(map(excerpt, list(texts)[:_MAX_SEARCHING]))
    more = f" and {len(texts) - _MAX_SEARCHING} more" if len(texts) > _MAX_SEARCHING else ""
    why = "with --search" if is_asked else "as tool_search is set"
    instead = (
        "Connect without --search" if is_asked else "Set tool_search to off, and connect other clients with --search"
    )
    return ConfigError(
        code="searched_beside_lists",
        file=str(next(iter(texts.values()))),
        key="",
        problem=f"it limits the tools of {client} ({named}{more}), and {why} the model could call each of them",
        remedy=f"{instead}. To turn these lists into rules of the gateway: truename policy from-client {client}",
    )


def crowded_notes(dialect: str, number: int, *, has_lists: bool) -> Iterator[PlanNote]:
    """Yield a note if a client gets more tools than it accepts."""
    rules = dialects.get(dialect)
    if rules.max_tools is None or number <= rules.max_tools:
        return
    fact = f"{rules.title} accepts {rules.max_tools:,} tools, and would get {number:,}"
    advice = "Connect with --search: few tools are listed, and the model searches the others."
    if has_lists:
        advice = "Disable servers that it does not need, or show it fewer tools with a profile."
    yield PlanNote(kind="crowded", subject=rules.name, fact=fact, advice=advice)


_READ_ONLY_ADVICE = "It was left unchanged: an administrator or a plugin manages it."
_LEGACY_ADVICE = "It was left unchanged: the client reads its servers from another file now."
_PROJECT_ADVICE = "It was left unchanged; --scope project changes it, for everybody who uses the file."


def former_address(one: SelectedServer) -> str:
    """Return the former URL or command of a server without arguments and query, which may hold secrets."""
    server = one.client_server.server
    if server.url is not None:
        return server.url.partition("?")[0]
    return " ".join([server.command or "", *(["..."] if server.args else [])])


def lost_setting_notes(group: Iterable[SelectedServer], entry: Mapping[str, object]) -> Iterator[PlanNote]:
    """Yield a note for each server whose own settings are not in the common entry."""
    for one in group:
        former = value_at(document_of(one.found).value, one.client_server.where)
        written = entry_for(one.client_server.server, one.found.file.shape)
        kept = entry.keys() | written.keys() | ADDRESS_FIELDS
        lost = [key for key in former if key not in kept] if isinstance(former, dict) else []
        if lost:
            fact = f"The common entry lacks settings of {excerpt(one.key)}: {', '.join(map(excerpt, lost))}"
            advice = "Set them in the common entry if they suit all of its servers."
            yield PlanNote(kind="info", subject=one.key, fact=fact, advice=advice)


def token_notes(kinds: Sequence[ConfigFile], address: GatewayAddress) -> Iterator[PlanNote]:
    """Yield what has to be done so that the client can show the gateway's token."""
    if not asks_for_token(address.config):
        return
    client = kinds[0].client
    if token_reference(client) is None:
        fact = "The gateway requires a token, and this client is not known to read one from the environment"
        advice = "Write the header Authorization: Bearer TOKEN into its entries, or connect with --stdio."
    else:
        fact = f"The gateway requires a token, which the entries read from {TOKEN_VARIABLE}"
        advice = f"Set {TOKEN_VARIABLE} in the environment of the client."
    yield PlanNote(kind="token", subject=client, fact=fact, advice=advice)


def stdio_notes(kinds: Sequence[ConfigFile]) -> Iterator[PlanNote]:
    """Yield a note about the environment in which the client starts the gateway."""
    fact = "The client starts the gateway itself"
    advice = "Set the variables that the configuration uses in the client's environment too, or in its env_file."
    yield PlanNote(kind="info", subject=kinds[0].client, fact=fact, advice=advice)


def other_file_notes(client_files: Iterable[FoundFile], files: Sequence[FoundFile]) -> Iterator[PlanNote]:
    """Yield a note for each file with servers outside of the chosen scopes, and for each file that cannot be read."""
    for one in client_files:
        if one.problem is not None and one not in files:
            fact = f"{one.path} cannot be read ({one.problem.problem}), so the tool names in it were not updated"
            yield PlanNote(kind="file", subject=str(one.path), fact=fact, advice=one.problem.remedy)
        if one.servers and one not in files:
            keys = ", ".join(excerpt(client_server.server.key) for client_server in one.servers)
            fact = f"{one.path} ({one.file.scope}) also has servers: {keys}"
            advice = _READ_ONLY_ADVICE if one.file.scope in READ_ONLY else ""
            if one.file.scope == "project":
                advice = _PROJECT_ADVICE
            if one.file.legacy:
                advice = _LEGACY_ADVICE
            yield PlanNote(kind="left", subject=str(one.path), fact=fact, advice=advice)
