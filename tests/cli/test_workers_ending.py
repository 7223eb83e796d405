"""Workers end in order whenever a signal comes, and one that has begun to serve is replaced."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.gateway.conftest import alive
from tests.shared import ROOT
from tests.support.cli_ending import PATIENCE, until
from tests.support.cli_running import serving
from tests.support.cli_workers import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")]


@contextmanager
def starting(source: Path, *words: object) -> Iterator[Served]:
    """Start a supervisor of two workers, and wait for nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with serving(source, "--http", address, "--workers", 2, *words) as (process, out, err):
        served = Served(process, f"http://{address}", out, err)
        try:
            yield served
        finally:
            left = list(served.workers().values()) if process.poll() is None else []
            process.kill()
            for pid in left:
                os.kill(pid, signal.SIGKILL)


def answers(served: Served, path: str = "/readyz") -> bool:
    try:
        return httpx2.get(f"{served.url}{path}", timeout=PATIENCE).status_code == 200
    except httpx2.TransportError:
        return False


class Rest:
    """Tells whether a process used no processor time for a while, so it waits for something."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._used, self._since = "", 0.0

    def __call__(self) -> bool:
        used, now = " ".join(self._stat.read_text().rpartition(")")[2].split()[11:13]), time.monotonic()
        if used != self._used:
            self._used, self._since = used, now
        return now - self._since > 0.2


# The moments. Each returns when it has come.


def the_first_starts(served: Served) -> None:
    until(lambda: 1 in served.workers())


def the_first_serves_and_the_supervisor_has_not_heard_of_it(served: Served) -> None:
    the_first_starts(served)
    served.supervisor.send_signal(signal.SIGSTOP)
    until(lambda: answers(served))
    until(Rest(served.workers()[1]))


def the_second_starts(served: Served) -> None:
    until(lambda: 2 in served.workers())


def all_serve(served: Served) -> None:
    served.out.until("2 workers serve it.")


def one_is_about_to_be_started_again(served: Served) -> None:
    for _ in range(3):
        the_second_starts(served)
        os.kill(served.workers()[2], signal.SIGKILL)
        served.err.until("was killed by SIGKILL. It is started again")


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        (the_first_starts, signal.SIGTERM),
        (the_first_serves_and_the_supervisor_has_not_heard_of_it, signal.SIGINT),
        (the_first_serves_and_the_supervisor_has_not_heard_of_it, signal.SIGHUP),
        (the_second_starts, signal.SIGTERM),
        (the_second_starts, signal.SIGINT),
        (all_serve, signal.SIGHUP),
        (one_is_about_to_be_started_again, signal.SIGTERM),
    ],
)
def test_a_signal_ends_it_in_order_whenever_it_comes(
    configure: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: Callable[[Served], None],
    number: signal.Signals,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with starting(configure({}, truename={"reload": "off"})) as served:
        moment(served)
        pids = list(served.workers().values())
        served.supervisor.send_signal(number)
        served.supervisor.send_signal(signal.SIGCONT)
        assert served.supervisor.wait(PATIENCE) == 0
        served.err.rest()
        assert not any(map(alive, pids))

    assert [line for line in served.err.seen if "Ended" in line] == ["Ended. No call was interrupted."]
    assert not list(tmp_path.glob("truename-*"))


def test_a_first_worker_that_is_killed_once_it_accepts_is_replaced(
    configure: Callable[..., Path], tmp_path: Path
) -> None:
    # The supervisor hears that a worker is ready when its servers have started.
    gate = tmp_path / "gate"
    late = {"command": sys.executable, "args": ["-m", "tests.gateway.servers.late", str(gate)], "cwd": str(ROOT)}
    with starting(configure({}, servers={"late": late})) as served:
        until(lambda: answers(served, "/healthz"))
        os.kill(served.workers()[1], signal.SIGKILL)
        served.err.until("Worker 1 (process ")
        gate.touch()
        the_second_starts(served)
        os.kill(served.workers()[1], signal.SIGKILL)
        # It comes once all serve, whoever was there first.
        all_serve(served)
        assert served.workers().keys() == {1, 2}
        assert served.end() == 0

    said = "was killed by SIGKILL. It is started again"
    assert len([line for line in served.err.seen if said in line]) == 2
    assert len([line for line in served.out.seen if "2 workers serve it." in line]) == 1


def test_a_worker_that_cannot_be_started_for_now_is_started_later_and_the_others_serve(
    configure: Callable[..., Path],
) -> None:
    with starting(configure({}), "--json") as served:
        served.out.until('"workers": 2')
        first = served.workers()[1]
        before = resource.prlimit(served.supervisor.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(served.supervisor.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        os.kill(served.workers()[2], signal.SIGKILL)
        served.err.until('"failed": "Too many open files"')
        assert answers(served)
        resource.prlimit(served.supervisor.pid, resource.RLIMIT_NOFILE, before)
        served.err.until('"ready": true')
        assert served.workers()[1] == first
        assert served.end() == 0
