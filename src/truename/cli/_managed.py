"""Connect the clients of a user without asking, for a management tool: repeatable, reversible, one status for each."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from truename.cli._connections import plain_notes
from truename.cli._errors import EXIT_FINDINGS, leaves
from truename.cli._rendering import print_json, print_table, printable, show
from truename.clients import config_files, find
from truename.clients.apply import check, plan_disconnection
from truename.clients.apply import connect as apply
from truename.clients.apply import disconnect as undo
from truename.clients.connection import plan_connection
from truename.clients.installed import installed_clients
from truename.clients.plan import PlanNote
from truename.clients.selection import OWN_SCOPES
from truename.editing import backups, unread_backups
from truename.errors import ConfigError, TruenameError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from truename.clients.connection import ConnectRequest
    from truename.clients.find import ClientServer, FoundFile
    from truename.clients.gateway_address import GatewayAddress, UpcomingNames
    from truename.clients.machine import Machine

__all__ = ["ManagedClient", "ManagedState", "connect_all", "report_outcomes", "undo_all"]

ManagedState = Literal["connected", "changed", "would_change", "disconnected", "failed"]


@dataclass(frozen=True, kw_only=True)
class ManagedClient:
    """What became of one client: ``connected`` and ``disconnected`` were so before, ``changed`` are so now."""

    client: str
    state: ManagedState
    files: tuple[str, ...] = ()
    problem: str = ""
    notes: tuple[dict[str, str], ...] = ()


def connect_all(
    clients: Sequence[str],
    machine: Machine,
    address: GatewayAddress,
    request: ConnectRequest,
    names: Callable[[str], UpcomingNames],
    *,
    dry_run: bool,
) -> list[ManagedClient]:
    """Connect the named clients, or all that are installed. One that cannot be connected keeps no other from it."""
    found = find(machine)

    def connected(client: str) -> ManagedClient:
        plan = plan_connection(machine, found, address, replace(request, client=client), names(client))
        check(plan)
        notes = tuple(plain_notes(plan.notes))
        files = tuple(str(step.path) for step in plan.steps)
        if not plan.steps:
            if plan.already:
                return ManagedClient(client=client, state="connected", notes=notes)
            problem = "none of its servers can go through the gateway; --all adds one entry"
            return ManagedClient(client=client, state="failed", problem=problem, notes=notes)
        if not dry_run:
            apply(plan)
        return ManagedClient(client=client, state="would_change" if dry_run else "changed", files=files, notes=notes)

    return [_outcome(client, connected) for client in clients or installed_clients(machine)]


def undo_all(
    clients: Sequence[str], machine: Machine, address: GatewayAddress | None, *, dry_run: bool
) -> list[ManagedClient]:
    """Disconnect the named clients, or all that `connect` changed.

    With the gateway's address, the clients' files tell whether an entry of it is left, also where a record of a change
    is damaged. Raises `ConfigError` if the records of what was changed cannot be listed.
    """

    def disconnected(client: str) -> ManagedClient:
        undoing = plan_disconnection(client, os.environ)
        if not dry_run:
            undo(undoing)
        files = tuple(str(step.path) for step in undoing.steps)
        # A file that is gone holds no entry: a client that was removed does not fail for ever.
        gone = [one for one in undoing.problems if _is_gone(one.file)]
        problems = [one for one in undoing.problems if one not in gone]
        left = undoing.unread
        if address is not None:
            left = _left(client, machine, address, {*(files if dry_run else ()), *(one.file for one in problems)})
        problems += dict.fromkeys((*(undoing.unread if left else ()), *left))
        notes = (*plain_notes(undoing.notes), *plain_notes([*map(_gone_note, gone)]))
        if problems:
            problem = " ".join(map(str, problems))
            return ManagedClient(client=client, state="failed", files=files, problem=problem, notes=notes)
        changed: ManagedState = "would_change" if dry_run else "changed"
        return ManagedClient(client=client, state=changed if files else "disconnected", files=files, notes=notes)

    return [_outcome(client, disconnected) for client in clients or _changed_clients(machine, address)]


def _changed_clients(machine: Machine, address: GatewayAddress | None) -> list[str]:
    unread = unread_backups(os.environ)
    known = {one.client for one in backups(os.environ) if one.action == "connect"} | {one.client for one in unread}
    if address is not None:
        known |= {one.client for one in _entries(machine, address)}
    elif "" in known:
        raise next(one.problem for one in unread if not one.client)
    return sorted(known & {file.client for file in config_files()})


def _entries(machine: Machine, address: GatewayAddress) -> list[ClientServer]:
    """Return the entries of all clients that lead to the gateway, but for those in files of projects."""
    return [one for found in _own_files(machine) for one in found.servers if address.points_here(one.server)]


def _own_files(machine: Machine) -> list[FoundFile]:
    return [one for one in find(machine) if one.file.scope in OWN_SCOPES and one.file.shape]


def _left(client: str, machine: Machine, address: GatewayAddress, known: Set[str]) -> tuple[ConfigError, ...]:
    """Return what of a client's files still leads to the gateway, or cannot be read; but for the ``known`` files."""
    files = [one for one in _own_files(machine) if one.file.client == client and str(one.path) not in known]
    remedy = "Remove it by hand."
    entries = (
        ConfigError(file=str(found.path), key=one.server.key, problem="it still leads to the gateway", remedy=remedy)
        for found in files
        for one in found.servers
        if address.points_here(one.server)
    )
    return (*(one.problem for one in files if one.problem is not None), *entries)


def _is_gone(path: str) -> bool:
    try:
        Path(path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _gone_note(error: ConfigError) -> PlanNote:
    return PlanNote(kind="file", subject=error.file, fact=f"{error.file}: {error.problem}", advice=error.remedy)


def _outcome(client: str, act: Callable[[str], ManagedClient]) -> ManagedClient:
    try:
        return act(client)
    except (TruenameError, ExceptionGroup, OSError) as error:
        return ManagedClient(client=client, state="failed", problem=" ".join(map(str, leaves(error))))


def report_outcomes(outcomes: Sequence[ManagedClient], *, dry_run: bool, as_json: bool) -> int:
    """Print what became of each client, and return the exit status.

    0: every client is as wanted. 1: at least one is not: it failed, or with ``dry_run`` it would be changed.
    """
    if as_json:
        print_json({"clients": [vars(one) for one in outcomes], "dry_run": dry_run, "ok": _is_well(outcomes)})
    elif outcomes:
        rows = [[one.client, one.state, printable(one.problem or ", ".join(one.files))] for one in outcomes]
        print_table(["client", "", "files"], rows)
    else:
        show("No client is installed here, or none was changed.")
    return 0 if _is_well(outcomes) else EXIT_FINDINGS


def _is_well(outcomes: Sequence[ManagedClient]) -> bool:
    return not any(one.state in {"failed", "would_change"} for one in outcomes)
