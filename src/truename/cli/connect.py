"""`truename connect`: put the gateway into a client's configuration, after showing the changes."""

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
from truename.cli._gateway_names import ask_names, checked_url, is_running, new_names
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
    "confirm",
    "connect",
    "find_client",
    "gateway_address",
    "program",
    "read_gateway_config",
    "reload_advice",
    "show_notes",
]

Client = Annotated[str, Parameter(help="The client whose configuration is changed (`truename clients` lists many).")]
Source = Annotated[
    str | None, Parameter(name="--config", help="The gateway's configuration; default: as for `truename serve`.")
]
Url = Annotated[str, Parameter(name="--url", help="The URL of the gateway.")]
Each = Annotated[
    bool,
    Parameter(name="--each", negative=(), show_default=False, help="Always write one entry per server."),
]
One = Annotated[
    bool, Parameter(name="--one", negative=(), show_default=False, help="One entry for all servers of the client.")
]
All = Annotated[
    bool, Parameter(name="--all", negative=(), show_default=False, help="One entry for all servers of the gateway.")
]
Stdio = Annotated[
    bool,
    Parameter(name="--stdio", show_default=False, help="Let the client start the gateway, instead of a URL."),
]
Search = Annotated[
    bool,
    Parameter(
        name="--search",
        show_default=False,
        help="Use a URL that lists few tools, and three to search the others; not for clients with lists of tools.",
    ),
]
Name = Annotated[str | None, Parameter(name="--name", help="The key of the common entry; default: server_name, or tn.")]
Scope = Annotated[
    tuple[Literal["user", "local", "project", "deployment"], ...],
    Parameter(
        name="--scope",
        show_default=False,
        help="The scope of files that may be changed; default: all but a project's. May be repeated.",
    ),
]
Dump = Annotated[
    str | None, Parameter(name="--catalog", help="A dump of the servers' tools, if the gateway is not running.")
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
    """Put the gateway into a client's configuration; `truename disconnect` reverts that.

    Each server of the client that the gateway has too keeps its key and goes through the gateway, so that permissions
    and skills keep working; other servers are left unchanged. Servers whose tools the client would confuse share one
    entry, with unique names. All changes are shown before they are written.
    """
    chosen = [entries for entries, is_asked in (("each", each), ("one", one), ("all", every)) if is_asked]
    if len(chosen) > 1:
        raise UsageError(fact=f"--{' and --'.join(chosen)} exclude each other", advice="Pass at most one of them.")
    client = find_client(client)
    url = checked_url(url)
    config = read_gateway_config(source)
    machine = Machine.here(project)
    alone = stdio or not any(speaks_http(file.shape) for file in config_files(client))
    with busy(f"Looking for a gateway at {url}"):
        reached = is_running(url)
    request = ConnectRequest(
        client=client,
        entries=cast("Entries", chosen[0] if chosen else "best"),
        stdio=stdio,
        search=search,
        name=name or _key(config.settings),
        scopes=frozenset(scope) or OWN_SCOPES,
    )
    dialect = config_files(client)[0].dialect
    with busy("Asking for the names at the gateway"):
        names = new_names(config, catalog, client=dialect, url=url if reached else None)
    address = replace(gateway_address(config, url), answers=reached)
    with busy("Reading the files of the clients"):
        found = find(machine)
    plan = plan_connection(machine, found, address, request, names)
    check(plan)
    backups: Sequence[Backup] = ()
    if not (yes or dry_run or as_json) and _wants_search(plan):
        request = replace(request, search=True)
        plan = plan_connection(machine, found, address, request, names)
    if not as_json:
        _show(plan, request, dry_run=dry_run)
    done = bool(plan.steps) and not dry_run and confirm(yes=yes, files=len(plan.steps), as_json=as_json)
    if done:
        backups = apply(plan)
        if reached and plan.upstreams:
            # The client's lists now have the predicted names: asking for them makes the gateway record them.
            with busy("Recording the names at the gateway"):
                ask_names(url, plan.upstreams, config.settings.token, dialect=dialect)
    start = None if reached or alone else _start(config, url)
    if as_json:
        print_json(_document(plan, replace(request, stdio=alone), backups, url=url, reached=reached, start=start))
    else:
        _conclude(plan, backups, start, done=done)
    return 0 if plan.steps or plan.already else EXIT_FINDINGS


def find_client(text: str) -> str:
    """Find a client with a configuration file, by its name or any name of its dialect.

    If several match, ask on the terminal. Raises `UsageError` for an unknown client, and without a terminal.
    """
    known = {file.client: file for file in config_files()}
    word = text.lower()
    if word in known:
        return word
    try:
        dialect = dialects.get(text).name
    except UnknownDialect:
        dialect = ""
    # The first word of a name matches too: claude is Claude Code as well as Claude Desktop.
    fitting = [one for one, file in known.items() if file.dialect == dialect or one.startswith(f"{word}-")]
    if len(fitting) > 1:
        return _chosen(text, fitting, {one: known[one].title for one in fitting})
    if fitting and known[fitting[0]].dialect == dialect:
        return fitting[0]
    close = get_close_matches(text.lower(), known, 3)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"Known are: {', '.join(sorted(known))}."
    raise UsageError(fact=f"{excerpt(text)} is not a client with a known configuration file", advice=advice)


def _chosen(text: str, clients: Sequence[str], titles: Mapping[str, str]) -> str:
    fact = f"{excerpt(text)} is ambiguous: {' or '.join(f'{titles[one]} ({one})' for one in clients)}"
    if not _has_terminal():
        raise UsageError(fact=fact, advice=f"Use one of: {', '.join(clients)}.")
    say(f"{fact}.")
    say(styled(f"Which? [{'/'.join(clients)}] ", "bold"))
    answer = sys.stdin.readline().strip().lower()
    if answer not in clients:
        raise UsageError(fact=f"{excerpt(answer)} is not one of them", advice=f"Use one of: {', '.join(clients)}.")
    return answer


def confirm(*, yes: bool, files: int, as_json: bool) -> bool:
    """Ask for confirmation unless ``yes``. Raises `UsageError` without a terminal."""
    if yes:
        return True
    if as_json or not _has_terminal():
        raise UsageError(
            fact="nothing was changed: confirmation needs a terminal",
            advice="Pass --yes to apply the changes, or --dry-run to preview them.",
        )
    return _confirmed(f"Change {files} {'file' if files == 1 else 'files'}? [y/N] ")


def _wants_search(plan: ConnectionPlan) -> bool:
    """Ask whether to use tool search, if the client accepts fewer tools than there are and has no lists of tools."""
    note = next((one for one in plan.notes if one.kind == "crowded" and "--search" in one.advice), None)
    if note is None or not plan.steps or not _has_terminal():
        return False
    show_notes([note])
    return _confirmed("List few tools, and let the model search the others? [y/N] ")


def _has_terminal() -> bool:
    return sys.stdin.isatty() and output(error=True).is_terminal


def _confirmed(question: str) -> bool:
    say(styled(question, "bold"))
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def reload_advice(advice: str) -> str:
    """Return how the client loads its new configuration, as a sentence to append; "" if unknown."""
    text = advice.removeprefix("None: ")
    return f" {text[:1].upper()}{text[1:]}" if text else ""


def show_notes(notes: Sequence[PlanNote], *, error: bool = False) -> None:
    """Print notes, each with its advice."""
    show_hanging(
        [
            (styled(_MARKS.get(note.kind, note.kind), "yellow"), styled(f"{note.fact}. {note.advice}".rstrip()))
            for note in notes
        ],
        indent=2,
        error=error,
    )


def read_gateway_config(source: str | None) -> Config:
    """Read the gateway's configuration; variables that are not set here stay references."""
    environ = dict(os.environ)
    try:
        return configuration(source, environ)
    except (ConfigError, ExceptionGroup) as error:
        unset = {name for one in _leaves(error) for name in _UNSET.findall(getattr(one, "problem", ""))}
        if not unset:
            raise
        return configuration(source, environ | {name: f"${{{name}}}" for name in unset})


def gateway_address(config: Config, url: str) -> GatewayAddress:
    """Return the gateway's address, with what is needed to match clients' entries to its servers."""
    env_file = config.settings.env_file
    environ = {**(read_env_file(Path(env_file)) if env_file is not None else {}), **os.environ}
    made = EntryOrigins(config.path).has if config.path is not None else lambda _, __: False
    return GatewayAddress(config=config, url=url, program=program(), environ=environ, was_created_from=made)


def _leaves(error: Exception) -> Sequence[Exception]:
    if isinstance(error, ExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


def _key(settings: Settings) -> str:
    # The key is a prefix of every tool's name, so a short one leaves the most room.
    return _SHORT if settings.server_name == Settings().server_name else settings.server_name


def program() -> str:
    """Return the path of the program that clients start."""
    # The absolute path, since a client may have another PATH than this shell.
    running = Path(sys.argv[0]).absolute()
    return str(running) if running.stem == "truename" else shutil.which("truename") or "truename"


def _start(config: Config, url: str) -> str:
    address = url.partition("://")[2].partition("/")[0]
    return shlex.join(["truename", "serve", str(config.path), "--http", address])


def _show(plan: ConnectionPlan, request: ConnectRequest, *, dry_run: bool) -> None:
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
        show(f"Nothing to connect: no server of {plan.title} can go through the gateway.")
        if request.entries in {"best", "each"}:
            show("`truename init` creates a configuration from your clients' servers; --all adds one entry.")
    show_notes(plan.notes)


def _changed(change: FileChange) -> str:
    return f"{change.old} -> {change.new}" if change.old and change.new else change.new or "removed"


def _conclude(plan: ConnectionPlan, backups: Sequence[Backup], start: str | None, *, done: bool) -> None:
    if done:
        show(styled(f"Connected {plan.title}.", "bold green"), reload_advice(plan.reload))
        for backup in backups:
            kept = backup.copy if backup.before is not None else "none, the file is new"
            show(f"  Backup of {backup.path}: {kept}")
        show(f"`truename disconnect {plan.client}` reverts it.")
    elif plan.steps:
        show("Nothing was changed.")
    if start is not None and (plan.steps or plan.already):
        show("No gateway is running there yet. To start it:")
        show(f"  {start}")


def _document(
    plan: ConnectionPlan,
    request: ConnectRequest,
    backups: Sequence[Backup],
    *,
    url: str,
    reached: bool,
    start: str | None,
) -> Mapping[str, Any]:
    copies = {backup.path: str(backup.copy) for backup in backups if backup.before is not None}
    return {
        "client": plan.client,
        "mode": "all" if request.entries == "all" else "one" if plan.joined or request.entries == "one" else "each",
        "transport": "stdio" if request.stdio else "http",
        "search": request.search,
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
