"""The public pages are made from the results, and say nothing else."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from lab import behaviour, page, places, results, verdicts
from lab.results import Handshake, Probe, Run, SeenTool, Trial
from lab.verdicts import QUESTIONS, Question, verdict
from tests.lab.strange_places import ABSOLUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

DOT = Question("dot", "a dot", ".", ("fs.list",))
TWO = next(question for question in QUESTIONS if question.name == "clashes-2")
SHOWN = SeenTool(upstream="get_weather", shown="mcp__lab__get_weather")


@cache
def made_pages() -> Mapping[str, str]:
    return page.pages()


def made_up(*tools: SeenTool, scenario: str = "awkward", mode: str = "bare", api: str = "anthropic") -> Run:
    trial = Trial(scenario=scenario, mode=mode, tools=tools, api=api)
    return Run(
        client="made-up", title="Made up", version="1", dialect="claude-code", packages=("made-up@1",),
        date="2026-11-22", truename="0", walls="none", trials=(trial,),
    )  # fmt: skip


def test_the_pages_are_what_the_results_make() -> None:
    written = {path.relative_to(page.FOLDER).as_posix(): path for path in page.FOLDER.rglob("*.md")}

    assert {name: path.read_text("utf-8") for name, path in written.items()} == made_pages(), "run `python -m lab page`"


def test_every_client_and_every_question_has_a_page_that_the_table_links() -> None:
    made = made_pages()

    for run in results.load_all():
        assert f"| [{run.title}](clients/{run.client}.md) | {run.version} | {run.date} |" in made["index.md"]
        assert f"## Version {run.version}\n" in made[f"clients/{run.client}.md"]
        assert results.path_of(run.client, run.version).name in made["data.md"]
    for question in QUESTIONS:
        assert f"[`{question.label}`](constructs/{question.name}.md)" in made["index.md"]
        assert made[f"constructs/{question.name}.md"].startswith("# ")


@pytest.mark.parametrize(
    ("kind", "title"), [(Run, "A file"), (Trial, "A trial"), (SeenTool, "A tool"), (Probe, "A probe")]
)
def test_every_field_of_the_raw_results_is_described(kind: type[Run], title: str) -> None:
    section = made_pages()["data.md"].partition(f"## {title}\n")[2].partition("\n## ")[0]

    assert {field.name for field in fields(kind)} <= set(re.findall(r"`(\w+)`", section))


def test_no_row_of_a_table_has_more_cells_than_its_head() -> None:
    for text in made_pages().values():
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(counts) == 1, table[:300]


def test_the_pages_hold_no_place_of_this_machine() -> None:
    for path in page.FOLDER.rglob("*.md"):
        assert not ABSOLUTE.search(path.read_text("utf-8")), path.name


@pytest.mark.parametrize(
    ("tool", "kind", "text"),
    [
        (SeenTool(upstream="fs.list", shown="mcp__lab__fs_list"), "changed", "becomes `fs_list`"),
        (SeenTool(upstream="fs.list", outcome="missing"), "lost", "lost"),
        (SeenTool(upstream="fs.list", outcome="failed"), "fails", "fails"),
        (
            SeenTool(upstream="fs.list", shown="mcp__lab__fs_list", outcome="unreachable"),
            "nothing",
            "shown as `fs_list`, which runs nothing",
        ),
        (
            SeenTool(upstream="fs.list", shown="mcp__lab__fs_list", outcome="misrouted", reached=("lab", "x")),
            "wrong",
            "shown as `fs_list`, which runs `x`",
        ),
        (SeenTool(upstream="fs.list", shown="mcp__lab__fs.list"), "refused", "kept; refused by Anthropic"),
    ],
)
def test_an_answer_says_the_worst_and_what_happened(tool: SeenTool, kind: str, text: str) -> None:
    found = verdict(made_up(SHOWN, tool), DOT, "bare")

    assert found is not None
    assert (found.kind, found.text) == (kind, text)
    assert found.sign == verdicts.KINDS[kind][0]


def test_a_question_that_was_not_asked_has_no_answer() -> None:
    assert verdict(made_up(SHOWN), DOT, "through") is None


def test_what_failed_as_a_whole_is_answered_by_its_parts() -> None:
    whole = made_up(SeenTool(upstream="fs.list", outcome="failed"))
    part = Trial(scenario="awkward/dot", mode="bare", tools=(SHOWN, SeenTool(upstream="fs.list", shown="fs_list")))
    found = verdict(replace(whole, trials=(*whole.trials, part)), DOT, "bare")

    assert found is not None
    assert found.kind == "changed"


def test_servers_are_counted_and_what_is_wrong_is_named() -> None:
    right = SeenTool(server="server1", upstream="x", shown="x")
    lost = SeenTool(server="server2", upstream="x", outcome="missing")
    wrong = SeenTool(server="server3", upstream="x", shown="x", outcome="misrouted", reached=("server1", "x"))
    found = verdict(made_up(right, lost, wrong, scenario="clashes-2"), TWO, "bare")

    assert found is not None
    assert found.kind == "wrong"
    assert found.text == "1 of 3 right; `server2: x` lost; `server3: x` shown as `x`, which runs `server1: x`"


def test_what_goes_wrong_through_truename_is_listed_and_nothing_else_is() -> None:
    bad = made_up(SeenTool(upstream="a", listed="a", outcome="missing"), SHOWN, mode="through")
    good = made_up(SHOWN, SeenTool(upstream="same", outcome="copy"), mode="only")

    assert list(page.remaining([bad, good])) == [("through", "Made up", "awkward: 1 of 2 missing (`lab: a`)")]


def test_what_clients_do_otherwise_is_on_the_second_page() -> None:
    probes = (
        Probe(probe="bare name", name="get_weather", reached=("lab", "get_weather"), answer="UPSTREAM-OK"),
        Probe(probe="no such tool", name="x", answer="<b>No | such\ntool</b>"),
        Probe(probe="error of JSON-RPC", name="e", answer="JSONRPC-WORDING"),
        Probe(probe="result with isError", name="e", ended=True),
    )
    renamed = Trial(
        scenario="rename", mode="bare", tools=(SHOWN,), followed=True,
        probes=(Probe(probe="after-rename", name="get_weather", answer="gone"),),
    )  # fmt: skip
    hands = Handshake(client_info={"name": "made", "version": "1"}, protocol="2025-11-25", user_agent="made/1")
    run = replace(
        made_up(SHOWN),
        trials=(Trial(scenario="probes", mode="bare", tools=(SHOWN,), probes=probes, handshake=hands), renamed),
    )
    text = behaviour.behaviour([run], "")

    assert "| Made up | `=` | `-` | &lt;b>No \\| such tool&lt;/b> |" in text
    assert "| Made up | yes | refused by the client: gone |  |" in text
    assert "| Made up | the server's words | the run ended |" in text
    assert "| Made up | `made/1` | 2025-11-25 | made/1 | no | no |  |" in text


def test_names_are_quoted_so_that_a_table_holds_them() -> None:
    assert verdicts.code("a|b") == "`a\\|b`"
    assert verdicts.code("x" * 200) == f"`{'x' * 24}…{'x' * 16}`"
    assert places.RESULTS.is_dir()
