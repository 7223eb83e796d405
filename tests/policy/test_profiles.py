"""Profiles: for whom they are, and what is in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Catalog, ToolId
from truename.conventions import Metadata
from truename.policy.principal import LOCAL, Principal
from truename.policy.profiles import Profile, Profiles

ANN = Principal(name="ann", groups=frozenset({"staff"}), scopes=frozenset({"read"}))
OTHER_ANN = Principal(name="ann", issuer="https://idp.example", groups=frozenset({"staff"}))
LISTED: dict[str, list[Any]] = {
    "files": [{"name": "read", "annotations": {"readOnlyHint": True}}, {"name": "delete", "annotations": "none"}],
    "bank": ["pay"],
}
CATALOG = Catalog.from_mcp(LISTED)


def shown(profile: Profile, metadata: Metadata = Metadata()) -> set[str]:  # noqa: B008 - frozen
    return {id.tool for id, tool in CATALOG.items() if profile.shows(tool, metadata)}


@pytest.mark.parametrize(
    ("profile", "tools"),
    [
        (Profile(), set()),
        (Profile(prompts=("*",), resources=("*",)), set()),
        (Profile(tools=("*",)), {"read", "delete", "pay"}),
        (Profile(tools=("files/*",), excluded=("*/delete",)), {"read"}),
        (Profile(servers=("bank",)), {"pay"}),
        (Profile(servers=("b*",), tools=("files/read",)), {"read", "pay"}),
        (Profile(annotations={"readOnlyHint": True}), {"read"}),
        (Profile(annotations={"readOnlyHint": False}, servers=("files",)), {"delete"}),
        (Profile(annotations={"destructiveHint": True}), {"delete", "pay"}),
        (Profile(families=("money",)), set()),
        (Profile(owners=("ops",)), {"read", "delete", "pay"}),
        (Profile(owners=("ops",), tools=("bank/*",)), {"pay"}),
        (Profile(owners=("ops",), families=("money",)), set()),
        (Profile(servers=("Bank",)), set()),
    ],
)
def test_what_is_in_a_profile(profile: Profile, tools: set[str]) -> None:
    assert shown(profile, Metadata(owner="ops")) == tools


def test_what_was_kept_out_stays_out_under_another_id_and_what_was_let_in_does_not_follow() -> None:
    before = (ToolId.parse("fs/purge"),)
    tool = CATALOG["files@1/delete@1"]
    assert not Profile(tools=("*",), excluded=("fs/purge",)).shows(tool, Metadata(), before)
    assert not Profile(tools=("fs/*",)).shows(tool, Metadata(), before)


@pytest.mark.parametrize(
    ("profile", "principal", "is_in"),
    [
        (Profile(), ANN, False),
        (Profile(groups=("staff",)), ANN, True),
        (Profile(groups=("Staff", "sta*", "read")), ANN, False),
        (Profile(scopes=("read",)), ANN, True),
        (Profile(scopes=("staff",)), ANN, False),
        (Profile(principals=("ann",)), ANN, True),
        (Profile(principals=("ann",)), OTHER_ANN, False),
        (Profile(principals=('["https://idp.example", "ann"]',)), OTHER_ANN, True),
        (Profile(principals=("local",)), LOCAL, True),
        (Profile(everyone=True), LOCAL, True),
        (Profile(default=True), LOCAL, False),
    ],
)
def test_for_whom_a_profile_is(profile: Profile, principal: Principal, *, is_in: bool) -> None:
    assert profile.is_for(principal) is is_in


def test_a_default_is_for_who_is_in_no_other() -> None:
    known = Profiles({"z": Profile(groups=("staff",)), "a": Profile(default=True), "b": Profile(default=True)})
    assert known.of(ANN) == ("z",)
    assert known.of(LOCAL) == ("a", "b")
    assert Profiles({"z": Profile(groups=("staff",))}).of(LOCAL) == ()
    assert Profiles().of(LOCAL) is None


def test_prompts_and_resources_are_of_the_servers_unless_said() -> None:
    plain, said = Profile(servers=("docs",)), Profile(servers=("docs",), prompts=(), resources=("wiki",))
    assert (plain.shows_prompts("docs"), plain.shows_resources("docs"), plain.shows_server("docs")) == (
        True,
        True,
        True,
    )
    assert (said.shows_prompts("docs"), said.shows_resources("docs"), said.shows_resources("wiki")) == (
        False,
        False,
        True,
    )
    assert said.shows_server("wiki")
    assert not Profile(tools=("*",)).shows_server("docs")


def test_what_is_not_there_is_judged_by_its_id_alone() -> None:
    gone = ToolId.parse("files/gone")
    assert Profile(tools=("files/*",)).shows_absent(gone, "files")
    assert not Profile(tools=("files/*",), annotations={"readOnlyHint": True}).shows_absent(gone, "files")
    assert not Profile(tools=("files/*",), excluded=("files/gone",)).shows_absent(gone, "files")


GLOBS = st.sampled_from(["*", "files/*", "files/read", "bank/*", "*/delete", "no/thing"])
ANY = st.builds(Profile, tools=st.lists(GLOBS, max_size=2).map(tuple), excluded=st.lists(GLOBS, max_size=1).map(tuple))


@given(st.lists(ANY, max_size=4))
def test_several_show_what_any_of_them_shows_and_unknown_ones_nothing(profiles: list[Profile]) -> None:
    known = Profiles({str(number): one for number, one in enumerate(profiles)})
    choice = known.choice([*known, "gone"])
    for tool in CATALOG.values():
        assert choice.shows(tool, Metadata()) is any(one.shows(tool, Metadata()) for one in profiles)
    assert choice.shows_absent(ToolId.parse("files/x"), "files") is any(
        one.shows_absent(ToolId.parse("files/x"), "files") for one in profiles
    )


def test_a_choice_of_servers_takes_the_others_away_from_what_profiles_show() -> None:
    profiles = Profiles({"all": Profile(servers=("files", "bank"), everyone=True)})

    for choice in (profiles.choice(["all"], ["bank", "gone"]), profiles.choice(None, ["bank"])):
        assert (choice.shows_server("bank"), choice.shows_server("files")) == (True, False)
        assert (choice.shows_prompts("bank"), choice.shows_prompts("files")) == (True, False)
        assert (choice.shows_resources("bank"), choice.shows_resources("files")) == (True, False)
        assert choice.shows_absent(ToolId.parse("x@1/y@1"), "bank")
        assert not choice.shows_absent(ToolId.parse("x@1/y@1"), "files")
    assert profiles.choice(None).shows_server("anything")
