"""Servers that rename: what a gateway lists and runs, and that no denial, decision or definition is lost on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.renaming_server import CLEAN, DENY, OTHER_SHAPE, OTHER_TEXT, READ, WIPE, House, id_of
from tests.gateway.staged import SPEC, Stage
from truename.config import Settings
from truename.config.trust import Trust
from truename.errors import NotAllowed
from truename.gateway.http.served_tables import SERVED
from truename.gateway.trust.vetting import Vetting
from truename.gateway.views.naming import Namer
from truename.ledger import open_ledger
from truename.policy import Context, read_policy
from truename.policy.presentation import Presentation
from truename.policy.profiles import Profile, Profiles
from truename.storage import StateLocation, copy_state
from truename.trust import PinStore
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.anyio
# Ways in which a server renames a tool: the lists that it gives, one after the other.
WAYS: dict[str, Sequence[Sequence[dict[str, Any]]]] = {
    "another name": [(READ, CLEAN)],
    "another name and text": [(READ, OTHER_TEXT)],
    "another name, text, schema and annotations": [(READ, OTHER_SHAPE)],
    "dropped first, brought later": [(READ,), (READ, OTHER_SHAPE)],
    "and the old one comes back beside it": [(READ, OTHER_SHAPE), (READ, WIPE, OTHER_SHAPE)],
    "with another tool's definition, which a setting accepts": [({**READ, "name": "page"},)],
    "renamed twice": [(READ, {**OTHER_TEXT, "name": "other"}), (READ, CLEAN)],
    "dropped, everything dropped, all brought": [(READ,), (), (READ, CLEAN)],
    "split in two": [(READ, {**OTHER_TEXT, "name": "clean_one"}, {**OTHER_SHAPE, "name": "clean_all"})],
    "and back, and away again": [(READ, CLEAN), (READ, WIPE), (READ, OTHER_SHAPE)],
    "everything dropped, and another tool's name taken": [(), ({**WIPE, "name": "page"}, READ)],
    "under the case of another client": [(READ, {**WIPE, "name": "WIPE"}), (READ, {**WIPE, "name": "w-i-p-e"}, CLEAN)],
}


@pytest.fixture(params=[*WAYS.values()], ids=[*WAYS])
def lists(request: pytest.FixtureRequest) -> Sequence[Sequence[dict[str, Any]]]:
    found: Sequence[Sequence[dict[str, Any]]] = request.param
    return found


@pytest.mark.parametrize("policy", DENY.values(), ids=DENY.keys())
async def test_a_denied_tool_that_its_server_renames_is_never_callable_without_a_word(
    policy: dict[str, Any], lists: Sequence[Sequence[dict[str, Any]]]
) -> None:
    house = House(policy, trust=Trust(auto_accept=True))
    house.lists(READ, WIPE)
    denied = await house.outcome("wipe")
    assert denied != "allow"
    for several in lists:
        house.lists(*several)
        for tool in several:
            assert (await house.outcome(tool["name"]) == "allow") == (tool["name"] == "read")
    if denied == "unknown_tool":
        assert {*house.listed()} <= {"read"}


@pytest.mark.parametrize("policy", DENY.values(), ids=DENY.keys())
async def test_a_tool_that_is_another_one_is_judged_by_its_own_id_once_somebody_says_so(policy: dict[str, Any]) -> None:
    house = House(policy)
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    assert await house.outcome("clean") != "allow"
    assert house.decisions.reject(id_of("clean"), by="ann") is not None
    house.look()
    assert await house.outcome("clean") == "allow"


@pytest.mark.parametrize("policy", DENY.values(), ids=DENY.keys())
async def test_a_denial_goes_with_the_tool_that_was_accepted_as_the_old_one(policy: dict[str, Any]) -> None:
    house = House(policy)
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    assert house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="") is not None
    house.look()
    assert await house.outcome("clean") != "allow"
    house.lists(READ, OTHER_SHAPE, {**READ, "name": "later", "description": "Sort the shelves of a library."})
    assert await house.outcome("later") == "allow"
    house.lists(READ, {**OTHER_SHAPE, "name": "third"})
    assert await house.outcome("third") != "allow"


@pytest.mark.parametrize("policy", [DENY[word] for word in DENY if word != "by annotations"])
async def test_an_old_name_that_comes_back_beside_the_new_one_stays_denied_under_the_id_that_it_gets(
    policy: dict[str, Any],
) -> None:
    house = House(policy)
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    assert house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="") is not None
    for several in ((READ, OTHER_SHAPE, {**OTHER_SHAPE, "name": "wipe"}), (READ, {**OTHER_SHAPE, "name": "wipe"})):
        house.lists(*several)
        assert id_of("wipe") not in house.registry.catalog
        assert await house.outcome("wipe") != "allow"


async def test_a_decision_that_is_taken_back_after_the_old_tool_returned_leaves_the_new_one_denied() -> None:
    for decide in ("reject", "accept"):
        house = House(DENY["by id"])
        house.lists(READ, WIPE)
        house.lists(OTHER_SHAPE)
        if decide == "reject":
            assert house.decisions.reject(id_of("clean"), by="ann") is not None
        else:
            assert house.decisions.accept(id_of("clean"), id_of("read"), by="ann", until="") is not None
        house.lists(WIPE, OTHER_SHAPE)
        assert house.decisions.undo(id_of("clean")) is not None
        house.look()
        assert await house.outcome("clean") == "unknown_tool"


async def test_a_redirect_by_an_operator_is_a_decision_until_it_is_taken_back() -> None:
    house = House(DENY["by id"])
    house.lists(READ, WIPE)
    house.lists(WIPE, OTHER_SHAPE)
    house.registry.ledger.redirect(str(id_of("read")), id_of("clean"))
    house.look()
    assert house.registry.renames.book.arrived[id_of("clean")].word == "renamed"
    assert house.decisions.undo(id_of("clean")) is not None
    house.look()
    assert house.registry.renames.book.arrived[id_of("clean")].is_open
    assert house.registry.ledger.scoped("").withdrawn[str(id_of("read"))].id == id_of("read")


async def test_what_a_setting_accepts_of_a_list_is_read_again_once_however_much_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = House(trust=Trust(auto_accept=True))
    tools = [{**READ, "description": f"Read page {number} of a book.", "name": f"read{number}"} for number in range(50)]
    house.lists(*tools)
    readings = 0
    read_again = RenameStore._read_again

    def counted(book: RenameStore) -> None:
        nonlocal readings
        readings += 1
        read_again(book)

    monkeypatch.setattr(RenameStore, "_read_again", counted)
    house.lists(*({**tool, "name": f"page{number}"} for number, tool in enumerate(tools)))
    assert len(house.registry.renames.book.accepted) == 50
    assert readings < 10


METADATA: dict[str, tuple[dict[str, Any], Context]] = {
    "not for models": ({"fs/wipe": {"is_for_llm": False}}, Context()),
    "for a platform": ({"fs/wipe": {"platforms": ["ios"]}}, Context(platform="android")),
    "for an app": ({"fs/w*": {"app": "payments"}}, Context(app="notes")),
}


@pytest.mark.parametrize(("metadata", "context"), METADATA.values(), ids=METADATA.keys())
async def test_a_tool_that_is_not_for_a_context_is_neither_listed_nor_called_there_under_another_name(
    metadata: dict[str, Any], context: Context
) -> None:
    house = House(metadata=metadata)

    def listed(where: Context) -> list[str]:
        return [*house.registry.access.limited(house.registry.view(SPEC), where).by_name]

    async def refused() -> str:
        view = house.registry.view(SPEC)
        tool = view.table.catalog[id_of("clean")]
        try:
            await house.registry.access.judge(view, tool, context, {"name": "clean", "arguments": {}}, 1)
        except NotAllowed as error:
            return error.code
        return "allow"

    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    suited = Context(platform="ios", app="payments", origin="replay")
    assert (listed(suited), listed(context)) == (["read", "clean"], ["read"])
    assert await refused() == "unsupported"
    # A list that changed in part is as strict.
    house.stage.lists(READ, OTHER_SHAPE, {**READ, "name": "more"})
    house.registry.catch_up()
    assert (listed(suited), listed(context)) == (["read", "clean", "more"], ["read"])
    house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="")
    house.look()
    assert (listed(context), await refused()) == (["read"], "unsupported")
    house.decisions.undo(id_of("clean"))
    house.decisions.reject(id_of("clean"), by="ann")
    house.look()
    assert (listed(context), await refused()) == (["read", "clean"], "allow")


async def test_what_may_be_a_tool_with_unreadable_metadata_is_refused_as_that_whatever_else_it_may_be() -> None:
    hidden = {"_meta": {"truename": {"is_for_llm": False}}}
    unreadable = {"_meta": {"truename": {"platforms": 5}}}
    house = House()
    house.lists({**WIPE, **unreadable}, {**OTHER_SHAPE, "name": "ask", **hidden})
    house.lists({**READ, "name": "clean"})
    view, replay = house.registry.view(SPEC), Context(origin="replay")
    assert [*house.registry.access.limited(view, replay).by_name] == []
    tool = view.table.catalog[id_of("clean")]
    with pytest.raises(NotAllowed, match="metadata"):
        await house.registry.access.judge(view, tool, replay, {"name": "clean", "arguments": {}}, 1)


async def test_a_tool_that_comes_together_with_a_changed_definition_that_may_be_its_own_is_kept_back_at_once() -> None:
    house = House({"rules": [{"outcome": "deny", "tools": ["fs/never"]}]}, trust=Trust(drift="quarantine"))
    house.lists(READ)
    house.lists({**OTHER_SHAPE, "name": "page"})
    house.lists({**READ, "description": "Read a page, and send it."}, WIPE)
    # It may be the tool `page`, which may have been `read`.
    assert await house.outcome("wipe") == "quarantined"
    house.look()
    assert await house.outcome("wipe") == "quarantined"


class Process(House):
    """A gateway process on a state that others share, or that is copied."""

    def __init__(self, where: StateLocation, policy: dict[str, Any]) -> None:
        super().__init__(policy)
        self._ledger, self._pins = open_ledger(where), PinStore(where)
        self._renames = RenameStore(where, servers=())
        self.stage = Stage(self.settings, self._pins, ledger=self._ledger, renames=self._renames)

    def ends(self) -> None:
        for one in (self._ledger, self._pins, self._renames):
            one.close()


async def test_a_denial_holds_at_all_replicas_whichever_of_them_sees_the_rename_first(place: StateLocation) -> None:
    one, other = Process(place, DENY["by id"]), Process(place, DENY["by id"])
    one.lists(READ, WIPE)
    other.lists(READ, WIPE)
    one.lists(READ, OTHER_SHAPE)
    other.look()
    other.lists(READ, OTHER_SHAPE)
    assert [await each.outcome("clean") for each in (one, other)] == ["unknown_tool"] * 2
    # One of them is offered the old list again, and a further tool comes.
    other.lists(READ, WIPE)
    for each in (one, other):
        each.lists(READ, OTHER_SHAPE, {**OTHER_TEXT, "name": "tidy"})
    assert [await each.outcome(name) for each in (one, other) for name in ("clean", "tidy")] == ["unknown_tool"] * 4
    assert one.decisions.reject(id_of("clean"), by="ann") is not None
    for each in (one, other):
        each.registry.renames.book.refresh()
        each.look()
        assert await each.outcome("clean") == "allow"
        each.ends()


@pytest.mark.parametrize("renamed_before", [False, True])
async def test_a_denial_goes_with_a_state_that_is_copied(tmp_path: Path, renamed_before: bool) -> None:
    first, last = (StateLocation(tmp_path / name) for name in ("first.db", "last.db"))
    before = Process(first, DENY["by id"])
    before.lists(READ, WIPE)
    if renamed_before:
        before.lists(READ, OTHER_SHAPE)
    before.ends()
    copy_state(first, last, SERVED)
    after = Process(last, DENY["by id"])
    after.lists(READ, OTHER_SHAPE)
    assert await after.outcome("clean") == "unknown_tool"
    after.ends()


async def test_more_new_tools_than_are_remembered_without_an_identity_stay_denied_over_a_restart(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.trust.renames.MAX_ARRIVED", 1)
    many = [{**OTHER_SHAPE, "name": name} for name in "abc"]
    for lists in (((READ, WIPE), (READ, *many)), ((READ, *many),)):
        process = Process(place, DENY["by id"])
        for several in lists:
            process.lists(*several)
        assert [await process.outcome(name) for name in "abc"] == ["unknown_tool"] * 3
        process.ends()


async def test_a_denial_by_id_holds_under_every_alias_of_the_server() -> None:
    house = House(DENY["by id"], style="prefixed", aliases={"fs": "disk"})
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    assert house.listed() == ["disk_read"]
    assert await house.outcome("clean") == "unknown_tool"


async def test_what_a_definition_was_kept_back_for_keeps_back_the_tool_under_its_new_name() -> None:
    house = House(trust=Trust(drift="quarantine", quarantine="hidden"))
    house.lists(READ, WIPE)
    book = house.registry.vetting.book
    book.note([book.pins()["fs@1/wipe@1"]], "rejected", by="ann")
    house.look()
    assert await house.outcome("wipe") == "quarantined"
    house.lists(READ, OTHER_SHAPE)
    assert (await house.outcome("clean"), house.listed()) == ("quarantined", ["read"])
    # The old tool's rejection is the new one's, once it is that tool.
    house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="")
    house.look()
    assert await house.outcome("clean") == "quarantined"
    book.trust([book.seen()["fs@1/clean@1", house.registry.catalog[id_of("clean")].digest]], by="ann")
    house.look()
    assert await house.outcome("clean") == "allow"


async def test_a_tool_that_takes_the_definition_of_a_denied_one_under_its_own_name_is_denied() -> None:
    named_read, named_wipe = {**WIPE, "name": "read"}, {**READ, "name": "wipe"}
    # Dropped and put onto another name, and exchanged with that.
    for several in ((named_read,), (named_wipe, named_read)):
        other = House(DENY["by id"])
        other.lists(READ, WIPE)
        other.lists(*several)
        assert await other.outcome("read") == "unknown_tool"
        other.decisions.reject(id_of("read"), by="ann")
        other.look()
        assert await other.outcome("read") == "allow"


@pytest.mark.parametrize("decide", ["nothing", "a setting", "accept", "redirect", "reject"])
async def test_a_decision_on_a_tool_does_not_cover_the_definition_of_a_denied_one_that_it_takes_later(
    decide: str,
) -> None:
    """Whoever decided on a renamed tool looked at another definition."""
    view, page = {**READ, "name": "view"}, {**READ, "name": "page", "description": "Turn to a page of the book."}
    trust = Trust(auto_accept=decide == "a setting")
    for last in ([{**WIPE, "name": "view"}], [{**WIPE, "name": "view"}, {**page, "name": "wipe"}]):
        house = House(DENY["by id"], trust=trust)
        house.lists(READ, WIPE)
        house.lists(view, WIPE)
        if decide == "accept":
            assert house.decisions.accept(id_of("view"), id_of("read"), by="ann", until="") is not None
        elif decide == "reject":
            assert house.decisions.reject(id_of("view"), by="ann") is not None
        elif decide == "redirect":
            house.registry.ledger.redirect(str(id_of("read")), id_of("view"))
        house.look()
        assert await house.outcome("view") == "allow"
        house.lists(*last)
        assert await house.outcome("view") == "unknown_tool"
        house.look()
        assert await house.outcome("view") == "unknown_tool"
        if house.registry.renames.book.arrived[id_of("view")].word == "accepted":
            # By the setting, as the denied one.
            assert house.decisions.undo(id_of("view")) is not None
        assert house.decisions.reject(id_of("view"), by="ann") is not None
        house.look()
        assert await house.outcome("view") == "allow"


@pytest.mark.parametrize("decide", ["a setting", "accept", "redirect"])
async def test_a_definition_is_no_less_distinctive_because_its_tool_had_another_id_before(decide: str) -> None:
    house = House(DENY["by id"], trust=Trust(auto_accept=decide == "a setting"))
    house.lists(READ, WIPE)
    house.lists(READ, CLEAN)
    if decide == "accept":
        assert house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="") is not None
    elif decide == "redirect":
        house.registry.ledger.redirect(str(id_of("wipe")), id_of("clean"))
    house.look()
    assert await house.outcome("clean") == "unknown_tool"
    house.lists({**WIPE, "name": "read"})
    assert await house.outcome("read") == "unknown_tool"


async def test_a_tool_that_takes_another_definition_stays_denied_what_it_was_denied_before() -> None:
    house = House(DENY["by id"])
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    house.lists(READ, WIPE, OTHER_SHAPE)
    assert await house.outcome("clean") == "unknown_tool"
    # The definition of a tool that is allowed.
    house.lists({**OTHER_TEXT, "name": "read"}, WIPE, {**READ, "name": "clean"})
    assert await house.outcome("clean") == "unknown_tool"


async def test_what_the_configuration_says_of_the_old_id_follows_an_accepted_rename() -> None:
    policy = {"default": "deny", "rules": [{"outcome": "allow", "tools": ["fs/read"]}]}
    house = House(
        policy,
        tools=Presentation({"fs/read": {"title": "A page"}}),
        profiles=Profiles({"all": Profile(tools=("fs/read",), default=True)}),
        tool_search="on",
        pinned=("fs/read",),
    )
    house.lists(READ, WIPE)
    view = house.registry.view(SPEC)
    assert "read" in house.registry.tool_search.listed(view).by_name
    house.lists({**READ, "name": "page"}, WIPE)
    assert await house.outcome("page") == "unsupported"
    house.decisions.accept(id_of("page"), id_of("read"), by="ann", until="2999-01-01")
    house.look()
    tool = house.registry.catalog[id_of("page")]
    assert (await house.outcome("page"), tool.shown["title"]) == ("allow", "A page")
    assert "page" in house.registry.tool_search.listed(house.registry.view(SPEC)).by_name
    choice = house.settings.profiles.choice(["all"])
    lineage = house.registry.renames.lineage(tool.id)
    assert choice.shows(tool, house.registry.access.exposure.metadata_of(tool), (), lineage)
    house.decisions.undo(id_of("page"))
    house.look()
    assert await house.outcome("page") == "unsupported"


def allow(**conditions: Any) -> dict[str, Any]:
    return {"default": "deny", "rules": [{"outcome": "allow", **conditions}]}


# What decides about the old tool, and what happens to the new one: before somebody accepts it, and then.
FOLLOWED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an id": (allow(tools=["fs/book.read"]), "unsupported", "allow"),
    "a glob": (allow(tools=["*/*.r*"]), "unsupported", "allow"),
    "a suite": (allow(tools=["fs/book.*"]), "unsupported", "allow"),
    "an exception from a denial": (
        {"rules": [{"outcome": "deny", "tools": ["fs/*"], "except": ["fs/book.read"]}]},
        "unknown_tool",
        "allow",
    ),
    "its new id alone": (allow(tools=["fs/page"]), "unsupported", "allow"),
    "an exception of its new id": (
        {"rules": [{"outcome": "deny", "tools": ["fs/*"], "except": ["fs/page"]}]},
        "unknown_tool",
        "allow",
    ),
    "an exception from what is allowed": (
        {"default": "deny", "rules": [{"outcome": "allow", "tools": ["fs/*"], "except": ["fs/book.*"]}]},
        "unsupported",
        "unsupported",
    ),
    "the server's own name": (allow(upstream=["book.read"]), "unsupported", "unsupported"),
    "annotations": (allow(annotations={"readOnlyHint": True}), "allow", "allow"),
    "an approval": ({"rules": [{"outcome": "ask", "tools": ["fs/book.*"]}]}, "ask", "ask"),
}


@pytest.mark.parametrize(("policy", "before", "after"), FOLLOWED.values(), ids=FOLLOWED.keys())
async def test_rules_follow_an_accepted_rename_and_its_undoing(policy: dict[str, Any], before: str, after: str) -> None:
    old = {**READ, "name": "book.read"}
    house = House(policy)
    house.lists(old, WIPE)
    house.lists({**READ, "name": "page"}, WIPE)
    assert await house.outcome("page") == before
    assert house.decisions.accept(id_of("page"), id_of("book.read"), by="ann", until="") is not None
    house.look()
    assert await house.outcome("page") == after
    house.decisions.undo(id_of("page"))
    house.look()
    assert await house.outcome("page") == before


PROFILES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "an id": ({"tools": ("fs/read",)}, {}, True),
    "a glob": ({"tools": ("fs/r*",)}, {}, True),
    "its new id alone": ({"tools": ("fs/page",)}, {}, True),
    "a family": ({"families": ("books",)}, {"fs/read": {"family": "books"}}, True),
    "an exception": ({"servers": ("fs",), "excluded": ("fs/read",)}, {}, False),
}


@pytest.mark.parametrize(("profile", "metadata", "shows"), PROFILES.values(), ids=PROFILES.keys())
async def test_profiles_follow_an_accepted_rename(profile: dict[str, Any], metadata: Any, shows: bool) -> None:
    house = House(profiles=Profiles({"all": Profile(default=True, **profile)}), metadata=metadata)
    spec = replace(SPEC, profiles=("all",))
    house.lists(READ, WIPE)
    house.lists({**READ, "name": "page"}, WIPE)
    assert "page" not in house.registry.view(spec).table.values()
    house.decisions.accept(id_of("page"), id_of("read"), by="ann", until="")
    house.look()
    assert ("page" in house.registry.view(spec).table.values()) is shows


NARROW: dict[str, dict[str, Any]] = {
    "by annotations": {"servers": ("fs",), "annotations": {"readOnlyHint": True}},
    "by globs that the new name fits": {"tools": ("fs/r*", "fs/c*")},
    "by an exception": {"servers": ("fs",), "excluded": ("fs/w*",)},
    "by a family": {"families": ("books",)},
}


@pytest.mark.parametrize("profile", NARROW.values(), ids=NARROW.keys())
async def test_a_profile_without_a_tool_is_without_what_may_be_that_tool(profile: dict[str, Any]) -> None:
    metadata = {"fs/r*": {"family": "books"}, "fs/clean": {"family": "books"}}
    house = House(profiles=Profiles({"all": Profile(default=True, **profile)}), metadata=metadata)
    spec = replace(SPEC, profiles=("all",))
    house.lists(READ, WIPE)
    assert [*house.registry.view(spec).table.values()] == ["read"]
    house.lists(READ, OTHER_SHAPE)
    assert [*house.registry.view(spec).table.values()] == ["read"]
    house.decisions.reject(id_of("clean"), by="ann")
    house.look()
    assert [*house.registry.view(spec).table.values()] == ["read", "clean"]


async def test_a_certain_rename_is_accepted_by_the_setting_of_its_server_alone() -> None:
    for trust, word in ((Trust(), "proposed"), (Trust(servers={"fs": Trust(auto_accept=True)}), "accepted")):
        house = House(trust=trust)
        house.lists(READ, WIPE)
        house.lists({**READ, "name": "page"}, WIPE)
        one = house.registry.renames.book.arrived[id_of("page")]
        assert (one.word, one.old, one.by) == (word, id_of("read"), "")
        former = house.registry.ledger.withdrawn.get("fs@1/read@1")
        assert (former is not None) is (word == "accepted")
    # A probable one is not.
    house = House(trust=Trust(auto_accept=True))
    house.lists(READ, WIPE)
    house.lists({**READ, "name": "read_page", "description": "Read one page of a book, or several."}, WIPE)
    assert house.registry.renames.book.arrived[id_of("read_page")].word == "proposed"


async def test_a_setting_accepts_a_whole_release_and_a_person_confirms_what_may_be_something_else() -> None:
    house = House(DENY["by id"], trust=Trust(auto_accept=True))
    house.lists(READ, WIPE)
    house.lists({**READ, "name": "acme_read"}, {**WIPE, "name": "acme_wipe"})
    assert [await house.outcome(name) for name in ("acme_read", "acme_wipe")] == ["allow", "unknown_tool"]

    house = House(DENY["by id"], trust=Trust(auto_accept=True))
    house.lists(READ, WIPE)
    house.lists({**READ, "name": "page"})
    assert await house.outcome("page") == "unknown_tool"
    assert house.decisions.accept(id_of("page"), id_of("wipe"), by="ann", until="") is None
    assert house.decisions.accept(id_of("page"), id_of("read"), by="ann", until="") is not None
    house.look()
    assert await house.outcome("page") == "allow"


async def test_a_profile_that_leaves_out_a_tool_leaves_out_what_may_be_that_tool() -> None:
    profiles = Profiles({"all": Profile(servers=("fs",), excluded=("fs/wipe",), default=True)})
    house = House(profiles=profiles)
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    spec = replace(SPEC, profiles=("all",))
    assert [*house.registry.view(spec).table.values()] == ["read"]
    house.decisions.reject(id_of("clean"), by="ann")
    house.look()
    assert [*house.registry.view(spec).table.values()] == ["read", "clean"]


NAMES = ("read", "wipe", "a", "b", "c")


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from(NAMES), unique=True), max_size=6), st.booleans())
def test_whatever_a_server_lists_no_tool_that_came_while_a_denied_one_was_away_runs(
    several: list[list[str]], accepts: bool
) -> None:
    house = House(DENY["by id"], trust=Trust(auto_accept=accepts))
    house.lists(READ, WIPE)
    ever, suspected = {"read", "wipe"}, {"wipe"}
    for number, names in enumerate(several):
        if "wipe" not in names:
            suspected |= {*names} - ever
        ever |= {*names}
        # Names keep their texts for a while, and the old tool's definition goes from one to the next.
        texts = {name: WIPE if (number + place) % 3 == 0 else READ for place, name in enumerate(NAMES)}
        house.lists(
            *({**texts[name], "name": name} for name in names if name not in {"read", "wipe"}),
            *(one for one in (READ, WIPE) if one["name"] in names),
        )
        accepted = {one.name: one.old for one in house.registry.renames.book.accepted}
        # Where a setting says what became of both, nothing is left to suspect.
        certain = accepted.keys() if id_of("wipe") in accepted.values() else set()
        for name in {*names} & suspected - {one for one in certain if accepted[one] != id_of("wipe")}:
            assert asyncio.run(house.outcome(name)) == "unknown_tool"


async def test_hostile_names_and_a_thousand_renames_of_one_server_are_bounded_and_concern_no_other() -> None:
    house = House(DENY["by id"])
    house.lists(WIPE, *({**READ, "name": f"old{number}"} for number in range(1_000)))
    house.lists(*({**READ, "name": f"new\u202e{number}\x1b[31m"} for number in range(1_000)))
    book = house.registry.renames.book
    assert len(book.arrived) <= 1_000
    with anyio.fail_after(20):
        assert house.listed() == []


@pytest.mark.parametrize("step", ["bound", "propose", "admitted"])
async def test_a_gateway_that_dies_between_two_steps_does_not_forget_who_was_away(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class DeathError(Exception):
        pass

    def dies(*_: Any, **__: Any) -> None:
        raise DeathError

    steps = {"bound": (Namer, "bind"), "propose": (RenameStore, "propose"), "admitted": (Vetting, "admitted")}
    lists = ((READ, WIPE), (READ, OTHER_SHAPE), (READ, OTHER_SHAPE))
    for number, tools in enumerate(lists):
        ledger = open_ledger(place)
        with PinStore(place) as pins, RenameStore(place) as book, monkeypatch.context() as patch:
            if number == 1:
                patch.setattr(*steps[step], dies)
            stage = Stage(Settings(policy=read_policy(DENY["by id"])), pins, ledger=ledger, renames=book)
            stage.lists(*tools)
            if number == 1:
                with pytest.raises(DeathError):
                    stage.registry.rebuild()
            else:
                stage.registry.rebuild()
                shown = stage.registry.access.limited(stage.registry.view(SPEC), Context())
                assert [*shown.by_name] == ["read"]
        ledger.close()


async def test_pins_of_a_gateway_say_what_a_tool_was_that_left_before_it_started(tmp_path: Path) -> None:
    with PinStore(tmp_path / "pins") as pins:
        stage = Stage(Settings(), pins)
        stage.lists(READ, WIPE)
        stage.registry.catch_up()
    with PinStore(tmp_path / "pins") as pins:
        later = Stage(Settings(), pins, ledger=stage.registry.ledger)
        later.lists({**READ, "name": "page"}, WIPE)
        later.registry.catch_up()
        (one,) = later.registry.renames.book.proposals
        assert (one.old, one.is_certain) == (id_of("read"), True)
