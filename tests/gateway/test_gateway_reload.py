"""Another configuration while the gateway runs: taken whole or not at all, and no call is dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import alive
from tests.gateway.reloads import another, names, pids, until
from tests.gateway.shelf import Shelf
from truename.errors import ConfigError, UnknownTool
from truename.gateway import Reloaded, UnknownView, listening
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def test_what_comes_goes_and_stays(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str], era: str
) -> None:
    journal = tmp_path / "journal"
    stays, goes = lab.script("s", "journal", str(journal), "note"), lab.normal("g", "get")
    async with lab.gateway(stays, goes) as gateway, listening(gateway) as url, connect(f"{url}/mcp", era) as client:
        assert said(await client.call_tool("g_get", {})) == "g:get"
        await client.call_tool("s_note", {})

        changed = await gateway.reload(another(gateway, lab.normal("c", "get"), stays))
        await gateway.settle()

        assert changed == Reloaded(added=("c",), removed=("g",))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["s_note", "c_get"]
        assert said(await client.call_tool("c_get", {})) == "c:get"
        await client.call_tool("s_note", {})
        refused = await client.call_tool("g_get", {})
    assert refused.is_error
    assert refused.meta is not None
    assert refused.meta["dev.truename/error"] == UnknownTool(text="").code
    first, second = pids(journal)
    assert first == second


async def test_calls_that_run_end_where_they_began(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str], era: str
) -> None:
    old, new, results = tmp_path / "old", tmp_path / "new", dict[str, str]()

    async with (
        lab.gateway(lab.script("j", "journal", str(old), "hold", "note")) as gateway,
        listening(gateway) as url,
        connect(f"{url}/mcp", era) as client,
    ):

        async def hold() -> None:
            results["hold"] = said(await client.call_tool("j_hold", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await until(old.exists)
            changed = await gateway.reload(another(gateway, lab.script("j", "journal", str(new), "hold", "note")))
            await gateway.settle()
            assert changed == Reloaded(changed=("j",))
            assert not results

            assert said(await client.call_tool("j_note", {})) == "journal:note"
            assert new.read_text().startswith("note ")
            assert alive(pids(old)[0])
            old.with_suffix(".gate").touch()
    assert results == {"hold": "journal:hold"}
    assert old.read_text().count("\n") == new.read_text().count("\n") == 1


async def test_the_old_program_ends_when_its_last_call_has(lab: Lab, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    async with lab.gateway(lab.script("f", "family", str(old))) as gateway:
        await gateway.reload(another(gateway, lab.script("f", "family", str(new))))
        await gateway.settle()
        await until(lambda: not alive(int(old.read_text())))
        assert alive(int(new.read_text()))


async def test_a_call_has_no_more_time_there_than_draining_gives(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    old, results = tmp_path / "old", list[Any]()
    async with (
        lab.gateway(lab.script("j", "journal", str(old), "wait"), drain_timeout=0.2) as gateway,
        listening(gateway) as url,
        connect(f"{url}/mcp", "legacy") as client,
    ):

        async def wait() -> None:
            results.append(await client.call_tool("j_wait", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await until(old.exists)
            await gateway.reload(another(gateway, lab.normal("w", "get")))
    assert results[0].is_error
    assert "it took effect is unknown" in results[0].content[0].text.replace("the call", "it")


async def test_an_old_server_serves_until_its_successor_is_ready(lab: Lab, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with lab.gateway(lab.normal("w", "get")) as gateway:
        await gateway.reload(another(gateway, lab.script("w", "late", str(gate))))
        assert names(gateway) == ["get"]
        gate.touch()
        await gateway.settle()
        assert names(gateway) == ["arrive"]


async def test_a_successor_that_fails_is_as_at_the_start(lab: Lab) -> None:
    good = lab.normal("w", "get")
    async with lab.gateway(good) as gateway:
        await gateway.reload(another(gateway, replace(good, command="no-such-program")))
        await gateway.settle()
        assert names(gateway) == []
        assert gateway.status().servers[0].state == "failed"
        await gateway.reload(another(gateway, good))
        await gateway.settle()
        assert names(gateway) == ["get"]


async def test_changes_in_quick_succession_leave_the_last(lab: Lab, tmp_path: Path) -> None:
    first, third = lab.script("w", "journal", str(tmp_path / "a"), "note"), lab.normal("w", "put")
    never, nor_this = (lab.script("w", "late", str(tmp_path / name)) for name in ("never", "nor this"))
    async with lab.gateway(first) as gateway:
        for server in (never, nor_this, first):
            await gateway.reload(another(gateway, server))
        await gateway.settle()
        assert names(gateway) == ["note"]
        # Nobody else was ever ready, and nobody waited for those in between.
        assert [event.server for event in lab.events if event.kind == "ready"] == ["w"]

        await gateway.reload(another(gateway, never))
        await gateway.reload(another(gateway, replace(never, max_waiting=3)))
        await gateway.reload(another(gateway, third))
        await gateway.settle()
        assert names(gateway) == ["put"]


async def test_a_server_that_was_to_come_may_go_before_it_did(lab: Lab, tmp_path: Path) -> None:
    other = lab.normal("o", "get")
    async with lab.gateway(lab.normal("w", "get"), other) as gateway:
        await gateway.reload(another(gateway, lab.script("w", "late", str(tmp_path / "never")), other))
        await gateway.reload(another(gateway, other))
        await gateway.settle()
        assert list(gateway.registry.pool) == ["o"]


async def test_limits_count_without_another_connection(lab: Lab, tmp_path: Path, connect: Callable[..., Any]) -> None:
    journal = tmp_path / "journal"
    server = lab.script("j", "journal", str(journal), "note", "wait")
    async with lab.gateway(server) as gateway, listening(gateway) as url, connect(f"{url}/mcp", "legacy") as client:
        await client.call_tool("note", {})
        changed = await gateway.reload(another(gateway, replace(server, tool_timeouts={"wait": 0.05}), max_tools=3))
        assert changed == Reloaded(changed=("j",), settings=("max_tools",))
        refused = await client.call_tool("wait", {})
    assert "did not answer within 0.05 seconds" in refused.content[0].text
    assert len(set(pids(journal))) == 1


async def test_rules_and_contexts_count_at_once(lab: Lab, raw: Callable[[str], Any]) -> None:
    deny = read_policy({"rules": [{"outcome": "deny", "tools": ["w/get"]}]})
    async with lab.gateway(lab.normal("w", "get", "put")) as gateway, listening(gateway) as url, raw(url) as http:
        assert not (await http.result("tools/call", {"name": "get", "arguments": {}})).get("isError")
        assert (await http.post("tools/list", {}, path="/mcp/in/phone")).status_code == 404

        contexts = {"phone": replace(gateway.config.settings.context, platform="ios")}
        changed = await gateway.reload(another(gateway, policy=deny, contexts=contexts, protocol="0.3"))

        assert changed.settings == ("protocol", "policy", "contexts")
        assert (await http.result("tools/call", {"name": "get", "arguments": {}}))["isError"]
        page = await http.result("tools/list", {}, path="/mcp/in/phone")
        assert [tool["name"] for tool in page["tools"]] == ["put"]
        assert page["_meta"]["dev.truename/protocol"] == "0.3"
        page = await http.result("tools/list", {})
        assert page["_meta"]["dev.truename/protocol"] == "0.3"


async def test_another_token_is_asked_for_at_once(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.gateway(lab.normal("w", "get"), token="old") as gateway, listening(gateway) as url, raw(url) as http:
        await gateway.reload(another(gateway, token="new"))
        answers = {
            token: (await http.post("tools/list", {}, headers={"authorization": f"Bearer {token}"})).status_code
            for token in ("old", "new")
        }
    assert answers == {"old": 401, "new": 200}


async def test_clients_are_told_of_lists_that_changed_and_of_no_others(
    lab: Lab, connect: Callable[..., Any], era: str
) -> None:
    told: list[str] = []
    heard, following = anyio.Event(), anyio.Event()

    async def note(message: Any) -> None:
        if (kind := getattr(message, "method", "")) == "notifications/tools/list_changed":
            told.append(kind)
            heard.set()

    one, two = lab.normal("one", "get"), lab.normal("two", "get")
    async with (
        lab.gateway(one, two) as gateway,
        listening(gateway) as url,
        connect(f"{url}/mcp/only/one", era, message_handler=note) as client,
    ):
        await client.list_tools()
        listening_ = client.listen(tools_list_changed=True) if era != "legacy" else None
        async with anyio.create_task_group() as tasks:
            if listening_ is not None:

                async def follow() -> None:
                    async with listening_ as events:
                        following.set()
                        async for _ in events:
                            heard.set()

                tasks.start_soon(follow)
                await following.wait()
            await gateway.reload(another(gateway, one, call_timeout=7.0))
            await gateway.reload(another(gateway, one, two, names_in_texts=False))
            await gateway.settle()
            assert not told
            await gateway.reload(another(gateway, lab.normal("one", "get", "put")))
            with anyio.fail_after(10):
                await heard.wait()
            tasks.cancel_scope.cancel()
    assert len(told) == 1


async def test_the_order_is_the_configurations(lab: Lab) -> None:
    one, two = lab.normal("one", "get"), lab.normal("two", "get")
    async with lab.gateway(one, two) as gateway:
        changed = await gateway.reload(another(gateway, two, one))
        assert changed == Reloaded(moved=True)
        assert str(changed) == "the order"
        assert list(gateway.registry.pool) == ["two", "one"]


async def test_what_is_known_of_a_server_outlives_changes_that_are_not_of_its_limits(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get")) as gateway:
        calls = gateway.registry.pool["w"]._calls
        await gateway.reload(another(gateway, max_tools=7, names_in_texts=False))
        assert gateway.registry.pool["w"]._calls is calls
        await gateway.reload(another(gateway, breaker_failures=7))
        assert gateway.registry.pool["w"]._calls is not calls


async def test_a_path_of_a_server_that_went_leads_nowhere(lab: Lab) -> None:
    one, two = lab.normal("one", "get"), lab.normal("two", "get")
    async with lab.gateway(one, two) as gateway:
        gateway.endpoint("/mcp/only/two")
        await gateway.reload(another(gateway, one))
        with pytest.raises(UnknownView):
            gateway.endpoint("/mcp/only/two")


@pytest.mark.parametrize("refuses", ["stateless", "handshake"])
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_who_watches_a_resource_goes_on_at_the_successor(
    lab: Lab, upstreams: Upstreams, connect: Callable[..., Any], refuses: str
) -> None:
    shelf, told, heard = Shelf("shelf", uris=("test://x",), refuses=refuses), list[str](), anyio.Event()

    async def note(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            told.append(str(message.params.uri))
            heard.set()

    async with (
        upstreams.serve(shelf.server) as address,
        lab.gateway(lab.at("shelf", address)) as gateway,
        listening(gateway) as url,
        connect(f"{url}/mcp", "legacy", message_handler=note) as client,
    ):
        await client.subscribe_resource("test://x")
        old = gateway.registry.pool["shelf"]
        await gateway.reload(another(gateway, lab.at("shelf", address, headers={"x-key": "2"})))
        await gateway.settle()
        assert gateway.registry.pool["shelf"] is not old
        # One more for the lists, where they are followed by streams.
        how, times = ("resources/subscribe", 2) if refuses == "stateless" else ("subscriptions/listen", 4)
        await until(lambda: shelf.asked.count(how) >= times)
        with anyio.fail_after(15):
            while not heard.is_set():
                await shelf.update("test://x")
                with anyio.move_on_after(0.05):
                    await heard.wait()
        await client.unsubscribe_resource("test://x")
        assert not gateway.registry.pool["shelf"].follower.watches
    assert set(told) == {"test://x"}


async def test_recording_goes_on_by_the_new_rules(lab: Lab, tmp_path: Path, connect: Callable[..., Any]) -> None:
    recording = tmp_path / "calls.jsonl"
    settings: dict[str, Any] = {"recording": str(recording), "metadata": {"w/get": {"is_recordable": False}}}
    async with (
        lab.gateway(lab.normal("w", "get"), **settings) as gateway,
        listening(gateway) as url,
        connect(f"{url}/mcp", "legacy") as client,
    ):
        await client.call_tool("get", {})
        assert not recording.read_text()
        await gateway.reload(another(gateway, metadata={}))
        await client.call_tool("get", {})
        assert recording.read_text().count("\n") == 1
        with pytest.raises(ConfigError, match="recording: it cannot change"):
            await gateway.reload(another(gateway, recording=None))


async def test_many_clients_call_across_many_changes_and_no_call_is_lost(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    server, stays, over = lab.normal("w", "get"), lab.normal("s", "get"), anyio.Event()
    answers: list[str] = []

    async def calls(url: str, era: str) -> None:
        async with connect(url, era) as client:
            while not over.is_set():
                answers.extend([said(await client.call_tool(name, {})) for name in ("w_get", "s_get")])

    async with lab.gateway(server, stays) as gateway, listening(gateway) as url, anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(calls, f"{url}/mcp", ("legacy", "2026-07-28")[number % 2])
        for number in range(8):
            changed = await gateway.reload(
                another(gateway, replace(server, env={**server.env, "N": str(number)}), stays)
            )
            assert changed.changed == ("w",)
            if number % 3:
                await gateway.settle()
            else:
                seen = len(answers)
                await until(lambda seen=seen: len(answers) > seen)  # type: ignore[misc]  # its default
        over.set()
    assert set(answers) == {"w:get", "s:get"}
