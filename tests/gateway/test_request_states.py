"""What a client brings back: for its own call, in time, once; a server's own state inside goes back as it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.trust_pending import call
from truename.gateway.elicitation.owned import StateOwner
from truename.gateway.elicitation.request_states import LONGEST, RequestStates
from truename.gateway.protocol.errors import MCPError
from truename.gateway.trust.multi_round import MultiRoundRequests, plain
from truename.gateway.upstream_errors import UpstreamError
from truename.policy.principal import LOCAL, Principal
from truename.storage import StateLocation

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
ANN, BOB = Principal(name="ann"), Principal(name="bob")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_round_is_over_in_time_and_is_its_own_calls() -> None:
    clock = Clock()
    rounds = MultiRoundRequests(60.0, RequestStates(clock=clock))
    states = [(await rounds.asked(call(x=1), {}))["requestState"] for _ in range(3)]
    assert len(set(states)) == 3
    for other in (call(x=2), call(principal="bob", x=1), call(name="git_pull", x=1)):
        with pytest.raises(MCPError, match="No call waits"):
            await rounds.met(other, {"requestState": states[0]})
    assert await rounds.met(call(x=1), {"requestState": states[0]}) is not None
    with pytest.raises(MCPError, match="No call waits"):
        await rounds.met(call(x=1), {"requestState": states[0]})
    assert await rounds.met(call(x=1), {"requestState": "a server's"}) is None
    clock.now += 61
    with pytest.raises(MCPError, match="No call waits"):
        await rounds.met(call(x=1), {"requestState": states[1]})


async def test_the_servers_own_state_is_inside_and_goes_back_to_it() -> None:
    rounds, made = MultiRoundRequests(60.0, RequestStates()), call(x=1)
    for own in ({"requestState": "the server's \ud83d"}, {}):
        told = await rounds.passed(made, {"resultType": "input_required", "inputRequests": {"q": {}}, **own})
        assert "server" not in told["requestState"]
        params = {"name": "push", "requestState": told["requestState"], "inputResponses": {"q": {}}}
        met = await rounds.met(made, params)
        assert met is not None
        assert met.approved
        assert met.onward(params) == {"name": "push", "inputResponses": {"q": {}}, **own}
        assert plain(params) == {"name": "push"}
    assert await rounds.passed(made, {"content": []}) == {"content": []}


async def test_a_servers_state_that_is_too_long_ends_the_call() -> None:
    longest = {"resultType": "input_required", "requestState": "x" * LONGEST}
    too_long = {**longest, "requestState": "x" * (LONGEST + 1)}
    rounds = MultiRoundRequests(60.0, RequestStates())
    owner = StateOwner(RequestStates(), ANN, "far", "tools/call", lasts=60.0)
    for giving in (rounds.passed(call(x=1), longest), owner.given({}, longest)):
        assert len((await giving)["requestState"]) > LONGEST
    for giving in (rounds.passed(call(x=1), too_long), owner.given({}, too_long)):
        with pytest.raises(UpstreamError, match="more than 1,048,576 characters"):
            await giving


async def test_a_servers_state_is_one_principals_for_one_call_and_passes_where_all_are_one_user() -> None:
    states = RequestStates()

    def owner(principal: Principal = ANN, *place: str) -> StateOwner:
        return StateOwner(states, principal, *(place or ("far", "behind", "tools/call", "sha256:1")), lasts=60.0)

    said: dict[str, Any] = {"name": "a", "arguments": msgspec.Raw(b'{"n": 1, "m": [2]}'), "_meta": {"x": 1}}
    same = {"name": "a", "arguments": {"m": [2], "n": 1}, "inputResponses": {}}
    result = {"resultType": "input_required", "requestState": "own"}
    assert await owner(LOCAL).given(said, result) == result
    assert (await owner(LOCAL).taken_back({"requestState": "own"}))["requestState"] == "own"
    state = (await owner().given(said, result))["requestState"]
    refused: list[tuple[StateOwner, dict[str, Any]]] = [
        (owner(BOB), same),
        (owner(ANN, "far", "behind", "tools/call", "sha256:2"), same),
        (owner(ANN, "far", "another", "tools/call", "sha256:1"), same),
        (owner(), {**same, "name": "b"}),
        (owner(), {**same, "arguments": {"m": [2], "n": 2}}),
    ]
    for other, params in refused:
        with pytest.raises(MCPError, match="You have no call"):
            await other.taken_back({**params, "requestState": state})
    again = {**same, "requestState": state}
    assert (await owner().taken_back(again))["requestState"] == "own"
    for late in (again, {**same, "requestState": "own"}, {**same, "requestState": 5}):
        with pytest.raises(MCPError, match="You have no call"):
            await owner().taken_back(late)


async def test_while_the_state_cannot_be_used_nothing_is_run_and_no_file_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 100)
    rounds = MultiRoundRequests(60.0, RequestStates(StateLocation(tmp_path / "state.db")))
    with pytest.raises(MCPError, match="so nothing was run") as refused:
        await rounds.asked(call(x=1), {})
    assert str(tmp_path) not in str(refused.value)
    assert str(tmp_path) in caplog.text
