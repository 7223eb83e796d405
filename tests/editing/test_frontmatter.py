"""The YAML at the head of a Markdown file: found, read and changed, and nothing of it is trusted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.editing.frontmatter import MAX_FRONTMATTER, find_frontmatter
from truename.editing.syntax import InvalidSyntax


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\na: 1\n---\nb", "b"),
        ("---\na: 1\n---", ""),
        ("---\n---\nb", "b"),
        ("\ufeff---  \r\na: 1\r\n--- \r\nb", "b"),
        ("---\na: ---\n----\n---\n---\n", "---\n"),
        ("", None),
        ("a\n---\na: 1\n---\n", None),
        (" ---\na: 1\n---\n", None),
        ("---\na: 1\n", None),
        ("---\na: 1\n --- \n", None),
        ("----\na: 1\n----\n", None),
        ("---\n" + "#" * MAX_FRONTMATTER + "\n---\n", None),
    ],
)
def test_a_frontmatter_stands_between_two_lines_at_the_very_beginning(text: str, body: str | None) -> None:
    found = find_frontmatter(text)

    assert (None if found is None else text[found.body :]) == body


BOMB = "---\na: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\nt: y\n---\n"


@pytest.mark.parametrize(
    ("head", "now"),
    [
        ("t: x # why\nb: 1", 't: "y z" # why\nb: 1'),
        ("'t': 'x'", "'t': \"y z\""),
        ("t: >\n  a\n  b\nb: 1", 't: "y z"\nb: 1'),
        ("t: [a,\n  b]\nb: 1", 't: "y z"\nb: 1'),
        ("{t: x, b: 1}", '{t: "y z", b: 1}'),
        ("t: &t x\nb: 1", None),
    ],
)
def test_one_value_is_changed_and_nothing_else(head: str, now: str | None) -> None:
    found = find_frontmatter(f"---\n{head}\n---\nbody")
    assert found is not None

    changed = found.put("t", "y z")

    assert now is None or changed == f"---\n{now}\n---\nbody"
    if changed is not None:
        again = find_frontmatter(changed)
        assert again is not None
        assert again.read() == {**found.read(), "t": "y z"}


def test_a_list_is_changed_to_a_list() -> None:
    found = find_frontmatter("---\nt:\n  - a\n  - b\nb: 1\n---\n")
    assert found is not None

    assert found.put("t", ["a", "c"]) == "---\nt:\n  - a\n  - c\nb: 1\n---\n"


@pytest.mark.parametrize(
    "head", ["- a", "a: [", "a: *b", "a", "a: &a x\nb: *a", "[" * 5_000, "a: \x00", "a: 1\n...\nb: 2"]
)
def test_what_is_no_object_or_repeats_itself_is_refused(head: str) -> None:
    found = find_frontmatter(f"---\n{head}\n---\n")
    assert found is not None

    for use in (found.read, lambda: found.put("a", "x")):
        with pytest.raises(InvalidSyntax):
            use()


def test_aliases_cost_no_more_than_their_text() -> None:
    found = find_frontmatter(BOMB)
    big = find_frontmatter("---\na: &a " + "x" * 8_000 + "\nb: [" + "*a," * 2_500 + "]\nt: y\n---\n")
    assert found is not None
    assert big is not None

    for one in (found, big):
        with pytest.raises(InvalidSyntax, match="alias"):
            one.put("t", "z")


texts = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=30)
values = st.one_of(texts, st.lists(texts, max_size=4))


@given(values, st.one_of(values, st.text(max_size=30)), st.text(max_size=40))
def test_any_text_or_list_can_take_the_place_of_another(before: Any, after: Any, body: str) -> None:
    # JSON is YAML, and stands for how an author may have written it.
    found = find_frontmatter(f"---\nname: x\nt: {json.dumps(before, ensure_ascii=False)}\nz: 1\n---\n{body}")
    assert found is not None
    changed = found.put("t", after)

    if changed is not None:
        again = find_frontmatter(changed)
        assert again is not None
        assert again.read() == {"name": "x", "t": after, "z": 1}
        assert changed[again.body :] == body
