"""The driver itself: it notices every wrong expectation, skips what it cannot check, and survives hostile rows."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.acceptance.driver import execute, main
from tests.acceptance.ops import OPS
from tests.acceptance.rows import AGENTS, SEEDS, Row, read, rows_of
from tests.acceptance.verdict import FAILED, PASSED, SKIPPED, compare
from tests.acceptance.words import LATER, NOT_COMPARED
from tests.shared import ROOT, data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLAT = {"op": "flatten", "input": "salesforce@1/get_leads@1"}
GOOD: dict[str, Any] = {"id": "good", "given": FLAT, "expect": {"name": "sf_get_leads"}}
WRONG: dict[str, Any] = {"id": "wrong", "given": FLAT, "expect": {"name": "sf_get_lead"}}
STRANGE: dict[str, Any] = {"id": "strange", "given": {"op": "levitate"}, "expect": {"up": True}}
WEB = {"op": "filter", "platform": "web", "app": "shop", "tools": [{"name": "web_open"}, {"name": "ios_open"}]}


def row(given: dict[str, Any], expect: dict[str, Any]) -> Row:
    (one,) = rows_of([{"id": "one", "given": given, "expect": expect}])
    return one


def other(key: str, value: Any) -> Any:
    """Return a value that cannot be right if this one is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list):
        return [*value, "name" if key == "absent" else "never said"]
    return {**value, "x": 1} if isinstance(value, dict) else "x"


def spoiled(good: Row) -> Iterator[Row]:
    """Yield the row with each of its expectations made wrong, one at a time, but for what is never compared."""
    for key, value in ((key, value) for key, value in good.expect.items() if key not in NOT_COMPARED):
        yield replace(good, expect={**good.expect, key: other(key, value)})
        yield replace(good, expect={**good.expect, f"{key} of something else": value})


@pytest.mark.parametrize("file", ["seeds.json", "openai-agents.json"])
def test_every_wrong_expectation_in_a_passing_row_is_noticed(file: str) -> None:
    passing = [one for one in read(data("acceptance", file)) if execute(one).status == PASSED]
    unnoticed = [(bad.id, bad.expect) for good in passing for bad in spoiled(good) if execute(bad).status != FAILED]

    assert passing
    assert unnoticed == []


@pytest.mark.parametrize("op", ["levitate", "", *(op for ops in LATER.values() for op in ops)])
def test_an_op_that_is_unknown_or_waits_for_a_capability_is_skipped(op: str) -> None:
    assert execute(row({"op": op}, {"ok": True})).status == SKIPPED


def test_no_op_is_both_executed_and_waiting() -> None:
    assert {op for shape, op in OPS if shape == SEEDS} & {op for ops in LATER.values() for op in ops} == set()


@pytest.mark.parametrize("op", sorted(op for shape, op in OPS if shape == SEEDS))
def test_an_op_of_the_other_vocabulary_is_not_taken_for_one_of_the_seeds(op: str) -> None:
    vector = {"id": "v", "op": op, "given": {"name": "a"}, "expect": {"value": "a"}}

    assert [execute(one).status for one in rows_of({"vectors": [vector]})] == [SKIPPED]
    assert [one.shape for one in rows_of({"vectors": [vector]})] == [AGENTS]


@pytest.mark.parametrize(
    ("given", "expect", "why"),
    [
        (FLAT, {}, "it expects nothing"),
        ({"op": "flatten"}, {"name": "a"}, "it does not give input"),
        ({**FLAT, "moon": "full"}, {"name": "sf_get_leads"}, "it gives moon, which is not understood"),
        ({"op": "encode", "scheme": "rot13", "input": "a.b"}, {"name": "n.o"}, "no style is known as 'rot13'"),
        ({"op": "doc", "item": "the moon"}, {"present": False}, "nothing is known as 'the moon'"),
        ({"op": "perf", "tools": 10**9}, {"linear": True}, "growth is counted from 100 to 20,000 tools"),
        ({"op": 7}, {"ok": True}, "it names no op"),
    ],
)
def test_a_row_that_can_not_be_checked_is_skipped_with_the_reason(
    given: dict[str, Any], expect: dict[str, Any], why: str
) -> None:
    verdict = execute(row(given, expect))

    assert verdict.status == SKIPPED
    assert verdict.reason.startswith(why)


@pytest.mark.parametrize(
    ("given", "expect", "status"),
    [
        ({"op": "resolve", "catalog": ["a/b"], "input": "zzz"}, {"canonical": None}, PASSED),
        ({"op": "resolve", "catalog": ["a/b"], "input": "zzz"}, {"error": "unknown_tool"}, PASSED),
        ({"op": "resolve", "catalog": ["a/b"], "input": "zzz"}, {"canonical": "a@1/b@1"}, FAILED),
        ({"op": "resolve", "catalog": ["a/c", "b/c"], "input": "c"}, {"error": "ambiguous"}, PASSED),
        ({"op": "resolve", "catalog": ["a/c", "b/c"], "input": "c"}, {"candidates": ["b_c", "a_c"]}, PASSED),
        ({"op": "resolve", "catalog": ["a/c", "b/c"], "input": "c"}, {"candidates": ["a_c"]}, FAILED),
        ({"op": "assigned_unique", "catalog": ["a/b"], "max_len": 3}, {"unique": True, "max_len": 3}, PASSED),
        ({"op": "assigned_unique", "catalog": ["a/bc"]}, {"max_len": 3}, FAILED),
        ({"op": "assigned", "catalog": ["a/b", "a/b"]}, {"error": "collision"}, PASSED),
        ({"op": "list_names", "catalog": ["a.b/c"], "client": "native"}, {"error": "invalid_tool_id"}, PASSED),
        ({"op": "detect", "headers": {"x-truename-dialect": "moon"}}, {"error": "unknown_dialect"}, PASSED),
        ({"op": "detect", "user_agent": "claude-code/2.1"}, {"dialect": "claude-code"}, PASSED),
        ({"op": "on_conflict", "servers": [], "calls": ["x"]}, {"ok": True}, FAILED),
        ({"op": "on_conflict", "servers": [["A", [{"name": "b"}]]]}, {"names": ["b"]}, PASSED),
        ({"op": "resolve_all_equal", "catalog": ["a/b"], "inputs": ["a_b", "zzz"]}, {"canonical": None}, FAILED),
        ({"op": "resolve_all_equal", "catalog": ["a/b"], "inputs": ["yyy", "zzz"]}, {"canonical": None}, PASSED),
        ({"op": "list_names", "catalog": [], "client": "cursor"}, {"all_match": ".*"}, FAILED),
        (WEB, {"names": ["web_open"]}, PASSED),
        ({**WEB, "op": "execute", "call": "web_open"}, {"ok": True}, PASSED),
        ({**WEB, "op": "execute", "call": "ios_open"}, {"error": "unsupported"}, PASSED),
    ],
)
def test_words_beyond_the_known_rows_mean_what_the_table_of_ops_says(
    given: dict[str, Any], expect: dict[str, Any], status: str
) -> None:
    verdict = execute(row(given, expect))

    assert (status, given) == (verdict.status, given), verdict.reason


@pytest.mark.parametrize(
    ("expect", "facts", "status"),
    [
        ({"ok": True}, {"ok": 1}, FAILED),
        ({"version": 1}, {"version": True}, FAILED),
        ({"version": 1}, {"version": "1"}, FAILED),
        ({"name": None}, {}, FAILED),
        ({"schema": {"a": 1, "b": 2}}, {"schema": {"b": 2, "a": 1}}, PASSED),
        ({"names": ["a", "b"]}, {"names": ["b", "a"]}, FAILED),
        ({"contains": ["a"]}, {"names": ["b", "a"]}, PASSED),
        ({"contains": []}, {"names": ["b", "a"]}, FAILED),
        ({"rule": "b"}, {"rules": ["a", "b"]}, PASSED),
        ({"rule": "b"}, {"rules": []}, FAILED),
        ({"rule": None}, {"rules": []}, PASSED),
        ({"rule": None}, {"rules": ["a"]}, FAILED),
        ({"mentions": "ba"}, {"message": "ab"}, FAILED),
        ({"mentions": ["ab"]}, {"message": "cab"}, PASSED),
        ({"absent": []}, {"descriptors": [{"a": 1}]}, FAILED),
        ({"all_match": "^a$"}, {"names": ["a\n"]}, FAILED),
        ({"all_match": "("}, {"names": ["("]}, FAILED),
        ({"present": True}, {"present": True}, PASSED),
        ({"error": "no"}, {"canonical": "a"}, FAILED),
    ],
)
def test_comparison_is_strict(expect: dict[str, Any], facts: dict[str, Any], status: str) -> None:
    assert compare(expect, facts).status == status


HOSTILE: list[Any] = [
    None,
    7,
    "row",
    [],
    {},
    {"id": 7, "given": FLAT, "expect": {"name": "x\x1b[2J"}},
    {"id": "a\nb\x1b[2J", "given": FLAT, "expect": {"name": "\u202e"}},
    {"id": "r", "given": [], "expect": {}},
    {"id": "r", "given": {"op": "flatten", "input": 7}, "expect": {"name": "a"}},
    {"id": "r", "given": {"op": "flatten", "input": "a" * 10**6}, "expect": {"name": "a"}},
    {"id": "r", "given": {"op": "assigned", "catalog": {"a": 1}, "aliases": 7}, "expect": {"a": "a"}},
    {"id": "r", "given": {"op": "on_conflict", "servers": [["", [None]]]}, "expect": {"names": ["a"]}},
    {"id": "r", "given": {"op": "on_conflict", "servers": "abc"}, "expect": {"names": ["a"]}},
    {"id": "r", "given": {"op": "valid_name", "profile": "\0", "name": "a"}, "expect": {"valid": True}},
    {"id": "r", "given": {"op": "doc", "item": "../README"}, "expect": {"present": True}},
    {"id": "r", "given": {"op": "config", "format": []}, "expect": {"accepted": True}},
]


@pytest.mark.parametrize("item", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_row_never_passes_and_is_told_in_one_printable_line(tmp_path: Path, item: Any) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([item]), "utf-8")
    out = io.StringIO()
    main([str(file)], out, verbose=True)
    line, last = out.getvalue().splitlines()

    assert line.isprintable()
    assert last.startswith("0 passed")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["op", "a", "input"]), inner),
    max_leaves=6,
)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(op for shape, op in OPS if shape == SEEDS)),
    st.dictionaries(st.sampled_from(sorted(set[str]().union(*(op.takes for op in OPS.values())))), JSON),
)
def test_no_given_makes_an_op_raise_or_pass_what_it_does_not_check(op: str, values: dict[str, Any]) -> None:
    assert execute(row({**values, "op": op}, {"never observed": 1})).status in {FAILED, SKIPPED}


@pytest.mark.parametrize(
    ("items", "last", "status"),
    [
        ([GOOD], "1 passed, 0 failed, 0 skipped", 0),
        ([GOOD, STRANGE], "1 passed, 0 failed, 1 skipped", 0),
        ([GOOD, WRONG, STRANGE], "1 passed, 1 failed, 1 skipped", 1),
        ([], "0 passed, 0 failed, 0 skipped", 0),
    ],
)
def test_the_last_line_counts_and_the_status_is_0_only_if_none_failed(
    tmp_path: Path, items: list[Any], last: str, status: int
) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(items), "utf-8")
    out = io.StringIO()

    assert main([str(file)], out) == status
    assert out.getvalue().splitlines()[-1] == last


@pytest.mark.parametrize("content", [b"", b"{", b"7", b"{}", b"\xff", b"[" * 100_000])
def test_a_file_that_holds_no_rows_fails(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "rows.json"
    file.write_bytes(content)
    out = io.StringIO()

    assert main([str(file), str(tmp_path / "absent.json")], out) == 1
    assert out.getvalue().splitlines()[-1] == "0 passed, 2 failed, 0 skipped"


def test_the_command_prints_a_line_for_a_failing_row_and_on_request_for_a_skipped_one(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([GOOD, WRONG, STRANGE]), "utf-8")
    command = [sys.executable, "-m", "tests.acceptance", "--verbose", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        'wrong flatten: expected {"name": "sf_get_lead"}, got {"name": "sf_get_leads"}',
        "strange levitate: no such op is known (skipped)",
        "1 passed, 1 failed, 1 skipped",
    ]


def test_growth_that_is_not_linear_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def quadratic(given: dict[str, Any]) -> int:
        names = given["servers"][0][1]
        return sum(len(one) for one in names for _ in names)

    monkeypatch.setattr("tests.acceptance.ops_servers.table_of", quadratic)

    assert execute(row({"op": "perf", "tools": 400}, {"linear": True})).status == FAILED


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (None, FAILED),
        ("", FAILED),
        ("# A title\n", FAILED),
        ("# A title\n\nA page.\n\nWith text.\n\nAnd [a link](gone.md).\n\nEnd.\n", FAILED),
        ("# A title\n\nA page.\n\nWith text.\n\nAnd [a link](https://example.com).\n\nEnd.\n", PASSED),
    ],
)
def test_a_page_that_is_absent_empty_or_has_a_dead_link_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, status: str
) -> None:
    monkeypatch.setattr("tests.acceptance.ops_servers.DOCS", tmp_path)
    if text is not None:
        (tmp_path / "reference").mkdir()
        (tmp_path / "reference" / "tools-reference.md").write_text(text, "utf-8")

    assert execute(row({"op": "doc", "item": "tools-reference"}, {"present": True})).status == status


def test_an_error_in_truename_that_is_not_typed_fails_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("tests.acceptance.world.project", broken)
    (good,) = rows_of([GOOD])

    assert execute(good).reason == "raised RuntimeError: boom"
    assert execute(good).status == FAILED
