"""A program that gateways share runs once: whoever has its lease passes messages on, and nobody else, whatever dies."""

from __future__ import annotations

import itertools
import json
import secrets
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import psycopg
import pytest

from tests.shared import ROOT
from tests.support.cli_ending import PATIENCE, until
from tests.support.cli_running import Lines, serving
from tests.support.state_places import new_url, shared_server
from truename.gateway.replicas.liveness import VALIDITY
from truename.storage import StateLocation

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")]

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FAIL_OVER = 10.0


@dataclass
class Witnessed:
    """What the program wrote: which of its processes got which message, in order."""

    file: Path

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def processes(self) -> list[int]:
        return [int(pid) for pid, word, *_ in self.lines() if word == "start"]

    def got(self) -> list[tuple[int, str]]:
        """Return each message, with the process that got it."""
        return [(int(pid), " ".join(words)) for pid, *words in self.lines() if words not in (["start"], ["end"])]

    def notes(self) -> list[str]:
        return [line[2] for line in self.lines() if line[1] == "tools/call"]

    def has_ended(self, pid: int) -> bool:
        return [str(pid), "end"] in self.lines() or not Path(f"/proc/{pid}").exists()


def in_turns(got: list[tuple[int, str]]) -> list[int]:
    """Return the processes in the order in which they got messages: one that comes twice got some meanwhile."""
    return [pid for pid, _ in itertools.groupby(got, key=lambda one: one[0])]


@dataclass
class Replica:
    process: subprocess.Popen[str]
    url: str
    err: Lines

    @property
    def runs(self) -> set[int]:
        """The processes that it started."""
        found = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {int(pid) for path in found for pid in path.read_text().split()}

    def call(self, tool: str, text: str, timeout: float = PATIENCE) -> dict[str, Any]:
        params = {"name": tool, "arguments": {"text": text}, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        answer: dict[str, Any] = httpx2.post(self.url, json=body, headers=headers, timeout=timeout).json()
        return answer

    def notes(self, text: str) -> bool:
        """Tell whether a call is answered by the program."""
        try:
            answer = self.call("note", text)
        except httpx2.TransportError:
            return False
        return answer.get("result", {}).get("isError") is not True and "error" not in answer


@contextmanager
def replica(source: Path, state: StateLocation) -> Iterator[Replica]:
    where = str(state.address)
    with serving(source, "--http", "127.0.0.1:0", "--json", "--state", where) as (process, out, err):
        out.until('"url"')
        yield Replica(process, json.loads("{" + out.seen[-1].rstrip(",") + "}")["url"], err)


@dataclass
class Load:
    """Calls through a replica, one after the other, each with a text of its own, until `end`."""

    replica: Replica
    name: str
    answered: list[tuple[float, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Load:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join(2 * PATIENCE)

    def _run(self) -> None:
        for number in itertools.count():
            if self._is_over.is_set():
                return
            text = f"{self.name}-{number}"
            if self.replica.notes(text):
                self.answered.append((time.monotonic(), text))
            else:
                self.failed.append(text)
                self._is_over.wait(0.05)

    def since(self, moment: float) -> list[tuple[float, str]]:
        return [one for one in self.answered if one[0] > moment]


@pytest.fixture
def source(configure: Callable[..., Path], tmp_path: Path) -> Path:
    entry = {
        "command": sys.executable,
        "args": ["-m", "tests.gateway.servers.witness", str(tmp_path / "witness")],
        "cwd": str(ROOT),
        "instances": "single",
    }
    return configure({}, servers={"w": entry})


@contextmanager
def two(source: Path, place: StateLocation) -> Iterator[tuple[Replica, Replica, Witnessed]]:
    """Give the replica that runs the program, and another one."""
    witnessed = Witnessed(source.parent / "witness")
    with ExitStack() as stack:
        first = stack.enter_context(replica(source, place))
        until(lambda: len(witnessed.processes()) == 1)
        second = stack.enter_context(replica(source, place))
        assert first.notes("by-the-first")
        assert second.notes("by-the-second")
        assert witnessed.processes() == list(first.runs)
        assert not second.runs
        yield first, second, witnessed


def test_when_its_holder_is_killed_another_runs_it_and_no_call_is_made_twice(
    source: Path, place: StateLocation
) -> None:
    with two(source, place) as (first, second, witnessed), Load(second, "load") as load:
        held: list[dict[str, Any]] = []
        holding = threading.Thread(target=lambda: held.append(second.call("hold", "held")))
        holding.start()
        until(lambda: "held" in witnessed.notes() and len(load.answered) > 2)
        first.process.kill()
        killed = time.monotonic()
        until(lambda: bool(load.since(killed)))
        assert load.since(killed)[0][0] - killed < FAIL_OVER
        holding.join(PATIENCE)

    text = json.dumps(held[0])
    assert "was lost with the process of the gateway that ran it" in text
    assert "Whether the call took effect is unknown" in text
    notes = witnessed.notes()
    assert len(notes) == len(set(notes))
    assert {text for _, text in load.answered} <= set(notes)
    assert len(witnessed.processes()) == 2
    assert in_turns(witnessed.got()) == witnessed.processes()


def test_a_holder_that_was_stopped_passes_nothing_on_when_it_wakes(source: Path, place: StateLocation) -> None:
    with two(source, place) as (first, second, witnessed), Load(second, "load") as load, Load(first, "woken") as own:
        until(lambda: len(load.answered) > 2 and len(own.answered) > 2)
        first.process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        until(lambda: len(load.since(stopped + 0.5)) > 2)
        assert len(witnessed.processes()) == 2
        assert load.since(stopped + 0.5)[0][0] - stopped < FAIL_OVER
        first.process.send_signal(signal.SIGCONT)
        woken = time.monotonic()
        # Its calls go to the program of the other one.
        until(lambda: len(own.since(woken + 0.5)) > 2)
        old, new = witnessed.processes()
        until(lambda: witnessed.has_ended(old))
        assert second.runs == {new}
        until(lambda: not first.runs)

    notes = witnessed.notes()
    assert len(notes) == len(set(notes))
    assert {text for _, text in [*load.answered, *own.answered]} <= set(notes)
    assert in_turns(witnessed.got()) == [old, new]


def test_a_holder_that_ends_in_order_gives_the_program_up_at_once(source: Path, place: StateLocation) -> None:
    with two(source, place) as (first, second, witnessed):
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(PATIENCE) == 0
        ended = time.monotonic()
        until(lambda: second.notes(f"after-{time.monotonic()}"))
        assert time.monotonic() - ended < FAIL_OVER
        old, new = witnessed.processes()
        assert ([str(old), "end"], [str(new), "start"]) == tuple(
            line for line in witnessed.lines() if line in ([str(old), "end"], [str(new), "start"])
        )
    assert in_turns(witnessed.got()) == [old, new]


@pytest.fixture
def role() -> Iterator[tuple[str, Callable[[str], None]]]:
    """Give the name of a role of the server, and what runs an SQL statement as the server's owner."""
    name = f"r{secrets.token_hex(8)}"
    server = shared_server()
    with psycopg.connect(server.url, autocommit=True) as owner:

        def run(statement: str) -> None:
            owner.execute(statement.encode())

        run(f"CREATE ROLE {name} LOGIN")
        run(f"GRANT CREATE ON DATABASE truename TO {name}")
        try:
            yield name, run
        finally:
            run(f"DROP OWNED BY {name} CASCADE")
            run(f"DROP ROLE {name}")


def test_while_the_database_refuses_everybody_calls_fail_soon_and_go_on_when_it_is_back(
    source: Path, role: tuple[str, Callable[[str], None]]
) -> None:
    name, run = role
    place = StateLocation.of(new_url().replace("truename@", f"{name}@"))
    with two(source, place) as (first, second, witnessed):
        ran: list[dict[str, Any]] = []
        running = threading.Thread(target=lambda: ran.append(second.call("hold", "held")))
        running.start()
        until(lambda: "held" in witnessed.notes())
        run(f"ALTER ROLE {name} NOLOGIN")
        run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'")
        away = time.monotonic()
        # Both become sure of it.
        until(lambda: time.monotonic() > away + VALIDITY)
        (source.parent / "witness.gate").touch()
        with ThreadPoolExecutor(14) as pool:
            calls = [
                pool.submit(one.call, "note", f"refused-{number}") for one in (first, second) for number in range(7)
            ]
            assert all("nothing was run" in json.dumps(one.result()) for one in calls)
        assert time.monotonic() - away < FAIL_OVER
        # It ran, and its answer may not be passed on.
        running.join(5)
        assert "Whether the call took effect is unknown" in json.dumps(ran)
        run(f"ALTER ROLE {name} LOGIN")
        for one in (first, second):
            until(partial(one.notes, f"after-{one.url}"))

    notes = witnessed.notes()
    assert not [text for text in notes if text.startswith("refused")]
    # It is the same program, with what it had in memory.
    assert len(witnessed.processes()) == 1
