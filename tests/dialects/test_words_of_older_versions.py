"""The words of the table that older versions of clients needed: digests without a mark, apart, and for later names."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import pytest

from truename.dialects.registry import _dialect

if TYPE_CHECKING:
    from truename.dialects import Dialect

ROW: dict[str, Any] = {
    "name": "x",
    "kind": "client",
    "title": "X",
    "chars": "a-zA-Z0-9_-",
    "max_length": 64,
    "join": "mcp__{server}__{tool}",
    "over": "hash",
    "digest": {"algorithm": "sha1", "of": "{raw}", "length": 40},
}
LONG = "n" * 60


def made(**fields: Any) -> Dialect:
    return _dialect({**ROW, **fields})


def test_a_digest_without_a_mark_follows_the_name_at_once() -> None:
    row = made(digest={**ROW["digest"], "mark": ""})
    digest = hashlib.sha1(f"mcp__lab__{LONG}".encode(), usedforsecurity=False).hexdigest()

    assert row.shown("lab", LONG) == f"mcp__lab__{'n' * 14}{digest}"
    assert made().shown("lab", LONG) == f"mcp__lab__{'n' * 13}_{digest}"


@pytest.mark.parametrize(
    ("server", "tool", "shown"),
    [
        ("lab", "x", "mcp__lab.x"),
        ("lab", LONG, r"mcp__lab\.n{41}_[0-9a-f]{12}"),
        ("s" * 50, "x" * 20, r"mcp__s{44}\._[0-9a-f]{12}"),
        ("s" * 40, "x" * 20, r"mcp__s{40}\.x{4}_[0-9a-f]{12}"),
        ("s" * 500, "x", r"mcp__s{44}\._[0-9a-f]{12}"),
    ],
)
def test_parts_that_are_shortened_apart_keep_what_joins_them(server: str, tool: str, shown: str) -> None:
    digest = {"algorithm": "sha1", "of": "{raw}", "length": 12, "apart": True}
    row = made(join="{server}.{tool}", measure="{server}__{tool}", server=[["start", "mcp__"]], digest=digest)

    found = row.shown(server, tool) or ""
    assert re.fullmatch(shown, found)
    assert len(found.replace(".", "__", 1)) <= 64


def test_of_names_that_became_equal_on_several_servers_only_the_later_ones_get_a_digest() -> None:
    digest = {**ROW["digest"], "length": 12, "when": ["over", "equal"]}
    row = made(equal="hash", across="hash-later", digest=digest)

    seen = row.simulate_all([("a", ["b__c", "x.y", "x/y"]), ("a__b", ["c"])])

    assert seen.shown["a", "b__c"] == "mcp__a__b__c"
    assert re.fullmatch(r"mcp__a__b__c_[0-9a-f]{12}", seen.shown["a__b", "c"])
    assert seen.reaches[seen.shown["a__b", "c"]] == ("a__b", "c")
    assert not seen.dropped


def test_of_names_that_are_alike_only_the_later_ones_get_a_digest() -> None:
    digest = {**ROW["digest"], "length": 12, "when": ["over", "equal"]}
    row = made(join="{server}.{tool}", alike=[["replace", "\\.", ""]], twins="hash", digest=digest)

    seen = row.simulate_all([("a", ["bc", "x"]), ("ab", ["c", "x"]), ("abc", ["", "y"])])

    assert seen.shown["a", "bc"] == "a.bc"
    assert re.fullmatch(r"ab\.c_[0-9a-f]{12}", seen.shown["ab", "c"])
    assert {seen.shown["a", "x"], seen.shown["ab", "x"]} == {"a.x", "ab.x"}
    assert seen.reaches[seen.shown["ab", "c"]] == ("ab", "c")
    assert len(set(seen.shown.values())) == len(seen.shown)
