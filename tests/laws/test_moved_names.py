"""Operators redirect and break names at random while tools come and go: no name ever means a tool that nobody said."""

from __future__ import annotations

import shutil
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.errors import LedgerError, NoLegalName, ResolutionError
from truename.identity import fold
from truename.naming import listing

TOOLS = tuple(
    ToolId.parse(text) for text in ("k/fs.list", "k/fs_list", "k/list", "files/list", "files/fs.list", "k/fs.list@2")
)
CLIENTS = ("universal", "openai", "native")
DAYS = ("", "2027-01-01", "2027-02-01")
TODAY = date(2027, 1, 15)


class Moves(RuleBasedStateMachine):
    """One ledger; beside it, what was shown, and what operators said of it."""

    @initialize(style=st.sampled_from(["prefixed", "on-conflict"]), journal=st.booleans())
    def begin(self, style: str, journal: bool) -> None:
        self.style = style
        self.folder = Path(tempfile.mkdtemp()) if journal else None
        self.ledger = Ledger.memory() if self.folder is None else Ledger.open(self.folder / "ledger")
        self.present: set[ToolId] = set(TOOLS[:2])
        self.ever: dict[str, set[ToolId]] = {}
        self.led: dict[ToolId, set[ToolId]] = {}
        self.broken: set[str] = set()
        self.table: NameTable | None = None

    def teardown(self) -> None:
        if getattr(self, "folder", None) is not None:
            shutil.rmtree(self.folder, ignore_errors=True)  # type: ignore[arg-type]

    @rule(tools=st.sets(st.sampled_from(TOOLS), min_size=1))
    def other_tools_are_here(self, tools: set[ToolId]) -> None:
        self.present = tools

    @rule(client=st.sampled_from(CLIENTS))
    def a_client_lists(self, client: str) -> None:
        try:
            self.table = project(Catalog.of(*map(str, self.present)), client, style=self.style, ledger=self.ledger)
        except ExceptionGroup as group:
            # An operator who withdraws every name that a tool could have leaves none.
            assert {type(error) for error in group.exceptions} == {NoLegalName}  # noqa: PT017 - two ways are right
            return
        for id, name in self.table.items():
            self.ever.setdefault(name, set()).add(id)
            assert name not in self.broken, "what was broken is never shown again"

    def _old(self, choice: Any) -> str:
        names = sorted(self.ever) + [str(id) for id in TOOLS]
        return str(choice.draw(st.sampled_from(names)))

    @rule(choice=st.data(), new=st.sampled_from(TOOLS), until=st.sampled_from(DAYS))
    def an_operator_redirects(self, choice: Any, new: ToolId, until: str) -> None:
        old = self._old(choice)
        self.ledger.redirect(old, new, until=until)
        self.broken.discard(old)
        self._say(old, new)

    @rule(choice=st.data(), new=st.sampled_from(TOOLS))
    def an_operator_breaks(self, choice: Any, new: ToolId) -> None:
        old = self._old(choice)
        self.ledger.break_name(old, new, protocol="0.3")
        self.broken.add(old)
        self._say(old, new)

    def _say(self, old: str, new: ToolId) -> None:
        if "/" in old:
            self.led.setdefault(ToolId.parse(old), set()).add(new)
            return
        for name in {one for one in self.ever if fold(one) == fold(old)} | {old}:
            self.ever.setdefault(name, set()).add(new)

    @precondition(lambda self: self.folder is not None)
    @rule()
    def the_gateway_restarts(self) -> None:
        assert self.folder is not None
        before = dict(self.ledger.withdrawn)
        self.ledger = Ledger.open(self.folder / "ledger")
        assert dict(self.ledger.withdrawn) == before
        self.table = None

    @invariant()
    def a_name_means_what_was_said_of_it_or_nothing(self) -> None:
        if getattr(self, "table", None) is None:
            return
        assert self.table is not None
        for name, said in self.ever.items():
            try:
                found = resolve(name, self.table).id
            except ResolutionError:
                continue
            assert name not in self.broken
            assert found in self._reachable(said)

    def _reachable(self, ids: set[ToolId]) -> set[ToolId]:
        found = set(ids)
        while more := {new for id in found for new in self.led.get(id, ())} - found:
            found |= more
        return found

    @invariant()
    def a_list_has_legal_names_that_no_client_merges(self) -> None:
        if getattr(self, "table", None) is None or self.table is None:
            return
        shown = listing(self.table, TODAY)
        assert len({fold(one.name) for one in shown}) == len(shown)
        assert [one.name for one in shown if not one.now] == list(self.table.values())
        for one in shown:
            assert not self.table.dialect.check(one.name)
            if one.now:
                assert resolve(one.name, self.table).id == one.id
                assert one.until >= TODAY.isoformat()

    @precondition(lambda self: self.table is not None)
    @rule(stranger=st.sampled_from(TOOLS))
    def nobody_else_can_claim_what_was_shown(self, stranger: ToolId) -> None:
        for name, said in list(self.ever.items()):
            if stranger in self._reachable(said):
                continue
            try:
                project(Catalog.of(str(stranger)), "openai", style=self.style, ledger=self.ledger,
                        overrides={"openai": {stranger: name}})  # fmt: skip
            except (LedgerError, ExceptionGroup):
                continue
            raise AssertionError(name, stranger)


Moves.TestCase.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)
TestMoves = Moves.TestCase
