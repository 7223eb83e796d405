"""The journal of a gateway that runs: every call, every decision, every change; or nothing is done."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.support.gateway_audit import defects, records, until
from truename.audit import (
    AuditRecord,
    HeadStore,
    StoredHead,
    anchor_file,
    in_order_of_time,
    read_records,
    verify_chains,
    verify_log,
)
from truename.audit.chains import host_name
from truename.audit.log import AuditLog
from truename.config import Config, Settings
from truename.config.audit import Audit
from truename.config.trust import Trust
from truename.errors import LedgerError, StoreError
from truename.gateway import Gateway, listening
from truename.identity import ToolId
from truename.ledger import Ledger
from truename.policy import read_policy
from truename.storage import StateLocation
from truename.trust import PinStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path

    from tests.gateway.conftest import Lab


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "audit"


pytestmark = pytest.mark.anyio

POLICY = {
    "default": "allow",
    "rules": [
        {"name": "look first", "outcome": "ask", "tools": ["j/write"]},
        {"name": "reading", "outcome": "allow", "tools": ["j/note"]},
    ],
}


@asynccontextmanager
async def audited(
    lab: Lab, place: Path, *servers: Any, state: str | None = None, **audit: Any
) -> AsyncIterator[tuple[Gateway, str]]:
    settings = Settings(
        state=state,
        startup_timeout=20.0,
        policy=read_policy(POLICY),
        audit=Audit(path=str(place), **audit),
        trust=Trust(pins=str(lab.folder / "pins")),
    )
    async with (
        Gateway(Config(servers=servers, settings=settings)) as gateway,
        listening(gateway) as address,
    ):
        yield gateway, address


async def test_who_called_what_and_what_became_of_it_is_written_down(
    lab: Lab, place: Path, connect: Callable[..., Any], era: str, tmp_path: Path
) -> None:
    server = lab.script("j", "journal", str(tmp_path / "ran"), "note", "write")
    async with audited(lab, place, server) as (_, address), connect(f"{address}/mcp", era) as client:
        await client.call_tool("note", {"secret": "hunter2"})
        await client.call_tool("write", {})
        await client.call_tool("nothing", {})
    assert defects(place) == []
    told = [one.kind for _, one in in_order_of_time(place) if isinstance(one, AuditRecord)]
    assert (told[:2], told[-1]) == (["segment", "start"], "stop")
    assert sorted(kind for kind in told if kind in {"call", "approval"}) == ["approval", "call", "call", "call"]
    # Of two gateways one may write a moment later.
    nothing, note, write = sorted(records(place, "call"), key=lambda one: str(one.get("tool", "")))
    assert (note["who"], note["tool"], note["outcome"], note["decision"], note["rule"]) == (
        *("local", "j@1/note@1", "ok", "allow", "reading"),
    )
    assert note["digest"].startswith("sha256:")
    assert (write["tool"], write["outcome"], write["code"], write["decision"]) == (
        *("j@1/write@1", "refused", "approval_required", "ask"),
    )
    assert (nothing["name"], nothing["outcome"], "tool" in nothing) == ("nothing", "unknown", False)
    assert "hunter2" not in "".join(file.read_text() for file in place.rglob("*.jsonl"))


async def test_where_it_is_required_the_intent_is_on_the_disk_before_the_call_is_sent(
    lab: Lab, place: Path, connect: Callable[..., Any], era: str, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    server = lab.script("j", "journal", str(ran), "note", "hold")
    async with (
        audited(lab, place, server, required=True, arguments="redacted") as (_, address),
        connect(f"{address}/mcp", era) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "hold", {"path": "x", "password": "hunter2"})
        while not ran.exists():
            await anyio.sleep(0.02)
        (begun,) = records(place, "begin")
        assert (begun["tool"], begun["arguments"]) == ("j@1/hold@1", {"path": "x", "password": "[redacted]"})
        assert records(place, "call") == []
        ran.with_suffix(".gate").touch()
    (over,) = records(place, "call")
    assert (over["serial"], over["outcome"]) == (begun["serial"], "ok")


async def test_where_a_name_leads_from_now_on_is_written_down_whoever_said_so(
    lab: Lab, place: Path, tmp_path: Path
) -> None:
    server = lab.script("j", "journal", str(tmp_path / "ran"), "note", "write")
    path = tmp_path / "names.ledger"
    Ledger.open(path).redirect("older_note", "j@1/write@1")
    async with audited(lab, place, server, state=str(path)):
        other = Ledger.open(path)
        other.redirect("old_note", "j@1/note@1", until="2027-02-01")
        other.retire("older_note", "note")
        await until(place, "name", lambda found: len(found) >= 2)
    assert sorted(records(place, "name"), key=lambda one: one["name"]) == [
        {"what": "redirected", "name": "old_note", "tool": "j@1/note@1", "until": "2027-02-01"},
        {"what": "retired", "name": "older_note", "successor": "note"},
    ]


@pytest.mark.parametrize("how", ["older", "missing"])
async def test_a_state_that_lacks_changes_that_the_audit_log_knows_of_is_refused(
    lab: Lab, place: Path, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "state" / "state.db"
    async with audited(lab, place, lab.normal("w", "get"), state=str(path)):
        pass
    copy = path.read_bytes()
    async with audited(lab, place, lab.normal("w", "get", "put"), state=str(path)):
        pass
    for file in path.parent.glob("state.db*"):
        if file.is_file():
            file.unlink()
    if how == "older":
        path.write_bytes(copy)
    with pytest.raises(LedgerError, match="but it had") as refused:
        async with audited(lab, place, lab.normal("w", "get"), state=str(path)):
            pass
    assert refused.value.code == "corrupt"
    assert path.exists() is (how == "older")


def break_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: AuditLog, records: Iterable[object]) -> None:
        raise StoreError(file="audit", key="", problem="no space left", remedy="Free some.", code="unusable")

    monkeypatch.setattr(AuditLog, "append", full)


@pytest.mark.parametrize("required", [True, False])
async def test_without_a_disk_nothing_is_done_where_it_is_required_and_all_else_goes_on(
    lab: Lab,
    place: Path,
    connect: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    era: str,
    required: bool,
) -> None:
    ran = tmp_path / "ran"
    server = lab.script("j", "journal", str(ran), "note")
    async with (
        audited(lab, place, server, required=required) as (_, address),
        connect(f"{address}/mcp", era) as client,
    ):
        await client.list_tools()
        with monkeypatch.context() as disk:
            break_disk(disk)
            first, second = [await client.call_tool("note", {}) for _ in range(2)]
        assert (first.is_error, second.is_error) == (required, required)
        if required:
            assert first.meta["dev.truename/error"] == "unrecorded"
            assert str(place) not in first.content[0].text
            assert not ran.exists()
        # It is tried again, and the gateway goes on by itself.
        with anyio.fail_after(15):
            while (await client.call_tool("note", {})).is_error:
                await anyio.sleep(0.05)
    calls = [call["outcome"] for call in records(place, "call")]
    assert "ok" in calls
    assert calls.count("refused") >= (2 if required else 0)
    assert defects(place) == []


async def test_a_client_that_goes_away_while_it_is_written_costs_nobody_the_journal(
    lab: Lab, place: Path, connect: Callable[..., Any], era: str, tmp_path: Path
) -> None:
    server = lab.script("j", "journal", str(tmp_path / "ran"), "note")
    async with audited(lab, place, server, required=True) as (gateway, address):
        kept = gateway.audit.recorder
        assert kept is not None
        for _ in range(20):
            future = kept.written("begin", {"call": "gone"})
            asyncio.wrap_future(future).cancel()
        async with connect(f"{address}/mcp", era) as client:
            assert not (await client.call_tool("note", {})).is_error
    assert [call["outcome"] for call in records(place, "call")] == ["ok"]


@pytest.mark.parametrize("required", [True, False])
async def test_a_journal_that_was_cut_is_never_written_on(
    lab: Lab, place: Path, connect: Callable[..., Any], caplog: pytest.LogCaptureFixture, *, required: bool
) -> None:
    server = lab.normal("w", "read")
    async with audited(lab, place, server):
        pass
    (file,) = place.glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    if required:
        with pytest.raises(StoreError, match="missing from the end"):
            async with audited(lab, place, server, required=True):
                pass
    else:
        async with audited(lab, place, server) as (_, address), connect(f"{address}/mcp", "legacy") as client:
            assert not (await client.call_tool("read", {})).is_error
        assert "Nothing is recorded." in caplog.text
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


async def test_a_second_gateway_on_one_directory_writes_a_chain_of_its_own(lab: Lab, place: Path) -> None:
    for _ in range(2):
        async with (
            audited(lab, place, lab.normal("w", "read"), required=True),
            audited(lab, place, lab.normal("w", "read"), required=True),
        ):
            pass
    report = verify_chains(place)
    assert [one.name for one in report.chains] == ["", f"{host_name()}-1"]
    assert report.defects == ()
    for chain in report.chains:
        kinds = [one.kind for one in read_records(chain.place.path) if isinstance(one, AuditRecord)]
        assert [kind for kind in kinds if kind in {"start", "stop"}] == ["start", "stop"] * 2


async def test_a_gateway_does_not_go_on_a_journal_that_was_put_back(lab: Lab, place: Path, tmp_path: Path) -> None:
    async with audited(lab, place, lab.normal("w", "read")):
        pass
    shutil.copytree(place, tmp_path / "older")
    async with audited(lab, place, lab.normal("w", "read")):
        pass
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "older", place)
    with pytest.raises(StoreError, match="an older copy"):
        async with audited(lab, place, lab.normal("w", "read"), required=True):
            pass
    assert [one.kind for one in verify_log(place, anchor=anchor_file(place))[1]] == ["truncated"]


async def test_another_configuration_is_written_down_and_what_was_refused_without_its_text(
    lab: Lab, place: Path, connect: Callable[..., Any]
) -> None:
    async with audited(lab, place, lab.normal("w", "read")) as (gateway, address):
        now = gateway.config
        kept = replace(now.settings.audit, arguments="redacted", hide=("te*",))
        await gateway.reload(replace(now, settings=replace(now.settings, audit=kept, call_timeout=7.0)))
        moved = replace(now.settings, audit=Audit(path="/elsewhere", key="k" * 40))
        with pytest.raises(ExceptionGroup, match="2 errors"):
            await gateway.reload(replace(now, settings=moved))
        async with connect(f"{address}/mcp", "legacy") as client:
            await client.call_tool("read", {"text": "hunter2", "path": "x"})
    taken, refused = records(place, "configuration")
    assert (taken["what"], taken["changed"]) == ("taken", "audit, call_timeout")
    assert (refused["what"], refused["code"], refused["key"]) == ("refused", "invalid_config", "audit.path")
    assert [call["arguments"] for call in records(place, "call")] == [{"text": "[redacted]", "path": "x"}]


async def test_by_which_text_it_runs_is_written_down_at_the_start_and_when_another_is_taken(
    lab: Lab, place: Path, tmp_path: Path
) -> None:
    path = tmp_path / "truename.toml"
    path.write_text("one")
    settings = Settings(state="memory", audit=Audit(path=str(place)))
    config = Config(path=path, servers=(lab.normal("w", "read"),), settings=settings)
    async with Gateway(config) as gateway:
        path.write_text("another")
        await gateway.reload(replace(config, settings=replace(config.settings, call_timeout=7.0)))
    said = [one["files"] for one in (*records(place, "start"), *records(place, "configuration"))]
    texts = [hashlib.sha256(text).hexdigest() for text in (b"one", b"another")]
    assert said == [f"truename.toml=sha256:{one}" for one in texts]


async def test_what_becomes_of_definitions_is_written_down_and_what_commands_do_is_theirs_to_write(
    lab: Lab, place: Path, tmp_path: Path
) -> None:
    async with audited(lab, place, lab.normal("w", "read", "write")) as (gateway, _):
        with PinStore(tmp_path / "pins") as book:
            read, write = (book.pins()[f"w@1/{name}@1"] for name in ("read", "write"))
            book.note([replace(write, digest="sha256:" + "0" * 64, content=None)], "rejected", by="bob")
            book.trust([read], by="ann")
            book.note([replace(write, digest="sha256:" + "1" * 64, content=None)])
            book.note([replace(write, digest="sha256:" + "2" * 64, content=None)], "rejected")
            newcomer = replace(write, id=ToolId.parse("w@1/new@1"), name="new")
            book.note([newcomer])
            gateway.registry.vetting.book.refresh()
            gateway.audit.look()
            book.trust([replace(read, digest="sha256:" + "3" * 64, content=None)])
            gateway.registry.vetting.book.refresh()
            gateway.audit.look()
    told = [(one["what"], one["tool"]) for one in records(place, "definition") if "tool" in one]
    assert told[:2] == [("pinned", "w@1/read@1"), ("pinned", "w@1/write@1")]
    # What becomes of the tools of others (`w@1/new@1`) is theirs to write, too.
    assert sorted(told[2:]) == [
        *(("blocked", "w@1/write@1"), ("changed", "w@1/read@1")),
        ("quarantined", "w@1/write@1"),
    ]


async def test_who_is_turned_away_at_the_door_is_written_down(lab: Lab, place: Path, raw: Callable[[str], Any]) -> None:
    settings = Settings(token="t" * 40, audit=Audit(path=str(place)))
    config = Config(servers=(lab.normal("w", "read"),), settings=settings)
    async with Gateway(config) as gateway, listening(gateway) as address, raw(address) as http:
        answer = await http.post("tools/list", {}, headers={"authorization": "Bearer hunter2"})
        assert answer.status_code == 401
    (refused,) = records(place, "access")
    assert refused["what"] == "turned_away"
    assert "hunter2" not in str(refused)


async def test_who_starts_and_ends_is_written_down(lab: Lab, place: Path) -> None:
    for _ in range(2):
        async with audited(lab, place, lab.normal("w", "read")):
            pass
    starts = records(place, "start")
    assert [(one["pid"], one["servers"]) for one in starts] == [(os.getpid(), "w")] * 2
    assert len(records(place, "stop")) == 2


async def test_the_head_is_in_the_state_database_and_a_stored_head_is_no_news(
    lab: Lab, place: Path, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    state = tmp_path / "state.db"
    async with audited(lab, place, lab.normal("w", "read"), state=str(state), required=True) as (gateway, address):
        async with connect(f"{address}/mcp", "legacy") as client:
            await client.call_tool("read", {})
        gateway.audit.look()
        await written(gateway)
        before = records(place, "state")
        with anyio.fail_after(20):
            while len(heads := stored(state)) != 1 or heads[0].number < len(records(place)):
                await anyio.sleep(0.02)
        for _ in range(3):
            with closing(HeadStore(StateLocation(state), None)) as store:
                store.claim(replace(heads[0], lost=7))
            gateway.audit.look()
        await written(gateway)
        assert records(place, "state") == before
    (head,) = stored(state)
    assert (head.state, head.path) == ("closed", str(place))
    assert verify_chains(place, heads=[head], is_database_known=True).chains[0].by == "database"


async def written(gateway: Gateway) -> None:
    """Wait until all that was recorded so far is on the disk."""
    await asyncio.wrap_future(gateway.audit.require().written("access", {"what": "asked"}))


def stored(state: Path) -> tuple[StoredHead, ...]:
    store = HeadStore.readable(StateLocation(state), None)
    if store is None:
        return ()
    with closing(store):
        return store.all()
