"""Several writers of one audit log: each has a chain of its own, and the state database has the end of each."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import ROOT
from tests.support.gateway_audit import fix_time
from truename.audit import (
    AuditLog,
    AuditRecord,
    AuditRecorder,
    CommandAudit,
    HeadKeeper,
    HeadStore,
    StoredHead,
    anchor_file,
    find_old,
    in_order_of_time,
    open_chain,
    prune,
    read_records,
    verify_chains,
)
from truename.audit.chains import host_name
from truename.audit.head import HeadFile, LogHead
from truename.config.audit import Audit
from truename.errors import StoreError
from truename.storage import StateLocation

if TYPE_CHECKING:
    from truename.audit.verification import LogReport

KEY = "k" * 40
# Writes records until it is told to end, or killed; says how many are acknowledged.
WRITER = """
import sys
from truename.audit import AuditRecorder, HeadKeeper, open_chain
from truename.config.audit import Audit
from truename.storage import StateLocation
location, settings, who = StateLocation.of(sys.argv[1]), Audit(path=sys.argv[2]), sys.argv[3]
log, place = open_chain(settings, location)
recorder = AuditRecorder(log)
heads = HeadKeeper(location, None, place, lambda: log.head, lambda: recorder.dropped, every=0.05)
heads.begin(log.require_record)
count = 0
for line in sys.stdin:
    for _ in range(int(line)):
        recorder.written("call", {"who": who, "place": count}).result()
        count += 1
    print(count, heads.behind < 5, flush=True)
recorder.close()
heads.close()
"""


def writer(location: StateLocation, directory: Path, who: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(location.address), str(directory), who]
    return subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{count}\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().split()[0])


def verified(location: StateLocation, directory: Path, key: str | None = None) -> LogReport:
    secret = None if key is None else key.encode()
    store = HeadStore.readable(location, secret)
    assert store is not None
    with closing(store):
        heads = store.all()
    return verify_chains(directory, secret, heads=heads, is_database_known=True)


def told(directory: Path, who: str) -> list[int]:
    return [
        one.body["place"]
        for _, one in in_order_of_time(directory)
        if isinstance(one, AuditRecord) and one.body.get("who") == who
    ]


def test_four_processes_write_at_once_and_one_is_killed(place: StateLocation, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    people = ["ann", "bob", "cy", "dan"]
    processes = [writer(place, directory, who) for who in people]
    try:
        for one in processes:
            tell(one, 1)
            assert hear(one) == 1
        for one in processes:
            tell(one, 50)
        assert [hear(one) for one in processes] == [51] * 4
        processes[0].send_signal(signal.SIGKILL)
        for one in processes:
            one.communicate()
    finally:
        for one in processes:
            one.kill()
    report = verified(place, directory)
    assert report.defects == ()
    assert len(report.chains) == 4
    assert sorted(one.head.state for one in report.chains if one.head) == ["closed", "closed", "closed", "open"]
    # A kill loses the last moment of the head, and no record.
    assert all(one.by and one.proven == one.last.number for one in report.chains)
    assert [told(directory, who) for who in people] == [[*range(51)]] * 4
    # The next writer goes on with the chain of the one that was killed.
    with_next = writer(place, directory, "eve")
    tell(with_next, 3)
    assert hear(with_next) == 3
    with_next.communicate()
    report = verified(place, directory)
    assert (report.defects, len(report.chains), report.elsewhere) == ((), 4, ())
    assert told(directory, "eve") == [0, 1, 2]


def test_machines_that_share_a_state_never_try_the_same_chain(
    place: StateLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for host in ("red.example", "blue"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        log, chain = open_chain(Audit(path=str(tmp_path / host)), place)
        log.close()
        names.append(chain.name)
    assert names == (["", ""] if place.url is None else ["red-example-1", "blue-1"])


class Writer:
    """A writer of one chain in a state file, with a head that is stored when it is asked to."""

    def __init__(self, location: StateLocation, directory: Path, key: str | None = None, max_bytes: int = 4096) -> None:
        settings = Audit(path=str(directory), key=key, max_segment=max_bytes)
        self.log, self.place = open_chain(settings, location)
        secret = None if key is None else key.encode()
        self.heads = HeadKeeper(location, secret, self.place, lambda: self.log.head, lambda: 0, every=3600)
        self.heads.begin(self.log.require_record)

    def write(self, count: int) -> None:
        self.log.append([("call", {"place": number}) for number in range(count)])

    def close(self) -> None:
        self.heads.close()
        self.log.close()


@pytest.fixture
def state(tmp_path: Path) -> StateLocation:
    return StateLocation(tmp_path / "state.db")


@pytest.fixture
def two(state: StateLocation, tmp_path: Path) -> Path:
    """A directory with two chains that ended, of 6 records each, and no anchor of this machine."""
    writers = [Writer(state, tmp_path / "audit") for _ in range(2)]
    for one in writers:
        one.write(5)
    for one in writers:
        one.close()
        one.place.anchor.unlink()
    return tmp_path / "audit"


def second(directory: Path) -> Path:
    return directory / f"{host_name()}-1"


def kinds(report: LogReport) -> list[str]:
    return [one.kind for one in report.defects]


def test_a_chain_that_was_removed_is_missed(two: Path, state: StateLocation) -> None:
    shutil.rmtree(second(two))
    assert kinds(verified(state, two)) == ["truncated"]
    assert kinds(verify_chains(two)) == []


def test_a_directory_that_was_emptied_is_missed(two: Path, state: StateLocation) -> None:
    shutil.rmtree(two)
    two.mkdir()
    assert kinds(verified(state, two)) == ["truncated", "truncated"]


def test_a_chain_that_was_replaced_by_another_is_missed(two: Path, state: StateLocation) -> None:
    shutil.rmtree(second(two))
    with AuditLog(second(two)) as log:
        log.append([("call", {"place": number}) for number in range(5)])
    assert sorted(kinds(verified(state, two))) == ["truncated", "unknown"]


def test_a_chain_that_was_cut_with_its_head_file_is_noticed(two: Path, state: StateLocation) -> None:
    shutil.copytree(second(two), two.parent / "whole")
    shutil.rmtree(second(two))
    with AuditLog(second(two)) as log:
        log.append([("call", {"place": 0})])
    (file,) = second(two).glob("*.jsonl")
    whole = (two.parent / "whole" / file.name).read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(whole[:3]))
    (second(two) / "journal.head").unlink()
    assert "truncated" in kinds(verified(state, two))


@pytest.mark.parametrize("keeps_anchor", [True, False])
def test_a_chain_that_was_cut_is_not_said_to_be_unknown_too(
    two: Path, state: StateLocation, keeps_anchor: bool
) -> None:
    if not keeps_anchor:
        anchor_file(second(two)).unlink(missing_ok=True)
    (file,) = second(two).glob("*.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]))
    (second(two) / "journal.head").unlink()
    found = verified(state, two)
    assert set(kinds(found)) == {"truncated"}
    assert any("which the state database records, is missing" in one.problem for one in found.defects)


def test_a_chain_that_somebody_else_continues_after_its_end_is_noticed(two: Path, state: StateLocation) -> None:
    with AuditLog.beside(second(two)) as log:
        log.append([("call", {"place": 6})])
    assert kinds(verified(state, two)) == ["continued"]
    # Who goes on with the chain says up to which record it was proven.
    writers = [Writer(state, two) for _ in range(2)]
    for one in writers:
        one.write(1)
        one.close()
    found = [one for one in read_records(second(two)) if isinstance(one, AuditRecord)]
    assert [one.body.get("proven") for one in found if one.kind == "segment"] == [None, 6]
    assert kinds(verified(state, two)) == []


def test_a_chain_that_was_put_back_is_not_continued(state: StateLocation, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    for count in (2, 3):
        one = Writer(state, directory)
        one.write(count)
        one.close()
        if count == 2:
            shutil.copytree(directory, tmp_path / "older")
    one.place.anchor.unlink()
    shutil.rmtree(directory)
    shutil.copytree(tmp_path / "older", directory)
    with pytest.raises(StoreError) as refused:
        Writer(state, directory)
    assert refused.value.code == "corrupt"


def test_of_two_processes_on_copies_of_one_chain_the_former_stores_no_more_heads(
    state: StateLocation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Writer(state, tmp_path / "audit")
    one.write(1)
    shutil.copytree(tmp_path / "audit", tmp_path / "copy")
    other = Writer(state, tmp_path / "copy")
    other.write(1)
    one.write(1)
    one.close()
    assert "continues this chain" in caplog.text
    assert one.heads.behind > 0
    other.close()
    assert kinds(verified(state, tmp_path / "copy")) == []
    assert "truncated" in kinds(verified(state, tmp_path / "audit"))


def test_a_row_of_the_database_that_was_changed_without_the_key_is_noticed(
    state: StateLocation, tmp_path: Path
) -> None:
    one = Writer(state, tmp_path / "audit", KEY)
    one.write(3)
    one.close()
    assert kinds(verified(state, tmp_path / "audit", KEY)) == []
    with closing(HeadStore(state, None)) as store:
        (head,) = store.all()
        assert not head.is_genuine
        store.claim(head)
    assert kinds(verified(state, tmp_path / "audit", KEY)) == ["changed"]


def test_chains_of_other_machines_are_named_and_proven_where_they_are(
    state: StateLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in ("red", "blue"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        one = Writer(state, tmp_path / host)
        one.write(2)
        one.close()
    report = verified(state, tmp_path / "red")
    assert (report.defects, [one.host for one in report.elsewhere]) == ((), ["blue"])


def test_records_go_on_while_the_database_is_away(state: StateLocation, tmp_path: Path) -> None:
    one = Writer(state, tmp_path / "audit")
    assert state.path is not None
    state.path.rename(tmp_path / "away.db")
    one.write(3)
    one.heads.close()
    assert one.heads.behind > 0
    (tmp_path / "away.db").rename(tmp_path / "state.db")
    report = verified(state, tmp_path / "audit")
    assert report.defects == ()
    (chain,) = report.chains
    assert (chain.last.number, chain.head and chain.head.number, chain.proven) == (4, 0, 4)
    one.place.anchor.unlink()
    (chain,) = verified(state, tmp_path / "audit").chains
    assert (chain.by, chain.unproven) == ("", 4)
    one.log.close()


def test_a_head_that_was_stored_while_the_database_was_away_is_not_overwritten(
    state: StateLocation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Writer(state, tmp_path / "audit")
    one.write(5)
    one.close()
    one.place.anchor.unlink()
    first = (tmp_path / "audit" / "000001.jsonl").read_bytes().splitlines(keepends=True)
    assert state.path is not None
    state.path.rename(tmp_path / "away.db")
    # An older form of the chain is put back, and a gateway starts that cannot ask the database.
    (tmp_path / "audit" / "000001.jsonl").write_bytes(b"".join(first[:3]))
    found = read_records(tmp_path / "audit")
    third = [one for one in found if isinstance(one, AuditRecord)][-1]
    chain = verified_id(tmp_path / "audit")
    (tmp_path / "audit" / "journal.head").unlink()
    file = HeadFile(tmp_path / "audit", None)
    file.begin(LogHead(chain, third.number, third.hash))
    file.close()
    again = Writer(state, tmp_path / "audit")
    again.write(9)
    assert not state.path.exists()
    (tmp_path / "away.db").replace(state.path)
    again.close()
    assert "is missing from the end, or differs" in caplog.text
    assert "truncated" in kinds(verified(state, tmp_path / "audit"))


def verified_id(directory: Path) -> str:
    (chain,) = verify_chains(directory).chains
    return chain.id


def test_what_a_full_disk_loses_is_counted_in_the_database_too(
    state: StateLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, place = open_chain(Audit(path=str(tmp_path / "audit")), state)
    recorder = AuditRecorder(log, most_waiting=2)
    heads = HeadKeeper(state, None, place, lambda: log.head, lambda: recorder.dropped, every=0.01)
    heads.begin(log.require_record)
    recorder.written("call", {}).result()
    with monkeypatch.context() as broken:

        def full(*_: object) -> None:
            raise StoreError(file="", key="", problem="full", remedy="", code="unusable")

        broken.setattr(log, "append", full)
        for _ in range(7):
            recorder.write("call", {})
        recorder.close()
    heads.close()
    (chain,) = verified(state, tmp_path / "audit").chains
    assert chain.lost == recorder.dropped == 7


def test_a_command_moves_the_head_of_a_gateway_on_and_leaves_it_to_it(place: StateLocation, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    one = Writer(place, directory)
    one.write(1)
    warnings: list[str] = []
    command = CommandAudit(Audit(path=str(directory), required=True), place, warnings.append)
    with command.deciding("approval", [{"what": "granted"}]):
        pass
    assert warnings == []
    one.write(1)
    one.close()
    report = verified(place, directory)
    assert report.defects == ()
    assert [one.name for one in report.chains] == (
        [""] if place.url is None else [f"{host_name()}-1", f"{host_name()}-commands"]
    )
    assert all(chain.proven == chain.last.number for chain in report.chains)


@settings(max_examples=25, deadline=None)
@given(
    turns=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=8),
    harm=st.sampled_from(["none", "cut", "byte", "remove", "swap", "add", "insert"]),
    which=st.integers(0, 2),
    at=st.integers(0, 10_000),
)
def test_any_harm_to_any_chain_is_found_and_nothing_else(
    turns: list[tuple[int, int]], harm: str, which: int, at: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state, directory = StateLocation(Path(folder) / "state.db"), Path(folder) / "audit"
        writers = [Writer(state, directory, max_bytes=600) for _ in range(3)]
        for one in writers:
            one.write(2)
        for who, count in turns:
            writers[who].write(count)
        for one in writers:
            one.close()
            one.place.anchor.unlink()
        _harm(harm, writers[which].place.path, writers[which - 1].place.path, at)
        report = verified(state, directory)
        assert bool(report.defects) == (harm != "none")
        proven = [chain.proven == chain.last.number for chain in report.chains if not chain.broken]
        assert all(proven)


def _harm(harm: str, path: Path, other: Path, at: int) -> None:
    files = sorted(path.glob("*.jsonl"))
    file = files[at % len(files)]
    raw = file.read_bytes()
    match harm:
        case "cut":
            # Whole records off the end, with the head that would tell.
            files[-1].write_bytes(b"".join(files[-1].read_bytes().splitlines(keepends=True)[:-1]))
            (path / "journal.head").unlink()
        case "byte":
            place = at % len(raw)
            file.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        case "remove":
            for one in (*files, path / "journal.head"):
                one.unlink()
        case "swap":
            file.write_bytes((other / "000001.jsonl").read_bytes())
        case "add":
            with AuditLog.beside(path) as log:
                log.append([("call", {})])
        case "insert":
            lines = raw.splitlines(keepends=True)
            lines.insert(at % len(lines), lines[-1])
            file.write_bytes(b"".join(lines))


OLD, NEW = "2026-01-01T00:00:00.000+00:00", "2026-06-01T00:00:00.000+00:00"


def _written(state: StateLocation, directory: Path, times: list[str], key: str | None = None) -> Writer:
    """Return a writer that wrote some records at each of these times, with a file for each."""
    one = Writer(state, directory, key)
    for at in times:
        fix_time(one.log, at)
        one.write(3)
    return one


@pytest.mark.parametrize("key", [None, KEY])
def test_old_records_are_pruned_and_the_others_stay_proven(
    place: StateLocation, tmp_path: Path, key: str | None
) -> None:
    directory, settings = tmp_path / "audit", Audit(path=str(tmp_path / "audit"), key=key)
    secret = None if key is None else key.encode()
    one = _written(place, directory, [OLD, "2026-01-02T00:00:00.000+00:00", NEW], key)
    before = [path.name for path in sorted(one.place.path.glob("*.jsonl"))]
    assert len(before) == 3
    (old,) = find_old(verified(place, directory, key), "2026-03-01", secret)
    assert (old.records, [path.name for path in old.files], old.gone) == (8, before[:2], None)
    # While the gateway runs.
    prune(old, settings, place, {"by": "ann"})
    one.write(2)
    one.close()
    report = verified(place, directory, key)
    assert report.defects == ()
    (chain,) = report.chains
    assert (chain.records, chain.proven) == (chain.last.number - 8, chain.last.number)
    assert find_old(report, "2026-03-01", secret) == ()
    again = Writer(place, directory, key)
    again.write(1)
    again.close()
    assert verified(place, directory, key).defects == ()


def test_a_prune_that_is_killed_can_be_repeated(state: StateLocation, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    one = _written(state, directory, [OLD, "2026-01-02T00:00:00.000+00:00", NEW])
    one.close()
    (old,) = find_old(verified(state, directory), "2026-03-01", None)
    kept = old.files[1].read_bytes()
    prune(old, Audit(path=str(directory)), state, {})
    old.files[1].write_bytes(kept)
    assert verified(state, directory).defects == ()
    (old,) = find_old(verified(state, directory), "2026-03-01", None)
    prune(old, Audit(path=str(directory)), state, {})
    assert verified(state, directory).defects == ()


def test_a_gateway_begins_a_file_each_day_and_a_command_does_not(tmp_path: Path) -> None:
    with AuditLog(tmp_path) as gateway:
        for at in (OLD, OLD, NEW, NEW):
            fix_time(gateway, at)
            gateway.append([("call", {})])
        with AuditLog.beside(tmp_path) as command:
            command.append([("approval", {})])
        gateway.append([("call", {})])
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert [one.defects for one in [verify_chains(tmp_path)]] == [()]


def test_files_that_are_removed_by_hand_are_missed(state: StateLocation, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    one = _written(state, directory, [OLD, "2026-01-02T00:00:00.000+00:00", NEW])
    one.close()
    first, second_file, _ = sorted(directory.glob("*.jsonl"))
    first.unlink()
    assert kinds(verified(state, directory)) == ["order"]
    second_file.unlink()
    assert kinds(verified(state, directory)) == ["order"]


def test_the_chain_of_a_writer_that_is_gone_is_pruned_as_a_whole(place: StateLocation, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    running, gone = Writer(place, directory), _written(place, directory, [OLD])
    running.write(1)
    gone.close()
    (old,) = find_old(verified(place, directory), "2026-03-01", None)
    assert (old.chain.name, old.gone is not None) == (gone.place.name, True)
    prune(old, Audit(path=str(directory)), place, {"by": "ann"})
    assert not gone.place.path.exists()
    running.close()
    report = verified(place, directory)
    assert (report.defects, report.elsewhere) == ((), ())
    pruned = [one for _, one in in_order_of_time(directory) if isinstance(one, AuditRecord) and one.kind == "pruned"]
    assert [(one.body["chain"], one.body["through"]) for one in pruned] == [(gone.place.name, 4)]


def test_records_of_all_chains_come_in_order_of_time(state: StateLocation, tmp_path: Path) -> None:
    writers = [Writer(state, tmp_path / "audit") for _ in range(3)]
    for number in range(12):
        one = writers[number % 3]
        fix_time(one.log, f"2026-01-01T00:00:{number:02}.000+00:00")
        one.log.append([("call", {"place": number})])
    for one in writers:
        one.close()
    found = [(chain, one) for chain, one in in_order_of_time(tmp_path / "audit") if isinstance(one, AuditRecord)]
    assert [one.body["place"] for _, one in found if one.kind == "call"] == [*range(12)]
    assert {chain for chain, _ in found} == {"", f"{host_name()}-1", f"{host_name()}-2"}


def test_a_record_costs_no_round_trip_to_the_database(
    state: StateLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []
    advance = HeadStore.advance

    def counted(self: HeadStore, one: StoredHead) -> StoredHead | None:
        stored.append(one.number)
        return advance(self, one)

    monkeypatch.setattr(HeadStore, "advance", counted)
    log, chain = open_chain(Audit(path=str(tmp_path / "audit")), state)
    with AuditRecorder(log) as recorder:
        heads = HeadKeeper(state, None, chain, lambda: log.head, lambda: 0, every=0.2)
        heads.begin(log.require_record)
        began = time.monotonic()
        for _ in range(200):
            recorder.written("call", {}).result()
        seconds = time.monotonic() - began
    heads.close()
    assert len(stored) <= seconds / 0.2 + 2
    assert stored[-1] == 201


def test_a_head_is_that_of_records_on_the_disk_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AuditLog(tmp_path) as log:
        log.append([("call", {})])
        before = log.head
        with monkeypatch.context() as broken:
            broken.setattr("truename.audit.log.write_whole", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
            with pytest.raises(StoreError):
                log.append([("call", {})])
        assert log.head == before == LogHead(before.journal, 2, before.hash)
