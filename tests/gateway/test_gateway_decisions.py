"""Decisions in the journal of a gateway that runs: who asked, who decided and how, in one chain with the commands."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest

from tests.gateway.office import ASK, Office, User, ran
from tests.support.gateway_audit import defects, records, until
from tests.support.gateway_metrics import at, samples
from truename.cli import main
from truename.config.audit import Audit
from truename.config.telemetry import Telemetry
from truename.errors import StoreError
from truename.files.user import whoami
from truename.gateway import Gateway, listening
from truename.policy import Approvals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@asynccontextmanager
async def deciding(
    lab: Lab, office: Office, place: Path, *, required: bool = False, **asking: Any
) -> AsyncIterator[tuple[Gateway, str]]:
    settings: dict[str, Any] = {
        "policy": ASK,
        "approvals": office.settings(**asking),
        "state": office.state,
        "audit": Audit(path=str(place), required=required),
        "telemetry": Telemetry(metrics=True),
    }
    async with (
        lab.gateway(lab.normal("fs", "write"), **settings) as gateway,
        listening(gateway) as address,
    ):
        yield gateway, f"{address}/mcp"


def told(place: Path) -> list[Mapping[str, Any]]:
    return records(place, "approval")


def waiting(gateway: Gateway) -> float | None:
    assert gateway.metrics is not None
    return at(samples(gateway.metrics.exposition().decode()), "truename_approvals_waiting")


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(("word", "what"), [("allow once", "granted"), ("deny", "denied")])
async def test_what_a_clients_user_decides_is_in_the_journal_with_the_way_it_came(
    lab: Lab,
    connect: Callable[..., Any],
    era: str,
    office: Office,
    place: Path,
    *,
    word: str,
    what: str,
    required: bool,
) -> None:
    user = User(word)
    async with (
        deciding(lab, office, place, required=required) as (_, address),
        connect(address, era, elicitation_callback=user.elicited) as client,
    ):
        result = await client.call_tool("write", {"text": "hunter2"})
        assert result.is_error == (what == "denied")
    assert defects(place) == []
    # Another gateway may write a tenth of a second later.
    asked, decided = sorted(told(place), key=lambda one: str(one["what"]))
    (grant,) = Approvals.open(office.place).grants()
    assert (asked["what"], asked["who"], asked["tool"], asked["name"]) == ("asked", "local", "fs@1/write@1", "write")
    assert (decided["what"], decided["by"], decided["via"]) == (
        *(what, "the client's user"),
        "elicitation" if era == "legacy" else "multi_round",
    )
    assert (decided["request"], decided["grant"]) == (asked["request"], grant.key)
    begun = [one["what"] for one in records(place, "begin") if one.get("of") == "approval"]
    assert begun == ([what] if required else [])
    # A call says by which decision it was made.
    last = [one for one in records(place, "call") if "grant" in one][-1]
    assert (last["grant"], last["decision"]) == (grant.key, "allow" if what == "granted" else "deny")
    assert "hunter2" not in "".join(file.read_text() for file in place.rglob("*.jsonl"))


async def test_a_command_beside_the_gateway_decides_in_the_same_chain_and_is_told_once(
    lab: Lab, connect: Callable[..., Any], era: str, *, office: Office, place: Path, tmp_path: Path
) -> None:
    source = tmp_path / "truename.toml"
    source.write_text(f'state = "{office.state}"\n[mcpServers.fs]\ncommand = "fs"\n[audit]\npath = "{place}"\n')
    async with (
        deciding(lab, office, place, ask="operator") as (gateway, address),
        connect(address, era) as client,
    ):
        assert not await ran(client, text="x")
        assert not await ran(client, text="x")
        assert waiting(gateway) == 1
        (request,) = office.waiting()
        # What the gateway tells is on the disk a tenth of a second later; what a command does, at once.
        await until(place, "approval", lambda found: len(found) == 1)
        words = ["approvals", "grant", request.key, "--config", str(source)]
        assert await anyio.to_thread.run_sync(main, words) == 0
        assert waiting(gateway) == 0
        assert await ran(client, text="x")
        await until(place, "call", lambda calls: len(calls) == 3)
        assert defects(place) == []
        gateway.audit.look()
    assert [(one["what"], one.get("by"), one.get("via")) for one in told(place)] == [
        ("asked", None, None),
        ("granted", whoami(), "command"),
    ]
    assert defects(place) == []


async def test_a_request_that_is_repeated_at_another_gateway_is_told_once(
    lab: Lab, connect: Callable[..., Any], office: Office, place: Path
) -> None:
    async with (
        deciding(lab, office, place, ask="operator") as (_, here),
        deciding(lab, office, place, ask="operator") as (_, there),
        connect(here, "2026-07-28") as first,
        connect(there, "2026-07-28") as second,
    ):
        for client in (first, second, first):
            assert not await ran(client, text="x")
    assert [one["what"] for one in told(place)] == ["asked"]


async def test_a_request_that_nobody_decides_on_in_time_is_told_once(
    lab: Lab, connect: Callable[..., Any], office: Office, place: Path
) -> None:
    async with (
        deciding(lab, office, place, ask="operator", expiry=0.3) as (gateway, address),
        connect(address, "legacy") as client,
    ):
        assert not await ran(client, text="x")
        office.decides(approved=False, scope="arguments")
        assert not await ran(client, text="y")
        with anyio.fail_after(10):
            while "expired" not in [one["what"] for one in told(place)]:
                gateway.audit.look()
                await anyio.sleep(0.05)
        gateway.audit.look()
        assert waiting(gateway) == 0
    asked, other, expired = told(place)
    # What somebody decided on, whoever wrote it down, did not end that way.
    assert (asked["what"], other["what"], expired["what"]) == ("asked", "asked", "expired")
    assert expired["request"] == other["request"] != asked["request"]


async def test_what_was_decided_for_a_session_ends_with_it_and_that_is_told(
    lab: Lab, connect: Callable[..., Any], office: Office, place: Path
) -> None:
    user = User("allow for this session")
    async with deciding(lab, office, place) as (_, address):
        async with connect(address, "legacy", elicitation_callback=user.elicited) as client:
            assert await ran(client, text="x")
        await until(place, "approval", lambda found: len(found) == 3)
    _, granted, ended = told(place)
    assert (granted["covers"], ended["what"], ended["grant"]) == ("session", "ended", granted["grant"])


async def test_no_word_of_a_client_counts_that_can_not_be_written_down_where_that_is_required(
    lab: Lab, connect: Callable[..., Any], era: str, *, office: Office, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = User("always allow")
    async with (
        deciding(lab, office, place, required=True) as (gateway, address),
        connect(address, era, elicitation_callback=user.elicited) as client,
    ):

        def gone(*_: object) -> None:
            raise StoreError(file=str(place), key="", problem="it is gone", remedy="Look.", code="unusable")

        # Of every gateway that writes there.
        monkeypatch.setattr(type(gateway.audit.recorder), "require", gone)
        result = await client.call_tool("write", {"text": "x"})
        assert result.is_error
        assert str(place) not in result.content[0].text
    assert user.asked
    assert Approvals.open(office.place).grants() == ()
