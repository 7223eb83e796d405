"""What servers dropped and brought: the record, proposals by the matching of `truename diff`, and decisions on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Ledger, ToolId
from truename.catalog import Catalog
from truename.migration.lock import pins_of
from truename.trust import renames as store
from truename.trust.rename_decisions import RenameDecisions, complete_decisions
from truename.trust.rename_matching import RenameMatch, is_opposite, propose_renames
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.migration.lock import Pin
    from truename.storage import StateLocation
    from truename.trust.renames import ArrivedTool

SEVERAL = st.lists(st.sampled_from("abcdef"), unique=True)


def tool(name: str) -> ToolId:
    return ToolId.parse(f"fs/{name}")


def digest(id: ToolId) -> str:
    return f"sha256:{id.tool}"


class Server:
    """A server whose lists are noted, as a gateway notes them."""

    def __init__(self, book: RenameStore) -> None:
        self.book = book
        self.bound: dict[ToolId, str] = {}
        self._was: frozenset[ToolId] | None = None

    def lists(self, *names: str) -> None:
        present = {tool(name): name for name in names}
        self.book.note("fs", bound=self.bound, present=present, digest=digest, was=self._was)
        self.bound |= present
        self._was = frozenset(present)

    def restarts(self) -> None:
        self._was = None

    def suspects(self, name: str) -> set[str]:
        new = self.book.arrived.get(tool(name))
        return set() if new is None else {one.name for one in self.book.suspects(new)}


def proposal(old: str, new: str, *, is_certain: bool = True) -> RenameMatch:
    return RenameMatch(old=tool(old), new=tool(new), is_certain=is_certain, score=1.0, reasons=("equal",))


def pins(*tools: tuple[str, str]) -> Mapping[ToolId, Pin]:
    found = pins_of(Catalog.from_mcp({"fs": [{"name": name, "description": said} for name, said in tools]}))
    return {tool(pin.name): pin for pin in found}


def test_a_tool_that_comes_while_another_is_away_may_be_that_one_also_after_it_came_back(place: StateLocation) -> None:
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("read", "wipe")
        assert (book.departed, book.arrived) == ({}, {})
        fs.lists("read", "clean")
        assert (fs.suspects("clean"), fs.suspects("read")) == ({"wipe"}, set())
        fs.lists("read", "clean", "wipe", "more")
        assert (fs.suspects("clean"), fs.suspects("more")) == ({"wipe"}, set())
        fs.lists("read", "clean", "more", "late")
        assert (fs.suspects("clean"), fs.suspects("more"), fs.suspects("late")) == ({"wipe"}, set(), {"wipe"})


def test_what_left_is_known_after_a_restart_whatever_came_in_between(place: StateLocation) -> None:
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
    with RenameStore(place) as book:
        fs.book = book
        fs.restarts()
        fs.lists()
        fs.restarts()
        fs.lists("clean")
        assert fs.suspects("clean") == {"wipe"}
    with RenameStore(place, readonly=True) as book:
        assert [one.name for one in book.departed["fs"]] == ["wipe"]


def test_a_tool_that_left_and_came_back_with_nothing_new_meanwhile_leaves_no_trace(place: StateLocation) -> None:
    with RenameStore(place) as book:
        fs = Server(book)
        for names in (("read", "wipe"), ("read",), ("read", "wipe")):
            fs.lists(*names)
        assert book.departed == {}


def test_two_gateways_that_are_offered_different_lists_do_not_write_in_turn(place: StateLocation) -> None:
    with RenameStore(place) as one, RenameStore(place) as other:
        old, new = Server(one), Server(other)
        old.lists("read", "wipe")
        new.bound = dict(old.bound)
        new.lists("read", "clean")
        one.refresh()
        for _ in range(3):
            old.lists("read", "wipe")
            new.lists("read", "clean")
            assert (one.refresh(), other.refresh()) == (False, False)
        assert new.suspects("clean") == {"wipe"}


def test_a_proposal_is_withdrawn_when_the_old_tool_returns(place: StateLocation) -> None:
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        book.propose([tool("clean")], [proposal("wipe", "clean")], digest)
        (one,) = book.proposals
        assert (one.old, one.digest, one.old_digest, one.is_certain) == (
            tool("wipe"),
            "sha256:clean",
            "sha256:wipe",
            True,
        )
        fs.lists("clean", "wipe")
        assert (list(book.proposals), fs.suspects("clean")) == ([], {"wipe"})


def test_no_tool_became_two_and_only_what_was_looked_at_is_accepted(place: StateLocation) -> None:
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean", "tidy")
        book.propose([tool("clean"), tool("tidy")], [proposal("wipe", "clean")], digest)
        assert book.accept(tool("clean"), tool("wipe"), by="ann", digest="sha256:other") is None
        assert book.accept(tool("clean"), tool("wipe"), by="ann", digest="sha256:clean") is not None
        assert book.accept(tool("tidy"), tool("wipe"), by="ann") is None
        assert book.accept(tool("clean"), tool("wipe"), by="ann") is None
        assert book.reject(tool("clean"), by="ann") is None
        assert fs.suspects("tidy") == {"wipe"}


def test_whoever_accepts_ends_the_search_for_the_old_tool_and_a_setting_does_not(place: StateLocation) -> None:
    for by, then in (("ann", set[str]()), ("", {"wipe"})):
        with RenameStore() as book:
            fs = Server(book)
            fs.lists("wipe")
            fs.lists("clean")
            book.accept(tool("clean"), tool("wipe"), by=by)
            fs.lists("clean", "late")
            assert fs.suspects("late") == then


def test_a_setting_accepts_proposals_together_each_as_it_was_read(place: StateLocation) -> None:
    with RenameStore(place) as gateway, RenameStore(place) as other:
        fs = Server(gateway)
        fs.lists("wipe", "read")
        fs.lists("clean", "page")
        proposals = [proposal("wipe", "clean"), proposal("read", "page")]
        gateway.propose([tool("clean"), tool("page")], proposals, digest)
        read = list(gateway.proposals)
        other.refresh()
        other.reject(tool("clean"), by="ann")
        gateway.accept_proposals(read, until="2027-02-01")
        words = {one.id.tool: (one.word, one.by, one.until) for one in gateway.arrived.values()}
        assert words == {"clean": ("rejected", "ann", ""), "page": ("accepted", "", "2027-02-01")}


def test_a_decision_that_was_interrupted_before_the_redirect_is_completed_once(place: StateLocation) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        book.accept(tool("clean"), tool("wipe"), by="ann", until="2027-02-01")
        assert ledger.standing("fs@1/wipe@1") is None
    with RenameStore(place) as book:
        assert (complete_decisions(book, ledger), complete_decisions(book, ledger)) == (True, False)
    standing = ledger.standing("fs@1/wipe@1")
    assert standing is not None
    assert (standing.status, standing.id, standing.until) == ("redirected", tool("clean"), "2027-02-01")


def test_a_decision_is_taken_back_with_its_redirect_and_may_be_made_again(place: StateLocation) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        decisions = RenameDecisions(book, ledger)
        for _ in range(2):
            assert decisions.accept(tool("clean"), tool("wipe"), by="ann", until="") is not None
            assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("clean")
            assert decisions.undo(tool("clean")) is not None
            assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")
            assert fs.suspects("clean") == {"wipe"}
        assert decisions.undo(tool("clean")) is None


def test_a_gateway_that_has_not_read_that_a_decision_was_taken_back_does_not_complete_it(place: StateLocation) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book, RenameStore(place) as gateway:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        decisions = RenameDecisions(book, ledger)
        decisions.accept(tool("clean"), tool("wipe"), by="ann", until="")
        gateway.refresh()
        decisions.undo(tool("clean"))
        assert [one.id for one in gateway.accepted] == [tool("clean")]
        assert not complete_decisions(gateway, ledger)
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")


def test_a_decision_whose_taking_back_was_interrupted_before_the_ledger_is_taken_back_by_the_next(
    place: StateLocation,
) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        decisions = RenameDecisions(book, ledger)
        decisions.accept(tool("clean"), tool("wipe"), by="ann", until="")
        book.reopen(tool("clean"))
        assert (book.arrived[tool("clean")].is_reopening, fs.suspects("clean")) == (True, {"wipe"})
        assert decisions.undo(tool("clean")) is not None
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")
        assert not book.arrived[tool("clean")].is_reopening
        assert decisions.undo(tool("clean")) is None


DECIDE_AGAIN: dict[str, Callable[[RenameDecisions, ArrivedTool], ArrivedTool | None]] = {
    "rejected": lambda decisions, seen: decisions.reject(tool("clean"), by="ben", shown=seen),
    "accepted as another": lambda decisions, seen: decisions.accept(
        tool("clean"), tool("read"), by="ben", until="", shown=seen
    ),
}


@pytest.mark.parametrize("decide", DECIDE_AGAIN.values(), ids=DECIDE_AGAIN.keys())
def test_an_interrupted_undoing_leaves_no_redirect_once_somebody_decides_otherwise(
    place: StateLocation, decide: Callable[[RenameDecisions, ArrivedTool], ArrivedTool | None]
) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe", "read")
        fs.lists("clean")
        decisions = RenameDecisions(book, ledger)
        decisions.accept(tool("clean"), tool("wipe"), by="ann", until="")
        book.reopen(tool("clean"))
        assert decide(decisions, book.arrived[tool("clean")]) is not None
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")


def test_nobody_decides_on_a_tool_whose_redirect_is_left_of_another_decision(place: StateLocation) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book, RenameStore(place) as late:
        fs = Server(book)
        fs.lists("wipe", "read")
        fs.lists("clean")
        RenameDecisions(book, ledger).accept(tool("clean"), tool("wipe"), by="ann", until="")
        late.refresh()
        book.reopen(tool("clean"))
        book.propose([tool("clean")], [proposal("read", "clean")], digest)
        book.accept_proposals(book.proposals, until="")
        assert book.arrived[tool("clean")].word == "proposed"
        # This one has not read that the decision is being taken back.
        decisions = RenameDecisions(late, ledger)
        assert decisions.accept(tool("clean"), tool("read"), by="ben", until="") is None
        assert decisions.accept(tool("clean"), tool("read"), by="ben", until="") is not None
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")


def test_a_gateway_completes_an_undoing_that_was_interrupted(place: StateLocation) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book, RenameStore(place) as gateway:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        RenameDecisions(book, ledger).accept(tool("clean"), tool("wipe"), by="ann", until="")
        book.reopen(tool("clean"))
        gateway.refresh()
        assert complete_decisions(gateway, ledger)
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")
        assert not gateway.arrived[tool("clean")].is_reopening
        assert not complete_decisions(gateway, ledger)


def test_a_redirect_by_an_operator_that_was_a_decision_ends_when_the_decision_is_taken_back(
    place: StateLocation,
) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        ledger.redirect("fs/wipe", tool("clean"))
        book.reject(tool("clean"), by="", word="renamed")
        assert RenameDecisions(book, ledger).undo(tool("clean")) is not None
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("wipe")


def test_a_rejection_that_is_taken_back_ends_no_redirect_that_an_operator_entered_since(place: StateLocation) -> None:
    ledger = Ledger.memory()
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        book.reject(tool("clean"), by="ann")
        ledger.redirect("fs/wipe", tool("clean"))
        assert RenameDecisions(book, ledger).undo(tool("clean")) is not None
        assert ledger.scoped("").withdrawn["fs@1/wipe@1"].id == tool("clean")


def test_an_id_that_an_operator_redirected_elsewhere_stays_so() -> None:
    ledger = Ledger.memory()
    with RenameStore() as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("clean")
        ledger.redirect("fs/wipe", "fs/tidy")
        book.accept(tool("clean"), tool("wipe"), by="ann")
        assert not complete_decisions(book, ledger)
        assert ledger.withdrawn["fs@1/wipe@1"].id == tool("tidy")


def test_new_tools_without_an_identity_are_forgotten_once_they_are_not_listed_if_there_are_many(
    monkeypatch: pytest.MonkeyPatch, place: StateLocation
) -> None:
    monkeypatch.setattr(store, "MAX_ARRIVED", 3)
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        fs.lists("a", "b", "c", "d", "e")
        assert {*book.arrived} == {tool(name) for name in "abcde"}
        for name in "ab":
            del fs.bound[tool(name)]
        fs.lists("c", "d", "e", "f")
        assert {*book.arrived} == {tool(name) for name in "cdef"}


def test_a_gateway_reads_what_is_on_record_of_its_servers_alone(place: StateLocation) -> None:
    with RenameStore(place) as book:
        for server in ("fs", "web"):
            old, new = ToolId.parse(f"{server}/wipe"), ToolId.parse(f"{server}/clean")
            book.note(server, bound={old: "wipe"}, present={new: "clean"}, digest=digest)
        assert book.departed.keys() == {"fs", "web"}
    with RenameStore(place, servers=()) as book:
        assert (book.departed, book.arrived) == ({}, {})
        book.expect(["fs"])
        assert ({*book.departed}, [one.server for one in book.arrived.values()]) == ({"fs"}, ["fs"])
        known = book.arrived[tool("clean")]
        book.expect(["fs", "web"])
        assert book.departed.keys() == {"fs", "web"}
        assert book.arrived[tool("clean")] is known


def test_a_tool_that_goes_and_comes_for_ever_fills_nothing(place: StateLocation) -> None:
    with RenameStore(place) as book:
        fs = Server(book)
        fs.lists("wipe")
        for number in range(12):
            fs.lists(f"new{number}")
            fs.lists(f"new{number}", "wipe")
        assert sum(one.name == "wipe" for one in book.departed["fs"]) <= 5
        assert all("wipe" in fs.suspects(f"new{number}") for number in range(12))


@given(st.lists(SEVERAL, min_size=1, max_size=8))
def test_whatever_a_server_does_each_tool_that_is_new_since_another_left_may_be_that_one(
    lists: list[list[str]],
) -> None:
    with RenameStore() as book:
        fs = Server(book)
        ever: set[str] = set()
        expected: dict[str, set[str]] = {}
        for number, names in enumerate(lists):
            if number % 3 == 2:
                fs.restarts()
            away = ever - {*names}
            for name in names:
                if name not in ever and away:
                    expected[name] = set(away)
            fs.lists(*names)
            ever |= {*names}
        for name in ever:
            assert fs.suspects(name) >= expected.get(name, set())


@given(st.lists(SEVERAL, min_size=2, max_size=6))
def test_what_never_came_while_another_was_away_is_suspected_of_nothing(lists: list[list[str]]) -> None:
    with RenameStore() as book:
        fs = Server(book)
        everything = sorted({name for names in lists for name in names})
        fs.lists(*everything)
        for names in lists:
            fs.lists(*names)
        assert book.arrived == {}


WIPE, TIDY = "Wipe the whole disk clean, now.", "Sort the books of a shelf by size."


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([("wipe", WIPE)], [("clean", WIPE)], [("wipe", "clean", True)]),
        ([("wipe", WIPE), ("tidy", TIDY)], [("clean", WIPE), ("tidy", TIDY)], [("wipe", "clean", True)]),
        # One definition, two tools: nothing tells which became which.
        ([("start", WIPE), ("stop", WIPE)], [("begin", WIPE), ("stop", WIPE)], [("start", "begin", False)]),
        ([("wipe", WIPE)], [("clean", WIPE), ("erase", WIPE)], [("wipe", "clean", False)]),
        # The names say the opposite.
        ([("start_vm", WIPE)], [("stop_vm", WIPE)], [("start_vm", "stop_vm", False)]),
        ([("vm_lock", WIPE)], [("vm_unlock", WIPE)], [("vm_lock", "vm_unlock", False)]),
        # A definition that says nothing identifies nothing.
        ([("zulu", "Run it.")], [("yankee", "Run it.")], [("zulu", "yankee", False)]),
        ([("wipe", WIPE)], [("tidy", TIDY)], []),
    ],
)
def test_a_rename_is_certain_only_by_an_equal_distinctive_definition_that_is_unique(
    before: list[tuple[str, str]], now: list[tuple[str, str]], expected: list[tuple[str, str, bool]]
) -> None:
    old, new = pins(*before), pins(*now)
    found = propose_renames(old, new, old.keys() - new.keys(), new.keys() - old.keys())
    assert [(one.old.tool, one.new.tool, one.is_certain) for one in found] == expected


PAIRS: list[tuple[str, str, bool]] = [
    ("start", "stop", True),
    ("container_stop", "container_start", True),
    ("enable_alerts", "disable_alerts", True),
    ("readFile", "writeFile", True),
    ("mute", "unmute", True),
    ("get_vm", "fetch_vm", False),
    ("start_vm", "start_machine", False),
    ("up_and_down", "down_and_up", False),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_names_that_say_the_opposite_are_known_in_both_orders(one: str, other: str, expected: bool) -> None:
    assert (is_opposite(one, other), is_opposite(other, one)) == (expected, expected)


@st.composite
def both_lists(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    names = st.sampled_from([f"{verb}_{noun}" for verb in ("start", "stop", "get", "fetch") for noun in ("vm", "disk")])
    texts = st.sampled_from([WIPE, TIDY, "Go.", "Read every page of one book."])
    return draw(st.dictionaries(names, texts)), draw(st.dictionaries(names, texts))


@given(both_lists())
def test_no_tool_is_in_two_proposals_and_a_certain_one_is_unique_on_both_sides(lists: Any) -> None:
    before, now = lists
    old, new = pins(*before.items()), pins(*now.items())
    found = propose_renames(old, new, old.keys() - new.keys(), new.keys() - old.keys())
    assert len({one.old for one in found}) == len({one.new for one in found}) == len(found)
    for one in found:
        was, is_now = before[one.old.tool], now[one.new.tool]
        assert one.old.tool not in now
        assert one.new.tool not in before
        if one.is_certain:
            assert was == is_now
            assert [*before.values()].count(was) == [*now.values()].count(was) == 1
            assert not is_opposite(one.old.tool, one.new.tool)
