"""Every model API, through its own real client library: awkward tools of two servers are listed, called and denied."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lab.model.turn import plain_text
from tests.adapters.bedrock_endpoint import BedrockEndpoint
from tests.adapters.model_apis import BENCHES, DENIED, NAMES, Bench, awkward_catalog, obeys_provider
from tests.support.adapters_model_apis import answer_of, model
from truename.adapters.layout import NamespaceLayout
from truename.adapters.wire import RefusedCall
from truename.errors import ApprovalRequired, CallRepeated, NotAllowed, UnknownTool
from truename.identity.keys import CallId
from truename.policy import Approvals, Call, Caller, CallRule, Policy

if TYPE_CHECKING:
    from pathlib import Path

    from lab.model import Offered


@pytest.fixture(params=BENCHES)
def bench(request: pytest.FixtureRequest) -> Bench:
    return BENCHES[request.param]


CALLER = Caller(principal="ann", session="s1")
POLICY = Policy(rules=(CallRule(name="never", outcome="deny", upstream=(DENIED,)),), default="allow")


class Servers:
    """The tools themselves: they note what they are asked, under the names that they have there."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str, Any]] = []

    def run(self, bench: Bench, call: Call | RefusedCall) -> dict[str, Any]:
        if isinstance(call, RefusedCall):
            return dict(bench.adapter.result(call, str(call.error), is_error=True))
        try:
            POLICY.enforce(call)
        except NotAllowed as error:
            return dict(bench.adapter.result(call, str(error), is_error=True))
        self.ran.append((call.origin.server, call.origin.name, call.arguments["q"]))
        return dict(bench.adapter.result(call, f"did {call.origin.name}"))


def converse(bench: Bench, url: str, names: Any, servers: Servers, *, stream: bool) -> list[dict[str, Any]]:
    """Run a conversation to its end, and return all its messages."""
    tools, messages = bench.adapter.tools(names), bench.said("go")
    for _ in range(20):
        calls = bench.adapter.calls(bench.ask(url, tools, messages, stream), names, CALLER)
        if not calls:
            return messages
        messages += bench.asked(calls) + bench.answered([servers.run(bench, call) for call in calls])
        bench.accepts(messages)
        obeys_provider(bench, messages)
    pytest.fail("the conversation did not end")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_awkward_tools_of_two_servers_are_each_called_once_and_the_denied_ones_never(
    bench: Bench, stream: bool
) -> None:
    servers, catalog = Servers(), awkward_catalog()

    with model(bench) as server:
        converse(bench, server.url, bench.names(catalog), servers, stream=stream)

    expected = {(server, name) for server in ("Docs Server", "文档") for name in NAMES if name != DENIED}
    assert {(server, name) for server, name, _ in servers.ran} == expected
    assert len(servers.ran) == len(expected)


def test_a_call_waits_is_approved_and_resumed_from_a_stored_conversation_once(bench: Bench, tmp_path: Path) -> None:
    catalog, kept = awkward_catalog("docs", "crm"), tmp_path / "approvals.json"
    names = bench.names(catalog)

    with model(bench) as server:
        tools, messages = bench.adapter.tools(names), bench.said("go")
        asked = bench.adapter.calls(bench.ask(server.url, tools, messages, False), names, CALLER)
        policy = Policy(approvals=Approvals.open(kept))
        for call in asked:
            with pytest.raises(ApprovalRequired), policy.running(call):
                pytest.fail("nobody was asked")
        stored = json.dumps(messages + bench.asked(asked))
        policy.approvals.approve(asked[0], "always")  # type: ignore[union-attr]
        policy.approvals.reject(asked[1], message="no")  # type: ignore[union-attr]

        resumed, messages = Policy(approvals=Approvals.open(kept)), json.loads(stored)
        results = []
        for call in asked:
            try:
                with resumed.running(call):
                    results.append(bench.adapter.result(call, f"did {call.origin.name}"))
            except (ApprovalRequired, NotAllowed) as error:
                results.append(bench.adapter.result(call, str(error), is_error=True))
        messages += bench.answered(results)
        bench.accepts(messages)
        obeys_provider(bench, messages)
        bench.ask(server.url, tools, messages, False)

    assert "did " in repr(results[0])
    assert not any("did " in repr(one) for one in results[1:])
    with pytest.raises(CallRepeated), Policy(approvals=Approvals.open(kept)).running(asked[0]):
        pytest.fail("it ran twice")
    other = replace(asked[0], call_id=CallId("call_of_bob"), caller=replace(CALLER, principal="bob"))
    swapped = replace(asked[0], call_id=CallId("call_of_another"), digest="0" * 64)
    assert [resumed.decide(one).outcome for one in (other, swapped)] == ["ask", "ask"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("defer", [False, True], ids=["listed", "deferred"])
def test_namespaces_keep_the_tools_of_two_servers_apart_under_short_names(stream: bool, defer: bool) -> None:
    bench, servers = BENCHES["openai_responses"], Servers()
    layout = NamespaceLayout.by_server(bench.names(awkward_catalog("docs", "search")), defer=defer)

    with model(bench) as server:
        converse(bench, server.url, layout, servers, stream=stream)
        offered: tuple[Offered, ...] = server.requests[0].turn.tools

    assert {tool.namespace for tool in offered if tool.mark is not None} == {"docs", "search"}
    assert len(servers.ran) == len(set(servers.ran)) == 2 * (len(NAMES) - 1)


def test_the_api_is_sent_what_the_adapter_made(bench: Bench) -> None:
    names = bench.names(awkward_catalog())
    tools = bench.adapter.tools(names)

    with model(bench) as server:
        bench.ask(server.url, tools, bench.said("go"), False)
        if isinstance(server, BedrockEndpoint):
            seen = [tool["toolSpec"]["name"] for tool in server.bodies[0]["toolConfig"]["tools"]]
        else:
            seen = [tool.name for tool in server.requests[0].turn.tools]

    assert seen == list(names.values())


def test_a_wrong_name_is_told_to_the_model_with_the_right_one_and_the_other_calls_can_go_on(bench: Bench) -> None:
    names = bench.names(awkward_catalog())
    right = bench.adapter.calls(answer_of(bench, next(iter(names.values()))), names)[0]
    answer = answer_of(bench, right.wire_name + "x", right.wire_name)

    refused, call = bench.adapter.read(answer, names, CALLER)

    assert isinstance(refused, RefusedCall)
    assert isinstance(refused.error, UnknownTool)
    assert right.wire_name in refused.error.suggestions
    assert call.id == right.id
    assert "Did you mean" in plain_text([bench.adapter.result(refused, str(refused.error), is_error=True)])


def test_if_one_call_of_several_can_not_be_made_none_is(bench: Bench) -> None:
    names = bench.names(awkward_catalog())

    with pytest.raises(UnknownTool):
        bench.adapter.calls(answer_of(bench, next(iter(names.values())), "nothing_like_it_anywhere"), names)
    with pytest.raises(ExceptionGroup, match="2 calls are refused"):
        bench.adapter.calls(answer_of(bench, "no_such_tool_anywhere", "nothing_like_it_anywhere"), names)


def test_the_adapters_need_none_of_the_libraries_that_they_speak_to() -> None:
    code = "import sys, truename.adapters.history; print(*sorted(name.partition('.')[0] for name in sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert set(loaded) & {"openai", "anthropic", "google", "boto3", "botocore", "pydantic", "mcp", "httpx"} == set()
