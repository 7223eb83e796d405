"""Connect the clients of a user without asking, for a management tool: repeatable, reversible, one status for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.cli._connections import plain_notes
from truename.cli._errors import EXIT_FINDINGS, UsageError, leaves
from truename.cli._rendering import print_json, print_table, printable, show
from truename.clients import find
from truename.clients.apply import check, plan_disconnection
from truename.clients.apply import connect as apply
from truename.clients.apply import disconnect as undo
from truename.clients.connection import plan_connection
from truename.clients.installed import installed_clients
from truename.editing import backups
from truename.errors import ConfigError, TruenameError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from truename.clients.connection import ConnectRequest
    from truename.clients.gateway_address import GatewayAddress, UpcomingNames
    from truename.clients.machine import Machine

__all__ = ["ManagedClient", "connect_all", "for_user", "report_outcomes", "undo_all"]

State = Literal["connected", "changed", "would_change", "disconnected", "failed"]
_TIMEOUT: Final = 300.0
# What a process of another user gets of this one's environment.
_PASSED: Final = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, kw_only=True)
class ManagedClient:
    """What became of one client: ``connected`` and ``disconnected`` were so before, ``changed`` are so now."""

    client: str
    state: State
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
        changed: State = "would_change" if dry_run else "changed"
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


def for_user(
    user: str, clients: Sequence[str], options: Sequence[tuple[str, str | None]], *, dry_run: bool
) -> list[ManagedClient]:
    """Run the same command as another user, with their home and rights; return what became of each client.

    Everything in that home is then read and written by its owner, so that no link in it leads further than they could
    go themselves. ``options`` without a value (None) are left out. Raises `UsageError` and `ConfigError`.
    """
    given = [
        word for option, value in options if value is not None for word in ((option, value) if value else (option,))
    ]
    arguments = ["--managed", *clients, *given, *(["--dry-run"] if dry_run else [])]
    if sys.platform == "win32":
        raise UsageError(fact="--user needs a POSIX system", advice="Run the command as the user.")
    import pwd  # noqa: PLC0415 - it exists on POSIX systems only

    try:
        account = pwd.getpwnam(user)
    except KeyError as error:
        raise UsageError(fact=f"there is no user {printable(user)}", advice="Check the name.") from error
    command = [sys.executable, "-m", "truename", "connect", *arguments, "--json"]
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    environment |= {"HOME": account.pw_dir, "USER": user, "LOGNAME": user}
    is_other = account.pw_uid != os.geteuid()
    try:
        done = subprocess.run(  # noqa: S603 - this program itself
            command,
            env=environment,
            cwd=account.pw_dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
            user=account.pw_uid if is_other else None,
            group=account.pw_gid if is_other else None,
            extra_groups=os.getgrouplist(user, account.pw_gid) if is_other else None,
        )
        document: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError) as error:
        advice = "Run it as root, with a Python that the user may read."
        raise UsageError(fact=f"it cannot be run as {printable(user)} ({error})", advice=advice) from error
    except ValueError as error:
        last = printable(done.stderr.strip().rpartition("\n")[2])
        raise UsageError(fact=f"as {printable(user)} it failed: {last}", advice="Run it as that user.") from error
    if "clients" not in document:
        raise ConfigError(
            file=user, key="", problem=printable(str(document.get("error"))), remedy="Run the command as this user."
        )
    return [
        ManagedClient(**{**one, "files": tuple(one["files"]), "notes": tuple(one["notes"])})
        for one in document["clients"]
    ]
