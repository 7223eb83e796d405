"""Which sessions go on: those that were used in time and not ended, whatever happened to the gateway meanwhile."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.gateway_session_ids import ANN, agreed, hello
from tests.support.state_places import new_place
from truename.errors import StoreError
from truename.gateway.http.session_ids import SessionIds
from truename.gateway.http.session_record import SCHEMA, SessionRecord
from truename.storage import open_database

if TYPE_CHECKING:
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio

LASTS = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A record whose process ends and is started again."""

    def __init__(self, path: StateLocation | Path | None, most: int = 100) -> None:
        self.path, self.most, self.clock = path, most, Clock()
        self.record = self.start()

    def start(self, lasts: float = LASTS) -> SessionRecord:
        self.record = SessionRecord(self.path, lasts, clock=self.clock, most=self.most)
        return self.record

    def begin(self) -> str:
        return self.record.issue(ANN, agreed(hello()))

    async def is_good(self, id: str) -> bool:
        return await self.record.good(ANN, id) is not None


@pytest.fixture
def bench(place: StateLocation) -> Bench:
    return Bench(place)


@pytest.fixture
def file_bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "sessions.db")


@pytest.mark.parametrize(
    ("used", "now", "expected"),
    [
        ((), 59.0, True),
        ((), 60.0, False),
        ((50.0,), 100.0, True),
        ((50.0,), 109.0, True),
        ((50.0,), 110.0, False),
        ((50.0, 100.0, 150.0), 209.0, True),
        ((50.0, 100.0, 150.0), 210.0, False),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_session_lasts_as_long_as_it_is_used(
    bench: Bench, used: tuple[float, ...], now: float, expected: bool, restarted: bool
) -> None:
    id = bench.begin()
    for at in used:
        bench.clock.now = 1_000.0 + at
        bench.record.use(id)
        await bench.record.write()
    if restarted:
        bench.start()
    bench.clock.now = 1_000.0 + now
    assert await bench.is_good(id) is expected


async def test_what_is_not_written_yet_counts_too(bench: Bench) -> None:
    id = bench.begin()
    bench.clock.now += 50
    bench.record.use(id)
    bench.clock.now += 50
    assert await bench.is_good(id)


async def test_a_shorter_timeout_holds_for_old_sessions_and_a_longer_one_brings_none_back(bench: Bench) -> None:
    id = bench.begin()
    bench.clock.now += 30
    bench.start(lasts=20.0)
    assert not await bench.is_good(id)
    bench.clock.now += 60
    bench.start(lasts=1_000.0)
    assert not await bench.is_good(id)


@pytest.mark.parametrize("used", [False, True])
async def test_an_ended_session_stays_ended(bench: Bench, used: bool) -> None:
    id, other = bench.begin(), bench.begin()
    bench.clock.now += 50
    for one in (id, other):
        bench.record.use(one)
    await bench.record.write()
    await bench.record.end(ANN, id)
    if used:
        # Its stream, say, was seen to be closed a moment later.
        bench.record.use(id)
        await bench.record.write()
    for _ in range(10):
        assert not await bench.is_good(id)
        assert await bench.is_good(other)
        bench.clock.now += 10
        bench.record.use(other)
        await bench.record.write()
        bench.start()


async def test_what_is_no_session_is_not_noted_as_ended(file_bench: Bench, tmp_path: Path) -> None:
    id = file_bench.begin()
    await file_bench.record.end("bob at /mcp", id)
    await file_bench.record.end(ANN, "x" * 300)
    assert await file_bench.is_good(id)
    assert _count(tmp_path, "ended") == 0


async def test_of_too_many_ended_sessions_the_oldest_are_forgotten_and_none_of_them_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "sessions.db", most=3)
    kept, unused = bench.begin(), bench.begin()
    bench.record.use(kept)
    await bench.record.write()
    ended = []
    for _ in range(6):
        bench.clock.now += 1
        ended.append(bench.begin())
        await bench.record.end(ANN, ended[-1])
    assert _count(tmp_path, "ended") <= 3
    bench.start()
    assert [await bench.is_good(id) for id in ended] == [False] * 6
    assert await bench.is_good(kept)
    # It could be one of those that were forgotten.
    assert not await bench.is_good(unused)
    assert await bench.is_good(bench.begin())


async def test_without_its_file_no_session_goes_on(file_bench: Bench) -> None:
    id = file_bench.begin()
    assert isinstance(file_bench.path, Path)
    file_bench.record.close()
    file_bench.path.unlink()
    file_bench.path.with_name(f"{file_bench.path.name}.revision").unlink()
    file_bench.start()
    assert not await file_bench.is_good(id)


async def test_what_is_kept_grows_with_the_sessions_in_use_only(file_bench: Bench, tmp_path: Path) -> None:
    for _ in range(20):
        id = file_bench.begin()
        file_bench.record.use(id)
        await file_bench.record.write()
        file_bench.clock.now += LASTS / 2
        await file_bench.record.end(ANN, id)
    assert _count(tmp_path, "used") <= 3
    assert _count(tmp_path, "ended") <= 3


async def test_two_gateways_on_one_state_know_each_others_sessions(file_bench: Bench) -> None:
    id, other = file_bench.begin(), file_bench.begin()
    second = SessionRecord(file_bench.path, LASTS, clock=file_bench.clock)
    assert await second.good(ANN, id) is not None
    await file_bench.record.end(ANN, id)
    assert await second.good(ANN, id) is None
    assert await second.good(ANN, other) is not None


@pytest.mark.parametrize("content", [b"x" * 2_000, b"SQLite"])
def test_a_file_that_cannot_be_used_is_left_alone_and_nothing_outlives_the_process(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(content)
    with pytest.raises(StoreError):
        SessionRecord(path, LASTS)
    SessionRecord.opened(path, LASTS).issue(ANN, None)
    assert path.read_bytes() == content
    assert "Sessions will not survive a restart" in caplog.text


def test_a_file_with_another_key_than_one_is_refused(file_bench: Bench) -> None:
    assert isinstance(file_bench.path, Path)
    file_bench.record.close()
    for keys in ([b"short"], [bytes(32), bytes(32)], ["x" * 32]):
        with closing(sqlite3.connect(file_bench.path)) as data, data:
            data.execute("DELETE FROM session_key")
            data.executemany("INSERT INTO session_key VALUES (?)", [(key,) for key in keys])
        with pytest.raises(StoreError, match="key"):
            file_bench.start()


async def test_a_key_that_an_earlier_version_kept_as_it_is_is_kept_encrypted(place: StateLocation) -> None:
    key = b"k" * 32
    with closing(open_database(place, SCHEMA)) as data, data.change() as change:
        change.execute("INSERT INTO session_key (key) VALUES (?)", (key,))
    bench = Bench(place)
    id = bench.begin()
    assert SessionIds(key).open(ANN, id) is not None
    with closing(open_database(place, SCHEMA)) as data:
        assert data.rows("SELECT key FROM session_key") == []
    if place.path is not None:
        assert key not in place.path.read_bytes()
    bench.start()
    assert await bench.is_good(id)


def test_gateways_with_two_keys_do_not_share_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
    with new_place() as place:
        monkeypatch.setenv("TRUENAME_VAULT_KEY", first)
        SessionRecord.opened(place, LASTS).close()
        monkeypatch.setenv("TRUENAME_VAULT_KEY", second)
        with pytest.raises(StoreError, match="the same on every machine"):
            SessionRecord.opened(place, LASTS)


async def test_what_cannot_be_written_is_written_later_and_holds_meanwhile(
    file_bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    id, other = file_bench.begin(), file_bench.begin()
    assert isinstance(file_bench.path, Path)
    with closing(sqlite3.connect(file_bench.path)) as data:
        (made,) = data.execute("SELECT sql FROM sqlite_master WHERE name = 'session_ended'").fetchone()
        data.execute("DROP TABLE session_ended")
        file_bench.record.use(other)
        await file_bench.record.end(ANN, id)
        assert "Cannot record which sessions" in caplog.text
        # Nor can it be looked up.
        with pytest.raises(StoreError):
            await file_bench.is_good(other)
        data.execute(made)
    assert not await file_bench.is_good(id)
    assert await file_bench.is_good(other)
    await file_bench.record.write()
    file_bench.start()
    assert not await file_bench.is_good(id)


def _count(folder: Path, table: str) -> int:
    with closing(sqlite3.connect(folder / "sessions.db")) as data:
        (found,) = data.execute(f"SELECT count(*) FROM session_{table}").fetchone()
    return int(found)
