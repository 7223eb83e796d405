"""Lazy servers: shown by what they listed before, started at the first request, ended when none comes for a while."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import alive
from tests.gateway.shelf import Shelf
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, fetch_catalog, listening
from truename.gateway.upstream import upstream as upstream_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"state": str(tmp_path / "x.ledger"), "start": "lazy", "startup_timeout": 20.0}


def gateway(lab: Lab, settings: dict[str, Any], *servers: ServerConfig) -> Gateway:
    return Gateway(Config(servers=servers, settings=Settings(**settings)), on_event=lab.observe)


def names(running: Gateway) -> list[str]:
    return sorted(running.table().values())


def state(running: Gateway) -> str:
    return running.status().servers[0].state


async def until(found: Callable[[], bool]) -> None:
    with anyio.fail_after(15):
        while not found():
            await anyio.sleep(0.02)


async def learned(lab: Lab, settings: dict[str, Any], *servers: ServerConfig) -> None:
    """Run a gateway once, so that the lists of its servers are kept."""
    async with gateway(lab, settings, *servers):
        lab.events.clear()


async def test_it_is_started_once_to_learn_its_tools_and_then_when_it_is_called(
    lab: Lab,
    settings: dict[str, Any],
    connect: Callable[..., Any],
    said: Callable[[Any], str],
    era: str,
) -> None:
    journal = lab.folder / "journal"
    server = lab.script("j", "journal", str(journal), "note")
    async with gateway(lab, settings, server) as running:
        assert names(running) == ["note"]
        assert state(running) == "ready"
    lab.events.clear()

    async with gateway(lab, settings, server) as running, listening(running) as url:
        assert [event.kind for event in lab.events] == ["resting"]
        assert (names(running), state(running)) == (["note"], "resting")
        async with connect(f"{url}/mcp", era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["note"]
            assert not journal.exists()
            assert said(await client.call_tool("note", {})) == "journal:note"
        assert state(running) == "ready"


async def test_it_is_ended_after_a_while_and_started_again(
    lab: Lab, settings: dict[str, Any], tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    journal = tmp_path / "journal"
    server = lab.script("j", "journal", str(journal), "note", idle_timeout=0.1)
    async with gateway(lab, settings, server) as running, listening(running) as url:
        await until(lambda: state(running) == "resting")
        async with connect(f"{url}/mcp", "2026-07-28") as client:
            for _ in range(2):
                assert said(await client.call_tool("note", {})) == "journal:note"
                await until(lambda: state(running) == "resting")
    first, second = (int(line.split()[1]) for line in journal.read_text().splitlines())
    assert first != second
    assert not alive(first)
    # It never failed and was never lost.
    assert {event.kind for event in lab.events} == {"start", "ready"}


async def test_it_is_not_ended_under_a_call(
    lab: Lab, settings: dict[str, Any], tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    journal, answers = tmp_path / "journal", list[str]()
    server = lab.script("j", "journal", str(journal), "hold", "note", idle_timeout=0.05)
    async with gateway(lab, settings, server) as running, listening(running) as url:
        async with connect(f"{url}/mcp", "2026-07-28") as client, anyio.create_task_group() as tasks:

            async def hold() -> None:
                answers.append(said(await client.call_tool("hold", {})))

            tasks.start_soon(hold)
            await until(journal.exists)
            quiet = anyio.Event()
            with anyio.move_on_after(0.3):
                await quiet.wait()
            assert state(running) == "ready"
            journal.with_suffix(".gate").touch()
        assert answers == ["journal:hold"]
        await until(lambda: state(running) == "resting")


async def test_a_call_waits_for_the_start_as_long_as_a_start_may_take(
    lab: Lab,
    settings: dict[str, Any],
    connect: Callable[..., Any],
    said: Callable[[Any], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upstream_module, "CALL_WAIT", 0.01)
    gate = lab.folder / "gate"
    gate.touch()
    server = lab.script("late", "late", str(gate))
    await learned(lab, settings, server)
    gate.unlink()
    answers: list[str] = []
    async with (
        gateway(lab, settings, server) as running,
        listening(running) as url,
        connect(f"{url}/mcp", "2026-07-28") as client,
        anyio.create_task_group() as tasks,
    ):
        await client.list_tools()

        async def arrive() -> None:
            answers.append(said(await client.call_tool("arrive", {})))

        for _ in range(3):
            tasks.start_soon(arrive)
        await until(lambda: running.registry.pool["late"].running.count == 3)
        gate.touch()
    assert answers == ["late:arrive"] * 3


async def test_one_that_can_not_be_started_says_so_and_is_not_tried_before_it_is_wanted(
    lab: Lab, settings: dict[str, Any], tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    server = lab.normal("w", "get")
    script = tmp_path / "program"
    script.symlink_to(str(server.command))
    server = replace(server, command=str(script))
    await learned(lab, settings, server)
    script.unlink()
    async with (
        gateway(lab, settings, server) as running,
        listening(running) as url,
        connect(f"{url}/mcp", "2026-07-28") as client,
    ):
        refused = await client.call_tool("get", {})
        assert refused.is_error
        assert "is not available now (cannot be started" in said(refused)
        await until(lambda: state(running) == "resting")
        assert [event.kind for event in lab.events] == ["resting", "failed"]
        script.symlink_to(str(lab.normal("w", "get").command))
        assert said(await client.call_tool("get", {})) == "w:get"


async def test_a_list_that_is_another_one_now_is_told(
    lab: Lab, settings: dict[str, Any], tmp_path: Path, connect: Callable[..., Any]
) -> None:
    program = tmp_path / "tools.py"
    heard = anyio.Event()

    async def note(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    def install(*tools: str) -> ServerConfig:
        listed = ", ".join(f"tool({name!r})" for name in tools)
        program.write_text(f"from tests.gateway.servers.fake import Fake, tool\nFake('w', [{listed}]).run()\n")
        server = lab.normal("w")
        return replace(server, args=(str(program),))

    await learned(lab, settings, install("get", "old"))
    server = install("get", "new")
    async with (
        gateway(lab, settings, server) as running,
        listening(running) as url,
        connect(f"{url}/mcp", "legacy", message_handler=note) as client,
    ):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["get", "old"]
        await client.call_tool("get", {})
        with anyio.fail_after(10):
            await heard.wait()
        assert [tool.name for tool in (await client.list_tools()).tools] == ["get", "new"]
    lab.events.clear()
    async with gateway(lab, settings, server) as running:
        assert (names(running), state(running)) == (["get", "new"], "resting")


@pytest.mark.parametrize(
    "change", [{"args": ("-m", "tests.gateway.servers.normal", "w", "put")}, {"env": {"KEY": "2"}}]
)
async def test_another_entry_never_shows_what_one_listed(
    lab: Lab, settings: dict[str, Any], change: dict[str, Any]
) -> None:
    server = lab.normal("w", "get")
    await learned(lab, settings, server)
    other = replace(server, **{**change, "env": {**server.env, **change.get("env", {})}})
    async with gateway(lab, settings, other):
        assert lab.events[0].kind == "start"


async def test_without_a_file_for_the_ledger_nothing_is_kept(lab: Lab, settings: dict[str, Any]) -> None:
    server = lab.normal("w", "get")
    for _ in range(2):
        await learned(lab, {**settings, "state": "memory"}, server)
    async with gateway(lab, {**settings, "state": "memory"}, server):
        assert [event.kind for event in lab.events] == ["start", "ready"]


async def test_what_it_has_beside_tools_is_known_before_it_runs(
    lab: Lab, settings: dict[str, Any], upstreams: Upstreams, connect: Callable[..., Any]
) -> None:
    shelf = Shelf("shelf", prompts=("greet",), uris=("file:///a",))
    async with upstreams.serve(shelf.server) as address:
        server, saying = lab.at("shelf", address), lab.script("say", "instructing", "Be brief.", "x")
        await learned(lab, settings, server, saying)
        shelf.asked.clear()
        async with (
            gateway(lab, settings, server, saying) as running,
            listening(running) as url,
            connect(f"{url}/mcp", "legacy") as client,
        ):
            assert client.session.instructions == "## say\n\nBe brief."
            assert [one.name for one in (await client.list_prompts()).prompts] == ["shelf_greet"]
            assert [str(one.uri) for one in (await client.list_resources()).resources] == ["file:///a"]
            assert client.session.server_capabilities is not None
            assert client.session.server_capabilities.completions is None
            assert not shelf.asked
            await client.read_resource("file:///a")
        assert "resources/read" in shelf.asked


async def test_who_watches_a_resource_keeps_its_server_awake(
    lab: Lab, settings: dict[str, Any], upstreams: Upstreams, connect: Callable[..., Any]
) -> None:
    shelf = Shelf("shelf", uris=("file:///a",))
    async with upstreams.serve(shelf.server) as address:
        server = lab.at("shelf", address, idle_timeout=0.05)
        async with gateway(lab, settings, server) as running, listening(running) as url:
            await until(lambda: state(running) == "resting")
            async with connect(f"{url}/mcp", "legacy") as client:
                await client.subscribe_resource("file:///a")
                assert state(running) == "ready"
                with anyio.move_on_after(0.3):
                    await anyio.Event().wait()
                assert state(running) == "ready"
                await client.unsubscribe_resource("file:///a")
                await until(lambda: state(running) == "resting")


async def test_sessions_have_their_own_of_a_lazy_server(
    lab: Lab, settings: dict[str, Any], tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    journal = tmp_path / "journal"
    server = lab.script("j", "journal", str(journal), "note", isolation="session", idle_timeout=0.05)
    await learned(lab, settings, server)
    async with gateway(lab, settings, server) as running, listening(running) as url:
        for _ in range(2):
            async with connect(f"{url}/mcp", "legacy") as client:
                assert said(await client.call_tool("note", {})) == "journal:note"
        await until(lambda: state(running) == "resting")
    assert len({line.split()[1] for line in journal.read_text().splitlines()}) == 2


async def test_it_may_become_eager_and_lazy_while_the_gateway_runs(lab: Lab, settings: dict[str, Any]) -> None:
    server = lab.normal("w", "get", idle_timeout=0.05)
    await learned(lab, settings, server)
    async with gateway(lab, settings, server) as running:
        config = running.config
        await running.reload(replace(config, servers=(replace(server, start="eager"),)))
        await until(lambda: state(running) == "ready")
        await running.reload(replace(config, servers=(replace(server, start="lazy"),)))
        await until(lambda: state(running) == "resting")


async def test_nothing_ends_it_where_it_may_be_idle_for_ever(lab: Lab, settings: dict[str, Any]) -> None:
    async with gateway(lab, settings, lab.normal("w", "get", idle_timeout=0.0)) as running:
        assert running.registry.pool["w"].idle_limit == 0
        with anyio.move_on_after(0.1):
            await anyio.Event().wait()
        assert state(running) == "ready"


async def test_commands_ask_the_servers_themselves(lab: Lab, settings: dict[str, Any]) -> None:
    server = lab.normal("w", "get")
    await learned(lab, settings, server)
    config = Config(servers=(server,), settings=Settings(**settings))
    assert len(await fetch_catalog(config, lab.observe)) == 1
    assert [event.kind for event in lab.events] == ["start", "ready"]
