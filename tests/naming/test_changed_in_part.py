"""What users see of a table that followed a change of its catalogue: suggestions, other spellings, hidden tools."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, project, resolve
from truename.errors import ResolutionError, UnknownTool
from truename.ledger import SeenLedger
from truename.naming import reproject


def changed(names: NameTable, *new: str, gone: tuple[str, ...] = ()) -> NameTable:
    ids = [names.catalog[text].id for text in gone]
    catalog, different = names.catalog.changed(ids, Catalog.of(*new).values())
    return reproject(names, catalog, different)


def suggested(text: str, names: NameTable) -> tuple[str, ...]:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, names)
    return caught.value.suggestions


def begun(*ids: str, ledger: Ledger | None = None) -> NameTable:
    return project(Catalog.of(*ids), "openai", ledger=Ledger.memory() if ledger is None else ledger)


def test_a_table_whose_index_was_not_built_yet_is_followed_by_one_that_builds_its_own() -> None:
    names = begun("git/create_branch")
    index = names.spellings

    now = changed(names, "git/list_tags")

    assert now.spellings is not index
    assert str(resolve("git:list_tags", now).id) == "git@1/list_tags@1"


def test_a_tool_that_joins_is_suggested_and_one_that_left_is_not() -> None:
    names = begun("git/create_branch", "git/delete_branch", "git/list_tags")
    assert suggested("git_create_brnch", names)[0] == "git_create_branch"

    now = changed(names, "git/create_branches", gone=("git@1/create_branch@1",))
    found = suggested("git_create_brnch", now)
    assert "git_create_branches" in found
    assert "git_create_branch" not in found

    back = changed(now, "git/create_branch", gone=("git@1/create_branches@1",))
    found = suggested("git_create_brnch", back)
    assert "git_create_branch" in found
    assert "git_create_branches" not in found


@pytest.mark.parametrize("count", [3, 100])
def test_suggestions_are_those_of_a_new_table_however_many_tools_join(count: int) -> None:
    names = begun("git/create_branch", "git/delete_branch")
    suggested("git_create_brnch", names)
    now = changed(names, *(f"hg/create_bookmark_{number}" for number in range(count)), gone=("git@1/delete_branch@1",))

    assert suggested("hg_creat_bookmark_2", now) == suggested("hg_creat_bookmark_2", begun(*map(str, now)))
    assert "git_delete_branch" not in suggested("git_delete_brnch", now)


def test_other_spellings_of_a_tool_that_left_are_unknown_and_those_of_one_that_joined_reach_it() -> None:
    names = begun("git/push", "git/pull")
    assert str(resolve("GIT-PUSH", names).id) == "git@1/push@1"

    now = changed(names, "hg/push", gone=("git@1/push@1",))
    for text in ("GIT-PUSH", "git:push", "mcp_git__push"):
        with pytest.raises(UnknownTool) as caught:
            resolve(text, now)
        assert caught.value.reason == "absent"
    assert str(resolve("HG-PUSH", now).id) == "hg@1/push@1"
    assert str(resolve("GIT-PULL", now).id) == "git@1/pull@1"


def test_the_names_of_one_server_alone_follow_it() -> None:
    names = begun("git/push", ledger=Ledger.memory().scoped("only/git"))
    assert str(resolve("GIT-PUSH", names).id) == "git@1/push@1"

    now = changed(names, "git/pull", gone=("git@1/push@1",))
    assert str(resolve("GIT-PULL", now).id) == "git@1/pull@1"
    with pytest.raises(ResolutionError):
        resolve("GIT-PUSH", now)


def test_a_part_of_a_table_is_projected_whole() -> None:
    ledger = Ledger.memory()
    part = begun("git/push", "hg/push", ledger=ledger).among(list(Catalog.of("git/push")), ledger)

    now = changed(part, "git/pull")

    assert now.whole is now
    assert list(now.values()) == ["git_push", "git_pull"]


def test_a_reader_who_may_not_see_an_absent_tool_any_more_does_not_hear_of_its_spellings() -> None:
    ledger = Ledger.memory()
    begun("git/push", "hg/pull", ledger=ledger)
    whole, seen = begun("hg/pull", ledger=ledger), {"git", "hg"}
    part = whole.among(list(whole), SeenLedger(ledger, lambda id: id.integration in seen))
    with pytest.raises(UnknownTool) as caught:
        resolve("git:push", part)
    assert caught.value.reason == "absent"

    seen.discard("git")
    with pytest.raises(UnknownTool) as caught:
        resolve("git:push", part)
    assert caught.value.reason == "unknown"


def test_a_table_that_was_asked_knows_tools_that_are_recorded_later_as_absent() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.of("git/push"), "openai", ledger=ledger)
    with pytest.raises(UnknownTool) as before:
        resolve("hg:push", names)

    project(Catalog.of("hg/push"), "openai", ledger=ledger)

    with pytest.raises(UnknownTool) as after:
        resolve("hg:push", names)
    assert (before.value.reason, after.value.reason) == ("unknown", "absent")
