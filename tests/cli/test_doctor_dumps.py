"""`truename doctor` on dumps and configurations that are named: what is told, to people and to programs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE, same_as_golden

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

LISTS = {
    "lab": ["a/b", "a_b", "plain", "createConfluencePageFromMarkdownTemplateInSpaceWithLabels"],
    "web": ["search"],
    "docs": ["search"],
}


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    path = tmp_path / "lists.json"
    path.write_text(json.dumps(LISTS), "utf-8")
    return path


def codes(document: Any, client: str) -> list[str]:
    return sorted({one["code"] for one in document["findings"] if one["client"] == client})


def test_a_dump_is_examined_for_every_client_that_was_run_and_every_provider(run: Run, lists: Path) -> None:
    done = run("doctor", lists, "--json")

    assert done.status == 1
    told = {one["client"]: one for one in done.document["clients"]}
    assert {"claude-code", "gemini-cli", "openai", "google-adk"} <= told.keys()
    assert "cursor" not in told
    assert told["gemini-cli"]["tools"]["lost"] == 1
    assert told["google-adk"]["tools"]["lost"] == 1
    assert {one["tools"]["lost_through_truename"] for one in told.values()} == {0}
    assert codes(done.document, "gemini-cli") == ["TN024", "TN026"]


def test_the_clients_of_for_alone_are_examined(run: Run, lists: Path) -> None:
    done = run("doctor", lists, "--for", "gemini-cli", "--for", "Cursor", "--json")

    assert [one["client"] for one in done.document["clients"]] == ["gemini-cli", "cursor"]
    assert {one["confidence"] for one in done.document["findings"] if one["client"] == "cursor"} == {"read"}


def test_each_lost_tool_is_told_with_what_runs_instead(run: Run, lists: Path) -> None:
    (client,) = run("doctor", lists, "--for", "google-adk", "--json").document["clients"]

    assert client["tools"]["fates"][0] == {
        "server": "web",
        "tool": "search",
        "shown": "search",
        "loss": "misrouted",
        "scope": "",
        "reaches": {"server": "docs", "tool": "search"},
    }


def test_a_person_reads_numbers_the_worst_findings_and_what_helps(run: Run, lists: Path) -> None:
    done = run("doctor", lists, "--for", "gemini-cli", "--for", "claude-code")

    assert done.status == 1
    assert "'a/b' and 'a_b' of 'lab' become 'mcp_lab_a_b' in Gemini CLI, and every call runs 'a_b'." in " ".join(
        done.out.split()
    )
    assert "through Truename: 0." in done.out
    assert "nothing was changed" in done.out
    assert len(done.out.splitlines()) < 45


def test_all_shows_what_the_summary_counts_only(run: Run, lists: Path) -> None:
    short, long = run("doctor", lists), run("doctor", lists, "--all")

    assert "(--all)" in short.out
    assert "(--all)" not in long.out
    assert len(short.out.splitlines()) < 60 < len(long.out.splitlines())


def test_tools_that_are_fine_everywhere_end_with_nought(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fine.json"
    path.write_text(json.dumps({"lab": ["get_weather", "get_time"]}), "utf-8")
    done = run("doctor", path)

    assert done.status == 0
    assert "Nothing is wrong; nothing was changed." in done.out


def test_notes_alone_are_no_findings_for_the_exit_status(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"one": ["search"], "two": ["search"]}), "utf-8")
    done = run("doctor", path, "--for", "claude-code", "--json")

    assert [one["rule"] for one in done.document["findings"]] == ["shared_name"]
    assert done.status == 0


def test_a_dump_beside_a_configuration_is_what_its_servers_list(run: Run, tmp_path: Path, lists: Path) -> None:
    path = tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"lab": {"command": "never", "includeTools": ["gone"]}}}), "utf-8")
    done = run("doctor", path, lists, "--json")

    own = done.document["clients"][0]
    assert (own["client"], own["servers_not_asked"], own["tools"]["listed"]) == ("gemini-cli", [], 4)
    assert "TN040" in codes(done.document, "gemini-cli")
    assert done.document["asked"] == 0


def test_lists_of_one_label_are_servers_of_their_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text('{"server": "lab", "tools": ["x"]}\n{"server": "lab", "tools": ["x"]}\n', "utf-8")
    (client,) = run("doctor", path, "--for", "claude-code", "--json").document["clients"]

    assert client["servers"] == ["lab", "lab_2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing.json",), "file not found: missing.json"),
        (("http://",), "'http://' is not a valid URL"),
        (("http://[",), "'http://[' is not a valid URL"),
        (("lists.json", "--for", "gemini-clu"), "Unknown client or provider: 'gemini-clu'"),
        (("lists.json", "--json", "--sarif", "-"), "--json and --sarif - both write to stdout"),
        (("lists.json", "--sarif", "no/such/dir.sarif"), "no/such/dir.sarif cannot be written"),
        (("--for", "gemini-cli"), "no configuration of gemini-cli was found"),
        (("--for", "claude"), "no configuration of claude-desktop or claude-code was found"),
    ],
)
def test_what_can_not_be_done_is_a_fault_of_usage(run: Run, lists: Path, words: tuple[str, ...], said: str) -> None:
    done = run("doctor", *words)

    assert done.status == 2
    assert said in " ".join(done.err.split())


def test_names_from_strangers_never_act_on_a_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps({HOSTILE.replace("\x1b", ""): [HOSTILE, "[red]x[/red]", "a/b", "a_b"]}), "utf-8")
    for words in ([], ["--all"], ["--json"], ["--sarif", "-"]):
        done = run("doctor", path, *words)

        assert done.status == 1
        assert not any(bad in done.out for bad in ("\x1b", "\x07", "\u202e"))


def test_a_machine_without_clients_says_so(run: Run) -> None:
    done = run("doctor")

    assert done.status == 0
    assert done.out.startswith("No client's configuration was found.")


def test_the_summary_is_the_recorded_one(run: Run, lists: Path) -> None:
    done = run("doctor", lists.name, "--for", "gemini-cli", "--for", "claude-code", "--for", "google-adk")
    # Which version of a client was run is another test's matter.
    text = re.sub(r"run, [0-9.]+", "run, VERSION", done.out)

    same_as_golden("doctor", text)
