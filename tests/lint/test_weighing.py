"""Weighing: comments, conventions and baselines take findings back, and none of them can rot unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truename.conventions import Convention, Declaration, Location, Severity
from truename.errors import ConfigError
from truename.lint import (
    DeclaredTools,
    LintConfiguration,
    LintReport,
    load_lint_configuration,
    read_baseline,
    read_declared,
    render_baseline,
    weigh,
)

if TYPE_CHECKING:
    from pathlib import Path

STRICT = Convention()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: Path, *tools: str, before: str = "") -> Path:
    """Write a source of several tools: each a name, and perhaps a comment behind it."""
    parts = (one.partition(" #") for one in tools)
    lines = [
        f"@mcp.tool(name={name!r}){mark}{comment}\ndef f{number}(): ..."
        for number, (name, mark, comment) in enumerate(parts)
    ]
    path.write_text(before + "\n".join(lines) + "\n", "utf-8")
    return path


def of(path: Path, *, baseline: Any = None, rules: tuple[str, ...] = (), convention: Convention = STRICT) -> LintReport:
    configured = LintConfiguration(convention=convention, base=path.parent)
    return weigh(read_declared([path]), configured, baseline=baseline, rules=rules)


def codes(report: LintReport) -> list[str]:
    return [one.rule.name for one in report.findings]


def test_a_file_that_is_named_in_two_ways_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fine")
    report = weigh(read_declared(["a.py", path, tmp_path, "./a.py"]))
    assert (report.tools, report.findings) == (1, ())


def test_a_fingerprint_is_the_same_whatever_else_is_read(tmp_path: Path) -> None:
    server = "from fastmcp import FastMCP\nm = FastMCP({!r})\n@m.tool(name='a b')\ndef f(): ...\n"
    for name in ("docs", "web"):
        (tmp_path / f"{name}.py").write_text(server.format(name), "utf-8")
    both, alone = (
        {
            one.finding.location: one.fingerprint
            for one in weigh(read_declared([path]), LintConfiguration(base=tmp_path)).shown
        }
        for path in (tmp_path, tmp_path / "web.py")
    )
    assert len(set(both.values())) == len(both) == 2
    assert alone.items() <= both.items()


@pytest.mark.parametrize("word", ["TN103", "illegal_name", "TN999, illegal_name", "illegal_name,TN103"])
def test_a_comment_with_a_reason_takes_a_finding_back(tmp_path: Path, word: str) -> None:
    report = of(write(tmp_path / "a.py", f"fs list # truename: ignore[{word}] old clients"))
    assert "illegal_name" not in codes(report)
    assert report.hidden[0].hidden == "comment"
    assert report.hidden[0].reason == "old clients"


def test_a_comment_without_a_reason_has_no_effect_and_is_told(tmp_path: Path) -> None:
    report = of(write(tmp_path / "a.py", "fs list # truename: ignore[illegal_name]"), rules=("TN103", "TN192"))
    assert codes(report) == ["illegal_name", "unexplained_suppression"]


@pytest.mark.parametrize(
    ("word", "said"),
    [("TN1003", "Did you mean TN103?"), ("ilegal_name", "Did you mean illegal_name?"), ("", "No rule is named")],
)
def test_a_comment_about_a_rule_that_does_not_exist_is_told_with_its_line(tmp_path: Path, word: str, said: str) -> None:
    report = of(write(tmp_path / "a.py", f"fine # truename: ignore[{word}] why", before="\n\n"))
    (finding,) = report.findings
    assert finding.rule.name == "unknown_rule"
    assert said in str(finding)
    assert finding.location is not None
    assert (finding.location.line, finding.location.column) == (3, 24)


def test_a_comment_that_takes_nothing_back_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fine # truename: ignore[illegal_name] no longer")
    path.write_text(path.read_text("utf-8") + "x = 1  # truename: ignore[illegal_name] nowhere\n", "utf-8")
    report = of(path)
    assert codes(report) == ["unused_suppression", "unused_suppression"]
    assert len(report.unused) == 2


def test_a_computed_name_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("@mcp.tool(name=x)  # truename: ignore[TN195] made from the plugins\ndef f(): ...\n", "utf-8")
    report = of(path)
    assert report.findings == ()
    assert [one.hidden for one in report.hidden] == ["comment"]


def test_what_cant_be_read_can_be_taken_back_by_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def (\n", "utf-8")
    convention = Convention(severities={"TN193": None})
    assert codes(of(path, convention=convention, rules=("TN103",))) == ["unreadable_source"]


def test_the_convention_says_how_bad_our_own_findings_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fine # truename: ignore[illegal_name] no longer")
    (finding,) = of(path, convention=Convention(severities={"unused_suppression": Severity.NOTE})).findings
    assert finding.rule.severity == "note"
    assert of(path, convention=Convention(severities={"TN191": None})).findings == ()


def test_a_part_says_nothing_of_what_the_rest_may_need(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fine # truename: ignore[duplicate_name] another file has it")
    declared = read_declared([path])
    assert weigh(declared, is_whole=False).findings == ()
    assert codes(weigh(declared)) == ["unused_suppression"]


def accepted(path: Path, tmp_path: Path) -> Path:
    baseline = tmp_path / "truename-baseline.jsonl"
    baseline.write_bytes(render_baseline(of(path).entries(path.parent)))
    return baseline


def test_a_baseline_accepts_what_there_is_and_nothing_new(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fs list", "fs read")
    baseline = read_baseline(accepted(path, tmp_path))
    report = of(path, baseline=baseline)
    assert report.findings == ()
    assert {one.hidden for one in report.hidden} == {"baseline"}
    write(path, "fs list", "fs read", "fs write")
    assert {one.tools for one in of(path, baseline=baseline).findings} == {("fs write",)}


def test_lines_that_move_change_no_fingerprint(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fs list", "fs read")
    baseline = read_baseline(accepted(path, tmp_path))
    write(path, "fine", "fs read", "fs list", before="import os\n\n\n")
    assert of(path, baseline=baseline).findings == ()


def test_a_second_finding_of_the_same_kind_is_new(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fs list")
    baseline = read_baseline(accepted(path, tmp_path))
    write(path, "fs list", "fs list")
    assert codes(of(path, baseline=baseline)) == ["illegal_name", "duplicate_name"]


def test_stale_entries_are_findings_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fs list", "fs read")
    baseline = read_baseline(accepted(path, tmp_path))
    write(path, "fs list")
    report = of(path, baseline=baseline)
    assert set(codes(report)) == {"stale_baseline"}
    assert {one.location.line for one in report.findings if one.location} <= set(range(2, 10))
    assert all("fs read" in one.fact for one in report.findings)


def test_entries_of_files_that_were_not_linted_are_left_alone_unless_they_are_gone(tmp_path: Path) -> None:
    path, other = write(tmp_path / "a.py", "fs list"), write(tmp_path / "b.py", "fs read")
    both = LintConfiguration(convention=STRICT, base=tmp_path)
    report = weigh(read_declared([path, other]), both)
    baseline = tmp_path / "b.jsonl"
    baseline.write_bytes(render_baseline(report.entries(tmp_path)))
    assert of(path, baseline=read_baseline(baseline)).findings == ()
    other.unlink()
    assert set(codes(of(path, baseline=read_baseline(baseline)))) == {"stale_baseline"}


def test_a_baseline_is_sorted_and_each_entry_stands_on_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fs read", "fs list")
    text = accepted(path, tmp_path).read_text("ascii")
    assert text.splitlines()[0] == '{"truename.baseline": 1}'
    assert text.index("fs list") < text.index("fs read")
    assert accepted(path, tmp_path).read_text("ascii") == text


@pytest.mark.parametrize("raw", [b"", b"[]\n", b"\xff\xfe", b'{"truename.baseline": 2}\n', b"[" * 100_000])
def test_what_is_no_baseline_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "b.jsonl").write_bytes(raw)
    with pytest.raises(ConfigError, match="baseline"):
        read_baseline(tmp_path / "b.jsonl")


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"fingerprint": 3}', '{"fingerprint": "x", "tools": 1}'])
def test_a_broken_line_of_a_baseline_is_told_and_the_others_count(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "a.py", "fs list")
    baseline = accepted(path, tmp_path)
    baseline.write_text(baseline.read_text("utf-8") + line + "\n", "utf-8")
    report = of(path, baseline=read_baseline(baseline))
    assert codes(report) == ["unreadable_source"]


def test_a_baseline_that_names_no_rule_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", "fs list")
    baseline = accepted(path, tmp_path)
    baseline.write_text(baseline.read_text("utf-8").replace("TN103", "TN1O3"), "utf-8")
    assert "unknown_rule" in codes(of(path, baseline=read_baseline(baseline)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["fs list", "a b", "fine", "Fine", "x" * 70]), max_size=6), st.integers(0, 50))
def test_fingerprints_are_one_to_one_and_keep_when_lines_move(names: list[str], shift: int) -> None:
    def marks(offset: int) -> list[str]:
        tools = tuple(
            Declaration(name=name, location=Location(file="a.py", line=number + offset, column=1))
            for number, name in enumerate(names, 1)
        )
        return [
            one.fingerprint
            for one in weigh(DeclaredTools(declarations=tools), LintConfiguration(convention=STRICT)).shown
        ]

    assert marks(0) == marks(shift)
    assert len(set(marks(0))) == len(marks(0))


def test_a_broken_convention_is_told_with_its_line_and_the_files_are_checked(tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[convention]\npreset = "trailblaze"\ncasing = "loud"\n', "utf-8")
    configured = load_lint_configuration(tmp_path)
    report = weigh(read_declared([write(tmp_path / "a.py", "fs list")]), configured)
    assert "illegal_name" in codes(report)
    (finding,) = [one for one in report.findings if one.rule.name == "unreadable_source"]
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("truename.toml", 3)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("truename.toml", "[convention\n", 1),
        ("pyproject.toml", '[tool.truename.convention]\nx = 1\n\n[tool.truename.lint]\nsource = ["a"]\n', 2),
        ("pyproject.toml", '[tool.truename.lint]\nexclude = "a"\n', 2),
        ("truename.toml", "lint = 3\n", 1),
        ("truename.toml", "[truename.lint]\nsource = 3\n", 2),
        ("truename.toml", '[truename.convention]\n\nseverities = { TN1000 = "off" }\n', 3),
        ("truename.toml", '[convention]\nseverities = { TN1000 = "off" }\n', 2),
        ("truename.toml", '[convention]\n\nsuppressions = [{ rule = "TNO", tools = ["a"], reason = "b" }]\n', 3),
    ],
)
def test_what_is_wrong_with_a_configuration_has_its_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    findings = weigh(DeclaredTools(), load_lint_configuration(tmp_path)).findings
    assert findings
    assert findings[0].location is not None
    assert (findings[0].location.file, findings[0].location.line) == (name, line)


def test_a_suppression_of_the_convention_that_takes_nothing_back_is_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.truename.convention]\nsuppressions = [\n  { rule = "TN103", tools = ["old *"], reason = "b" },\n]\n',
        "utf-8",
    )
    (finding,) = weigh(DeclaredTools(), load_lint_configuration(tmp_path)).findings
    assert finding.rule.name == "unused_suppression"
    assert finding.location is not None
    assert finding.location.line == 3
    assert weigh(DeclaredTools(), load_lint_configuration(tmp_path), is_whole=False).findings == ()


def test_settings_are_read_from_the_nearest_file_upwards(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.truename.lint]\nsources = ["src"]\nexclude = ["gen"]\nbaseline = "b.jsonl"\n', "utf-8"
    )
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "pyproject.toml").write_text("[project]\nname = 'x'\n", "utf-8")
    found = load_lint_configuration(tmp_path / "deep" / "er")
    assert found.settings.sources == ("src",)
    assert found.settings.exclude == ("gen",)
    assert found.base == tmp_path


def test_the_convention_takes_back_what_the_linter_itself_finds(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("@mcp.tool(name=x)\ndef f(): ...\n", "utf-8")
    (tmp_path / "truename.toml").write_text(
        '[convention]\nsuppressions = [{ rule = "TN195", tools = ["*"], reason = "made from plugins" }]\n', "utf-8"
    )
    report = weigh(read_declared([tmp_path / "a.py"]), load_lint_configuration(tmp_path))
    assert report.findings == ()
    assert [one.hidden for one in report.hidden] == ["convention"]
