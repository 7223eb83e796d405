"""`truename rename`: rename tools in files and in the ledger, after showing the plan; all changes or none."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._client_rules import client_rules
from truename.cli._declared_tools import read_sources
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import STYLE_NAMES, Aliases, JsonOutput, NamingOptions, ServerName, StateOption
from truename.cli._progress import busy
from truename.cli._project_settings import clients_here, settings_here
from truename.cli._rename_all import ledger_location, move_ids, restyle
from truename.cli._rename_output import RenameResult, print_done, print_left, print_undone
from truename.cli._rendering import output, styled
from truename.clients import Machine, find
from truename.clients.renamed_names import rename_in_clients
from truename.config import find_convention
from truename.conventions.convention import Convention
from truename.files import absolute
from truename.files.private import state_directory
from truename.files.user import at_home
from truename.ledger import Ledger, open_ledger
from truename.lint import read_declared
from truename.lint.python_tools import read_functions
from truename.migration import (
    MAX_MAP,
    LeftMention,
    MigrationSettings,
    OldNamesDecision,
    RenamePlan,
    RenameProposal,
    Survey,
    apply,
    decision_record,
    next_number,
    plan,
    plan_entries,
    propose_by_convention,
    propose_underscored,
    read_map,
    record_entries,
    record_file_name,
    recover,
    survey,
    undo,
)
from truename.naming import STYLES

__all__ = ["OldNames", "rename"]

_LONGEST: Final = 3_650
Apply = Annotated[
    tuple[str, ...] | None,
    Parameter(
        name="--apply",
        metavar="PATH",
        consume_multiple=True,
        show_default=False,
        help="Apply the renames to these files and directories, and record them in the ledger.",
    ),
]
Check = Annotated[
    tuple[str, ...] | None,
    Parameter(
        name="--check",
        metavar="PATH",
        consume_multiple=True,
        show_default=False,
        help="Look for old names in these files and directories; exit status 1 if there are any.",
    ),
]
Exclude = Annotated[
    tuple[str, ...],
    Parameter(
        show_default=False,
        help="A glob of files to skip, besides changelogs and decision records. May be repeated.",
    ),
]
RenameFiles = Annotated[
    bool,
    Parameter(
        name="--rename-files", show_default=False, help="Also rename files whose file name contains an old name."
    ),
]
CountUp = Annotated[
    bool,
    Parameter(
        name="--protocol",
        show_default=False,
        help="Increase the protocol version in files: PROTOCOL_VERSION, or as set under protocol in truename.toml.",
    ),
]
Record = Annotated[
    str | None,
    Parameter(
        name="--record", metavar="DIRECTORY", help="Write a decision record to this directory, such as docs/adr."
    ),
]
Reason = Annotated[str | None, Parameter(name="--because", metavar="TEXT", help="The reason, for the decision record.")]
Servers = Annotated[
    tuple[str, ...],
    Parameter(
        name="--server",
        metavar="SERVER",
        completer=_completion.servers,
        show_default=False,
        help="The server's key in clients, so that mcp__KEY__NAME changes too. May be repeated.",
    ),
]
Sources = Annotated[
    tuple[str, ...],
    Parameter(
        name="--among",
        metavar="SOURCE",
        show_default=False,
        help="A SOURCE with all existing tools, to detect clashes. May be repeated.",
    ),
]
ControlPlane = Annotated[
    tuple[str, ...],
    Parameter(
        name="--control-plane",
        metavar="TOOL",
        show_default=False,
        help="A tool that performs upgrades. May be repeated.",
    ),
]
Diff = Annotated[bool, Parameter(name="--diff", show_default=False, help="Show the changed lines.")]
CleanBreak = Annotated[
    bool,
    Parameter(
        name="--clean-break", show_default=False, help="End the old name at once: calls of it fail with unknown_tool."
    ),
]
ListedUntil = Annotated[
    str | None, Parameter(name="--listed-until", metavar="DATE", help="Also list the old name until this day.")
]
ListedFor = Annotated[
    str | None, Parameter(name="--listed-for", metavar="TIME", help="Also list the old name for this long: 90d, 12w.")
]
_UNDERSCORE: Final = "underscore"
_CONVENTION: Final = "convention"
_PRESETS: Final = ("trailblaze", "provider-safe", "canonical", "mcp")
_USAGE: Final = (
    "Run `truename rename OLD NEW`, `truename rename --map FILE`, or `truename rename SOURCE --style underscore`."
)
_FOUND: Final = 2
_EVERY: Final = 50
Words = Annotated[str, Parameter(help="OLD NEW, or the SOURCE of the tools for --style, --all and --ids.")]
All = Annotated[
    bool, Parameter(name="--all", show_default=False, help="Rename all tools of a ledger: change how names are made.")
]
Ids = Annotated[
    bool,
    Parameter(
        name="--ids",
        show_default=False,
        help="Change the ids of servers for which the configuration declares another integration or version.",
    ),
]
MapFile = Annotated[
    str | None,
    Parameter(
        name="--map", metavar="FILE", help="A file of renames: TOML with [renames], or a JSON object, old to new."
    ),
]
For = Annotated[
    tuple[str, ...],
    Parameter(
        name="--for",
        metavar="CLIENT",
        completer=_completion.clients,
        show_default=False,
        help="A client that must accept the new names (`truename clients` lists them). May be repeated.",
    ),
]
StyleName = Annotated[
    str | None,
    Parameter(
        name="--style",
        metavar="STYLE",
        completer=_completion.styles,
        help="For names in files: underscore, convention (your own), or a preset of one (trailblaze, provider-safe, "
        f"canonical, mcp). With --all: {STYLE_NAMES}.",
    ),
]
DryRun = Annotated[bool, Parameter(name="--dry-run", show_default=False, help="Show the changes without making them.")]
Undo = Annotated[
    bool, Parameter(name="--undo", show_default=False, help="Restore the files of the last rename in this directory.")
]


InClients = Annotated[
    bool,
    Parameter(
        name="--clients",
        show_default=False,
        help="Also rename in the files of the clients on this machine: lists of tools, hooks, agents, skills.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RenamePlaces:
    """Options about the files and tools that a rename concerns."""

    apply: Apply = None
    check: Check = None
    exclude: Exclude = ()
    rename_files: RenameFiles = False
    protocol: CountUp = False
    record: Record = None
    because: Reason = None
    server: Servers = ()
    among: Sources = ()
    control_plane: ControlPlane = ()
    diff: Diff = False
    in_clients: InClients = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OldNames:
    """Options that say how long old names stay listed after a rename."""

    clean_break: CleanBreak = False
    listed_until: ListedUntil = None
    listed_for: ListedFor = None

    @property
    def is_said(self) -> bool:
        """Whether any of the options is set."""
        return self.clean_break or self.listed_until is not None or self.listed_for is not None

    def until(self, today: date) -> str:
        """Return the last day on which old names are listed, "" for none. Raises `UsageError`."""
        if sum((self.clean_break, self.listed_until is not None, self.listed_for is not None)) > 1:
            advice = "Give one of --clean-break, --listed-until and --listed-for."
            raise UsageError(fact="the options about the old names exclude each other", advice=advice)
        if self.listed_for is not None:
            return (today + _span(self.listed_for)).isoformat()
        if self.listed_until is None:
            return ""
        try:
            day = date.fromisoformat(self.listed_until)
        except ValueError:
            raise UsageError(
                fact=f"{self.listed_until!r} is not a date", advice="Write it as in --listed-until 2027-02-01."
            ) from None
        if day < today:
            raise UsageError(fact=f"{day} is in the past", advice="Give a later date, or --clean-break.")
        return day.isoformat()


AS_PLANNED: Final = OldNames()


EVERYWHERE: Final = RenamePlaces()


def _span(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in {"d", "w"} or len(number) > len(str(_LONGEST)):
        raise UsageError(fact=f"{text!r} is not a duration", advice="Write it as in --listed-for 90d, or 12w.")
    days = int(number) * (7 if unit == "w" else 1)
    if not 1 <= days <= _LONGEST:
        raise UsageError(fact=f"{text!r} is not 1 to {_LONGEST:,} days", advice="Write it as in --listed-for 90d.")
    return timedelta(days=days)


@dataclass(frozen=True, kw_only=True)
class RenameRequest:
    """The requested renames, those that need a person (name -> reason), and the known tools and servers."""

    renames: Mapping[str, str]
    unclear: Mapping[str, str]
    known: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


def rename_request(
    words: Sequence[str], map_file: str | None, style: str | None, sources: Sequence[str]
) -> RenameRequest:
    """Return the requested renames. ``sources`` list the existing tools.

    Raises `UsageError` for missing or contradictory arguments, `ConfigError` for invalid files.
    """
    if map_file is not None and style is not None:
        raise UsageError(fact="--map and --style exclude each other", advice="Give one of them.")
    if map_file is not None:
        return _among(_mapped(map_file), [*words, *sources])
    if style is not None:
        return _styled(style, [*words, *sources])
    if len(words) != _FOUND:
        fact = f"a rename takes two names, an old one and a new one, but {len(words) or 'none'} was given"
        raise UsageError(fact=fact.replace("was", "were") if len(words) > 1 else fact, advice=_USAGE)
    return _among({words[0]: words[1]}, sources)


def _mapped(map_file: str) -> Mapping[str, str]:
    path = at_home(map_file)
    try:
        with path.open("rb") as stream:
            return read_map(stream.read(MAX_MAP + 1), str(path))
    except OSError as error:
        raise UsageError(fact=f"{path} cannot be read ({error.strerror or error})", advice="Check the path.") from error


def _among(renames: Mapping[str, str], sources: Sequence[str]) -> RenameRequest:
    if not sources:
        return RenameRequest(renames=renames, unclear={})
    found = _declared(sources)
    return replace(found, renames=renames)


def _styled(style: str, sources: Sequence[str]) -> RenameRequest:
    propose = _proposer(style)
    if not sources:
        advice = f"Give a dump, a configuration or Python files: `truename rename SOURCE --style {style}`."
        raise UsageError(fact="no SOURCE of tools was given", advice=advice)
    found = _declared(sources)
    if not found.known:
        raise UsageError(
            fact=f"no tool was found in {', '.join(sources)}",
            advice="Give a dump, a configuration, or the Python files that declare the tools.",
        )
    proposal = propose(found.known)
    return replace(found, renames=proposal.renames, unclear=proposal.unclear)


def _proposer(style: str) -> Callable[[Iterable[str]], RenameProposal]:
    if style == _UNDERSCORE:
        return propose_underscored
    if style == _CONVENTION:
        return _by(_own_convention())
    if style in _PRESETS:
        return _by(Convention.of(style))
    choice = ", ".join((_UNDERSCORE, _CONVENTION, *_PRESETS))
    if style in STYLES:
        raise UsageError(
            fact=f"{style} is a style of the gateway, which applies only to all tools of a ledger",
            advice=f"Run `truename rename SOURCE --all --style {style}`; for names in files use {choice}.",
        )
    raise UsageError(fact=f"{style!r} is not a style for names in files", advice=f"Use one of {choice}.")


def _by(convention: Convention) -> Callable[[Iterable[str]], RenameProposal]:
    return lambda names: propose_by_convention(names, convention)


def _own_convention() -> Convention:
    found = find_convention(Path())
    if found is None:
        raise UsageError(
            fact="no convention is configured here",
            advice=f"Write [convention] in truename.toml, or use a preset: --style {' or '.join(_PRESETS)}.",
        )
    return found.convention


def _declared(sources: Sequence[str]) -> RenameRequest:
    taken = read_sources(sources, ()).declared.declarations
    return RenameRequest(
        renames={},
        unclear={},
        known=tuple(dict.fromkeys(each.name for each in taken)),
        servers=tuple(dict.fromkeys(each.server for each in taken if each.server)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameArguments:
    """The arguments about what to rename: two names, a map file or a style; and clients that must accept the names."""

    words: tuple[str, ...]
    map_file: str | None
    style: str | None
    ledger: str | None
    clients: tuple[str, ...]

    def wanted(self, where: RenamePlaces) -> RenameRequest:
        """Return the requested renames. Raises `UsageError`, `ConfigError`."""
        return rename_request(self.words, self.map_file, self.style, where.among)


def migrate(request: RenameArguments, where: RenamePlaces, fate: OldNames, *, dry_run: bool, as_json: bool) -> int:
    """Plan a rename and print it; with ``--apply``, change all files or none, then record it in the ledger."""
    today = datetime.now(UTC).date()
    until = fate.until(today)
    settings = settings_here()
    asked = request.wanted(where)
    ledger = _ledger(request.ledger, fate, readonly=dry_run or where.apply is None)
    made = _planned(asked, request.clients, where, settings, ledger)
    done = RenameResult(
        plan=made,
        unclear=asked.unclear,
        until=until,
        clean_break=fate.clean_break,
        has_ledger=ledger is not None,
        count_up=where.protocol,
    )
    dry_run = dry_run or where.apply is None
    if made.ok and made.renames and (where.apply is not None or where.in_clients):
        if not dry_run:
            done = replace(done, recovered=recover(_state()))
        servers = _servers(asked, where, ledger)
        found = _surveyed(made, where.apply or (), where, settings, request.map_file, servers=servers)
        records = where.record or settings.record
        done = _recorded(replace(done, survey=found), found, records, where.because or "", today)
        if not dry_run:
            done = _made(done, done.survey or found, ledger)
    print_done(done, as_json=as_json, diff=where.diff)
    return 0 if made.ok else EXIT_FINDINGS


def check(request: RenameArguments, where: RenamePlaces, *, as_json: bool) -> int:
    """Look for old names that are left in files."""
    if where.apply is not None:
        raise UsageError(fact="--check and --apply exclude each other", advice="Give one of them.")
    settings = settings_here()
    asked = request.wanted(where)
    # After a rename the new names exist, so they are not checked for clashes here.
    made = _planned(replace(asked, known=()), request.clients, where, settings, None)
    ledger = _ledger(request.ledger, AS_PLANNED, readonly=True) if where.in_clients else None
    servers = _servers(asked, where, ledger)
    found = _surveyed(made, where.check or (), where, settings, request.map_file, servers=servers)
    print_left(made, found, as_json=as_json)
    return 0 if found.is_clean else EXIT_FINDINGS


def undo_last(*, as_json: bool) -> int:
    """Restore the files of the last rename that was made in this directory."""
    with _progress() as told:
        undone = undo(_state(), Path.cwd(), on_step=told)
    print_undone(undone, as_json=as_json)
    return 0 if undone.originals is not None else EXIT_FINDINGS


def _planned(
    asked: RenameRequest,
    clients: Sequence[str],
    where: RenamePlaces,
    settings: MigrationSettings,
    ledger: Ledger | None,
) -> RenamePlan:
    servers = _servers(asked, where, ledger)
    return plan(
        asked.renames,
        known=(*(asked.known or _beside(asked, ledger)), *_declared_beside(asked, where.apply or ())),
        servers=servers,
        clients=clients or clients_here(),
        ledger=ledger,
        control_plane=(*settings.control_plane, *where.control_plane),
    )


def _servers(asked: RenameRequest, where: RenamePlaces, ledger: Ledger | None) -> tuple[str, ...]:
    """Return the keys of the servers that have the tools, as far as they are known."""
    return tuple(dict.fromkeys((*where.server, *asked.servers, *_servers_of(asked, ledger))))


def _servers_of(asked: RenameRequest, ledger: Ledger | None) -> Iterator[str]:
    if ledger is not None:
        yield from (server for server, name in ledger.bindings() if name in asked.renames)


def _beside(asked: RenameRequest, ledger: Ledger | None) -> tuple[str, ...]:
    """Return the tool names of the servers that have the renamed tools, from the ledger."""
    servers = set(_servers_of(asked, ledger))
    own = () if ledger is None else ledger.bindings()
    # The server may already use the new names, which are the same tools.
    return tuple(name for server, name in own if server in servers and name not in asked.renames.values())


def _declared_beside(asked: RenameRequest, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the tool names of the servers that have the renamed tools, from files that declare all of these."""
    with busy("Reading the tools"):
        declared = read_declared([at_home(path) for path in paths]).declarations
    if not asked.renames.keys() <= {each.name for each in declared}:
        return ()
    servers = {each.server for each in declared if each.name in asked.renames}
    return tuple(each.name for each in declared if each.server in servers)


def _surveyed(
    made: RenamePlan,
    paths: Sequence[str],
    where: RenamePlaces,
    settings: MigrationSettings,
    map_file: str | None,
    *,
    servers: Sequence[str],
) -> Survey:
    records = Path(where.record or settings.record).as_posix()
    if not paths and not where.in_clients:
        raise UsageError(fact="no file or directory was named", advice="Use --apply PATH or --check PATH.")
    with _progress() as told:
        found = survey(
            made,
            [Path(path) for path in paths],
            exclude=dict.fromkeys((*settings.exclude, *where.exclude, *([f"{records}/*"] if records != "." else ()))),
            # The map and the saved originals must keep the old names.
            skip=[_state().parent, *([at_home(map_file)] if map_file else ())],
            rename_files=where.rename_files,
            count_up=where.protocol,
            pattern=settings.protocol_pattern,
            pattern_file=settings.protocol_file,
            functions=read_functions,
            on_file=lambda number, count: told("read", number, count),
        )
    return _with_clients(made, found, servers) if where.in_clients else found


def _with_clients(made: RenamePlan, found: Survey, servers: Sequence[str]) -> Survey:
    """Add the changes of clients' files; a file that is changed already is changed further."""
    if not servers:
        raise UsageError(
            fact="clients name a tool with its server, and the server is not known",
            advice="Give its key: --server KEY, or the gateway's ledger: --state PATH.",
        )
    before = {change.target: change.after for change in found.changes if change.after is not None}
    with busy("Reading the clients' files"):
        clients = rename_in_clients(find(Machine.here()), made.renames, servers, before)
    further = {change.path: change for change in clients.changes}
    changes = [
        replace(change, after=more.after, edits=(*change.edits, *more.edits))
        if (more := further.pop(change.target, None)) is not None
        else change
        for change in found.changes
    ]
    known = {_mentioned(one) for one in found.leftovers}
    left = (replace(one, path=_near(one.path)) for one in clients.left if _mentioned(one) not in known)
    return replace(
        found,
        changes=(*changes, *further.values()),
        leftovers=(*found.leftovers, *left),
        files=found.files + clients.files,
    )


def _mentioned(left: LeftMention) -> tuple[Path, str]:
    return absolute(left.path), left.leftover.name


def _near(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _recorded(done: RenameResult, found: Survey, asked: str, reason: str, today: date) -> RenameResult:
    """Add the decision record to the changes, if one is requested and there are any changes."""
    if not asked or not found.changes:
        return done
    directory = absolute(at_home(asked))
    number = next_number(path.name for path in directory.iterdir()) if directory.is_dir() else 1
    decision = OldNamesDecision(
        number=number,
        day=today,
        until=done.until,
        clean_break=done.clean_break,
        protocol=found.protocol,
        reason=reason,
    )
    path = directory / record_file_name(done.plan, number)
    return replace(done, record=path, survey=found.with_file(path, decision_record(done.plan, decision)))


def _made(done: RenameResult, found: Survey, ledger: Ledger | None) -> RenameResult:
    """Change the files, then record the rename in the ledger; restore the files if that fails."""
    entries, unknown = plan_entries(done.plan.renames, ledger) if ledger is not None else ((), ())
    note = {"renames": dict(done.plan.renames), "ledger": bool(entries)}
    with _progress() as told:
        applied = apply(found.changes, _state(), note=note, on_step=told)
    protocol = found.protocol.new if found.protocol is not None else ""
    if ledger is not None:
        try:
            record_entries(ledger, entries, until=done.until, clean_break=done.clean_break, protocol=protocol)
        except BaseException:
            if applied.originals is not None:
                undo(_state(), Path.cwd())
            raise
    return replace(done, applied=applied, entered=entries, unknown=unknown)


def _ledger(chosen: str | None, fate: OldNames, *, readonly: bool) -> Ledger | None:
    if chosen is None and not fate.is_said:
        return None
    try:
        location = ledger_location(None, chosen)
    except UsageError as fault:
        if chosen is not None:
            raise
        if fate.clean_break:
            # Without a ledger no gateway showed the old name, so there is nothing to end.
            return None
        raise UsageError(
            fact=f"old names can be listed only with a ledger: {fault.fact}",
            advice="Pass the gateway's: --state PATH. If no gateway shows these tools, omit --listed-for.",
        ) from fault
    return open_ledger(location, readonly=readonly)


def _state() -> Path:
    return state_directory() / "migrations"


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on a terminal; yield the function that updates it."""
    console = output(error=True)
    status = console.status(styled("reading files"))

    def told(word: str, number: int, count: int) -> None:
        if number % _EVERY == 0:
            status.update(styled(f"{number:,} of {count:,} files {word}"))

    with status if console.is_terminal else nullcontext():
        yield told


def rename(
    *words: Words,
    every: All = False,
    ids: Ids = False,
    map_file: MapFile = None,
    clients: For = (),
    style: StyleName = None,
    server_name: ServerName = None,
    alias: Aliases = (),
    ledger: StateOption = None,
    where: RenamePlaces = EVERYWHERE,
    fate: OldNames = AS_PLANNED,
    undo: Undo = False,
    dry_run: DryRun = False,
    as_json: JsonOutput = False,
) -> int:
    """Rename tools in files (--apply) and in the ledger. Without --apply, the plan is shown and nothing is changed.

    OLD NEW renames one tool, --map several, --style underscore or --style convention all names that break that style.
    --all changes how all names of a ledger are made; --ids redirects the old ids of servers to those that the
    configuration declares. Old names and ids keep working.
    """
    if undo:
        if words or every or ids or dry_run or map_file or style or fate != AS_PLANNED or where != EVERYWHERE:
            raise UsageError(
                fact="--undo excludes other options", advice="Run `truename rename --undo`, optionally with --json."
            )
        return undo_last(as_json=as_json)
    if (every or ids) and len(words) > 1:
        chosen = "--all" if every else "--ids"
        raise UsageError(
            fact=f"{chosen} takes at most one SOURCE, not {len(words)}", advice="Give one SOURCE, or none."
        )
    if ids:
        said = every or map_file or style or clients or server_name or alias or where != EVERYWHERE
        if said or fate.clean_break:
            raise UsageError(
                fact="--ids excludes options about names, files and --clean-break",
                advice="Run `truename rename SOURCE --ids`, with --state, --listed-for, --dry-run, --json if needed.",
            )
        until = fate.until(datetime.now(UTC).date())
        return move_ids(words[0] if words else None, ledger, until, dry_run=dry_run, as_json=as_json)
    if every:
        client = clients[0] if clients else "universal"
        making = NamingOptions(style=style, server_name=server_name, alias=alias, state=ledger)
        return restyle(words[0] if words else None, making, client, dry_run=dry_run, as_json=as_json)
    for client in clients:
        client_rules(client)
    request = RenameArguments(words=words, map_file=map_file, style=style, ledger=ledger, clients=clients)
    if where.check is not None:
        return check(request, where, as_json=as_json)
    return migrate(request, where, fate, dry_run=dry_run, as_json=as_json)
