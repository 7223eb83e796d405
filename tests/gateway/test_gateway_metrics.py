"""What machines see of a gateway: metrics with bounded labels, whether it lives, and whether it is ready."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp.shared.exceptions import MCPError

from tests.support.auth_entrance import bearer, known
from tests.support.gateway_metrics import asked, at, samples, scraped, seconds_of
from tests.support.postgresql_server import PostgresqlServer
from tests.support.state_places import new_directory
from truename.catalog import Origin
from truename.config import Config, Settings
from truename.config.audit import Audit
from truename.config.telemetry import Telemetry
from truename.errors import ConfigError
from truename.gateway import Gateway, listening
from truename.gateway.http import probes
from truename.gateway.upstream_errors import unset
from truename.identity import ToolId
from truename.policy.call import CallEvent
from truename.policy.profiles import Profile, Profiles
from truename.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def measured(lab: Lab, *servers: Any, tools: int = 0, **settings: Any) -> AsyncIterator[tuple[Gateway, str]]:
    telemetry = Telemetry(metrics=True, metrics_tools=tools)
    config = Config(
        servers=servers,
        settings=Settings(**{"startup_timeout": 20.0, "style": "prefixed", "telemetry": telemetry, **settings}),
    )
    async with Gateway(config) as gateway, listening(gateway) as address:
        yield gateway, address


async def test_calls_are_counted_by_server_and_by_how_they_ended(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    server = lab.normal("w", "read", "fails", "boom")
    async with measured(lab, server) as (_, address), connect(f"{address}/mcp", era) as client:
        for name in ("w_read", "w_read", "w_fails", "w_nothing"):
            await client.call_tool(name, {})
        with pytest.raises(MCPError):
            await client.call_tool("w_boom", {})
        found = await scraped(address)
    assert at(found, "truename_calls_total", server="w", outcome="ok", code="") == 2
    assert at(found, "truename_calls_total", server="w", outcome="tool_error", code="") == 1
    assert at(found, "truename_calls_total", server="w", outcome="protocol_error", code="-32002") == 1
    assert at(found, "truename_calls_total", server="", outcome="unknown", code="unknown_tool") == 1
    assert seconds_of(found, "tools/call", "w") == 4
    assert at(found, "truename_server_up", server="w") == 1
    assert at(found, "truename_server_tools", server="w") == 3
    assert at(found, "truename_server_starts_total", server="w") == 1
    assert at(found, "truename_server_breaker", server="w") == 0
    assert at(found, "truename_tools") == 3
    assert at(found, "truename_requests_running") == 0
    assert at(found, "truename_sessions") == (1 if era == "legacy" else 0)
    # Names are text of clients and servers.
    assert not {value for _, labels in found for _, value in labels} & {"w_read", "w_nothing", "nothing"}


async def test_a_server_that_is_lost_and_comes_back_is_counted(lab: Lab, connect: Callable[..., Any]) -> None:
    async with measured(lab, lab.normal("w", "die")) as (_, address):
        async with connect(f"{address}/mcp", "legacy") as client:
            await client.call_tool("w_die", {})
        with anyio.fail_after(15):
            while at(found := await scraped(address), "truename_server_starts_total", server="w") != 2:
                await anyio.sleep(0.05)
    assert at(found, "truename_server_losses_total", server="w") == 1


async def test_the_journal_is_seen(lab: Lab, tmp_path: Path) -> None:
    async with measured(lab, lab.normal("w", "read"), audit=Audit(path=str(tmp_path / "audit"))) as (_, address):
        found = await scraped(address)
    assert (at(found, "truename_audit_dropped"), at(found, "truename_audit_ok")) == (0, 1)


async def test_a_journal_that_could_not_be_opened_is_not_well_and_none_is_nothing(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "000001.jsonl").mkdir()
    for audit, well in ((Audit(path=str(tmp_path)), 0), (Audit(), None)):
        async with measured(lab, audit=audit) as (_, address):
            assert at(await scraped(address), "truename_audit_ok") == well


def event(number: int, code: str = "") -> CallEvent:
    id = ToolId.parse(f"w@1/tool{number}@1")
    origin = Origin(server="w", name="x", server_id="w")
    return CallEvent(wire_name=f"x{number}", outcome="ok", began=0.0, seconds=0.1, id=id, origin=origin, code=code)


def test_labels_are_bounded_whatever_servers_say() -> None:
    metrics = Metrics(most_tools=2)
    for number in range(1_000):
        metrics.record_call(event(number, code=str(-number)))
        metrics.record_request(f"x/{number}", 0.1, str(number))
        metrics.record_server_request("w", f"x/{number}", 0.1, f"Fault{number}")
    found = samples(metrics.exposition().decode())
    assert len(found) < 120
    assert seconds_of(found, "_OTHER", "w", "client") == 1_000
    assert at(found, "truename_tool_calls_total", tool="w@1/tool1@1", outcome="ok") == 1
    assert at(found, "truename_tool_calls_total", tool="other", outcome="ok") == 998


def test_a_call_of_a_server_with_an_unset_variable_is_counted_under_its_code() -> None:
    metrics = Metrics()
    metrics.record_call(event(1, code=unset("w", ()).code))
    found = samples(metrics.exposition().decode())
    assert at(found, "truename_calls_total", server="w", outcome="ok", code="variable_unset") == 1


def test_a_servers_key_is_escaped() -> None:
    metrics = Metrics()
    key = 'a"b\\c\nd'
    id = ToolId.parse("w@1/x@1")
    origin = Origin(server=key, name="x", server_id="w")
    metrics.record_call(CallEvent(wire_name="x", outcome="ok", began=0.0, seconds=0.1, id=id, origin=origin))
    found = samples(metrics.exposition().decode())
    assert at(found, "truename_calls_total", server=key, outcome="ok", code="") == 1


async def test_metrics_are_for_those_who_may_come_in(lab: Lab) -> None:
    token = "t" * 40
    async with measured(lab, lab.normal("w", "read"), token=token) as (_, address):
        assert (await asked(address, "/metrics")).status_code == 401
        assert (await scraped(address, authorization=f"Bearer {token}"))[("truename_tools", frozenset())] == 1
        assert (await asked(address, "/metrics", host="evil.example")).status_code == 421
    public = Telemetry(metrics=True, metrics_public=True)
    async with measured(lab, lab.normal("w", "read"), token=token, telemetry=public) as (_, address):
        await scraped(address)
        assert (await asked(address, "/metrics", host="evil.example")).status_code == 421


EVERYBODY = Profiles({"all": Profile(servers=("*",), everyone=True)})


@pytest.mark.parametrize(
    ("profiles", "readers", "read_by"),
    [
        (Profiles(), (), ["ann", "prometheus"]),
        (Profiles(), ("prom*",), ["prometheus"]),
        (EVERYBODY, (), []),
        (EVERYBODY, ("prometheus", "local"), ["prometheus"]),
    ],
)
async def test_where_profiles_hide_servers_metrics_are_for_whom_they_are_meant(
    lab: Lab, profiles: Profiles, readers: tuple[str, ...], read_by: list[str]
) -> None:
    tokens, access = known("ann", "prometheus")
    telemetry = Telemetry(metrics=True, metrics_for=readers)
    settings: dict[str, Any] = {"access": access, "profiles": profiles, "telemetry": telemetry}
    async with measured(lab, lab.normal("w", "read"), **settings) as (_, address):
        answers = {name: await asked(address, "/metrics", **bearer(token)) for name, token in tokens.items()}
    assert [name for name, answer in answers.items() if answer.status_code == 200] == read_by
    for name in tokens.keys() - set(read_by):
        assert (answers[name].status_code, "metrics_for" in answers[name].text) == (403, True)
        assert '"w"' not in answers[name].text


async def test_without_the_setting_there_are_none(lab: Lab) -> None:
    async with measured(lab, lab.normal("w", "read"), telemetry=Telemetry()) as (_, address):
        answer = await asked(address, "/metrics")
    assert (answer.status_code, "telemetry.metrics" in answer.text) == (404, True)


def test_without_the_package_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "truename.telemetry.metrics")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match="prometheus_client is not installed"):
        Gateway(Config(settings=Settings(telemetry=Telemetry(metrics=True))))


async def test_it_lives_and_is_ready_until_it_ends(lab: Lab) -> None:
    async with measured(lab, lab.normal("w", "read"), token="t" * 40) as (gateway, address):
        assert (await asked(address, "/healthz")).json() == {"status": "ok"}
        ready = await asked(address, "/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready", "reasons": []})
        gateway.registry.drain_tracker.close()
        ending = await asked(address, "/readyz")
        assert (ending.status_code, ending.json()["reasons"]) == (503, ["ending"])
        assert (await asked(address, "/healthz")).status_code == 200


async def test_it_takes_calls_for_a_while_after_it_said_that_it_is_ending(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    async with (
        measured(lab, lab.normal("w", "read"), drain_delay=60.0) as (gateway, address),
        anyio.create_task_group() as tasks,
        connect(f"{address}/mcp", era) as client,
    ):
        tasks.start_soon(gateway.drain)
        while (ending := await asked(address, "/readyz")).status_code == 200:
            await checkpoint()
        assert ending.json()["reasons"] == ["ending"]
        assert not (await client.call_tool("w_read", {})).is_error
        tasks.cancel_scope.cancel()


async def test_it_is_not_ready_while_servers_start_and_no_server_is_named(lab: Lab) -> None:
    server = lab.script("hidden-key", "hanging")
    config = Config(servers=(server,), settings=Settings(startup_timeout=20.0))
    async with Gateway(config, wait=0.0) as gateway, listening(gateway) as address:
        answer = await asked(address, "/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["servers are starting"])
    assert "hidden" not in answer.text


async def test_a_server_that_failed_keeps_no_other_from_being_called(lab: Lab) -> None:
    broken = lab.script("b", "dying")
    async with measured(lab, lab.normal("w", "read"), broken) as (_, address):
        assert (await asked(address, "/readyz")).status_code == 200


async def test_it_says_that_the_state_database_does_not_answer_and_is_ready_for_known_names(
    lab: Lab, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "LONGEST_SILENCE", 2.5)
    directory = new_directory()
    server = PostgresqlServer(directory / "server")
    server.create()
    server.start()

    async def warnings(address: str, expected: list[str]) -> None:
        with anyio.fail_after(30):
            while True:
                answer = await asked(address, "/readyz")
                assert (answer.status_code, answer.json()["reasons"]) == (200, [])
                if answer.json().get("warnings", []) == expected:
                    return
                await anyio.sleep(0.05)

    try:
        async with (
            measured(lab, lab.normal("w", "read"), state=server.url) as (_, address),
            connect(f"{address}/mcp", "2026-07-28") as client,
        ):
            await warnings(address, [])
            await anyio.to_thread.run_sync(server.stop)
            await warnings(address, ["the state database does not answer"])
            assert not (await client.call_tool("w_read", {})).is_error
            await anyio.to_thread.run_sync(server.start)
            await warnings(address, [])
    finally:
        server.remove()
        directory.rmdir()


async def test_it_is_not_ready_without_what_it_writes_to(lab: Lab, tmp_path: Path) -> None:
    ledger = tmp_path / "state" / "names.ledger"
    ledger.parent.mkdir()
    audit = Audit(path=str(tmp_path / "audit"), required=True)
    async with measured(lab, lab.normal("w", "read"), state=str(ledger), audit=audit) as (gateway, address):
        assert (await asked(address, "/readyz")).status_code == 200
        ledger.rename(tmp_path / "elsewhere")
        recorder = gateway.audit.recorder
        assert recorder is not None
        await anyio.to_thread.run_sync(recorder.close)
        reasons = (await asked(address, "/readyz")).json()["reasons"]
    assert reasons == ["the state cannot be written", "the audit log cannot be written"]
    assert str(tmp_path) not in str(reasons)
