"""`truename names`: show the name that a client gets for every tool."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, NamedTuple

from cyclopts import Parameter

from truename.catalog import Tool
from truename.cli import _completion
from truename.cli._comparison import ClientOutcome, Compared, client_outcomes
from truename.cli._errors import EXIT_UPSTREAM, UsageError
from truename.cli._name_table import default_sentence, show_names, summary
from truename.cli._options import Client, JsonOutput, NamingOptions, Source
from truename.cli._rename_record import show_renames
from truename.cli._rendering import Cell, count, is_wide, print_json, print_table, say, show, styled
from truename.cli._workspace import ProfileView, ToolWorkspace, open_workspace
from truename.config.tool_search import pinned_tools, why_searched
from truename.config.unmatched import idle
from truename.errors import excerpt
from truename.identity import ToolId
from truename.naming import NameTable
from truename.policy.presentation import Presentation

__all__ = ["names"]

_PROGRAMS: Final = frozenset({"client", "framework"})
# The URL that `truename connect` writes by default.
_ADDRESS: Final = "http://127.0.0.1:8750/mcp/for/{}"
_NOTES: Final = "annotations"
_LONGEST: Final = 200
_COMPARED = 1_000
_AS_IT_IS = NamingOptions()
Compare = Annotated[
    bool | None,
    Parameter(
        name="--compare",
        negative="--no-compare",
        help="Also show how clients would treat the tools without Truename "
        "(default: on a terminal of 100 columns, for up to 1,000 tools).",
    ),
]
Verbose = Annotated[
    bool,
    Parameter(name="--verbose", negative=(), show_default=False, help="Also show how the settings change the tools."),
]
Profile = Annotated[
    str | None,
    Parameter(
        name="--profile", metavar="PROFILE", completer=_completion.profiles, help="Only the tools of this profile."
    ),
]
Search = Annotated[
    bool,
    Parameter(name="--search", negative=(), show_default=False, help="Show the list at an address with tool search."),
]


class ClientList(NamedTuple):
    """The list of a client: tools by id, the gateway's ``own`` tools, and ``why`` others are searched ("": none)."""

    why: str
    listed: tuple[ToolId, ...]
    own: tuple[str, ...] = ()

    def names(self, table: NameTable) -> tuple[str, ...]:
        """Return all names of the list."""
        return (*(table[id] for id in self.listed), *self.own)


def list_for_client(workspace: ToolWorkspace, table: NameTable, *, search: bool) -> ClientList:
    """Return the list of a client; ``search``: at an address with tool search. Raises `UsageError`."""
    settings, most = workspace.settings, table.dialect.max_tools
    definitions = [tool.shown for tool in table.catalog.values()]
    why = "its address asks for it" if search else why_searched(settings, definitions, most)
    if not why:
        return ClientList("", tuple(table))
    own = _own(table)
    listed, _ = pinned_tools(table.items(), len(own), settings, most, workspace.lineage)
    return ClientList(why, tuple(id for id, _ in listed), own)


def _own(table: NameTable) -> tuple[str, ...]:
    """Return the names of the gateway's own tools. Raises `UsageError` if the gateway is not installed."""
    try:
        from truename.gateway.views.own_tools import known_names  # noqa: PLC0415 - the gateway is an optional extra
    except ModuleNotFoundError as error:
        fact = f"tool search needs the gateway, whose package {error.name} is not installed"
        raise UsageError(fact=fact, advice="Install `truename[gateway]`.") from error
    return known_names(table) or ()


def gateway_key(table: NameTable) -> str:
    """Return how this client identifies the gateway: by key or, for some clients, by URL."""
    by_address = table.dialect.mangling.part == "address"
    return _ADDRESS.format(table.dialect.name) if by_address else table.server_name


def shown_by(table: NameTable, names: tuple[str, ...]) -> Mapping[str, str]:
    """Simulate the names that the table's client shows to the model; empty for providers and specifications."""
    dialect = table.dialect
    return dialect.simulate(gateway_key(table), names).shown if dialect.kind in _PROGRAMS else {}


class _DescribedChange(NamedTuple):
    """A field of a tool: the shown value, and the server's (None: missing)."""

    field: str
    shown: object
    server: object


def note_unused_settings(workspace: ToolWorkspace) -> None:
    """Print the settings that match no tool, unless a server failed."""
    for place in () if workspace.failed else idle(workspace.settings, workspace.catalog, workspace.ledger):
        say(styled("note: ", "yellow"), styled(f"{place} matches no tool."))


def show_presented(table: NameTable, said: Presentation) -> None:
    """Print the tools that settings change: the keys of the settings, and each field before and after."""
    for id in table:
        tool = table.catalog[id]
        if not tool.presented:
            continue
        keys = ", ".join(f"[tools.{excerpt(key)}]" for key in said.keys(id))
        show(styled(id.short, "bold"), "  ", styled(f"overridden by {keys}", "dim"))
        for word in _words(tool):
            show(styled(f"  {word.field}: {_as_text(word.shown)}"))
            show(styled(f"    from the server: {'nothing' if word.server is None else _as_text(word.server)}", "dim"))
        show("")


def plain_presented(tool: Tool, said: Presentation) -> dict[str, object]:
    """Return the overridden fields of a tool as JSON; empty if there are none."""
    if not tool.presented:
        return {}
    fields = {word.field: {"shown": word.shown, "server": word.server} for word in _words(tool)}
    return {"overridden": {"by": list(said.keys(tool.id)), "fields": fields}}


def _words(tool: Tool) -> Iterator[_DescribedChange]:
    for field, value in tool.presented.items():
        if field != _NOTES:
            yield _DescribedChange(field, value, tool.definition.get(field))
    notes = tool.definition.get(_NOTES)
    own: Mapping[str, object] = notes if isinstance(notes, dict) else {}
    for name, value in tool.presented.get(_NOTES, {}).items():
        yield _DescribedChange(f"{_NOTES}.{name}", value, own.get(name))


def _as_text(value: object) -> str:
    return excerpt(value, _LONGEST) if isinstance(value, str) else str(value).lower()


def names(
    *sources: Source,
    client: Client = "universal",
    making: NamingOptions = _AS_IT_IS,
    compare: Compare = None,
    profile: Profile = None,
    search: Search = False,
    as_json: JsonOutput = False,
    verbose: Verbose = False,
) -> int:
    """Show the name that a client gets for every tool; with tool search, also the tools that it lists.

    Nothing is recorded.
    """
    workspace = open_workspace(sources, making)
    note_unused_settings(workspace)
    table = ProfileView(workspace, workspace.table(client)).by(None if profile is None else [profile])
    wanted = compare if compare is not None else not as_json and is_wide() and len(workspace.catalog) <= _COMPARED
    compared = client_outcomes(table.catalog) if wanted else None
    list_of = list_for_client(workspace, table, search=search)
    if as_json:
        print_json(_document(workspace, table, compared, list_of))
    else:
        _show_list(table, list_of)
        show_names(table, compared)
        show("")
        if verbose:
            show_presented(table, workspace.settings.tools)
        show_renames(workspace.renames, table)
        show(styled(summary(table.catalog, table), "bold"))
        if sentence := default_sentence(workspace.settings.policy):
            show(sentence)
        if sentence := _changed_names(table, list_of.names(table)):
            show(sentence)
    return EXIT_UPSTREAM if workspace.failed else 0


def _show_list(table: NameTable, list_of: ClientList) -> None:
    """Print the short list of a client with tool search; nothing if all names are listed."""
    if not list_of.why:
        return
    pinned: list[list[Cell]] = [[id.short, styled(table[id], "bold cyan")] for id in list_of.listed]
    ours: list[list[Cell]] = [["the gateway's own", styled(name, "bold cyan")] for name in list_of.own]
    show(f"{table.dialect.title} gets a short list, and tools to search the others ({list_of.why}). Its list:")
    print_table(["tool", "name"], pinned + ours, whole=1)
    show("")
    show("Found by a search, and called by these names:" if len(list_of.listed) < len(table) else "All names:")


def _changed_names(table: NameTable, names: tuple[str, ...]) -> str:
    """Return a sentence on the names that the client still changes; "" if there are none."""
    shown = shown_by(table, names)
    changed = [name for name in names if name in shown and not shown[name].endswith(name)]
    if not changed:
        return ""
    title, first = table.dialect.title, changed[0]
    key = f"for a gateway at {gateway_key(table)}" if gateway_key(table) != table.server_name else "even so"
    return f"{title} changes {count(len(changed), 'name')} {key}: {first} becomes {shown[first]}. Calls reach the tool."


def _document(
    workspace: ToolWorkspace, table: NameTable, compared: "Compared | None", list_of: ClientList
) -> dict[str, object]:
    tools, shown = [], shown_by(table, tuple(table.values()))
    for id, name in table.items():
        origin, why = workspace.catalog[id].origin, table.explain(id)
        tool: dict[str, object] = {
            "id": str(id),
            "name": name,
            "server": origin.server,
            "registry_name": workspace.registered.get(origin.server_id),
            "tool": origin.name,
            "rung": why.rung,
            "reason": why.reason,
            **plain_presented(workspace.catalog[id], workspace.settings.tools),
            **workspace.renames.plain(id),
        }
        if name in shown:
            tool["shown"] = shown[name]
        if compared is not None:
            tool["without"] = [_plain(fate) for fate in compared.get(id, ())]
        tools.append(tool)
    return {
        "client": table.dialect.name,
        "style": table.style.name,
        "server_name": table.server_name,
        "revision": table.revision,
        "searched": list_of.why or None,
        "listed": list(list_of.names(table)),
        "tools": tools,
        "conflicts": sorted(table.catalog.conflicts()),
        "failed": list(workspace.failed),
        "notices": [{"code": n.code, "server": n.server, "name": n.name} for n in workspace.catalog.notices],
    }


def _plain(fate: ClientOutcome) -> dict[str, object]:
    told: dict[str, object] = {"client": fate.client, "fate": fate.kind, "confidence": fate.confidence}
    if fate.winner is not None:
        return told | {"runs": {"server": fate.winner[0], "tool": fate.winner[1]}}
    key = "shown" if fate.kind == "renamed" else "scope"
    return told | ({key: fate.what} if fate.what else {})
