"""Contexts at the gateway: what is not for a session is not listed, keeps its names, and is refused when called."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from tests.support.gateway_memory import in_memory
from truename.config import Config, Settings
from truename.gateway import Gateway, UnknownView
from truename.gateway.views.contexts import ContextRefused, Contexts
from truename.gateway.views.view import Asked, read_path
from truename.ledger import Ledger
from truename.policy import Caller, Context, read_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

TOOLS = ("tap", "clearKeychain", "pressBack", "addFunds", "oldTap")
SETTINGS: dict[str, Any] = {
    "metadata": {
        "phone/clearkeychain": {"platforms": ["ios"]},
        "phone/pressback": {"platforms": ["android"]},
        "phone/addfunds": {"app": "payments"},
        "phone/oldtap": {"is_for_llm": False},
    },
    "contexts": {
        "iphone": Context(platform="ios"),
        "pay": Context(platform="android", app="payments"),
        "again": Context(platform="ios", origin="replay"),
    },
}
ALL = {"tap", "clear_keychain", "press_back", "add_funds", "old_tap"}


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/mcp", {"tap"}),
        ("/mcp/in/iphone", {"tap", "clear_keychain"}),
        ("/mcp/in/pay", {"tap", "press_back", "add_funds"}),
        ("/mcp/in/again", {"tap", "clear_keychain", "old_tap"}),
        ("/mcp/in/pay/only/phone", {"tap", "pressBack", "addFunds"}),
        ("/mcp/for/cursor/in/iphone", {"tap", "clearKeychain"}),
        ("/mcp/for/claude-code/in/pay/only/phone", {"tap", "pressBack", "addFunds"}),
    ],
)
async def test_a_path_chooses_a_context(lab: Lab, connect: Any, era: str, *, path: str, shown: set[str]) -> None:
    async with (
        lab.serving(lab.normal("phone", *TOOLS), **SETTINGS) as address,
        connect(address + path, era) as client,
    ):
        assert await names_of(client) == shown


@pytest.mark.parametrize(
    ("path", "name", "rule"),
    [
        ("/mcp/in/iphone", "press_back", "rule platform: it works on android"),
        ("/mcp/in/iphone", "phone@1/pressback@1", "rule platform"),
        ("/mcp/in/iphone", "PRESS-BACK", "rule platform"),
        ("/mcp/in/iphone/only/phone", "pressBack", "rule platform"),
        ("/mcp/in/again", "press_back", "rule platform"),
        ("/mcp/in/iphone", "add_funds", "rule app"),
        ("/mcp", "old_tap", "rule not_for_llm"),
        ("/mcp", "clear_keychain", "rule platform"),
    ],
)
async def test_what_is_not_for_a_context_is_refused_by_any_name(
    lab: Lab, connect: Any, era: str, *, path: str, name: str, rule: str
) -> None:
    async with (
        lab.serving(lab.normal("phone", *TOOLS), **SETTINGS) as address,
        connect(address + path, era) as client,
    ):
        answer = await client.call_tool(name, {})

    assert answer.is_error
    assert rule in answer.content[0].text
    assert "nothing was run" in answer.content[0].text
    assert answer.meta["dev.truename/error"] == "unsupported"


async def test_what_is_for_a_context_runs(lab: Lab, connect: Any, era: str) -> None:
    async with lab.serving(lab.normal("phone", *TOOLS), **SETTINGS) as address:
        for path, name in (("/mcp/in/pay", "add_funds"), ("/mcp/in/again", "old_tap")):
            async with connect(address + path, era) as client:
                assert not (await client.call_tool(name, {})).is_error


async def test_without_contexts_platforms_limit_nobody_and_models_see_what_is_for_them(lab: Lab, connect: Any) -> None:
    async with (
        lab.serving(lab.normal("phone", *TOOLS), metadata=SETTINGS["metadata"]) as address,
        connect(address + "/mcp", "2026-07-28") as client,
    ):
        assert await names_of(client) == ALL - {"old_tap"}


async def test_names_are_claimed_whoever_sees_them(lab: Lab) -> None:
    config = Config(servers=(lab.normal("phone", *TOOLS),), settings=Settings(**SETTINGS))

    async with Gateway(config) as gateway:
        assert set(gateway.table("/mcp/in/iphone").values()) == ALL


async def test_only_names_that_the_session_could_call_are_suggested(lab: Lab, connect: Any, era: str) -> None:
    async with lab.serving(lab.normal("phone", *TOOLS), **SETTINGS) as address:
        async with connect(address + "/mcp/in/pay", era) as client:
            texts = [(await client.call_tool("pres_bak", {})).content[0].text for _ in range(3)]
        async with connect(address + "/mcp/in/iphone", era) as client:
            others = [(await client.call_tool("pres_bak", {})).content[0].text for _ in range(3)]

    assert "Did you mean 'press_back'?" in texts[0]
    assert "press_back" in texts[2]
    assert not [text for text in others if "press_back" in text]
    assert others[2].endswith("keep using tools: tap, clear_keychain.")


async def test_of_several_candidates_only_those_are_told_that_the_session_could_call(
    lab: Lab, connect: Any, era: str
) -> None:
    settings = {**SETTINGS, "metadata": {"tablet/tap": {"platforms": ["android"]}}}
    async with lab.serving(lab.normal("phone", "tap"), lab.normal("tablet", "tap"), **settings) as address:
        async with connect(address + "/mcp/in/iphone", era) as client:
            told = [(await client.call_tool("tap", {})).content[0].text for _ in range(3)]
        async with connect(address + "/mcp/in/pay", era) as client:
            all_told = (await client.call_tool("tap", {})).content[0].text

    assert told[0] == "'tap' is not unique: 'phone_tap'. Call one of these exactly."
    assert not [text for text in told if "tablet" in text]
    assert "'phone_tap' and 'tablet_tap'" in all_told


@pytest.mark.parametrize(
    ("path", "header", "shown"),
    [
        ("/mcp", "iphone", {"tap", "clear_keychain"}),
        ("/mcp/in/iphone", "iphone", {"tap", "clear_keychain"}),
        ("/mcp", "platform=IOS, app=payments", {"tap", "clear_keychain", "add_funds"}),
        ("/mcp/in/iphone", "app=payments", {"tap", "clear_keychain", "add_funds"}),
        ("/mcp/in/again", "app=payments,platform=ios", {"tap", "clear_keychain", "add_funds", "old_tap"}),
        ("/mcp", "platform=windows", {"tap"}),
    ],
)
async def test_a_header_chooses_or_says_what_is_left_open(
    lab: Lab, raw: Callable[[str], Any], *, path: str, header: str, shown: set[str]
) -> None:
    async with lab.serving(lab.normal("phone", *TOOLS), **SETTINGS) as address, raw(address) as http:
        listed = await http.result("tools/list", {}, path=path, headers={"x-truename-context": header})

    assert {tool["name"] for tool in listed["tools"]} == shown


@pytest.mark.parametrize(
    ("path", "header", "status", "text"),
    [
        ("/mcp", "iphon", 404, "Unknown context 'iphon'. Did you mean 'iphone'?"),
        ("/mcp", "zzz", 404, "Known are: again, iphone, pay."),
        ("/mcp/in/iphone", "pay", 400, "asks for 'pay', and the path for 'iphone'"),
        ("/mcp/in/iphone", "platform=android", 400, "sets platform=android, but this path has ios. Leave it out"),
        ("/mcp", "origin=replay", 400, "cannot set the origin"),
        ("/mcp", "platform=ios, origin=internal", 400, "cannot set the origin"),
        ("/mcp/in/again", "origin=llm", 400, "cannot set the origin"),
        ("/mcp", "platform=", 400, "it is empty"),
        ("/mcp", "platfrom=ios", 400, "it is not a field of a context"),
        ("/mcp", "platform=ios,platform=android", 400, "it occurs twice"),
        ("/mcp", "=" * 9000, 400, "x-truename-context"),
        ("/mcp", "", 404, "Unknown context ''"),
        ("/mcp/in/nowhere", "iphone", 404, "Unknown context 'nowhere'"),
        ("/mcp/in/", "iphone", 404, "Unknown context ''"),
    ],
)
async def test_a_header_that_can_not_be_followed_is_an_error_of_http(
    lab: Lab, raw: Callable[[str], Any], *, path: str, header: str, status: int, text: str
) -> None:
    async with lab.serving(lab.normal("phone", "tap"), **SETTINGS) as address, raw(address) as http:
        answer = await http.post("tools/list", {}, path=path, headers={"x-truename-context": header})

    assert answer.status_code == status
    assert text in answer.json()["error"]


async def test_one_header_too_many_is_refused(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("phone", "tap"), **SETTINGS) as address, raw(address) as http:
        twice = [("x-truename-context", "iphone"), ("x-truename-context", "pay")]
        answer = await http.http.post(address + "/mcp", json={}, headers=twice)

    assert (answer.status_code, answer.json()) == (400, {"error": "Send x-truename-context once."})


async def test_a_header_counts_in_a_session_too(lab: Lab, connect: Any) -> None:
    async with (
        lab.serving(lab.normal("phone", *TOOLS), **SETTINGS) as address,
        httpx2.AsyncClient(headers={"x-truename-context": "iphone"}) as http,
        connect(streamable_http_client(address + "/mcp", http_client=http), "legacy") as client,
    ):
        assert await names_of(client) == {"tap", "clear_keychain"}
        assert (await client.call_tool("press_back", {})).is_error


async def test_over_stdio_a_context_is_a_path(lab: Lab, connect: Any, era: str) -> None:
    contexts = {"iphone": {"platform": "ios", "app": "other"}}
    target = lab.over_stdio(lab.normal("phone", *TOOLS), metadata=SETTINGS["metadata"], contexts=contexts)
    target = target.model_copy(update={"args": [*target.args, "/mcp/in/iphone"]})
    async with connect(target, era) as client:
        assert await names_of(client) == {"tap", "clear_keychain"}
        refused = await client.call_tool("press_back", {})

    assert "rule platform" in refused.content[0].text


async def test_what_a_rule_denies_does_not_exist_wherever_the_session_is(lab: Lab, connect: Any) -> None:
    policy = read_policy(
        {"default": "allow", "rules": [{"name": "no taps", "outcome": "deny", "tools": ["phone/tap"]}]}
    )
    async with (
        lab.serving(lab.normal("phone", *TOOLS), policy=policy, **SETTINGS) as address,
        connect(address + "/mcp/in/iphone", "legacy") as client,
    ):
        assert "Tool 'tap' does not exist" in (await client.call_tool("tap", {})).content[0].text
        assert "rule platform" in (await client.call_tool("press_back", {})).content[0].text
        assert not (await client.call_tool("clear_keychain", {})).is_error


async def test_a_rule_may_be_about_a_platform(lab: Lab, connect: Any) -> None:
    rules = [{"name": "not there", "outcome": "deny", "tools": ["phone/tap"], "platforms": ["ios"]}]
    policy = read_policy({"default": "allow", "rules": rules})
    async with lab.serving(lab.normal("phone", *TOOLS), policy=policy, **SETTINGS) as address:
        for path, refused in (("/mcp/in/iphone", True), ("/mcp/in/pay", False)):
            async with connect(address + path, "legacy") as client:
                assert (await client.call_tool("tap", {})).is_error is refused


async def test_many_contexts_said_by_headers_cost_bounded_memory(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.gateway(lab.normal("phone", "tap"), **SETTINGS) as gateway:
        view = gateway.registry.view(gateway.endpoint("/mcp")._spec)
        for number in range(300):
            gateway.registry.access.limited(view, Context(app=f"a{number}"))
        assert len(gateway.registry.access._limited) == 100


async def test_words_that_no_tool_and_no_rule_says_make_no_list_and_read_no_tool(lab: Lab) -> None:
    rules = [{"tools": ["phone/tap"], "outcome": "deny", "apps": ["pay*"]}]
    policy = read_policy({"default": "allow", "rules": rules})
    async with lab.gateway(lab.normal("phone", *TOOLS), policy=policy, **SETTINGS) as gateway:
        view, access = gateway.registry.view(gateway.endpoint("/mcp")._spec), gateway.registry.access
        first = access.limited(view, Context(platform="p", app="a"))
        assert access._shared
        # The start of a gateway may have made lists too.
        lists = len(access._shared)
        for number in range(300):
            assert access.limited(view, Context(platform=f"p{number}", app=f"a{number}")) is first
        assert len(access._shared) == lists


async def test_contexts_share_a_list_only_where_they_see_the_same(lab: Lab) -> None:
    rules = [{"tools": ["phone/tap"], "outcome": "deny", "apps": ["pay*"]}]
    policy = read_policy({"default": "allow", "rules": rules})
    words = ("", "ios", "android", "p1", "pay", "payments", "shop", "x")
    async with lab.gateway(lab.normal("phone", *TOOLS), policy=policy, **SETTINGS) as gateway:
        view, access = gateway.registry.view(gateway.endpoint("/mcp")._spec), gateway.registry.access
        for platform, app, origin in itertools.product(words, words, ("llm", "replay")):
            context = Context(platform=platform, app=app, origin=origin)  # type: ignore[arg-type]
            caller = Caller().within(context)
            seen = {
                id
                for id, tool in view.table.catalog.items()
                if access._exposure.visible(tool, context) and not policy.hides(tool, caller)
            }
            assert set(access.limited(view, context).by_id) == seen


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/mcp", Asked()),
        ("/mcp/", Asked()),
        ("/mcp/in/iphone", Asked(context="iphone")),
        ("/mcp/in/iphone/", Asked(context="iphone")),
        ("/mcp/in/iphone/only/a/b", Asked(server="a/b", context="iphone")),
        ("/mcp/for/cursor/in/iphone", Asked("cursor", context="iphone")),
        ("/mcp/for/cursor/in/iphone/only/in/x", Asked("cursor", "in/x", "iphone")),
        ("/mcp/only/in/x", Asked(server="in/x")),
    ],
)
def test_paths_have_one_order(path: str, asked: Asked) -> None:
    assert read_path(path, ["a/b", "in/x"], ["iphone"]) == asked


@pytest.mark.parametrize(
    "path",
    [
        "/mcp/in",
        "/mcp/in/x",
        "/mcp/in/iphone/for/cursor",
        "/mcp/in/iphone/x",
        "/mcpx",
        "/mcp/only/a/in/iphone",
        "x/mcp",
    ],
)
def test_other_paths_lead_nowhere(path: str) -> None:
    with pytest.raises(UnknownView):
        read_path(path, ["a"], ["iphone"])


def test_a_named_context_leaves_open_what_the_default_says() -> None:
    contexts = Contexts(
        Context(app="payments", origin="internal"), {"a": Context(platform="ios"), "b": Context(app="x")}
    )

    assert contexts.asked("a") == Context(platform="ios", app="payments")
    assert contexts.asked("b") == Context(app="x")
    assert contexts.asked(None, ("a",)) == contexts.asked("a")
    assert contexts.asked(None).origin == "internal"
    with pytest.raises(ContextRefused):
        contexts.asked(None, ("app=other",))


async def test_what_limits_a_tool_limits_it_under_its_new_name_at_once(lab: Lab, connect: Any, tmp_path: Path) -> None:
    settings = Settings(state=str(tmp_path / "ledger"), **SETTINGS)
    config = Config(servers=(lab.normal("phone", "tap", "wipe"),), settings=settings)
    async with Gateway(config) as gateway:
        for path in ("/mcp/in/pay", "/mcp/in/pay/only/phone"):
            async with connect(in_memory(gateway.endpoint(path)), "legacy") as client:
                assert await names_of(client) == {"tap", "wipe"}
        Ledger.open(tmp_path / "ledger").redirect("phone/clearkeychain", "phone/wipe")
        for path in ("/mcp/in/pay", "/mcp/in/pay/only/phone"):
            async with connect(in_memory(gateway.endpoint(path)), "legacy") as client:
                assert "rule platform" in (await client.call_tool("wipe", {})).content[0].text
                assert await names_of(client) == {"tap"}
