"""What the dialect table says of a client is what the lab saw, for every tool of every scenario."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from lab import clients, places, predict, results
from lab.results import Run, SeenTool, Trial
from tests.lab.strange_places import ABSOLUTE, HOST
from truename import dialects

PATHS = sorted(places.RESULTS.glob("*.json"))
RUNS = [results.load(path) for path in PATHS]
VERSIONS = {f"versions/{run.client}-{run.version}.json": run for run in results.load_versions()}
# The inspector is a person's tool: it has one server, and no model.
OF_MODELS = [run for run in RUNS if run.dialect != "inspector"]
MEASURED = [row for row in dialects.table() if row.confidence == "run" and row.kind in {"client", "framework"}]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.client)
def test_the_table_says_what_the_lab_saw(run: Run) -> None:
    assert [str(one) for one in predict.differences(run)] == []


@pytest.mark.parametrize("run", OF_MODELS, ids=lambda run: run.client)
def test_enough_was_compared(run: Run) -> None:
    scenarios = {trial.scenario for trial in run.trials if predict.compared(trial)}

    assert {"awkward", "many", "duplicates", "keys", "joins", "clashes-2", "clashes-6"} <= scenarios
    assert sum(len(trial.tools) for trial in run.trials if predict.compared(trial)) >= 900


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row.name)
def test_every_row_that_says_run_cites_its_runs(row: dialects.Dialect) -> None:
    cited = [results.load(places.RESULTS / name) for name in row.lab]

    assert cited
    for run in cited:
        assert run.dialect == row.name
        assert run.version in re.split(r"[ ,]+", row.version)


def test_every_run_is_cited_by_its_row() -> None:
    cited = {name for row in dialects.table() for name in row.lab}

    assert {path.name for path in PATHS} == cited


@pytest.mark.parametrize("name", sorted(VERSIONS))
def test_the_table_says_of_another_version_what_the_lab_saw(name: str) -> None:
    run = VERSIONS[name]
    rules = dialects.get(f"{run.dialect}@{run.version}")

    assert [str(one) for one in predict.differences(run)] == []
    assert (run.version, run.date) in rules.runs
    assert sum(len(trial.tools) for trial in run.trials if predict.compared(trial)) >= 300


def test_every_rule_of_an_older_version_cites_its_runs_and_no_run_is_without() -> None:
    older = [row for row in dialects.table(older=True) if row.name not in dialects.names()]

    assert older
    for row in older:
        assert {(VERSIONS[name].version, VERSIONS[name].date) for name in row.lab} <= {*row.runs}, row.name
        assert row.confidence == "run"


def test_results_hold_no_place_of_this_machine_and_no_secret() -> None:
    for path in [*PATHS, *(places.RESULTS / results.VERSIONS).glob("*.json")]:
        text = path.read_text("utf-8")
        assert not ABSOLUTE.search(text), path.name
        assert set(HOST.findall(text)) <= {"claude.com", "Server.io"}, path.name
        assert not re.search(r"0x[0-9a-f]{6}", text), path.name
        assert len(text.encode()) < 200_000, path.name


def run_of(*tools: SeenTool, dialect: str = "gemini-cli", scenario: str = "awkward", mode: str = "bare") -> Run:
    trial = Trial(scenario=scenario, mode=mode, tools=tools)
    return replace(RUNS[0], client="made-up", dialect=dialect, trials=(trial,))


RIGHT = SeenTool(upstream="x", shown="mcp_lab_x")


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (replace(RIGHT, shown="lab_x"), "predicted 'mcp_lab_x' runs it, seen 'lab_x' runs it"),
        (replace(RIGHT, shown=None, outcome="missing"), "predicted 'mcp_lab_x' runs it, seen not shown"),
        (replace(RIGHT, outcome="unreachable"), "seen 'mcp_lab_x' runs nothing"),
        (replace(RIGHT, outcome="uncalled"), "seen 'mcp_lab_x' was not called"),
        (
            replace(RIGHT, outcome="misrouted", reached=("lab", "y")),
            "predicted 'mcp_lab_x' runs it, seen 'mcp_lab_x' runs ('lab', 'y')",
        ),
    ],
)
def test_a_row_that_is_wrong_is_found(tool: SeenTool, said: str) -> None:
    other = SeenTool(upstream="y", shown="mcp_lab_y")

    (difference,) = predict.differences(run_of(tool, other))
    assert said in str(difference)
    assert list(predict.differences(run_of(RIGHT, other))) == []


def test_a_failure_that_is_not_predicted_is_found() -> None:
    failed = SeenTool(upstream="x", outcome="failed")

    assert len(list(predict.differences(run_of(failed)))) == 1
    assert list(predict.differences(run_of(replace(failed, upstream="a.b"), dialect="autogen"))) == []


def test_through_truename_its_names_are_compared_and_a_copy_counts_once() -> None:
    one = SeenTool(upstream="a/b", listed="a_b", shown="mcp_tn_a_b")
    copy = replace(one, shown=None, outcome="copy")

    assert list(predict.differences(run_of(one, copy, mode="through"))) == []
    trial = run_of(one, mode="through").trials[0]
    assert predict.seen(dialects.get("gemini-cli"), trial) == {("tn", "a_b"): frozenset({"'mcp_tn_a_b' runs it"})}


def test_clients_and_rows_name_each_other() -> None:
    for client in clients.clients().values():
        assert dialects.get(client.dialect).name == client.dialect, client.name


def test_the_citations_are_data() -> None:
    table = json.loads((places.ROOT / "src" / "truename" / "dialects" / "table.json").read_text("utf-8"))

    assert any(row.get("lab") for row in table["rows"])
