"""The benchmark of gateways: wrong answers are found, figures are those of the gateway, and nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.gateways import cases, report
from bench.gateways.cases import HANDSHAKE, MODERN, Setup, Workload, needs
from bench.gateways.certificate import Certificate
from bench.gateways.figures import Case, Figures
from bench.gateways.load import percentile
from bench.gateways.peers import ALL, OURS
from bench.gateways.peers.base import Launch, Peer, Place
from bench.gateways.processes import Process
from bench.gateways.run import Block, Run
from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

SERVERS = str(ROOT / "bench" / "gateways" / "servers.py")
FEW = Workload(connections=2)
# A gateway in front of one server, which changes what the server says.
GATEWAY = """
import sys, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with urllib.request.urlopen(urllib.request.Request(sys.argv[2], body)) as answer:
            said = answer.read()
        if b'"tools/call"' in body:
            said = said.replace(sys.argv[3].encode(), sys.argv[4].encode())
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Gateway).serve_forever()
"""


def peer(launch: Callable[[Place], Launch], name: str = "truename") -> Peer:
    return Peer(name, "A gateway", "made for a test", launch)


def changing(old: str, new: str) -> Callable[[Place], Launch]:
    """Return a gateway that puts one text for another into the answers of tools."""

    def launch(place: Place) -> Launch:
        return Launch((sys.executable, "-c", GATEWAY, str(place.port), place.servers[0].url, old, new))

    return launch


def measured(folder: Path, chosen: Peer, setup: Setup, *workloads: Workload) -> tuple[Run, list[dict[str, Any]]]:
    """Return a short run of one gateway, and what it recorded."""
    records: list[dict[str, Any]] = []
    run = Run(folder, Certificate.make(folder), {chosen.name: folder}, 0.1, 1, records.append, lambda _: None)
    run.measure(Block(setup, workloads, chosen, 0))
    return run, records


def of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in records if one["kind"] == kind]


@pytest.mark.parametrize("version", [HANDSHAKE, MODERN])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_servers_answer_every_call_and_list_of_the_load(tmp_path: Path, version: str, tls: bool) -> None:
    setup = Setup("one", servers=1, tls_to_servers=tls)
    asked = [Workload("call", version, 2), Workload("call", version, 1, 100_000), Workload("list", version, 1)]

    run, records = measured(tmp_path, ALL["direct"], setup, *asked)

    found = of(records, "measured")
    assert [Workload(**one["workload"]) for one in found] == asked
    assert [(one["wrong"], one["failed"], one["first_failure"]) for one in found] == [(0, 0, "")] * 3
    assert all(one["right"] and one["cpu_us"] and one["p50_us"] <= one["p99_us"] for one in found)
    assert found[2]["list_bytes"] > 1_000
    assert found[2]["direct_p50_us"]
    assert run.failures == []


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("s0 00001:", "s0 00002:", "wrong"),  # another tool has answered
        (":1", ":2", "wrong"),  # the answer to another call
        ("A plain sentence", "Another sentence", "wrong"),
        ('"id":1', '"id":2', "wrong"),
        ('"result"', '"error"', "wrong"),
        ('"isError":false', '"isError":true', "wrong"),
        ("s0 0000", "nobody", "failed"),
    ],
)
def test_an_answer_that_is_not_the_right_one_is_counted_and_ends_the_run_with_an_error(
    tmp_path: Path, old: str, new: str, kind: str
) -> None:
    run, records = measured(tmp_path, peer(changing(old, new)), Setup("one", servers=1), FEW)

    (found,) = of(records, "measured")
    assert found[kind] > 0
    assert found["first_failure"]
    assert len(run.failures) == 1


def test_a_gateway_that_changes_nothing_has_no_wrong_answer(tmp_path: Path) -> None:
    run, records = measured(tmp_path, peer(changing("nothing of this", "is said")), Setup("one", servers=1), FEW)

    (found,), (start,) = of(records, "measured"), of(records, "start")
    assert (found["wrong"], found["failed"], run.failures) == (0, 0, [])
    assert 0 < start["first_answer_s"] <= start["ready_s"]
    assert start["resident_bytes"] > 1_000_000


def test_a_wrong_answer_of_another_gateway_is_recorded_and_is_no_error_of_the_run(tmp_path: Path) -> None:
    run, records = measured(tmp_path, peer(changing("00001:", "00002:"), "envoy"), Setup("one", servers=1), FEW)

    assert of(records, "measured")[0]["wrong"] > 0
    assert run.failures == []


def test_a_gateway_that_ends_at_once_is_named_with_its_last_line(tmp_path: Path) -> None:
    def launch(_: Place) -> Launch:
        return Launch((sys.executable, "-c", "import sys; sys.exit('no such option')"))

    run, records = measured(tmp_path, peer(launch), Setup("one", servers=1), FEW)

    (absent,) = of(records, "absent")
    assert absent["reason"] == "it did not start: it ended: no such option"
    assert len(run.failures) == 1


def test_a_gateway_that_registers_no_servers_is_named_with_the_reason(tmp_path: Path) -> None:
    def refused() -> str:
        raise TimeoutError("1 of 3 after 240 seconds")

    def launch(_: Place) -> Launch:
        return Launch((sys.executable, "-c", "import time; time.sleep(600)"), register=refused)

    _, records = measured(tmp_path, peer(launch), Setup("one", servers=1), FEW)

    (absent,) = of(records, "absent")
    assert absent["reason"] == "it did not start: its servers are not registered: 1 of 3 after 240 seconds"


def test_what_a_gateway_lacks_is_recorded_with_the_reason_and_starts_nothing(tmp_path: Path) -> None:
    run, records = measured(tmp_path, ALL["envoy"], Setup("one", "stdio", servers=1), FEW)

    assert [one["reason"] for one in records] == ["Envoy starts no programs"]
    assert run.failures == []


def test_every_need_that_a_gateway_lacks_is_one_that_a_case_has() -> None:
    known = set(chain.from_iterable(needs(setup, one) for setup, workloads in cases.FULL.items() for one in workloads))

    assert {need for one in ALL.values() for need in one.lacks} <= known


def test_a_need_is_lacked_with_its_reason_alone() -> None:
    assert ALL["envoy"].reason_against(("http servers", HANDSHAKE)) == ""
    assert ALL["envoy"].reason_against(("http servers", MODERN)) == "mcp_router speaks 2025-06-18"


def test_nothing_that_a_process_has_started_runs_after_its_block(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; one = subprocess.Popen(['sleep', '600'], start_new_session=True);"
        "print(one.pid, flush=True); sys.stdin.read(); one.wait()"
    )
    with Process((sys.executable, "-c", program), env={}, log=tmp_path / "log", has_pipes=True) as process:
        child = int(process.pipes[1].readline())
        assert Path(f"/proc/{child}").exists()

    assert not process.is_running()
    assert not is_alive(child)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_server_over_stdio_is_not_counted_as_the_gateway_and_the_command_that_names_it_is(tmp_path: Path) -> None:
    # As mcp-proxy has it: the command of the server stands in the gateway's own command.
    program = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    server = (sys.executable, "-I", SERVERS, "stdio", "s0", "10")
    command = (sys.executable, "-c", program, *server)
    with Process(command, env={}, log=tmp_path / "log", has_pipes=True) as process:
        write, read = process.pipes
        write.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        write.flush()
        assert read.readline() == '{"jsonrpc":"2.0","id":1,"result":{}}\n'
        usage = process.usage()

    assert usage.seconds > 0
    assert usage.servers_seconds > 0
    assert 0 < usage.resident_bytes < 100_000_000


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_no_process(tmp_path: Path, sent: int) -> None:
    temporary, results = tmp_path / "temporary", tmp_path / "results"
    temporary.mkdir()
    options = ("--gateway", "direct", "--setup", "base", "--seconds", "60", "--results", str(results))
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "bench.gateways", *options]
    with subprocess.Popen(command, env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        while "32 bytes" not in (line := run.stderr.readline()):
            assert line, "the run ended before it measured"
        assert processes_in(temporary)
        run.send_signal(sent)
        run.stderr.read()

    assert run.returncode == 130
    assert processes_in(temporary) == []


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose working directory is, or was, below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = str((process / "cwd").readlink())
        except OSError:
            continue
        if where.startswith(str(folder)):
            found.append(int(process.name))
    return found


def record(gateway: str, number: int, workload: Workload = FEW, setup: str = "base", **values: Any) -> dict[str, Any]:
    figures = {"cpu_us": 10.0, "calls_per_second": 100.0, "p50_us": 50.0, "p99_us": 90.0, "right": 5}
    kept = {"kind": "measured", "gateway": gateway, "setup": setup, "round": number, "workload": vars(workload)}
    return {**kept, "wrong": 0, "failed": 0, "first_failure": "", **figures, **values}


HEADER = {
    "kind": "run",
    "date": "2026-01-02",
    "machine": "a machine",
    "python": "3.11",
    "rounds": 2,
    "seconds": 1.0,
    "versions": {"truename": "0.1.0", "envoy": "1.40.0", "litellm": ""},
}


def test_a_ratio_compares_within_a_round_and_not_between_rounds() -> None:
    # The machine is ten times as slow in the second round.
    rounds = [("truename", 0, 20.0), ("envoy", 0, 10.0), ("truename", 1, 200.0), ("envoy", 1, 100.0)]
    figures = Figures.of([record(name, number, cpu_us=cost) for name, number, cost in rounds])

    case = Case("truename", "base", FEW)
    assert figures.value(case, "cpu_us") == 110
    assert figures.ratio(case, "cpu_us", "envoy") == 2


def test_a_case_that_envoy_does_not_do_is_compared_with_its_handshake_version_over_http() -> None:
    modern = Workload(connections=2, version=MODERN)
    records = [record("envoy", 0, cpu_us=5.0), record("truename", 0, modern, setup="stdio", cpu_us=20.0)]

    assert Figures.of(records).ratio(Case("truename", "stdio", modern), "cpu_us", "envoy") == 4


def test_a_set_up_over_http_is_compared_with_no_other() -> None:
    records = [record("envoy", 0, cpu_us=5.0), record("truename", 0, setup="servers-300", cpu_us=20.0)]

    assert Figures.of(records).ratio(Case("truename", "servers-300", FEW), "cpu_us", "envoy") is None


def test_a_wrong_answer_makes_a_figure_void_and_so_every_ratio_to_it() -> None:
    records = [
        record("envoy", 0),
        record("envoy", 1, wrong=1, first_failure="200 {}"),
        record("truename", 0),
        record("truename", 1),
    ]
    figures = Figures.of(records)

    assert figures.value(Case("envoy", "base", FEW), "cpu_us") is None
    assert figures.ratio(Case("truename", "base", FEW), "cpu_us", "envoy") is None
    assert "void: 1 wrong or failed answers, as 200 {}" in report.table([HEADER, *records])


def test_the_table_names_every_gateway_that_was_not_measured_with_the_reason() -> None:
    absent = {
        "kind": "absent",
        "gateway": "litellm",
        "setup": "base",
        "round": 0,
        "workload": vars(FEW),
        "reason": "it did not start",
    }
    shown = report.table([HEADER, record("truename", 0), absent])

    assert "not measured: LiteLLM, 1 of 1 cases: it did not start" in shown


def test_the_report_replaces_its_part_of_the_page_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "measurements" / "benchmarks.md").read_text("utf-8") + "\nThe end.\n", "utf-8")
    before = page.read_text("utf-8").partition("## Figures")[0]
    call = Workload()
    records = [HEADER, record("truename", 0, call, cpu_us=123.0), record("envoy", 0, call, cpu_us=61.5)]

    report.write_page([HEADER, record("truename", 0, call, cpu_us=999.0)], tmp_path)
    report.write_page(records, tmp_path)

    text = page.read_text("utf-8")
    assert text.startswith(before)
    assert text.endswith("\nThe end.\n")
    assert "| Truename, defaults | 123 | 2.00 |" in text
    assert "999" not in text
    (plot,) = (tmp_path / "benchmarks").iterdir()
    assert f"(benchmarks/{plot.name})" in text
    assert "Truename, defaults" in plot.read_text("utf-8")


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1.0), (0.01, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)]
)
def test_a_percentile_is_the_smallest_value_that_this_share_does_not_exceed(share: float, expected: float) -> None:
    assert percentile([float(number) for number in range(1, 101)], share) == expected


def test_the_gateways_of_this_project_are_those_whose_wrong_answers_count() -> None:
    assert OURS == ("direct", "truename-off", "truename", "truename-on")
