"""Several sessions over one connection: each gets what belongs to it, under the ids that it gave, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.protocol.envelopes import read_envelope
from truename.gateway.upstream.multiplexer import Multiplexer, written

if TYPE_CHECKING:
    from truename.gateway.protocol.envelopes import Envelope
    from truename.gateway.upstream.transport import TransportError

INFO = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}


class Session:
    """A session of a gateway with the server, through the multiplexer."""

    def __init__(self, joined: Joined) -> None:
        self.heard: list[dict[str, Any]] = []
        self._joined = joined
        joined.multiplexer.join(self)

    def deliver(self, found: Envelope) -> None:
        self.heard.append(json.loads(written(found)))

    def fail(self, number: int, fault: TransportError) -> None:
        self.heard.append({"id": number, "fault": fault.kind})

    def send(self, **message: Any) -> None:
        self._joined.multiplexer.take(self, json.dumps({"jsonrpc": "2.0", **message}).encode())

    def ask(self, id: int, method: str, **params: Any) -> None:
        self.send(id=id, method=method, params=params)

    def greet(self, id: int = 1) -> None:
        self.ask(id, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})

    def answers(self) -> list[Any]:
        return [one["id"] for one in self.heard if "method" not in one]


class Joined:
    """A multiplexer, and what the server at its other end got."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.multiplexer = Multiplexer(lambda message: self.got.append(json.loads(message)))

    def say(self, **message: Any) -> None:
        found = read_envelope(json.dumps({"jsonrpc": "2.0", **message}).encode())
        assert found is not None
        self.multiplexer.receive(found)

    def last(self, method: str) -> dict[str, Any]:
        return [one for one in self.got if one.get("method") == method][-1]

    def greeted(self, count: int) -> list[Session]:
        """Give sessions that have greeted the server."""
        sessions = [Session(self) for _ in range(count)]
        for session in sessions:
            session.greet()
        self.say(id=self.last("initialize")["id"], result=INFO)
        for session in sessions:
            session.send(method="notifications/initialized")
            session.heard.clear()
        return sessions


def test_a_server_is_greeted_once_and_everybody_hears_its_greeting() -> None:
    joined = Joined()
    first, second, third = (Session(joined) for _ in range(3))

    first.ask(1, "server/discover")
    second.ask(1, "server/discover")
    joined.say(id=joined.last("server/discover")["id"], error={"code": -32601, "message": "no"})
    first.greet(2)
    third.greet(9)
    joined.say(id=joined.last("initialize")["id"], result=INFO)
    first.send(method="notifications/initialized")
    second.greet(2)
    second.send(method="notifications/initialized")

    assert [one["method"] for one in joined.got] == ["server/discover", "initialize", "notifications/initialized"]
    assert first.heard[-1] == {"jsonrpc": "2.0", "id": 2, "result": INFO}
    assert [one["id"] for one in second.heard] == [1, 2]
    assert second.heard[0]["error"]["code"] == -32601
    assert third.heard == [{"jsonrpc": "2.0", "id": 9, "result": INFO}]


def test_who_leaves_while_greeting_leaves_it_to_the_next() -> None:
    joined = Joined()
    first, second = Session(joined), Session(joined)
    first.greet()
    second.greet(5)

    joined.multiplexer.leave(first)
    joined.say(id=joined.last("initialize")["id"], result=INFO)

    assert len([one for one in joined.got if one["method"] == "initialize"]) == 2
    assert second.answers() == [5]


def test_in_the_stateless_version_nobody_waits_for_a_handshake() -> None:
    joined = Joined()
    first, second = Session(joined), Session(joined)
    first.ask(1, "server/discover")
    second.ask(1, "server/discover")
    joined.say(id=joined.last("server/discover")["id"], result={})

    first.ask(2, "tools/list")

    assert [one["method"] for one in joined.got] == ["server/discover", "tools/list", "server/discover"]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["call", "cancel", "answer", "progress"])), max_size=60))
def test_each_gets_its_own_responses_and_progress(steps: list[tuple[int, str]]) -> None:
    joined = Joined()
    sessions = joined.greeted(3)
    begun = [0, 0, 0]
    waiting: dict[int, list[int]] = {0: [], 1: [], 2: []}
    expected: list[list[tuple[str, int]]] = [[], [], []]

    def number_of(place: int, id: int) -> int:
        text = f"{place}:{id}"
        calls = [one for one in joined.got if one.get("method") == "tools/call"]
        (call,) = [one for one in calls if one["params"]["text"] == text]
        assert call["params"]["_meta"]["progressToken"] == call["id"]
        found: int = call["id"]
        return found

    for place, step in steps:
        if step == "call":
            begun[place] += 1
            id = begun[place]
            sessions[place].ask(id, "tools/call", text=f"{place}:{id}", _meta={"progressToken": id, "x": [None]})
            waiting[place].append(id)
        elif waiting[place]:
            id = waiting[place][0]
            number = number_of(place, id)
            if step == "progress":
                joined.say(method="notifications/progress", params={"progressToken": number, "progress": 1})
                expected[place].append(("progress", id))
                continue
            waiting[place].remove(id)
            if step == "cancel":
                sessions[place].send(method="notifications/cancelled", params={"requestId": id})
                assert joined.got[-1]["params"]["requestId"] == number
            # The answer to what was taken back reaches nobody.
            joined.say(id=number, result={"text": f"{place}:{id}"})
            if step == "answer":
                expected[place].append(("answer", id))

    for place, session in enumerate(sessions):
        heard = [
            ("answer", one["id"]) if "result" in one else ("progress", one["params"]["progressToken"])
            for one in session.heard
        ]
        assert heard == expected[place]
        assert all(one["result"]["text"] == f"{place}:{one['id']}" for one in session.heard if "result" in one)


def test_the_only_session_that_called_is_asked_and_nobody_once_two_have() -> None:
    joined = Joined()
    first, second = joined.greeted(2)
    second.ask(1, "tools/list")
    first.ask(1, "tools/call", name="x")

    joined.say(id="q1", method="elicitation/create", params={})
    second.send(id="q1", result={"action": "accept"})
    first.send(id="q1", result={"action": "decline"})
    second.ask(2, "tools/call", name="x")
    joined.say(id="q2", method="elicitation/create", params={})
    joined.say(method="notifications/message", params={"level": "error", "data": 1})

    assert [one["id"] for one in first.heard] == ["q1"]
    assert second.heard == []
    answers = [one for one in joined.got if one.get("id") in {"q1", "q2"}]
    assert answers[0] == {"jsonrpc": "2.0", "id": "q1", "result": {"action": "decline"}}
    assert "several clients use this connection" in answers[1]["error"]["message"]
    assert len(answers) == 2


def test_changes_reach_everybody_and_updates_those_who_watch() -> None:
    joined = Joined()
    first, second = joined.greeted(2)
    for id, session in enumerate((first, second)):
        session.ask(id, "resources/subscribe", uri="x:1")
        joined.say(id=joined.last("resources/subscribe")["id"], result={})
        session.heard.clear()

    joined.say(method="notifications/tools/list_changed")
    joined.say(method="notifications/resources/updated", params={"uri": "x:1"})
    first.ask(7, "resources/unsubscribe", uri="x:1")
    joined.say(method="notifications/resources/updated", params={"uri": "x:1"})

    assert [one.get("method", one.get("id")) for one in first.heard] == [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
        7,
    ]
    assert len(second.heard) == 3
    assert not [one for one in joined.got if one.get("method") == "resources/unsubscribe"]

    joined.multiplexer.leave(second)

    assert joined.last("resources/unsubscribe")["params"] == {"uri": "x:1"}


def test_the_server_logs_at_the_most_talkative_level_that_anybody_wants() -> None:
    joined = Joined()
    first, second = joined.greeted(2)

    levels = []
    for session, level in ((first, "error"), (second, "debug"), (first, "alert")):
        session.ask(3, "logging/setLevel", level=level)
        levels.append(joined.last("logging/setLevel")["params"]["level"])

    assert levels == ["error", "debug", "debug"]


def test_who_leaves_has_its_calls_taken_back_and_its_questions_refused() -> None:
    joined = Joined()
    first, second = joined.greeted(2)
    first.ask(4, "tools/call", name="x")
    number = joined.last("tools/call")["id"]
    joined.say(id=5, method="sampling/createMessage", params={})

    joined.multiplexer.leave(first)
    joined.say(id=number, result={})

    assert joined.last("notifications/cancelled")["params"]["requestId"] == number
    assert [one for one in joined.got if one.get("id") == 5][-1]["error"]["message"] == "The client has disconnected."
    assert second.heard == []
