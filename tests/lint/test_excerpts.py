"""The line that a finding is about: cut to the width, the name kept, nothing unprintable."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truename.conventions import Finding, Location
from truename.lint import UPKEEP
from truename.lint.excerpts import find_excerpt, render_findings

if TYPE_CHECKING:
    from pathlib import Path


def finding(file: Path, line: int, column: int, name: str = "") -> Finding:
    return Finding(
        rule=UPKEEP["computed_name"],
        fact="A fact.",
        remedy="A remedy.",
        location=Location(file=str(file), line=line, column=column),
        tools=(name,) if name else (),
    )


@pytest.mark.parametrize(
    ("line", "name", "shown"),
    [
        ('x = t(name="fs.list")', "fs.list", '1 | x = t(name="fs.list")\n  |             ^^^^^^^'),
        ('\tx("fs.list")', "fs.list", '1 | x("fs.list")\n  |    ^^^^^^^'),
        ('t("天気", "fs.list")', "fs.list", '1 | t("天気", "fs.list")\n  |            ^^^^^^^'),
        ('t("天気")', "天気", '1 | t("天気")\n  |    ^^^^'),
        ('t("a\u202e\x1b", "b")', "b", '1 | t("a\\u202e\\x1b", "b")\n  |                   ^'),
    ],
)
def test_the_mark_stands_under_the_name(tmp_path: Path, line: str, name: str, shown: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(line, "utf-8")
    assert str(find_excerpt(finding(path, 1, line.index(name) + 1, name), 80)) == shown


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.text(min_size=1, max_size=90), st.text(max_size=300), st.integers(30, 120))
def test_whatever_a_line_holds_the_excerpt_is_printable_and_no_wider(
    tmp_path_factory: pytest.TempPathFactory, before: str, name: str, after: str, width: int
) -> None:
    line = "".join(char for char in before + name + after if char not in "\r\n" and not "\ud800" <= char <= "\udfff")
    path = tmp_path_factory.mktemp("any") / "a.py"
    path.write_bytes(line.encode())
    found = find_excerpt(finding(path, 1, len(before) + 1, name), width)
    assert found is not None
    assert all(part.isprintable() for part in str(found).split("\n"))
    shown = str(found).split("\n", maxsplit=1)[0]
    assert sum(not unicodedata.combining(char) for char in shown) <= width


def test_what_has_no_line_has_no_excerpt(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x\n", "utf-8")
    assert find_excerpt(finding(path, 0, 0), 80) is None
    assert find_excerpt(finding(path, 9, 1), 80) is None
    assert find_excerpt(finding(tmp_path / "gone.py", 1, 1), 80) is None
    assert find_excerpt(finding(tmp_path, 1, 1), 80) is None


def test_a_plain_text_tells_place_rule_fact_line_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("t('x')\n", "utf-8")
    text = render_findings([finding(path, 1, 4, "x")])
    assert text.split("\n") == [
        f"{path}:1:4  note  TN195 computed_name", "  A fact.", "  1 | t('x')", "    |    ^", "  A remedy.",
    ]  # fmt: skip
