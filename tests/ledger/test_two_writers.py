"""Several writers of one ledger, in one process and in several: no name is ever given to two tools."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.stories import claim, show
from tests.shared import ROOT
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import LedgerError, UnknownTool
from truename.ledger import open_ledger
from truename.ledger.sql import SCHEMA, check_ledger
from truename.storage import open_database

if TYPE_CHECKING:
    from pathlib import Path

    from truename.naming import NameTable
    from truename.storage import StateLocation

_numbers = count()
TURNS = st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.sampled_from(["a/p", "a/q", "b/p"]))
CLAIMER = """
import sys
from truename import Catalog, project
from truename.ledger import open_ledger
from truename.storage import StateLocation

place, server, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = open_ledger(StateLocation.of(place))
sys.stdin.readline()
for number in range(count):
    # "lead_1" of every server wants the plain name "lead_1": only one may have it.
    catalog = Catalog.from_mcp({server: [f"lead_{n}" for n in range(number + 1)]}, bound=ledger.bindings())
    names = project(catalog, "openai", style="on-conflict", ledger=ledger)
    for id, name in list(names.items())[-1:]:
        print(f"{id} {name}", flush=True)
"""


def claimer(place: StateLocation, server: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CLAIMER, str(place.address), server, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def ended(process: subprocess.Popen[str]) -> list[list[str]]:
    """Return what a process that was killed had printed in whole lines."""
    assert process.stdout is not None
    assert process.stdin is not None
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    process.stdin.close()
    return [line.split() for line in rest.splitlines(keepends=True) if line.count(" ") == 1 and line.endswith("\n")]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.lists(st.sampled_from(["a", "A", "a_1", "x.a", "b"]), unique=True)),
        min_size=2,
        max_size=8,
    )
)
def test_names_of_a_table_mean_the_same_at_every_later_revision(
    place: StateLocation, turns: list[tuple[int, list[str]]]
) -> None:
    server = f"s{next(_numbers)}"
    ledgers = [open_ledger(place), open_ledger(place)]
    tables: list[NameTable] = []
    for writer, tools in turns:
        ledger = ledgers[writer]
        ledger.catch_up()
        catalog = Catalog.from_mcp({server: tools, "other": ["a"]}, bound=ledger.bindings(), owners=ledger.origins())
        tables.append(project(catalog, "openai", style="on-conflict", ledger=ledger))
        for table in tables:
            assert table.revision is not None
            assert table.revision <= (tables[-1].revision or 0)
            for id, name in table.items():
                if id in tables[-1]:
                    assert resolve(name, tables[-1]).id == id
                else:
                    with pytest.raises(UnknownTool):
                        resolve(name, tables[-1])
    for ledger in ledgers:
        ledger.close()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.sampled_from(["a/p", "a/q", "b/p"])), max_size=25)
)
def test_writers_that_take_turns_agree(tmp_path: Path, turns: list[tuple[int, str, str]]) -> None:
    path = tmp_path / f"ledger-{next(_numbers)}"
    writers = [Ledger.open(path) for _ in range(3)]
    owners: dict[str, ToolId] = {}
    for writer, name, id in turns:
        wanted = ToolId.parse(id)
        if owners.setdefault(name, wanted) == wanted:
            writers[writer].record([claim(name, id)])
        else:
            with pytest.raises(LedgerError, match="is held by"):
                writers[writer].record([claim(name, id)])

    for ledger in (*writers, Ledger.open(path)):
        ledger.refresh()
        assert {name: ledger.holder(name) for name in owners} == owners


def test_two_gateways_with_one_ledger_never_show_one_name_for_two_tools(place: StateLocation) -> None:
    one, other = (open_ledger(place) for _ in range(2))

    mine = show(one, "a/get_data", style="on-conflict")
    theirs = show(other, "b/get_data", style="on-conflict")

    assert dict(mine) == {ToolId.parse("a/get_data"): "get_data"}
    assert dict(theirs) == {ToolId.parse("b/get_data"): "b_get_data"}
    with pytest.raises(UnknownTool) as caught:
        resolve("get_data", theirs)
    assert caught.value.reason == "absent"


def test_a_name_that_a_writer_gave_without_the_lock_is_not_given_again(place: StateLocation) -> None:
    ledger = open_ledger(place)
    ledger.record([claim("other", "b/q")])
    insert = (
        "INSERT INTO ledger_holder (scope, fold, first, present, revision) VALUES ('', 'get', 'a@1/p@1', 'a@1/p@1', 1)"
    )
    with closing(open_database(place, SCHEMA)) as data, data.change() as connection:
        # It counts no record: nobody reads the row.
        connection.execute(insert)

    with pytest.raises(LedgerError, match="damaged"):
        ledger.record([claim("get", "b/q")])

    with closing(open_database(place, SCHEMA)) as data:
        assert data.rows("SELECT present FROM ledger_holder WHERE fold = 'get'") == [("a@1/p@1",)]


def test_processes_that_write_at_once_give_no_name_to_two_tools(place: StateLocation) -> None:
    processes = [claimer(place, server, 25) for server in ("a", "b", "c")]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60)[0] for process in processes]

    shown = [line.split() for output in outputs for line in output.splitlines()]
    ledger = open_ledger(place, readonly=True)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(shown) == 75
    assert len({name for _, name in shown}) == 75
    assert all(ledger.holder(name) == ToolId.parse(id) for id, name in shown)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("after", [1, 7, 23])
def test_a_writer_that_is_killed_loses_nothing_that_it_had_shown(place: StateLocation, after: int) -> None:
    process = claimer(place, "a", 100_000)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    shown = [process.stdout.readline().split() for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    rest = process.communicate()[0]
    shown += [line.split() for line in rest.splitlines() if line.count(" ") == 1]

    ledger = open_ledger(place)

    assert process.returncode == -signal.SIGKILL
    assert all(ledger.holder(name) == ToolId.parse(id) for id, name in shown)
    show(ledger, "b/lead_0", style="on-conflict")
    assert open_ledger(place, readonly=True).holder("lead_0") == ToolId.parse("a/lead_0")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("after", [2, 9])
def test_a_writer_that_is_killed_takes_no_name_with_it_while_another_writes(place: StateLocation, after: int) -> None:
    killed, other = claimer(place, "a", 100_000), claimer(place, "b", 30)
    for process in (killed, other):
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert killed.stdout is not None
    shown = [killed.stdout.readline().split() for _ in range(after)]
    os.kill(killed.pid, signal.SIGKILL)
    rest = killed.communicate()[0]
    output = other.communicate(timeout=60)[0]
    shown += [line.split() for line in (*rest.splitlines(), *output.splitlines()) if line.count(" ") == 1]

    ledger = open_ledger(place)
    assert (killed.returncode, other.returncode) == (-signal.SIGKILL, 0)
    assert len({name for _, name in shown}) == len(shown)
    assert all(ledger.holder(name) == ToolId.parse(id) for id, name in shown)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_threads_with_ledgers_of_their_own_give_no_name_to_two_tools(place: StateLocation) -> None:

    def claimed(server: str) -> list[tuple[str, str]]:
        ledger = open_ledger(place)
        try:
            return [
                (str(id), name)
                for number in range(8)
                for id, name in show(ledger, f"{server}/lead_{number}", style="on-conflict").items()
            ]
        finally:
            ledger.close()

    with ThreadPoolExecutor(4) as threads:
        shown = [pair for found in threads.map(claimed, ("a", "b", "c", "d")) for pair in found]
    assert len({name for _, name in shown}) == len(shown) == 32


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_writer_that_is_killed_while_it_has_the_lock_leaves_it_free(place: StateLocation) -> None:
    hold = """
import sys, json
from truename.ledger import open_ledger
from truename.storage import StateLocation
ledger = open_ledger(StateLocation.of(sys.argv[1]))
with ledger.transaction():
    print(json.dumps("locked"), flush=True)
    sys.stdin.readline()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(place.address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == "locked"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()

    show(open_ledger(place), "a/b")

    assert open_ledger(place).holder("a_b") == ToolId.parse("a/b")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_four_that_claim_the_same_names_and_are_killed_at_random_give_no_name_to_two_tools(
    place: StateLocation,
) -> None:
    chance, shown = random.Random(28), list[list[str]]()
    processes = [claimer(place, server, 100_000) for server in "abcd"]
    for _ in range(10):
        for process in processes:
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.write("\n")
                process.stdin.close()
        victim = chance.choice(processes)
        assert victim.stdout is not None
        shown += [victim.stdout.readline().split() for _ in range(chance.randrange(1, 9))]
        os.kill(victim.pid, signal.SIGKILL)
        shown += ended(victim)
        processes.remove(victim)
        processes.append(claimer(place, chance.choice("abcd"), 100_000))
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
        shown += ended(process)

    holders: dict[str, set[str]] = {}
    for id, name in shown:
        holders.setdefault(name, set()).add(id)
    assert len(holders) > 40
    assert {name: ids for name, ids in holders.items() if len(ids) > 1} == {}
    ledger = open_ledger(place, readonly=True)
    assert all(ledger.holder(name) == ToolId.parse(id) for id, name in shown)
    assert check_ledger(place) == ()
