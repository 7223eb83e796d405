"""One ledger, several writers: gateways beside each other, and an operator while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.reloads import until
from truename.gateway import Gateway, listening
from truename.ledger import Ledger, LedgerSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


async def _call(client: Client, name: str) -> str:
    result = await client.call_tool(name, {})
    return "\n".join(getattr(block, "text", "") for block in result.content)


def _names(gateway: Gateway) -> dict[str, str]:
    return {str(id): name for id, name in gateway.table().items()}


async def test_after_the_gateway_the_whole_state_is_in_one_file(lab: Lab, connect: Callable[..., Any]) -> None:
    path = lab.folder / "state" / "state.db"
    async with (
        lab.gateway(lab.normal("w", "get"), state=str(path)) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        assert await _call(client, "get") == "w:get"

    # SQLite removes its log when the last connection of the last owner is closed.
    assert sorted(found.name for found in path.parent.iterdir()) == ["state.db", "state.db.keys", "state.db.revision"]


async def test_two_gateways_never_give_one_id_to_two_tools(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    async with (
        lab.gateway(lab.normal("my app", "get"), ledger=Ledger.open(path)) as one,
        lab.gateway(lab.normal("my-app", "get"), lab.normal("w", "set"), ledger=Ledger.open(path)) as two,
    ):
        first, second = _names(one), _names(two)

    assert not first.keys() & second.keys()
    assert not set(first.values()) & set(second.values())
    assert Ledger.open(path, readonly=True).bindings()["my-app", "get"] in {*two.catalog}


async def test_ids_that_fold_together_are_told_apart_by_the_gateway_that_comes_later(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    async with (
        lab.gateway(lab.normal("w", "Get"), ledger=Ledger.open(path)) as one,
        lab.gateway(lab.normal("w", "get", "Get"), ledger=Ledger.open(path)) as two,
    ):
        (id,) = one.catalog
        assert two.catalog[id].origin.name == "Get"
        assert len(two.catalog) == 2


async def test_a_gateway_sees_what_another_claims_before_it_resolves(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    path = tmp_path / "names.ledger"
    async with (
        lab.gateway(lab.normal("w", "get"), style="prefixed", ledger=Ledger.open(path)) as one,
        listening(one) as address,
        connect(address + "/mcp", "legacy") as client,
        lab.gateway(lab.normal("v", "look"), style="prefixed", ledger=Ledger.open(path)),
    ):
        assert "v@1/look@1, which is not available now" in await _call(client, "v_look")
        assert await _call(client, "w_get") == "w:get"


async def test_names_that_an_operator_retires_or_redirects_count_at_once(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    path = tmp_path / "names.ledger"
    server = lab.normal("w", "get", "set")
    async with (
        lab.gateway(server, ledger=Ledger.open(path)) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        assert await _call(client, "get") == "w:get"

        Ledger.open(path).redirect("fetch", "set")
        assert await _call(client, "fetch") == "w:set"

        Ledger.open(path).retire("get", "set")
        assert "'get' was retired" in await _call(client, "get")
        listed = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
        assert "get" not in listed
        assert len(listed) == 2


async def test_names_that_are_made_otherwise_from_now_on_are_taken_over(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    path = tmp_path / "names.ledger"
    servers = lab.normal("w", "get"), lab.normal("v", "get")
    async with (
        lab.gateway(*servers, ledger=Ledger.open(path)) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy") as client,
        connect(address + "/mcp/only/w", "legacy") as alone,
    ):
        assert list(_names(gateway).values()) == ["w_get", "v_get"]
        assert await _call(alone, "get") == "w:get"
        Ledger.open(path).restyle(LedgerSettings(style="prefixed", server_name="lab", aliases={"w": "weather"}))

        listed = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
        assert listed == ["weather_get", "v_get"]
        assert (
            await _call(client, "weather_get") == await _call(client, "w_get") == await _call(alone, "get") == "w:get"
        )
    async with lab.gateway(*servers, ledger=Ledger.open(path)) as gateway:
        assert list(_names(gateway).values()) == ["weather_get", "v_get"]


async def test_what_the_configuration_sets_stays_until_a_restart_and_is_told_once(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "names.ledger"
    async with (
        lab.gateway(lab.normal("w", "get"), style="prefixed", ledger=Ledger.open(path)) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        assert await _call(client, "w_get") == "w:get"
        Ledger.open(path).restyle(LedgerSettings(style="on-conflict", server_name="truename", aliases={}))
        for _ in range(3):
            assert await _call(client, "w_get") == "w:get"
            Ledger.open(path).redirect(f"old_{_}", "w_get")
    told = [message for message in caplog.messages if "This ledger was created with" in message]

    assert len(told) == 1
    assert "truename rename --all" in told[0]


async def test_a_ledger_that_is_lost_while_it_is_used_stops_no_call(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "names.ledger"
    async with (
        lab.gateway(lab.normal("w", "get"), ledger=Ledger.open(path)) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        path.unlink()
        for _ in range(3):
            assert await _call(client, "get") == "w:get"

    assert len([message for message in caplog.messages if "moved, removed or replaced" in message]) == 1


@pytest.mark.parametrize("wrong", ["not legal!", "w_set"])
async def test_an_override_that_cannot_be_is_left_out_and_told(
    lab: Lab, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    fixed = {"universal": {"w@1/get@1": wrong, "w@1/set@1": "w_set"}}
    servers = lab.normal("w", "get", "set"), lab.normal("v", "get")
    async with lab.gateway(*servers, overrides=fixed) as gateway:
        names = list(_names(gateway).values())

    assert names == ["w_get", "w_set", "v_get"]
    assert any(f"{wrong}" in message and "overrides" in message for message in caplog.messages)


async def test_how_much_a_server_may_hold_is_a_setting(lab: Lab) -> None:
    greedy = lab.normal("greedy", *(f"t{number}" for number in range(30)))
    async with lab.gateway(greedy, lab.normal("w", "get"), max_claims=20) as gateway:
        assert list(gateway.table().values()) == ["w_get"]


async def test_a_list_that_cannot_be_made_ends_nothing(
    lab: Lab, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    servers = lab.script("c", "changing"), lab.normal("w", "look")
    async with (
        lab.gateway(*servers) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        with monkeypatch.context() as patched:
            patched.setattr("truename.gateway.views.naming.admit", fail)
            await client.call_tool("c_grow", {"name": "grown"})
            await lab.saw("changed", "c")
            assert await _call(client, "w_look") == "w:look"
            await until(lambda: "the tool lists cannot be refreshed" in caplog.text)


async def test_while_another_process_writes_calls_go_on_and_only_new_names_wait(
    lab: Lab, tmp_path: Path, raw: Callable[[str], Any]
) -> None:
    path = tmp_path / "names.ledger"
    listed: list[Any] = []
    async with (
        lab.gateway(lab.normal("w", "get"), ledger=Ledger.open(path)) as gateway,
        listening(gateway) as address,
        raw(address) as http,
        anyio.create_task_group() as tasks,
    ):
        assert (await http.result("tools/call", {"name": "w_get"})).get("isError") is not True

        async def another_view() -> None:
            listed.append(await http.result("tools/list", {}, path="/mcp/for/cursor"))

        with Ledger.open(path).transaction():
            tasks.start_soon(another_view)
            with anyio.fail_after(10):
                for _ in range(20):
                    assert (await http.result("tools/call", {"name": "w_get"})).get("isError") is not True
            assert listed == []
    assert len(listed[0]["tools"]) == 1
