"""What holds for every text and every map."""

from __future__ import annotations

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from truename.migration import rewrite

NAMES = ("fs.list", "fs.list_dir", "agent.update", "a", "a.b", "winget-install", "天気", "x/y", "search")
RENAMES = {name: f"new_{number}" for number, name in enumerate(NAMES)}
BACK = {new: old for old, new in RENAMES.items()}
QUOTES = st.sampled_from(['"{}"', "'{}'", "`{}`", '\\"{}\\"', "{}", " {} ", "x{}", "{}y", "{}(", "- {}\n", "{}: 1\n"])
TOKENS = st.builds(str.format, QUOTES, st.sampled_from([*NAMES, "other.tool", "fs.listing"]))
NOISE = st.text(alphabet=string.printable + "éß天\ufeff\u2028", max_size=12).filter(lambda text: "new_" not in text)
TEXTS = st.lists(st.one_of(TOKENS, NOISE), max_size=25).map("".join)
KINDS = st.sampled_from(["", "yaml", "toml"])


@given(TEXTS, KINDS)
def test_rewriting_twice_changes_nothing_more(text: str, kind: str) -> None:
    once = rewrite(text, RENAMES, kind)

    assert rewrite(once.text, RENAMES, kind).text == once.text


@given(TEXTS, KINDS)
def test_only_the_places_told_have_changed(text: str, kind: str) -> None:
    done = rewrite(text, RENAMES, kind)

    parts, at = [], 0
    for edit in done.edits:
        assert text[edit.start : edit.start + len(edit.old)] == edit.old
        assert RENAMES.get(edit.old, edit.new) == edit.new
        parts += [text[at : edit.start], edit.new]
        at = edit.start + len(edit.old)
    assert "".join([*parts, text[at:]]) == done.text


@given(TEXTS)
def test_rewriting_back_gives_the_text_that_there_was(text: str) -> None:
    plain = {old: new for old, new in RENAMES.items() if old.isascii() and "/" not in old}
    there = rewrite(text, plain)

    assert rewrite(there.text, {new: old for old, new in plain.items()}).text == text


@given(st.text(max_size=60), KINDS)
@settings(max_examples=50)
def test_a_text_without_old_names_stays(text: str, kind: str) -> None:
    if not any(name in text for name in NAMES):
        assert rewrite(text, RENAMES, kind).text == text


@given(TEXTS, KINDS)
def test_no_old_name_is_both_changed_and_left(text: str, kind: str) -> None:
    done = rewrite(text, RENAMES, kind)

    changed = {(edit.line, edit.column) for edit in done.edits}
    assert not changed & {(left.line, left.column) for left in done.leftovers}
