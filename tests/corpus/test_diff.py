"""Real names and definitions that were renamed: what is proved is right, and what is known is at least guessed."""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.renamed_tools import RENAMED, described, renamed, servers, untouched, widened
from tests.migration.listed import bare, pairs
from tests.shared import data
from truename.conventions.declarations import Declaration
from truename.migration import Certainty, ChangeKind, diff

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = [pytest.mark.slow, pytest.mark.corpus]

# Renames between releases of real servers that can be read off the lists of names, by the server's package.
KNOWN = {
    "context7-mcp": {("get-library-docs", "query-docs")},
    "server-everything": {
        ("annotatedMessage", "get-annotated-message"),
        ("getTinyImage", "get-tiny-image"),
        ("longRunningOperation", "trigger-long-running-operation"),
        ("printEnv", "get-env"),
    },
    "mongodb-mcp-server": {
        ("createIndex", "create-index"),
        ("insert", "insert-many"),
        ("listCollections", "list-collections"),
        ("query", "find"),
        ("update", "update-many"),
    },
    "playwright-mcp": {
        ("playwright_click", "browser_click"),
        ("playwright_close", "browser_close"),
        ("playwright_console_logs", "browser_console_messages"),
        ("playwright_drag", "browser_drag"),
        ("playwright_evaluate", "browser_evaluate"),
        ("playwright_fill", "browser_fill_form"),
        ("playwright_go_back", "browser_navigate_back"),
        ("playwright_hover", "browser_hover"),
        ("playwright_navigate", "browser_navigate"),
        ("playwright_press_key", "browser_press_key"),
        ("playwright_screenshot", "browser_take_screenshot"),
        ("playwright_select", "browser_select_option"),
        ("playwright_upload_file", "browser_file_upload"),
        ("browser_screen_click", "browser_click"),
        ("browser_screen_drag", "browser_drag"),
        ("browser_screen_type", "browser_type"),
        ("browser_wait", "browser_wait_for"),
    },
    "server-github": {
        ("issue_read", "get_issue"),
        ("issue_write", "update_issue"),
        ("pull_request_read", "get_pull_request"),
    },
    "blender-mcp": {("import_generated_asset", "import_asset"), ("search_polyhaven_assets", "search_assets")},
}


def declared(tools: Sequence[dict[str, Any]]) -> list[Declaration]:
    return [Declaration(name=tool["name"], definition=tool) for tool in tools]


def certain(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    found = diff(declared(old), declared(new)).renames(Certainty.CERTAIN)
    return {(one.old.name, one.new.name) for one in found if one.old and one.new}


def test_renames_that_are_known_of_real_servers_are_guessed_and_none_is_certain() -> None:
    found: dict[str, set[tuple[str, str]]] = {}
    for release in json.loads(data("corpus", "drift.json").read_text("utf-8")):
        changes = diff(bare(*release["gone"]), bare(*release["new"]))
        found.setdefault(release["live"], set()).update(pairs(changes))

        assert changes.renames(Certainty.CERTAIN) == ()
    assert [pair for server, known in KNOWN.items() for pair in known - found[server]] == []


@pytest.mark.parametrize("edit", [untouched, described, widened])
@pytest.mark.parametrize(("new_name", "least"), RENAMED.values(), ids=RENAMED.keys())
def test_what_is_certain_is_right_and_most_of_the_rest_is_guessed(
    new_name: Callable[[str], str], least: float, edit: Callable[[dict[str, Any]], None]
) -> None:
    true = proved = right = 0
    for tools in servers():
        new, truth = renamed(tools, new_name, edit)
        changes = diff(declared(tools), declared(new))
        sure = {(one.old.name, one.new.name) for one in changes.renames(Certainty.CERTAIN) if one.old and one.new}
        assert sure <= truth
        true, proved, right = true + len(truth), proved + len(sure), right + len(pairs(changes) & truth)

    assert right / true >= least
    assert proved / true >= (0.9 if edit is untouched else 0.0)


def test_swapped_names_are_never_taken_for_anything_else() -> None:
    told = 0
    for tools in servers():
        new = copy.deepcopy(tools)
        one, other = random.Random(len(tools)).sample(new, 2)
        one["name"], other["name"] = other["name"], one["name"]
        changes = diff(declared(tools), declared(new))

        assert not any(change.kind is ChangeKind.RENAMED for change in changes)
        told += any(change.kind is ChangeKind.SWAPPED for change in changes)
    assert told / len(servers()) >= 0.97


def test_what_was_split_merged_doubled_or_replaced_is_never_certain() -> None:
    for tools in servers():
        first, second = tools[:2]
        rest = tools[1:]
        doubled = [{**first, "name": f"{first['name']}_{end}"} for end in ("one", "two")]
        split = copy.deepcopy(doubled)
        for part in split:
            described(part)
        merged = {**first, "name": f"{first['name']}_and_{second['name']}"}
        described(merged)
        similar = {**second, "name": f"{second['name']}_extended"}
        described(similar)

        for new in ([*rest, *doubled], [*rest, *split], [*tools[2:], merged], [*rest, similar]):
            assert certain(tools, new) == set()


def test_edits_without_a_rename_are_no_rename() -> None:
    for tools in servers():
        new = copy.deepcopy(tools)
        for tool in new[::3]:
            described(tool)
            widened(tool)

        assert diff(declared(tools), declared(new)).renames() == ()
