"""Connect the clients of another user, in a process with their rights; what it reports is checked: it is theirs."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, get_args

from truename.cli._errors import UsageError
from truename.cli._managed import ManagedClient, ManagedState
from truename.cli._rendering import printable, shortened
from truename.clients import config_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pwd import struct_passwd

__all__ = ["for_user"]

# Seconds, and bytes of each of its streams.
_TIMEOUT: Final = 300.0
_LAST_MOMENT: Final = 2.0
_MOST: Final = 1 << 20
_PIECE: Final = 1 << 16
_SHOWN: Final = 200
# What a process of another user gets of this one's environment.
_PASSED: Final = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")
_STATES: Final = frozenset(get_args(ManagedState))
_TEXTS: Final = frozenset({"client", "state", "problem"})
_NOTE: Final = frozenset({"kind", "subject", "fact", "advice"})
_ADVICE: Final = "Run the command as this user to see why."


def for_user(
    user: str, clients: Sequence[str], options: Sequence[tuple[str, str | None]], *, dry_run: bool
) -> list[ManagedClient]:
    """Run the same command as another user, with their home and rights; return what became of each client.

    Everything in that home is then read and written by its owner, so that no link in it leads further than they could
    go themselves. ``options`` without a value (None) are left out. Raises `UsageError`, also for a report that is none:
    the process belongs to the user, who can have it print anything.
    """
    given = [
        word for option, value in options if value is not None for word in ((option, value) if value else (option,))
    ]
    arguments = ["--managed", *clients, *given, *(["--dry-run"] if dry_run else [])]
    if sys.platform == "win32":
        raise UsageError(fact="--user needs a POSIX system", advice="Run the command as the user.")
    import pwd  # noqa: PLC0415 - it exists on POSIX systems only

    shown = printable(user)
    try:
        account = pwd.getpwnam(user)
    except KeyError as error:
        raise UsageError(fact=f"there is no user {shown}", advice="Check the name.") from error
    if not os.access(account.pw_dir, os.X_OK):
        fact = f"{shown} has no home: {printable(account.pw_dir)} does not exist, or cannot be entered"
        raise UsageError(fact=fact, advice="Create it, or leave this user out.")
    # -I: no module in the user's home, and none that they installed, is imported in place of ours.
    command = [sys.executable, "-I", "-m", "truename", "connect", *arguments, "--json"]
    try:
        told = _run(command, account)
    except (OSError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        advice = "Run it as root, with a Python that the user may read."
        raise UsageError(fact=f"it cannot be run as {shown} ({why})", advice=advice) from error
    try:
        return _report(told, clients)
    except ValueError as error:
        raise UsageError(fact=f"as {shown} it failed: {error}", advice=_ADVICE) from error


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What a process printed, each stream up to a bound, and how it ended."""

    status: int
    out: bytes
    err: bytes
    is_late: bool

    @property
    def is_too_long(self) -> bool:
        return max(len(self.out), len(self.err)) > _MOST


def _run(command: Sequence[str], account: struct_passwd) -> _Told:
    """Run a command as a user in their home; end it after a time, or when it prints more than a report can be."""
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    environment |= {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name}
    is_other = account.pw_uid != os.geteuid()
    process = subprocess.Popen(  # noqa: S603 - this program itself
        command,
        env=environment,
        cwd=account.pw_dir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        user=account.pw_uid if is_other else None,
        group=account.pw_gid if is_other else None,
        extra_groups=os.getgrouplist(account.pw_name, account.pw_gid) if is_other else None,
        # Without the terminal of root: whoever has it can type there.
        start_new_session=True,
    )
    with process:
        try:
            streams, is_late = _read(process)
            if not is_late:
                _wait_for_end(process)
        finally:
            # Before it is waited for: its id is its own until then.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
    return _Told(status=status, out=bytes(streams[0]), err=bytes(streams[1]), is_late=is_late)


def _wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Wait a moment for a process that closed its output to end by itself; its id stays its own meanwhile."""
    deadline = time.monotonic() + _LAST_MOMENT
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return
        time.sleep(0.005)


def _read(process: subprocess.Popen[bytes]) -> tuple[tuple[bytearray, bytearray], bool]:
    """Read both streams to their ends, up to the bound; return them, and whether they took too long."""
    streams = bytearray(), bytearray()
    deadline = time.monotonic() + _TIMEOUT
    with selectors.DefaultSelector() as selector:
        for pipe, read in zip((process.stdout, process.stderr), streams, strict=True):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, read)
        while selector.get_map() and max(map(len, streams)) <= _MOST:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                return streams, True
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if not piece:
                    selector.unregister(key.fileobj)
    return streams, False


def _report(told: _Told, clients: Sequence[str]) -> list[ManagedClient]:
    """Return the report in the output. Raises `ValueError`, which says what came instead."""
    if told.is_late:
        _refuse(f"it did not end within {_TIMEOUT:g} s")
    if told.is_too_long:
        _refuse(f"it printed more than {_MOST >> 20} MiB")
    if not told.out.strip():
        last = told.err.decode(errors="replace").strip().rpartition("\n")[2]
        _refuse(shortened(last, _SHOWN) or f"it printed nothing, and ended with status {told.status}")
    try:
        document = json.loads(told.out.decode())
    except (ValueError, RecursionError) as error:
        began = shortened(told.out.decode(errors="replace").strip(), _SHOWN)
        message = f"it printed no report, but '{began}'"
        raise ValueError(message) from error
    errors = document.get("errors") if isinstance(document, dict) else None
    if isinstance(errors, list) and errors and all(isinstance(one, dict) for one in errors):
        _refuse(shortened(" ".join(str(one.get("text")) for one in errors).removesuffix("."), 5 * _SHOWN))
    listed = document.get("clients") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        _refuse("its report lists no clients")
    found = [_client(one) for one in listed]
    if clients and [one.client for one in found] != list(clients):
        _refuse("its report is not about the clients that were named")
    return found


def _client(raw: Any) -> ManagedClient:
    """Return the report about one client. Raises `ValueError` for anything that this version does not print."""
    if not isinstance(raw, dict) or raw.keys() != {*_TEXTS, "files", "notes"}:
        _refuse("an entry of its report has other fields than this version's")
    if not all(isinstance(raw[name], str) for name in _TEXTS) or raw["state"] not in _STATES:
        _refuse("an entry of its report has no known state")
    if raw["client"] not in {file.client for file in config_files()}:
        name = shortened(raw["client"], _SHOWN)
        _refuse(f"its report names an unknown client, '{name}'")
    files, notes = raw["files"], raw["notes"]
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        _refuse("the files of a client in its report are not paths")
    if not isinstance(notes, list) or not all(_is_note(one) for one in notes):
        _refuse("the notes of a client in its report are not texts")
    return ManagedClient(**{**raw, "files": tuple(files), "notes": tuple(notes)})


def _is_note(raw: Any) -> bool:
    return isinstance(raw, dict) and raw.keys() == _NOTE and all(isinstance(text, str) for text in raw.values())


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)
