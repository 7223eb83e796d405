"""`truename connect`: the gateway in a client's own configuration, with everything that is changed shown first."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from cyclopts import Parameter

from truename import dialects
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._gateway_names import answers, ask_names, checked_url, new_names
from truename.cli._options import JsonOutput
from truename.cli._progress import busy
from truename.cli._rendering import output, print_json, say, show, show_diff, show_hanging, styled
from truename.cli._sources import configuration
from truename.clients import Machine, config_files, find
from truename.clients.apply import check
from truename.clients.apply import connect as apply
from truename.clients.connection import ConnectRequest, Entries, plan_connection
from truename.clients.gateway_address import GatewayAddress
from truename.clients.origins import EntryOrigins
from truename.clients.plan import ConnectionPlan, FileChange, PlanNote
from truename.clients.selection import OWN_SCOPES
from truename.clients.server_entries import speaks_http
from truename.config import Config, Settings
from truename.config.interpolate import read_env_file
from truename.editing import Backup
from truename.errors import ConfigError, UnknownDialect, excerpt

__all__ = [
    "address_of",
    "agreed",
    "client_named",
    "configured_for_clients",
    "connect",
    "program",
    "reloading",
    "show_notes",
]

Client = Annotated[str, Parameter(help="The client whose configuration is changed (`truename clients` lists many).")]
Source = Annotated[
    str | None, Parameter(name="--config", help="The gateway's configuration, else as `truename serve`.")
]
Url = Annotated[str, Parameter(name="--url", help="Where the gateway serves.")]
Each = Annotated[
    bool,
    Parameter(name="--each", negative=(), show_default=False, help="Write an entry for each server, always."),
]
One = Annotated[
    bool, Parameter(name="--one", negative=(), show_default=False, help="One entry for all servers of the client.")
]
All = Annotated[
    bool, Parameter(name="--all", negative=(), show_default=False, help="One entry for all servers of the gateway.")
]
Stdio = Annotated[
    bool,
    Parameter(name="--stdio", show_default=False, help="Have the client start the gateway, in place of its address."),
]
Search = Annotated[
    bool,
    Parameter(
        name="--search",
        show_default=False,
        help="An address that lists few tools, and three to search the others; not for a client with lists of tools.",
    ),
]
Name = Annotated[str | None, Parameter(name="--name", help="The key of the one entry; else server_name, or tn.")]
Scope = Annotated[
    tuple[Literal["user", "local", "project", "deployment"], ...],
    Parameter(
        name="--scope",
        show_default=False,
        help="Which files may be changed; else all but a project's. May be repeated.",
    ),
]
Dump = Annotated[
    str | None, Parameter(name="--catalog", help="A dump of the servers' tools, to know their names from.")
]
Project = Annotated[Path | None, Parameter(name="--project", help="The project directory with the client's files.")]
DryRun = Annotated[
    bool,
    Parameter(name="--dry-run", show_default=False, help="Show what would be changed, as a diff, and change nothing."),
]
Yes = Annotated[bool, Parameter(name="--yes", show_default=False, help="Don't ask.")]

_URL: Final = "http://127.0.0.1:8750"
_SHORT: Final = "tn"
_UNSET: Final = re.compile(r"the environment variable (\w+) is not set")
_MARKS: Final = {"info": "note"}


def connect(
    client: Client,
    /,
    *,
    source: Source = None,
    url: Url = _URL,
    each: Each = False,
    one: One = False,
    every: All = False,
    stdio: Stdio = False,
    search: Search = False,
    name: Name = None,
    scope: Scope = (),
    catalog: Dump = None,
    project: Project = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: JsonOutput = False,
) -> int:
    """Put the gateway into a client's own configuration, in place; `truename disconnect` takes it out again.

    Every server of the client that the gateway has too keeps its key and goes through the gateway, so that permissions
    and skills go on working; other servers stay as they are. Where the client would confuse tools of several servers
    that way, these servers share one entry, with names that are unique. Before anything is written, all is shown.
    """
    chosen = [entries for entries, is_asked in (("each", each), ("one", one), ("all", every)) if is_asked]
    if len(chosen) > 1:
        raise UsageError(fact=f"--{' and --'.join(chosen)} exclude each other", advice="Pass at most one of them.")
    client = client_named(client)
    url = checked_url(url)
    config = configured_for_clients(source)
    machine = Machine.here(project)
    alone = stdio or not any(speaks_http(file.shape) for file in config_files(client))
    with busy(f"Asking for a gateway at {url}"):
        reached = answers(url)
    wish = ConnectRequest(
        client=client,
        entries=cast("Entries", chosen[0] if chosen else "best"),
        stdio=stdio,
        search=search,
        name=name or _key(config.settings),
        scopes=frozenset(scope) or OWN_SCOPES,
    )
    dialect = config_files(client)[0].dialect
    with busy("Finding out which names the gateway shows"):
        names = new_names(config, catalog, client=dialect, url=url if reached else None)
    address = replace(address_of(config, url), answers=reached)
    with busy("Reading the files of the clients"):
        found = find(machine)
    plan = plan_connection(machine, found, address, wish, names)
    check(plan)
    backups: Sequence[Backup] = ()
    if not (yes or dry_run or as_json) and _wants_search(plan):
        wish = replace(wish, search=True)
        plan = plan_connection(machine, found, address, wish, names)
    if not as_json:
        _show(plan, wish, dry_run=dry_run)
    done = bool(plan.steps) and not dry_run and agreed(yes=yes, files=len(plan.steps), as_json=as_json)
    if done:
        backups = apply(plan)
        if reached and plan.upstreams:
            # The lists of the client name tools as they were foreseen: the gateway keeps these names from now on.
            with busy("Having the gateway keep the names"):
                ask_names(url, plan.upstreams, config.settings.token, dialect=dialect)
    start = None if reached or alone else _start(config, url)
    if as_json:
        print_json(_document(plan, replace(wish, stdio=alone), backups, url=url, reached=reached, start=start))
    else:
        _conclude(plan, backups, start, done=done)
    return 0 if plan.steps or plan.already else EXIT_FINDINGS


def client_named(text: str) -> str:
    """Return a client that keeps a configuration, by its name in the table or any name of its dialect.

    Where it fits several, a person is asked. Raises `UsageError`, also where there is nobody to ask.
    """
    known = {file.client: file for file in config_files()}
    word = text.lower()
    if word in known:
        return word
    try:
        dialect = dialects.get(text).name
    except UnknownDialect:
        dialect = ""
    # A whole word of its name is as good as its dialect's: claude is Claude Code as well as Claude Desktop.
    fitting = [one for one, file in known.items() if file.dialect == dialect or one.startswith(f"{word}-")]
    if len(fitting) > 1:
        return _chosen(text, fitting, {one: known[one].title for one in fitting})
    if fitting and known[fitting[0]].dialect == dialect:
        return fitting[0]
    close = get_close_matches(text.lower(), known, 3)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"Known are: {', '.join(sorted(known))}."
    raise UsageError(fact=f"no client is known as {excerpt(text)} whose configuration could be changed", advice=advice)


def _chosen(text: str, clients: Sequence[str], titles: Mapping[str, str]) -> str:
    fact = f"{excerpt(text)} may be {' or '.join(f'{titles[one]} ({one})' for one in clients)}"
    if not _is_somebody_there():
        raise UsageError(fact=fact, advice=f"Say which: {', '.join(clients)}.")
    say(f"{fact}.")
    say(styled(f"Which? [{'/'.join(clients)}] ", "bold"))
    answer = sys.stdin.readline().strip().lower()
    if answer not in clients:
        raise UsageError(fact=f"{excerpt(answer)} is not among them", advice=f"Say which: {', '.join(clients)}.")
    return answer


def agreed(*, yes: bool, files: int, as_json: bool) -> bool:
    """Ask whether to go on, if there is somebody to ask. Raises `UsageError` if there is not."""
    if yes:
        return True
    if as_json or not _is_somebody_there():
        raise UsageError(
            fact="nothing was changed: confirmation needs a terminal",
            advice="Pass --yes to apply the changes, or --dry-run to preview them.",
        )
    return _answered(f"Change {files} {'file' if files == 1 else 'files'}? [y/N] ")


def _wants_search(plan: ConnectionPlan) -> bool:
    """Ask whether tools are to be searched, where the client takes fewer than there are and keeps no lists of them."""
    note = next((one for one in plan.notes if one.kind == "crowded" and "--search" in one.advice), None)
    if note is None or not plan.steps or not _is_somebody_there():
        return False
    show_notes([note])
    return _answered("List few tools, and have the others searched? [y/N] ")


def _is_somebody_there() -> bool:
    return sys.stdin.isatty() and output(error=True).is_terminal


def _answered(question: str) -> bool:
    say(styled(question, "bold"))
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def reloading(advice: str) -> str:
    """Return how a client takes notice of its new configuration, to follow a sentence; "" where that is not known."""
    told = advice.removeprefix("None: ")
    return f" {told[:1].upper()}{told[1:]}" if told else ""


def show_notes(notes: Sequence[PlanNote], *, error: bool = False) -> None:
    """Print what there is to know, each with what to do."""
    show_hanging(
        [
            (styled(_MARKS.get(note.kind, note.kind), "yellow"), styled(f"{note.fact}. {note.advice}".rstrip()))
            for note in notes
        ],
        indent=2,
        error=error,
    )


def configured_for_clients(source: str | None) -> Config:
    """Read the gateway's configuration; a variable that only the gateway's environment has stays a reference."""
    environ = dict(os.environ)
    try:
        return configuration(source, environ)
    except (ConfigError, ExceptionGroup) as error:
        unset = {name for one in _leaves(error) for name in _UNSET.findall(getattr(one, "problem", ""))}
        if not unset:
            raise
        return configuration(source, environ | {name: f"${{{name}}}" for name in unset})


def address_of(config: Config, url: str) -> GatewayAddress:
    """Return where the gateway is, with all that tells which of its servers a client's entry is."""
    env_file = config.settings.env_file
    environ = {**(read_env_file(Path(env_file)) if env_file is not None else {}), **os.environ}
    made = EntryOrigins(config.path).has if config.path is not None else lambda _, __: False
    return GatewayAddress(config=config, url=url, program=program(), environ=environ, was_created_from=made)


def _leaves(error: Exception) -> Sequence[Exception]:
    if isinstance(error, ExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def _key(settings: Settings) -> str:
    # In front of every tool's name, a short key leaves the most room.
    return _SHORT if settings.server_name == Settings().server_name else settings.server_name


def program() -> str:
    """Return the path of the program that clients are to start."""
    # A client has another PATH than this shell, so the program is named in full.
    running = Path(sys.argv[0]).absolute()
    return str(running) if running.stem == "truename" else shutil.which("truename") or "truename"


def _start(config: Config, url: str) -> str:
    address = url.partition("://")[2].partition("/")[0]
    return shlex.join(["truename", "serve", str(config.path), "--http", address])


def _show(plan: ConnectionPlan, wish: ConnectRequest, *, dry_run: bool) -> None:
    for step in plan.steps:
        if dry_run:
            show_diff(step.path, step.raw, step.after, plan.secrets)
            continue
        show(styled(str(step.path), "bold"))
        rows = [(f"{one.what.removesuffix(f' {one.old}')}:", _changed(one)) for one in step.changes]
        show_hanging([(styled(what, "cyan"), styled(change)) for what, change in rows], indent=2)
    if not plan.steps and plan.already:
        show(f"{plan.title} is already connected: {', '.join(map(excerpt, plan.already))}.")
    elif not plan.steps:
        show(f"There is nothing to connect: no server of {plan.title} can go through the gateway as it is.")
        if wish.entries in {"best", "each"}:
            show("`truename init` makes a configuration of your clients' servers; --all adds the gateway as an entry.")
    show_notes(plan.notes)


def _changed(change: FileChange) -> str:
    return f"{change.old} -> {change.new}" if change.old and change.new else change.new or "taken out"


def _conclude(plan: ConnectionPlan, backups: Sequence[Backup], start: str | None, *, done: bool) -> None:
    if done:
        show(styled(f"Connected {plan.title}.", "bold green"), reloading(plan.reload))
        for backup in backups:
            kept = backup.copy if backup.before is not None else "there was no file"
            show(f"  Backup of {backup.path}: {kept}")
        show(f"`truename disconnect {plan.client}` takes it out again.")
    elif plan.steps:
        show("Nothing was changed.")
    if start is not None and (plan.steps or plan.already):
        show("No gateway answers there yet. This starts it:")
        show(f"  {start}")


def _document(
    plan: ConnectionPlan, wish: ConnectRequest, backups: Sequence[Backup], *, url: str, reached: bool, start: str | None
) -> Mapping[str, Any]:
    copies = {backup.path: str(backup.copy) for backup in backups if backup.before is not None}
    return {
        "client": plan.client,
        "mode": "all" if wish.entries == "all" else "one" if plan.joined or wish.entries == "one" else "each",
        "transport": "stdio" if wish.stdio else "http",
        "search": wish.search,
        "connected": list(plan.servers),
        "joined": list(plan.joined),
        "already": list(plan.already),
        "changed": bool(backups),
        "files": [
            {
                "path": str(step.path),
                "backup": copies.get(step.path),
                "changes": [{"what": one.what, "old": one.old, "new": one.new} for one in step.changes],
            }
            for step in plan.steps
        ],
        "notes": [
            {"kind": note.kind, "subject": note.subject, "fact": note.fact, "advice": note.advice}
            for note in plan.notes
        ],
        "reload": plan.reload,
        "gateway": {"url": url, "answers": reached, "start": start},
    }
