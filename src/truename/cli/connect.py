"""`truename connect`: put the gateway into a client's configuration, after showing the changes."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Literal, cast
from urllib.parse import urlsplit

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._connections import (
    ChangeFiles,
    GatewayUrl,
    PreviewFiles,
    ProjectDirectory,
    ToolsDump,
    confirm,
    find_client,
    gateway_address,
    gateway_url,
    plain_notes,
    read_gateway_config,
    reload_advice,
    show_notes,
)
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._gateway_names import ask_names, checked_url, is_running, new_names
from truename.cli._managed import connect_all, report_outcomes, undo_all
from truename.cli._options import GatewayConfig, JsonOutput
from truename.cli._other_user import for_user
from truename.cli._progress import busy
from truename.cli._questions import is_agreed, is_terminal
from truename.cli._rendering import print_json, show, show_diff, show_hanging, styled
from truename.clients import Machine, config_files, find
from truename.clients.apply import check
from truename.clients.apply import connect as apply
from truename.clients.connection import ConnectRequest, Entries, plan_connection
from truename.clients.gateway_address import GatewayAddress, UpcomingNames
from truename.clients.plan import ConnectionPlan
from truename.clients.selection import OWN_SCOPES
from truename.clients.server_entries import speaks_http
from truename.config import Config, Settings
from truename.editing import Backup
from truename.errors import excerpt

__all__ = ["connect"]

Clients = Annotated[
    str,
    Parameter(
        completer=_completion.configured_clients,
        help="The client whose configuration is changed (`truename clients` lists many); with --managed any number, or "
        "none for all that are installed.",
    ),
]
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
Name = Annotated[
    str | None,
    Parameter(name="--name", metavar="KEY", help="The key of the common entry; default: server_name, or tn."),
]
Scope = Annotated[
    tuple[Literal["user", "local", "project", "deployment"], ...],
    Parameter(
        name="--scope",
        show_default=False,
        help="The scope of files that may be changed; default: all but a project's. May be repeated.",
    ),
]
Managed = Annotated[
    bool,
    Parameter(
        name="--managed",
        show_default=False,
        help="For a management tool: ask nothing, connect all clients that are installed or named, report each.",
    ),
]
Undo = Annotated[bool, Parameter(name="--undo", show_default=False, help="With --managed: disconnect them instead.")]
User = Annotated[
    str | None,
    Parameter(
        name="--user", metavar="USER", help="With --managed, as root: do it for this user, with their home and rights."
    ),
]
_SHORT: Final = "tn"


def connect(
    *clients: Clients,
    source: GatewayConfig = None,
    url: GatewayUrl = None,
    each: Each = False,
    one: One = False,
    every: All = False,
    stdio: Stdio = False,
    search: Search = False,
    name: Name = None,
    scope: Scope = (),
    catalog: ToolsDump = None,
    project: ProjectDirectory = None,
    dry_run: PreviewFiles = False,
    yes: ChangeFiles = False,
    managed: Managed = False,
    undo: Undo = False,
    user: User = None,
    as_json: JsonOutput = False,
) -> int:
    """Put the gateway into a client's configuration; `truename disconnect` reverts that.

    Each server of the client that the gateway has too keeps its key and goes through the gateway, so that permissions
    and skills keep working; other servers are left unchanged. Servers whose tools the client would confuse share one
    entry, with unique names. All changes are shown before they are written.

    With --managed, exit status 0 says that every client is as wanted, 1 that one is not (--dry-run: would be changed).
    """
    entries = _entries(each=each, one=one, every=every)
    named = [find_client(one) for one in clients]
    if managed and user is not None:
        options = [("--config", source), ("--url", url), (f"--{entries}", entries and ""), ("--name", name)]
        options += [("--scope", one) for one in scope] + [("--catalog", catalog), ("--undo", "" if undo else None)]
        options += [("--stdio", "" if stdio else None), ("--search", "" if search else None)]
        outcomes = for_user(user, named, options, dry_run=dry_run)
        return report_outcomes(outcomes, dry_run=dry_run, as_json=as_json)
    machine = Machine.here(project)
    if managed and undo:
        here = None if url is None else gateway_address(Config(), checked_url(url))
        return report_outcomes(undo_all(named, machine, here, dry_run=dry_run), dry_run=dry_run, as_json=as_json)
    # On a machine with clients only, the gateway is elsewhere, and has its configuration there.
    is_elsewhere = managed and source is None and url is not None
    config = Config() if is_elsewhere else read_gateway_config(source)
    if not managed and (undo or user is not None or len(clients) != 1):
        raise UsageError(
            fact="it connects one client, and asks first",
            advice="Name one client; several, --undo and --user need --managed.",
        )
    url = gateway_url(config, url)
    # The key is a prefix of every tool's name, so a short one leaves the most room.
    key = _SHORT if config.settings.server_name == Settings().server_name else config.settings.server_name
    with busy(f"Looking for a gateway at {url}"):
        reached = is_running(url)
    request = ConnectRequest(
        client=named[0] if named else "",
        entries=cast("Entries", entries or ("all" if is_elsewhere else "best")),
        stdio=stdio,
        search=search,
        name=name or key,
        scopes=frozenset(scope) or OWN_SCOPES,
    )
    address = replace(gateway_address(config, url), answers=reached)
    if managed:
        names = partial(_names, address, catalog)
        outcomes = connect_all(named, machine, address, request, names, dry_run=dry_run)
        return report_outcomes(outcomes, dry_run=dry_run, as_json=as_json)
    return _connect_one(machine, address, request, catalog, dry_run=dry_run, yes=yes, as_json=as_json)


def _entries(*, each: bool, one: bool, every: bool) -> str | None:
    """Return which entries are asked for, None if it was not said. Raises `UsageError`."""
    chosen = [entries for entries, is_asked in (("each", each), ("one", one), ("all", every)) if is_asked]
    if len(chosen) > 1:
        raise UsageError(fact=f"--{' and --'.join(chosen)} exclude each other", advice="Pass at most one of them.")
    return chosen[0] if chosen else None


def _names(address: GatewayAddress, catalog: str | None, client: str) -> UpcomingNames:
    """Return the names that a client gets at the gateway, as far as they are known."""
    dialect = config_files(client)[0].dialect
    return new_names(address.config, catalog, client=dialect, url=address.url if address.answers else None)


def _connect_one(
    machine: Machine,
    address: GatewayAddress,
    request: ConnectRequest,
    catalog: str | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Show what is changed in the files of one client, ask, and change it."""
    client, config, url, reached = request.client, address.config, address.url, address.answers
    dialect = config_files(client)[0].dialect
    alone = request.stdio or not any(speaks_http(file.shape) for file in config_files(client))
    with busy("Asking for the names at the gateway"):
        names = _names(address, catalog, client)
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
    scheme, _, place = url.partition("://")
    host = place.partition("/")[0]
    if scheme == "https" and urlsplit(url).port is None:
        host += ":443"
    start = None if reached or alone else shlex.join(["truename", "serve", str(config.path), "--http", host])
    if as_json:
        print_json(_document(plan, replace(request, stdio=alone), backups, url=url, reached=reached, start=start))
    else:
        _conclude(plan, backups, start, done=done)
    return 0 if plan.steps or plan.already else EXIT_FINDINGS


def _wants_search(plan: ConnectionPlan) -> bool:
    """Ask whether to use tool search, if the client accepts fewer tools than there are and has no lists of tools."""
    note = next((one for one in plan.notes if one.kind == "crowded" and "--search" in one.advice), None)
    if note is None or not plan.steps or not is_terminal():
        return False
    show_notes([note])
    return is_agreed("List few tools, and let the model search the others? [y/N] ")


def _show(plan: ConnectionPlan, request: ConnectRequest, *, dry_run: bool) -> None:
    for step in plan.steps:
        if dry_run:
            show_diff(step.path, step.raw, step.after, plan.secrets)
            continue
        show(styled(str(step.path), "bold"))
        rows = []
        for one in step.changes:
            change = f"{one.old} -> {one.new}" if one.old and one.new else one.new or "removed"
            rows.append((styled(f"{one.what.removesuffix(f' {one.old}')}:", "cyan"), styled(change)))
        show_hanging(rows, indent=2)
    if not plan.steps and plan.already:
        show(f"{plan.title} is already connected: {', '.join(map(excerpt, plan.already))}.")
        show(f"To connect it in another way, run `truename disconnect {plan.client}` first.")
    elif not plan.steps:
        show(f"Nothing to connect: no server of {plan.title} can go through the gateway.")
        if request.entries in {"best", "each"}:
            show("`truename init` creates a configuration from your clients' servers; --all adds one entry.")
    show_notes(plan.notes)


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
) -> Mapping[str, object]:
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
        "notes": plain_notes(plan.notes),
        "reload": plan.reload,
        "gateway": {"url": url, "answers": reached, "start": start},
    }
