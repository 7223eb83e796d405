"""What was asked at one gateway is answered at another one, on one state database; answered at both, it counts once."""

from __future__ import annotations

import re
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.servers.whole import STATELESS
from tests.gateway.whole_http import WholeServer
from tests.support.gateway_holding import ABLE, ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from tests.support.gateway_replicas import WRITE, at_both, decision, outcome, replicas
from tests.support.gateway_shares import people
from truename.config import Settings
from truename.config.approvals import Asking
from truename.errors import NotAllowed
from truename.gateway.elicitation import answer_relay
from truename.gateway.elicitation.request_states import RequestStates
from truename.gateway.elicitation.suspended_calls import SuspendedCalls
from truename.gateway.protocol.errors import MCPError
from truename.gateway.upstream_errors import UpstreamError
from truename.identity import ToolId
from truename.policy import Approvals, SqlApprovalStore, read_policy
from truename.trust.approval_queue import ApprovalQueue, decided

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio

ASKS = read_policy({"default": "ask"})


async def answered(gateway: Any, asked: dict[str, Any]) -> Any:
    """Answer the question of a call at a gateway, and return what the call returned."""
    done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
    return (await gateway.result("tools/call", done))["structuredContent"]


async def test_a_call_that_waits_at_one_gateway_goes_on_with_an_answer_that_reaches_another(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        with anyio.fail_after(20):
            assert (await second.result("tools/call", done))["structuredContent"] == ANSWER["q1"]
        assert "No call waits with this requestState" in outcome(await second.post("tools/call", done))
        assert "No call waits with this requestState" in outcome(await first.post("tools/call", done))
    assert len(far.able) == 1


async def test_a_state_that_comes_with_other_arguments_to_another_gateway_is_not_used_up(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        for other in ({"arguments": {"other": 1}}, {"name": "sample"}):
            assert "No call waits with this requestState" in outcome(await second.post("tools/call", {**done, **other}))
        with anyio.fail_after(20):
            assert (await second.result("tools/call", done))["structuredContent"] == ANSWER["q1"]
    assert len(far.able) == 1


async def test_an_answer_at_several_gateways_at_once_counts_once_at_a_call_that_waits(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        with anyio.fail_after(20):
            refused, ran = await at_both(first, second, done)
    assert ("No call waits with this requestState" in refused, ran) == (True, "ran")


async def test_an_answer_for_a_gateway_that_is_gone_is_not_used_and_no_other_call_is_advised(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_relay, "TAKEN_WITHIN", 0.1)
    settings = {"state": place.address}
    async with upstreams.serve(Handshaking().server) as url:
        servers = lab.at("far", url)
        async with lab.serving(servers, **settings) as there, raw(there) as second:
            async with lab.serving(servers, **settings) as here, raw(here) as first:
                asked = await first.result("tools/call", ASK)
            done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
            with anyio.fail_after(20):
                answer = outcome(await second.post("tools/call", done))
    assert ("does not answer now" in answer, "without requestState" in answer) == (True, False)


async def test_an_answer_that_a_stopped_gateway_did_not_take_is_good_when_it_goes_on(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, look = anyio.Event(), answer_relay.AnswerRelay._look

    async def looking(relay: Any, *, is_due: bool) -> None:
        # Whoever waits for an outcome looks on; the owner of the call is stopped.
        if goes_on.is_set() or relay._given:
            await look(relay, is_due=is_due)

    monkeypatch.setattr(answer_relay.AnswerRelay, "_look", looking)
    monkeypatch.setattr(answer_relay, "TAKEN_WITHIN", 0.1)
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        assert "repeat the same answer" in outcome(await second.post("tools/call", done))
        monkeypatch.setattr(answer_relay, "TAKEN_WITHIN", 5.0)
        goes_on.set()
        with anyio.fail_after(20):
            assert (await second.result("tools/call", done))["structuredContent"] == ANSWER["q1"]
    assert len(far.able) == 1


async def test_a_gateway_that_was_stopped_for_long_looks_on_for_answers_to_its_calls(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look = anyio.Event(), answer_relay.AnswerRelay._look

    async def looking(relay: Any, *, is_due: bool) -> None:
        await look(relay, is_due=is_due)
        looked.set()

    monkeypatch.setattr(answer_relay.AnswerRelay, "_look", looking)
    # Between two looks more time passes than it would look on for nothing.
    monkeypatch.setattr(answer_relay, "TAKEN_WITHIN", 0.0)
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        with anyio.fail_after(20):
            for _ in range(3):
                await looked.wait()
                looked = anyio.Event()
            monkeypatch.setattr(answer_relay, "TAKEN_WITHIN", 5.0)
            assert await answered(second, asked) == ANSWER["q1"]


async def test_a_gateway_that_was_stopped_while_it_waited_for_an_outcome_looks_before_it_gives_up(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay_type, known, written = answer_relay.AnswerRelay, anyio.Event(), anyio.Event()
    look, take = relay_type._look, relay_type._answered

    async def looking(relay: Any, *, is_due: bool) -> None:
        if any(given.beats for given in relay._given.values()):
            if not is_due:
                # It is stopped as soon as it knows that the answer was taken.
                return
            await written.wait()
        await look(relay, is_due=is_due)
        if any(given.beats for given in relay._given.values()):
            known.set()

    async def answering(relay: Any, id: str, sealed: str) -> None:
        await known.wait()
        await take(relay, id, sealed)
        written.set()

    monkeypatch.setattr(relay_type, "_look", looking)
    monkeypatch.setattr(relay_type, "_answered", answering)
    # Its own looks are never due; only the one before it gives up is.
    monkeypatch.setattr(answer_relay, "_BEAT_EVERY", 3_600.0)
    monkeypatch.setattr(answer_relay, "SILENT_FOR", 0.5)
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        with anyio.fail_after(20):
            assert await answered(second, asked) == ANSWER["q1"]


async def test_who_answers_something_else_at_another_gateway_is_asked_again_there(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Handshaking()
    async with upstreams.serve(far.server) as url, replicas(lab, raw, place, lab.at("far", url)) as (first, second):
        asked = await first.result("tools/call", ASK)
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": {"q9": ANSWER["q1"]}}
        again = await second.result("tools/call", done)
        assert again["inputRequests"] == asked["inputRequests"]
        last = {**ASK, "requestState": again["requestState"], "inputResponses": ANSWER}
        assert (await second.result("tools/call", last))["structuredContent"] == ANSWER["q1"]


async def test_a_form_of_the_gateway_is_answered_at_another_one(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation
) -> None:
    async with replicas(lab, raw, place, lab.normal("fs", "write"), policy=ASKS) as (first, second):
        asked = await first.result("tools/call", WRITE)
        assert "x" not in asked["requestState"].split(".")[:2]
        done = {**WRITE, "requestState": asked["requestState"], "inputResponses": decision("allow once")}
        assert not (await second.result("tools/call", done)).get("isError")
        assert "was already answered" in outcome(await first.post("tools/call", done))
        # The answer was about one call: the next one is asked about anew.
        assert (await second.result("tools/call", WRITE))["resultType"] == "input_required"


@pytest.mark.parametrize("word", ["allow once", "allow with these arguments", "always allow"])
async def test_a_form_that_is_answered_at_two_gateways_at_once_has_its_call_made_once(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation, *, word: str
) -> None:
    async with replicas(lab, raw, place, lab.normal("fs", "write"), policy=ASKS) as (first, second):
        asked = await first.result("tools/call", WRITE)
        done = {**WRITE, "requestState": asked["requestState"], "inputResponses": decision(word)}
        refused, ran = await at_both(first, second, done)
    assert ("was already answered" in refused, ran) == (True, "ran")


async def test_a_form_is_answered_after_its_gateway_was_started_anew(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation
) -> None:
    settings: dict[str, Any] = {"state": place.address, "policy": ASKS}
    async with lab.serving(lab.normal("fs", "write"), **settings) as address, raw(address) as http:
        asked = await http.result("tools/call", WRITE)
    done = {**WRITE, "requestState": asked["requestState"], "inputResponses": decision("allow once")}
    async with lab.serving(lab.normal("fs", "write"), **settings) as address, raw(address) as http:
        assert not (await http.result("tools/call", done)).get("isError")


async def test_what_an_operator_or_another_gateway_decides_counts_at_all(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation
) -> None:
    asking = Asking(ask="operator")
    async with replicas(lab, raw, place, lab.normal("fs", "write"), policy=ASKS, approvals=asking) as (first, second):
        assert (await first.result("tools/call", WRITE))["isError"]
        with ApprovalQueue(place) as queue:
            (waiting,) = queue.all()
            assert waiting.arguments == 'text: "x"'
            with closing(SqlApprovalStore(place)) as store:
                decided(waiting, "call", Approvals(store), queue, approved=True, by="ada", lasts=60.0)
        assert not (await second.result("tools/call", WRITE)).get("isError")
        assert (await first.result("tools/call", WRITE))["isError"]


async def test_a_state_is_nobody_elses_and_of_no_other_call(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation
) -> None:
    access, headers = people("ann", "eve")
    servers = lab.normal("fs", "write", "read")
    async with replicas(lab, raw, place, servers, policy=ASKS, access=access) as (first, second):
        asked = (await first.post("tools/call", WRITE, headers=headers["ann"])).json()["result"]
        done = {**WRITE, "requestState": asked["requestState"], "inputResponses": decision("allow once")}
        others: list[tuple[dict[str, Any], str]] = [
            (done, "eve"),
            ({**done, "arguments": {"text": "y"}}, "ann"),
            ({**done, "name": "read"}, "ann"),
            ({**done, "requestState": done["requestState"][:-1]}, "ann"),
        ]
        for params, who in others:
            assert "No call waits" in outcome(await second.post("tools/call", params, headers=headers[who]))
        # None of these used it up.
        assert outcome(await second.post("tools/call", done, headers=headers["ann"])) == "ran"


async def test_a_servers_own_state_goes_back_to_it_from_another_gateway_once_and_for_its_call(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation, upstreams: Upstreams
) -> None:
    access, headers = people("ann", "eve")
    whole = WholeServer("far", STATELESS)
    ask: dict[str, Any] = {"name": "form", "arguments": {"text": "a"}, **ABLE}
    async with (
        upstreams.serve(whole.server) as url,
        replicas(lab, raw, place, lab.at("far", url), access=access) as (first, second),
    ):
        asked = (await first.post("tools/call", ask, headers=headers["ann"])).json()["result"]
        assert "state" not in asked["requestState"]
        key = next(iter(asked["inputRequests"]))
        done = {**ask, "requestState": asked["requestState"], "inputResponses": {key: ANSWER["q1"]}}
        for params, who in ((done, "eve"), ({**done, "arguments": {"text": "b"}}, "ann")):
            refused = outcome(await second.post("tools/call", params, headers=headers[who]))
            assert "You have no call with this requestState" in refused
        refused, ran = await at_both(first, second, done, headers=headers["ann"])
    assert ("You have no call with this requestState" in refused, ran) == (True, "ran")


async def test_what_a_call_ended_with_is_told_at_the_gateway_where_its_client_came_back(
    place: StateLocation, caplog: pytest.LogCaptureFixture
) -> None:
    lost = UpstreamError(server="far", kind="lost", problem="was lost", remedy="Call again.", output=("a", "b"))
    asker: Any = SimpleNamespace(request=SimpleNamespace(http=None), by_result=None)
    target, answers = ("far", "tools/call", "ann"), {"q1": {"action": "accept"}}
    async with anyio.create_task_group() as tasks:
        first, second = (
            SuspendedCalls(tasks, Settings(), states=RequestStates(place), location=place) for _ in range(2)
        )
        failures: list[tuple[Exception, type[Exception], str]] = [
            (lost, UpstreamError, str(lost)),
            (MCPError(-32002, "boom", {"n": [1]}), MCPError, "boom"),
            (NotAllowed(id=ToolId.parse("a@1/b@1"), rule="r", decision="no"), MCPError, "no"),
            (ValueError("canary"), MCPError, "The gateway's log says why"),
        ]
        for failure, expected, text in failures:

            async def send(_: object, failure: Exception = failure) -> dict[str, Any]:
                await asker.by_result("elicitation/create", {})
                raise failure

            asked = await first.call(asker, target, {}, send)
            again = {"requestState": asked["requestState"], "inputResponses": answers}
            with anyio.fail_after(20), pytest.raises(expected, match=re.escape(text)) as caught:
                await second.call(asker, target, again, send)
            assert "canary" not in str(caught.value)
            assert failure is not lost or caught.value == lost
        assert (first.count, second.count) == (0, 0)
        tasks.cancel_scope.cancel()
    first.close()
    second.close()
