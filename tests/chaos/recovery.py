"""What is lost, and how long recovery takes: `python -m tests.chaos.recovery` makes docs/measurements/recovery.md.

A real gateway in front of a real server, with its state in a file and in PostgreSQL; each scenario begins anew. Times
are from the loss to the first call that is answered, and include the start of the gateway, of Python and of the server.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx2
import psycopg

from tests.shared import ROOT
from tests.support.postgresql_server import PostgresqlServer
from tests.support.state_places import new_directory
from truename.audit import AuditRecord, in_order_of_time, verify_chains
from truename.auth.authorization_server.sessions import load_sessions
from truename.auth.vault import Vault
from truename.config import load
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SCENARIOS", "Place", "tried"]

_TOOLS: Final = 50
_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_KEYS: Final = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Place:
    """The machine of a scenario: its directories and its database; ``url`` is "" for a file."""

    folder: Path
    server: PostgresqlServer | None = None
    machine: str = "one"
    key: str = _KEYS[0]
    tools: int = _TOOLS
    port: int = field(default_factory=_free_port)
    gateway: subprocess.Popen[str] | None = None

    @property
    def home(self) -> Path:
        """The state directory of the present machine."""
        return self.folder / self.machine

    @property
    def state(self) -> str:
        """The state, as the configuration has it."""
        return str(self.home / "state.db") if self.server is None else f"{self.server.url}&scope=recovery"

    def configure(self) -> Path:
        """Write the configuration of the present machine."""
        self.home.mkdir(exist_ok=True)
        names = [f"tool_{number}" for number in range(self.tools)]
        arguments = json.dumps(["-m", "tests.gateway.servers.normal", "w", *names])
        path = self.home / "truename.toml"
        path.write_text(
            f'state = "{self.state}"\n[mcpServers.w]\ncommand = "{sys.executable}"\nargs = {arguments}\n'
            f'env = {{ PYTHONPATH = "{ROOT}" }}\n[audit]\npath = "audit"\nrequired = true\n'
        )
        return path

    def environment(self) -> dict[str, str]:
        """Return the environment of commands on the present machine."""
        own = {"XDG_STATE_HOME": str(self.home / "xdg"), "TRUENAME_VAULT_KEY": self.key}
        return {**os.environ, **own, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command on the present machine; return its status and output."""
        done = subprocess.run(
            [sys.executable, "-m", "truename", *words, str(self.home / "truename.toml")],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def start(self) -> None:
        """Start a gateway, and wait until it answers a call."""
        path = self.configure()
        command = [sys.executable, "-m", "truename", "serve", str(path), "--http", f"127.0.0.1:{self.port}"]
        log = (self.home / "log").open("a")
        self.gateway = subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log, text=True)
        log.close()
        deadline = time.monotonic() + 60
        while not self.calls("tool_0"):
            if self.gateway.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.home / "log").read_text()[-2_000:])
            time.sleep(0.05)

    def starts(self) -> bool:
        """Return whether a gateway starts; it is ended again."""
        try:
            self.start()
        except RuntimeError:
            return False
        self.end(signal.SIGTERM)
        return True

    def end(self, how: signal.Signals) -> None:
        """End the gateway."""
        assert self.gateway is not None
        self.gateway.send_signal(how)
        self.gateway.wait()
        self.gateway = None

    def _post(self, method: str, params: dict[str, object]) -> dict[str, object]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
        headers = {**_HEADERS, "mcp-method": method, **({"mcp-name": str(params["name"])} if "name" in params else {})}
        with httpx2.Client(timeout=30) as http:
            found: dict[str, object] = http.post(f"http://127.0.0.1:{self.port}/mcp", json=body, headers=headers).json()
        return found

    def names(self) -> dict[str, str]:
        """Return the shown names, with the tool that each means."""
        result = self._post("tools/list", {})["result"]
        assert isinstance(result, dict)
        return {tool["name"]: json.dumps(tool["_meta"], sort_keys=True) for tool in result["tools"]}

    def calls(self, name: str) -> bool:
        """Call a tool; return whether it was answered."""
        with suppress(httpx2.HTTPError, ValueError):
            result = self._post("tools/call", {"name": name, "arguments": {}}).get("result")
            return isinstance(result, dict) and not result.get("isError")
        return False

    async def calls_until_killed(self, seconds: float) -> tuple[int, int]:
        """Call as fast as possible while the gateway is killed; return how many were answered, and how many not."""
        params = {"name": "tool_1", "arguments": {}, "_meta": _META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**_HEADERS, "mcp-method": "tools/call", "mcp-name": "tool_1"}
        counts = {True: 0, False: 0}

        async def caller(http: httpx2.AsyncClient) -> None:
            while True:
                try:
                    answer = await http.post(f"http://127.0.0.1:{self.port}/mcp", json=body, headers=headers)
                except httpx2.HTTPError:
                    counts[False] += 1
                    return
                counts[answer.status_code == 200] += 1

        async with httpx2.AsyncClient(timeout=30) as http, asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(caller(http))
            await asyncio.sleep(seconds)
            assert self.gateway is not None
            self.gateway.send_signal(signal.SIGKILL)
        self.gateway.wait()
        self.gateway = None
        return counts[True], counts[False]

    def recorded_calls(self) -> int:
        """Return how many calls the audit log of the present machine has, by their begin records; it must be whole."""
        directory = self.home / "audit"
        assert verify_chains(directory).defects == ()
        found = (one for _, one in in_order_of_time(directory) if isinstance(one, AuditRecord))
        return sum(one.kind == "begin" and one.body.get("name") == "tool_1" for one in found)

    def copy(self, target: Path) -> None:
        """Back up the state, as the documentation says."""
        if self.server is None:
            with closing(sqlite3.connect(self.state)) as data, closing(sqlite3.connect(target)) as copy:
                data.backup(copy)
            return
        command = [self._program("pg_dump"), "-n", "truename_recovery", "-f", str(target), self.server.url]
        subprocess.run(command, check=True)

    def drop(self) -> None:
        """Lose the database."""
        if self.server is None:
            for path in self.home.glob("state.db*"):
                if path.is_file() and not path.name.endswith(".revision"):
                    path.unlink()
            return
        self._sql("DROP SCHEMA truename_recovery CASCADE")

    def restore(self, source: Path) -> None:
        """Put a backup in the place of the database."""
        self.drop()
        if self.server is None:
            shutil.copy(source, self.state)
            return
        subprocess.run([self._program("psql"), "-q", "-o", "/dev/null", "-f", str(source), self.server.url], check=True)

    def _sql(self, statement: str) -> None:
        assert self.server is not None
        with psycopg.connect(self.server.url, autocommit=True) as data:
            data.execute(statement.encode())

    def _program(self, name: str) -> str:
        assert self.server is not None
        return self.server._program(name)


def killed(place: Place) -> str:
    """The gateway is killed in the middle of calls, and started again."""
    place.start()
    before = place.names()
    answered, cut_off = asyncio.run(place.calls_until_killed(2.0))
    begun = time.monotonic()
    place.start()
    seconds = time.monotonic() - begun
    assert place.names() == before
    recorded = place.recorded_calls()
    assert answered <= recorded <= answered + cut_off + 8
    place.end(signal.SIGTERM)
    status, text = place.run("audit", "verify")
    assert status == 0, text
    return (
        f"{answered} calls answered, {cut_off} cut off; {recorded} begin records; names, state and audit log whole; "
        f"{seconds:.1f} s"
    )


def machine_lost(place: Place) -> str:
    """The machine is lost with its disk; another one starts, with the database or with a backup of the file."""
    place.start()
    before = place.names()
    backup = place.folder / "backup"
    place.copy(backup)
    answered, _ = asyncio.run(place.calls_until_killed(1.0))
    lost = place.home
    begun = time.monotonic()
    place.machine = "two"
    place.configure()
    if place.server is None:
        place.restore(backup)
    place.start()
    seconds = time.monotonic() - begun
    assert place.names() == before
    place.end(signal.SIGTERM)
    shutil.rmtree(lost)
    status, text = place.run("audit", "verify", "--json")
    elsewhere = json.loads(text)["elsewhere"]
    known = sum(one["number"] for one in elsewhere)
    # A file has the head of the time of the backup.
    assert status == 0
    told = f"its head tells of {known} records that are missing" if known else "nothing tells of them"
    return f"names kept; {answered} calls were recorded on the lost disk only, {told}; {seconds:.1f} s"


def restored(place: Place) -> str:
    """The database is restored from a backup that lacks the last changes."""
    place.start()
    backup = place.folder / "backup"
    place.copy(backup)
    place.end(signal.SIGTERM)
    place.tools += 20
    place.start()
    after = place.names()
    place.end(signal.SIGTERM)
    place.restore(backup)
    assert not place.starts()
    begun = time.monotonic()
    status, text = place.run("state", "accept")
    assert status == 0, text
    place.start()
    seconds = time.monotonic() - begun
    same = sum(after.get(name) == tool for name, tool in place.names().items())
    place.end(signal.SIGTERM)
    status, text = place.run("audit", "verify")
    assert status == 0, text
    return (
        f"refused until `truename state accept`; {len(after)} names after, {same} of them mean the same tool again; "
        f"audit log whole; {seconds:.1f} s"
    )


def database_lost(place: Place) -> str:
    """The database is lost, and there is no backup."""
    place.start()
    before = place.names()
    place.end(signal.SIGTERM)
    status, text = place.run("token", "add", "ann")
    assert status == 0, text
    place.drop()
    assert not place.starts()
    begun = time.monotonic()
    status, text = place.run("state", "accept")
    assert status == 0, text
    place.start()
    seconds = time.monotonic() - begun
    same = sum(before.get(name) == tool for name, tool in place.names().items())
    place.end(signal.SIGTERM)
    _, text = place.run("token", "list", "--json")
    assert json.loads(text)["tokens"] == []
    return (
        f"refused until `truename state accept`; {same} of {len(before)} names as before; tokens gone; {seconds:.1f} s"
    )


def key_lost(place: Place) -> str:
    """The key of logins and sign-ins is lost, and another one is given."""
    config = load(place.configure())
    with Vault(config.state_location(), [base64.b64decode(place.key)]) as vault:
        vault.put("https://server.example", "ann", b"tokens")
    place.key = _KEYS[1]
    begun = time.monotonic()
    place.start()
    seconds = time.monotonic() - begun
    place.end(signal.SIGTERM)
    with Vault(config.state_location(), [base64.b64decode(place.key)]) as vault:
        refusal = ""
        try:
            vault.get("https://server.example", "ann")
        except StoreError as error:
            refusal = str(error)
        assert "unknown key" in refusal
        vault.put("https://server.example", "ann", b"new tokens")
        assert vault.get("https://server.example", "ann") == b"new tokens"
    assert load_sessions(config) == ()
    return f"the gateway starts; a login is refused until the person logs in again, which replaces it; {seconds:.1f} s"


SCENARIOS: Final[dict[str, Callable[[Place], str]]] = {
    "process killed": killed,
    "machine lost": machine_lost,
    "database restored from a backup": restored,
    "database lost": database_lost,
    "key lost": key_lost,
}


def tried(names: list[str], *, is_server: bool) -> Iterator[tuple[str, str]]:
    """Try scenarios, each with a new state; yield the name and the result of each."""
    for name in names:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tn-recovery-")))
            server = None
            if is_server:
                server = PostgresqlServer(new_directory() / "server", fsync="on")
                server.create()
                server.start()
                stack.callback(shutil.rmtree, server.directory.parent, ignore_errors=True)
                stack.callback(server.remove)
            place = Place(folder, server)
            try:
                yield name, SCENARIOS[name](place)
            finally:
                if place.gateway is not None:
                    place.gateway.kill()
                    place.gateway.wait()


def main() -> None:
    """Try the named scenarios, or all, with both kinds of state."""
    names = sys.argv[1:] or list(SCENARIOS)
    for is_server in (False, True):
        for name, result in tried(names, is_server=is_server):
            sys.stdout.write(f"{'PostgreSQL' if is_server else 'file':12}{name:34}{result}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
