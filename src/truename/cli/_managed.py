"""Connect the clients of a user without asking, for a management tool: repeatable, reversible, one status for each."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from truename.cli._connections import plain_notes
from truename.cli._errors import EXIT_FINDINGS, leaves
from truename.cli._rendering import print_json, print_table, printable, show
from truename.clients import find
from truename.clients.apply import check, plan_disconnection
from truename.clients.apply import connect as apply
from truename.clients.apply import disconnect as undo
from truename.clients.connection import plan_connection
from truename.clients.installed import installed_clients
from truename.editing import backups
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from truename.clients.connection import ConnectRequest
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


def undo_all(clients: Sequence[str], *, dry_run: bool) -> list[ManagedClient]:
    """Disconnect the named clients, or all that `connect` changed."""

    def disconnected(client: str) -> ManagedClient:
        undoing = plan_disconnection(client, os.environ)
        if not dry_run:
            undo(undoing)
        notes = tuple(plain_notes(undoing.notes))
        files = tuple(str(step.path) for step in undoing.steps)
        if undoing.problems:
            problem = " ".join(map(str, undoing.problems))
            return ManagedClient(client=client, state="failed", files=files, problem=problem, notes=notes)
        changed: ManagedState = "would_change" if dry_run else "changed"
        return ManagedClient(client=client, state=changed if files else "disconnected", files=files, notes=notes)

    known = dict.fromkeys(one.client for one in backups(os.environ) if one.action == "connect")
    return [_outcome(client, disconnected) for client in clients or sorted(known)]


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
