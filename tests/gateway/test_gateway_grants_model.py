"""A model of decisions: whatever servers, operators and people do, a call runs on a definition that was decided on.

The oracle knows letters for definitions and a list of decisions; it shares no code with pins, approvals or policy.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import hypothesis.strategies as st
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from mcp import Client

from tests.gateway.office import Office
from tests.gateway.staged import Stage, Staged
from tests.support.gateway_memory import in_memory
from truename.config import Settings
from truename.config.trust import Trust
from truename.policy import Approvals, read_policy
from truename.trust import PinStore
from truename.trust.approval_queue import ApprovalQueue, decided

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

LETTERS = "ABC"
SCOPES = st.sampled_from(["call", "arguments", "session", "always"])
# When the gateway reads what a server has become: at once, when it has to know, or when it starts the server.
MOMENTS = st.sampled_from(["listed", "announced", "started"])
MODES: dict[str, dict[str, Any]] = {
    "warn": {"drift": "warn"},
    "quarantine": {"drift": "quarantine"},
    "hidden": {"drift": "quarantine", "quarantine": "hidden"},
    "block": {"drift": "block"},
}
POLICY = read_policy({"default": "ask", "rules": [{"outcome": "allow", "tools": ["fs/free"]}]})


def tools(letter: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": name, "description": f"Does {name} in way {letter}.", "inputSchema": {"type": "object"}}
        for name in ("push", "free")
    )


class Offering(Staged):
    """A server that runs calls on the definition that it has now, whatever it listed before."""

    isolation = holding = session = None
    now = "A"
    when_read = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ran: list[tuple[str, str]] = []

    @property
    def letter(self) -> str:
        """What it listed last."""
        return next(letter for letter in LETTERS if self.tools == tools(letter))

    async def awake(self) -> None:
        if self.when_read == "started":
            self.takes(tools(self.now), self.lists)

    async def settle_announced(self) -> None:
        if self.when_read == "announced":
            self.takes(tools(self.now), self.lists)

    async def request(self, _: str, params: Mapping[str, Any], *, before: Any, **__: Any) -> dict[str, Any]:
        await before(self)
        self.ran.append((params["name"], self.now))
        return {"content": []}


class Request(NamedTuple):
    letter: str
    text: str


@dataclass
class Decision:
    key: str
    approved: bool
    scope: str
    about: Request
    request: str
    is_over: bool = False

    @property
    def covers_same(self) -> tuple[str, ...]:
        """What it has in common with a later decision that takes its place for good, also if that is revoked."""
        limits = {"call": self.request, "arguments": self.about.text}
        return self.about.letter, self.scope, limits.get(self.scope, "")

    def covers(self, call: Request, request: str | None) -> bool:
        match self.scope:
            case "call":
                return request == self.request and not self.is_over
            case "arguments":
                return call.text == self.about.text
            case "session":
                # A call of a request is nobody's session's.
                return request is None
            case _:
                return True


def verdict(decisions: list[Decision], call: Request, request: str | None = None) -> bool | None:
    """Say yes, no, or nothing: the latest about this definition counts, unless a later no was about another one."""
    has_doubt = False
    for one in reversed([one for one in decisions if one.covers(call, request)]):
        if one.about.letter != call.letter:
            has_doubt |= not one.approved
        elif one.approved:
            return None if has_doubt else True
        else:
            return False
    return None


class Trusting(RuleBasedStateMachine):
    """One server that changes as it likes, an operator, and a client that calls."""

    @initialize(mode=st.sampled_from(sorted(MODES)))
    def begins(self, mode: str) -> None:
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.mode = mode
        self.office = Office(folder)
        self.book = PinStore()
        portal = self.portal = self.stack.enter_context(start_blocking_portal())
        self.stage = portal.call(self._staged)
        self.fs: Any = self.stage.fs
        client = Client(in_memory(self.stage.endpoint), mode="legacy")
        self.client = self.stack.enter_context(portal.wrap_async_context_manager(client))
        self.pending: dict[str, Request] = {}
        self.decisions: list[Decision] = []
        self.listed = self.pinned = "A"
        self.rejected: set[str] = set()

    async def _staged(self) -> Stage:
        trusted = Trust(**MODES[self.mode])
        stage = Stage(
            Settings(
                trust=trusted,
                policy=POLICY,
                approvals=self.office.settings(),
                state=self.office.state,
                style="on-conflict",
            ),
            self.book,
            self.office.place,
            Offering,
        )
        stage.lists(*tools("A"))
        stage.registry.catch_up()
        return stage

    def _rebuild(self) -> None:
        self.stage.registry.stale = True
        self.portal.call(self.stage.registry.catch_up)

    def _admit(self, letter: str) -> None:
        """Take what the gateway read into the model."""
        self.listed = letter
        if letter in self.rejected or letter == self.pinned:
            return
        if self.mode == "warn":
            self.pinned = letter
        elif self.mode == "block":
            self.rejected.add(letter)

    @property
    def is_shown(self) -> bool:
        """Whether what the server lists is called at all."""
        if self.listed in self.rejected:
            return False
        return self.listed == self.pinned or self.mode in {"warn", "quarantine"}

    @rule(letter=st.sampled_from(LETTERS), when=MOMENTS)
    def changes(self, letter: str, when: str) -> None:
        self.fs.now, self.fs.when_read = letter, when
        if when == "listed":
            self.fs.takes(tools(letter), self.fs.lists)
            self._rebuild()
            self._admit(letter)

    @rule(letter=st.sampled_from(LETTERS), accepted=st.booleans())
    def operator_says(self, letter: str, accepted: bool) -> None:
        about = [one for one in (*self.book.pins().values(), *self.book.seen().values()) if one.id is not None]
        about = [one for one in about if one.content["description"].endswith(f"way {letter}.")]
        if not about:
            return
        if accepted:
            self.book.trust(about, by="me")
            self.pinned = letter
            self.rejected.discard(letter)
        else:
            self.book.note(about, "rejected", by="me")
            self.rejected.add(letter)
        self._rebuild()
        self._admit(self.listed)

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), approved=st.sampled_from([True, True, False]), scope=SCOPES)
    def somebody_decides(self, data: st.DataObject, approved: bool, scope: Any) -> None:
        self._decided([*self.pending][data.draw(st.integers(0, len(self.pending) - 1))], approved, scope)

    def _decided(self, key: str, approved: bool, scope: Any) -> None:
        with ApprovalQueue(self.office.place) as book:
            asked = book.find(key)
            assert asked is not None
            approvals = Approvals.open(self.office.place)
            made = decided(asked, scope, approvals, book, approved=approved, lasts=600.0)
        one = Decision(made.key, approved, scope, self.pending.pop(key), key)
        self.decisions = [*(old for old in self.decisions if old.covers_same != one.covers_same), one]

    @precondition(lambda self: self.decisions)
    @rule(data=st.data())
    def somebody_revokes(self, data: st.DataObject) -> None:
        one = self.decisions[data.draw(st.integers(0, len(self.decisions) - 1))]
        Approvals.open(self.office.place).revoke(one.key)
        self.decisions.remove(one)

    def _allowed(self, call: Request) -> bool:
        said = verdict(self.decisions, call)
        if said is not None:
            return said
        # Only a yes to the request itself, not used so far, leaves what was decided for the session aside.
        once = [one for one in self.decisions if one.scope == "call" and one.approved and not one.is_over]
        requests = {one.request for one in once if one.about == call}
        return any(verdict(self.decisions, call, request) for request in requests)

    @rule(text=st.sampled_from("xy"), scope=SCOPES)
    def calls_and_is_allowed(self, text: str, scope: str) -> None:
        if key := self._called(text):
            self._decided(key, True, scope)
            self._called(text)

    @rule(letter=st.sampled_from(LETTERS), when=MOMENTS, text=st.sampled_from("xy"))
    def changes_before_a_call(self, letter: str, when: str, text: str) -> None:
        self.changes(letter, when)
        self._called(text)

    @rule(text=st.sampled_from("xy"))
    def calls(self, text: str) -> None:
        self._called(text)

    def _called(self, text: str) -> str | None:
        call, was_listed = Request(self.fs.now, text), self.listed
        may, before, was_shown = self._allowed(call), len(self.fs.ran), self.is_shown
        as_listed = Request(was_listed, text)
        by_request = self._allowed(as_listed) and verdict(self.decisions, as_listed) is None
        result = self.portal.call(self.client.call_tool, "push", {"text": text})
        ran = self.fs.ran[before:]
        # What ran was decided on, by its definition of now.
        assert ran in ([], [("push", call.letter)])
        assert may or not ran, (call, self.decisions)
        if was_listed == call.letter:
            assert bool(ran) is (may and self.is_shown), (call, self.decisions, result)
        # A yes to one call is used when the call is begun, also where the server that is started then is another one.
        if by_request and was_shown and (ran or self.fs.when_read == "started"):
            for one in self.decisions:
                one.is_over |= one.scope == "call" and one.about == as_listed
        if key := (result.meta or {}).get("dev.truename/approval"):
            self.pending[key] = Request(self.fs.letter, text)
        self._follow()
        return key

    @rule()
    def calls_what_nobody_decides_on(self) -> None:
        before, was_listed = len(self.fs.ran), self.listed
        self.portal.call(self.client.call_tool, "free", {})
        ran = self.fs.ran[before:]
        if was_listed == self.fs.now:
            assert bool(ran) is self.is_shown
        self._follow()

    def _follow(self) -> None:
        """Have the gateway and the model take in what the server listed meanwhile."""
        if self.fs.letter == self.fs.now != self.listed:
            self._rebuild()
            self._admit(self.fs.now)

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()


Trusting.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestGrants = Trusting.TestCase


def test_a_no_for_the_session_about_another_definition_is_not_passed_over_by_a_call_made_again() -> None:
    story = Trusting()
    story.begins(mode="quarantine")
    try:
        story.calls_and_is_allowed(text="x", scope="arguments")
        story.changes_before_a_call(letter="B", when="listed", text="x")
        (request,) = story.pending
        story._decided(request, approved=False, scope="session")
        story.changes(letter="A", when="listed")

        story.calls(text="x")

        assert story.fs.ran == [("push", "A")]
    finally:
        story.teardown()


def test_a_yes_for_good_does_not_pass_over_a_no_for_the_session_where_the_request_itself_was_refused() -> None:
    story = Trusting()
    story.begins(mode="quarantine")
    try:
        refused = story._called("x")
        assert refused is not None
        story._decided(refused, approved=False, scope="call")
        story.calls_and_is_allowed(text="y", scope="always")
        story.changes_before_a_call(letter="B", when="listed", text="x")
        (request,) = story.pending
        story.changes_before_a_call(letter="A", when="listed", text="x")
        story._decided(request, approved=False, scope="session")
        ran = list(story.fs.ran)

        story.calls(text="x")

        assert story.fs.ran == ran
    finally:
        story.teardown()
