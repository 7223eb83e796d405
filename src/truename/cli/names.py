"""`truename names`: the name that a client gets for every tool."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

from cyclopts import Parameter

from truename.catalog import Catalog, Tool
from truename.catalog.globs import fits_id
from truename.cli._comparison import ClientOutcome, Compared, client_outcomes, collapses, in_words
from truename.cli._errors import EXIT_UPSTREAM, UsageError
from truename.cli._options import Client, JsonOutput, NamingOptions, Source
from truename.cli._rendering import Cell, is_wide, output, print_json, print_table, say, show, styled
from truename.cli._workspace import ProfileView, ToolWorkspace, open_workspace
from truename.config.mentions import idle
from truename.config.visibility import why_searched
from truename.errors import excerpt
from truename.identity import ToolId
from truename.naming import NameTable
from truename.policy import Policy
from truename.policy.presentation import Presentation

__all__ = ["by_default", "listing", "names", "summary"]

_PROGRAMS: Final = frozenset({"client", "framework"})
# Where `truename connect` has a client find the gateway.
_ADDRESS: Final = "http://127.0.0.1:8750/mcp/for/{}"
_NOTES: Final = "annotations"
_LONGEST: Final = 200
_BESIDE = 120
_COMPARED = 1_000
_WITHOUT = "without Truename"
_DITTO = "as above"
_AS_IT_IS = NamingOptions()
Compare = Annotated[
    bool | None,
    Parameter(
        name="--compare",
        negative="--no-compare",
        help="Also show what clients would make of the tools without Truename "
        "(default: on a terminal of 100 columns, for up to 1,000 tools).",
    ),
]
Verbose = Annotated[
    bool, Parameter(name="--verbose", negative=(), show_default=False, help="Also what the settings say of the tools.")
]
Profile = Annotated[str | None, Parameter(name="--profile", help="Only the tools of this profile.")]
Search = Annotated[
    bool, Parameter(name="--search", negative=(), show_default=False, help="As at an address that searches.")
]


class GivenName(NamedTuple):
    """What is in a client's list. ``why`` the others are searched (empty: all are listed), and by which tools."""

    why: str
    listed: tuple[ToolId, ...]
    own: tuple[str, ...] = ()

    def names(self, table: NameTable) -> tuple[str, ...]:
        """Return all names of the list."""
        return (*(table[id] for id in self.listed), *self.own)


def given(scene: ToolWorkspace, table: NameTable, *, search: bool) -> GivenName:
    """Return what the gateway lists of these names; ``search``: at an address that searches. Raises `UsageError`."""
    settings, most = scene.settings, table.dialect.max_tools
    why = "its path demands it" if search else why_searched(settings, _definitions(table), most)
    if not why:
        return GivenName("", tuple(table))
    own = _own(table)
    pinned = [id for id in table if any(fits_id(glob, id) for glob in settings.pinned)]
    return GivenName(why, tuple(pinned if most is None else pinned[: max(0, most - len(own))]), own)


def _definitions(table: NameTable) -> list[Mapping[str, object]]:
    return [tool.shown for tool in table.catalog.values()]


def _own(table: NameTable) -> tuple[str, ...]:
    """Return the names of the gateway's own tools here. Raises `UsageError` if the gateway is not installed."""
    try:
        from truename.gateway.views.own_tools import known_names  # noqa: PLC0415 - the gateway is an optional extra
    except ModuleNotFoundError as error:
        fact = f"the tools that search are the gateway's, which needs {error.name}; that is not installed"
        raise UsageError(fact=fact, advice="Install `truename[gateway]`.") from error
    return known_names(table) or ()


def gateway_key(table: NameTable) -> str:
    """Return what this client knows the gateway by: its key, or its usual address."""
    by_address = table.dialect.mangling.part == "address"
    return _ADDRESS.format(table.dialect.name) if by_address else table.server_name


def shown_by(table: NameTable, names: tuple[str, ...]) -> Mapping[str, str]:
    """Return how the table's client shows these names to its model; nothing where it is not known to show any."""
    dialect = table.dialect
    return dialect.simulate(gateway_key(table), names).shown if dialect.kind in _PROGRAMS else {}


class _DescribedChange(NamedTuple):
    """One field as it is shown, and as the server has it (None: not at all)."""

    field: str
    shown: Any
    server: Any


def tell_idle(scene: ToolWorkspace) -> None:
    """Tell which settings are about no tool, where all servers have listed theirs."""
    for place in () if scene.failed else idle(scene.settings, scene.catalog, scene.ledger):
        say(styled("note: ", "yellow"), styled(f"{place} is about no tool that there is."))


def show_presented(table: NameTable, said: Presentation) -> None:
    """Print which tools are shown otherwise than their servers have them, under what key of the settings, and how."""
    for id in table:
        tool = table.catalog[id]
        if not tool.presented:
            continue
        keys = ", ".join(f"[tools.{excerpt(key)}]" for key in said.keys(id))
        show(styled(id.short, "bold"), "  ", styled(f"overridden by {keys}", "dim"))
        for word in _words(tool):
            show(styled(f"  {word.field}: {_told(word.shown)}"))
            show(styled(f"    the server says {'nothing' if word.server is None else _told(word.server)}", "dim"))
        show("")


def plain_presented(tool: Tool, said: Presentation) -> dict[str, Any]:
    """Return what is overridden of a tool as JSON; empty if nothing is."""
    if not tool.presented:
        return {}
    fields = {word.field: {"shown": word.shown, "server": word.server} for word in _words(tool)}
    return {"overridden": {"by": list(said.keys(tool.id)), "fields": fields}}


def _words(tool: Tool) -> Iterator[_DescribedChange]:
    for field, value in tool.presented.items():
        if field != _NOTES:
            yield _DescribedChange(field, value, tool.definition.get(field))
    notes = tool.definition.get(_NOTES)
    own: Mapping[str, Any] = notes if isinstance(notes, dict) else {}
    for name, value in tool.presented.get(_NOTES, {}).items():
        yield _DescribedChange(f"{_NOTES}.{name}", value, own.get(name))


def _told(value: object) -> str:
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
    """Show the name that a client gets for every tool; with a search, also its list. Nothing is recorded."""
    scene = open_workspace(sources, making)
    tell_idle(scene)
    table = ProfileView(scene, scene.table(client)).by(None if profile is None else [profile])
    wanted = compare if compare is not None else not as_json and is_wide() and len(scene.catalog) <= _COMPARED
    compared = client_outcomes(table.catalog) if wanted else None
    list_of = given(scene, table, search=search)
    if as_json:
        print_json(_document(scene, table, compared, list_of))
    else:
        _show_list(table, list_of)
        listing(table, compared)
        show("")
        if verbose:
            show_presented(table, scene.settings.tools)
        show(styled(summary(table.catalog, table), "bold"))
        if said := by_default(scene.settings.policy):
            show(said)
        if said := _shown_otherwise(table, list_of.names(table)):
            show(said)
    return EXIT_UPSTREAM if scene.failed else 0


def listing(table: NameTable, compared: "Compared | None", *, error: bool = False) -> None:
    """Print a table of names, with ``compared`` also what the tools would be without Truename."""
    headings = ["tool", _heading(table)]
    rows: list[list[Cell]] = [[id.short, styled(name, "bold cyan")] for id, name in table.items()]
    told = {id: in_words(several) for id, several in (compared or {}).items()}
    beside = compared is not None and output(error=error).width >= _BESIDE
    if beside:
        headings.append(_WITHOUT)
        rows = [[*row, cell] for row, cell in zip(rows, _dittoed([told.get(id, "") for id in table]), strict=True)]
    if rows:
        print_table(headings, rows, whole=1, error=error)
    if compared and not beside:
        show("", error=error)
        print_table(["tool", _WITHOUT], [[id.short, told[id]] for id in table if told.get(id)], error=error)
    if compared:
        show("", error=error)
        for sentence in collapses(compared):
            show(styled(f"Without Truename, {sentence}.", "yellow"), error=error)
        note = "* known from its code or documents; the others were run. `truename names --compare --json` tells all."
        show(styled(note, "dim"), error=error)


def _heading(table: NameTable) -> str:
    scope = "" if table.ledger is None else table.ledger.scope
    if scope:
        return f"name at /mcp/{scope}"
    return "name" if table.dialect.name == "universal" else f"name for {table.dialect.title}"


def _dittoed(texts: list[str]) -> list[Cell]:
    """Return the cells of a column in which what stands above is not said again."""
    return [
        styled("-", "dim") if not text else styled(_DITTO, "dim") if text == above else text
        for above, text in zip(["", *texts], texts, strict=False)
    ]


def summary(catalog: Catalog, table: NameTable) -> str:
    """Return the last line: how many tools, servers, shortened names and conflicts."""
    servers = len({tool.origin.server_id for tool in catalog.values()})
    shortened = sum(table.explain(id).shortened for id in table)
    conflicts = len(catalog.conflicts())
    return (
        f"{_count(len(catalog), 'tool')} of {_count(servers, 'server')}; style {table.style.name}; "
        f"{_count(shortened, 'name')} shortened; {_count(conflicts, 'name')} used by more than one server."
    )


def by_default(policy: Policy | None) -> str:
    """Return what the policy does with calls that no rule is about; "" without a policy."""
    if policy is None:
        return ""
    said = {"allow": "are allowed", "ask": "need an approval", "deny": "are denied"}[policy.default]
    return f"Policy: {_count(len(tuple(policy.rules)), 'rule')}; calls that no rule is about {said} (policy.default)."


def _show_list(table: NameTable, list_of: GivenName) -> None:
    """Print the short list that a client gets where it searches tools; nothing where it gets all names."""
    if not list_of.why:
        return
    pinned: list[list[Cell]] = [[id.short, styled(table[id], "bold cyan")] for id in list_of.listed]
    ours: list[list[Cell]] = [["the gateway's own", styled(name, "bold cyan")] for name in list_of.own]
    show(f"{table.dialect.title} is not given all names, but tools to search them ({list_of.why}). Its list:")
    print_table(["tool", "name"], pinned + ours, whole=1)
    show("")
    show("Found by a search, and called by these names:" if len(list_of.listed) < len(table) else "All names:")


def _shown_otherwise(table: NameTable, names: tuple[str, ...]) -> str:
    """Return how many names the client changes all the same, with the first; "" if it changes none."""
    shown = shown_by(table, names)
    changed = [name for name in names if name in shown and not shown[name].endswith(name)]
    if not changed:
        return ""
    title, first = table.dialect.title, changed[0]
    key = f"for a gateway at {gateway_key(table)}" if gateway_key(table) != table.server_name else "all the same"
    return (
        f"{title} changes {_count(len(changed), 'name')} {key}: {first} becomes {shown[first]}. Calls reach the tool."
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _document(
    scene: ToolWorkspace, table: NameTable, compared: "Compared | None", list_of: GivenName
) -> dict[str, Any]:
    tools, shown = [], shown_by(table, tuple(table.values()))
    for id, name in table.items():
        origin, why = scene.catalog[id].origin, table.explain(id)
        tool: dict[str, Any] = {
            "id": str(id),
            "name": name,
            "server": origin.server,
            "tool": origin.name,
            "rung": why.rung,
            "reason": why.reason,
            **plain_presented(scene.catalog[id], scene.settings.tools),
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
        "searched": list_of.why or None,
        "listed": list(list_of.names(table)),
        "tools": tools,
        "conflicts": sorted(table.catalog.conflicts()),
        "failed": list(scene.failed),
        "notices": [{"code": n.code, "server": n.server, "name": n.name} for n in scene.catalog.notices],
    }


def _plain(fate: ClientOutcome) -> dict[str, Any]:
    told: dict[str, Any] = {"client": fate.client, "fate": fate.kind, "confidence": fate.confidence}
    if fate.winner is not None:
        return told | {"runs": {"server": fate.winner[0], "tool": fate.winner[1]}}
    key = "shown" if fate.kind == "renamed" else "scope"
    return told | ({key: fate.what} if fate.what else {})
