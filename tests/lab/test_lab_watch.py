"""Watching clients: the newest version is installed, run and compared, and what differs is noted once."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from lab import clients, drift, install, page, places, predict, results, runner, watch
from lab.__main__ import main
from lab.clients import Client
from lab.results import SeenTool, Trial
from lab.scenarios import scenario
from tests.lab.strange_places import ABSOLUTE
from truename import dialects

if TYPE_CHECKING:
    from pathlib import Path

    from lab.trial import Order

NEW = "99.0.0"


class Registry:
    """Registries and clients as the tests need them: nothing is downloaded, and every name is shown as predicted."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.asked, self.installed, self.played = folder, list[str](), list[str](), list[str]()
        self.newest = dict.fromkeys(clients.clients(), NEW)
        self.otherwise: dict[str, str | None] = {}
        self.broken: set[str] = set()
        self.silent: set[str] = set()
        there: dict[str, str] = {}

        def newest(client: Client) -> str:
            self.asked.append(client.name)
            return self.newest[client.name]

        def installing(client: Client) -> None:
            if client.name in self.broken:
                raise RuntimeError(f"{client.name} cannot be installed: no such version.")
            self.installed.append(f"{client.folder} {client.packages[0]}")
            there[client.folder] = client.version

        def played(order: Order) -> Trial:
            self.played.append(f"{order.client} {order.version} {order.scenario} {order.mode}")
            failed = order.client in self.silent
            servers = scenario(order.scenario).servers
            tools = tuple(SeenTool(server=one.key, upstream=name) for one in servers for name in one.names)
            trial = Trial(scenario=order.scenario, mode=order.mode, tools=tools, failure="it fell" if failed else None)
            return _as_predicted(order.subject, trial, {} if failed else self.otherwise, failed=failed)

        patch.setattr(install, "newest", newest)
        patch.setattr(install, "install", installing)
        patch.setattr(runner, "played", played)
        patch.setattr(Client, "installed", property(lambda client: there.get(client.folder)))
        patch.setattr(drift, "FOLDER", folder / "drift")
        patch.setattr(page, "FOLDER", folder / "docs")
        page.FOLDER.mkdir()


def _as_predicted(client: Client, trial: Trial, otherwise: dict[str, str | None], *, failed: bool) -> Trial:
    rules = dialects.get(f"{client.dialect}@{client.version}")
    if failed:
        none = tuple(SeenTool(server=one.server, upstream=one.upstream, outcome="failed") for one in trial.tools)
        return Trial(scenario=trial.scenario, mode=trial.mode, tools=none, failure=trial.failure)
    found = predict.predicted(rules, trial)
    tools = []
    for one in dict.fromkeys((tool.server, tool.upstream) for tool in trial.tools):
        shown = found.shown.get(one)
        if one[1] in otherwise:
            shown = otherwise[one[1]]
        outcome: Any = "missing" if shown is None else "right"
        tools.append(SeenTool(server=one[0], upstream=one[1], shown=shown, outcome=outcome))
    return Trial(scenario=trial.scenario, mode=trial.mode, tools=tuple(tools))


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setenv("TRUENAME_LAB", str(tmp_path / "lab"))
    return Registry(tmp_path, monkeypatch)


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    code = main(["watch", *words, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "truename.lab.watch/1"
    return code, document["clients"]


def test_the_newest_version_is_installed_below_its_own_folder_run_bare_and_compared(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (codex,) = answered(capsys, "codex")

    assert (code, codex["state"], codex["version"], codex["is_new"]) == (0, "agrees", NEW, True)
    assert registry.installed == [f"codex@{NEW} @openai/codex@{NEW}"]
    assert registry.played == [f"codex {NEW} {name} bare" for name in watch.SCENARIOS]
    (seen,) = drift.load("codex")
    assert (seen.version, seen.rules, seen.differ, seen.failures) == (NEW, "codex-cli", 0, ())
    assert seen.ran == dialects.get("codex").runs[-1].version
    assert seen.tools > 80


def test_what_was_compared_already_is_not_run_again_unless_asked_or_the_rules_changed(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(capsys, "codex")
    before = drift.FOLDER.joinpath("codex.jsonl").read_bytes()
    registry.played.clear()

    assert answered(capsys, "codex")[1][0]["is_new"] is False
    assert registry.played == []
    assert drift.FOLDER.joinpath("codex.jsonl").read_bytes() == before

    assert answered(capsys, "codex", "--again")[1][0]["is_new"] is True
    assert len(drift.load("codex")) == 1

    monkeypatch.setattr(drift, "rules_digest", lambda _: "00000000")
    assert answered(capsys, "codex")[1][0]["is_new"] is True
    assert [one.digest for one in drift.load("codex")][1:] == ["00000000"]


def test_a_tool_that_is_shown_otherwise_is_noted_with_what_was_expected(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.otherwise = {"fs.list": "mcp__lab__fs.list", "a.b": None}

    code, (codex,) = answered(capsys, "codex")

    assert (code, codex["state"]) == (1, "drifted")
    by_tool = {(one["scenario"], one["tool"]): one for one in codex["watched"]["differences"]}
    assert by_tool["awkward", "fs.list"] == {
        "scenario": "awkward",
        "server": "lab",
        "tool": "fs.list",
        "expected": ["'mcp__lab.fs_list' runs it"],
        "seen": ["'mcp__lab__fs.list' runs it"],
    }
    assert by_tool["awkward", "a.b"]["seen"] == []
    assert drift.load("codex")[0].differ == len(by_tool)
    text = (page.FOLDER / page.DRIFT).read_text("utf-8")
    assert f"| {clients.get('codex').title} | {NEW} |" in text
    assert "- `fs.list` of `lab` (awkward): expected `'mcp__lab.fs_list' runs it`" in text


def test_a_client_that_cannot_be_installed_or_shows_nothing_does_not_stop_the_others(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.broken, registry.silent = {"codex"}, {"gemini-cli"}

    code, found = answered(capsys, "codex", "gemini-cli", "cline-cli")

    assert code == 1
    assert [(one["client"], one["state"]) for one in found] == [
        ("codex", "error"),
        ("gemini-cli", "failed"),
        ("cline-cli", "agrees"),
    ]
    assert found[0]["problem"] == "codex cannot be installed: no such version."
    assert drift.load("codex") == ()
    (seen,) = drift.load("gemini-cli")
    assert (seen.tools, seen.differ) == (0, 0)
    assert "awkward: it fell" in seen.failures
    assert "- awkward: it fell" in (page.FOLDER / page.DRIFT).read_text("utf-8")


def test_an_older_version_is_compared_with_the_rules_of_that_version(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (codex,) = answered(capsys, "codex", "--version", "0.130.0")

    assert (code, codex["state"]) == (0, "agrees")
    assert registry.asked == []
    assert codex["watched"]["rules"] == "codex-cli@0.130.0"


def test_a_version_is_of_one_client_that_the_lab_has(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "codex", "opencode", "--version", "1"]) == 2
    assert main(["watch", "--version", "1"]) == 2
    assert main(["watch", "codx"]) == 2
    assert "has no client 'codx'" in capsys.readouterr().err
    assert registry.installed == []


def test_a_version_that_is_none_is_an_error_of_that_client(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.newest["codex"] = "no version; rm -rf"

    code, found = answered(capsys, "codex", "cline-cli")

    assert (code, [one["state"] for one in found]) == (1, ["error", "agrees"])
    assert registry.installed == [f"cline@{NEW} cline@{NEW}"]


@pytest.mark.usefixtures("registry")
def test_without_names_every_client_is_watched(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answered(capsys)

    assert [one["client"] for one in found] == list(clients.clients())
    assert code in {0, 1}
    # Where a race decides, the made-up run is none of the lab's; all others do what their rules say.
    assert not [one for one in found if one["state"] == "error"]


@pytest.mark.parametrize(
    ("name", "said", "version"),
    [("codex", "0.171.0\n", "0.171.0"), ("fastmcp", "fastmcp (4.1.2)\nAvailable versions: 4.1.2, 4\n", "4.1.2")],
)
def test_a_registry_is_asked_for_the_newest_version_by_its_own_client(
    name: str, said: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setenv("TRUENAME_LAB", str(tmp_path))

    def run(command: list[object], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append([str(word) for word in command])
        return subprocess.CompletedProcess([], 0, said)

    monkeypatch.setattr("subprocess.run", run)
    assert install.newest(clients.get(name)) == version
    assert clients.get(name).package in ran[-1]


@pytest.mark.parametrize("said", ["", "ERROR: nothing\n", "fastmcp 4.1.2\n"])
def test_an_answer_of_pip_that_is_not_understood_is_an_error(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUENAME_LAB", str(tmp_path))
    monkeypatch.setattr("subprocess.run", lambda *_, **__: subprocess.CompletedProcess([], 0, said))

    with pytest.raises(RuntimeError, match="newest version of fastmcp is not known"):
        install.newest(clients.get("fastmcp"))


@pytest.mark.parametrize("name", clients.clients())
def test_every_client_can_be_had_in_another_version(name: str) -> None:
    client = clients.get(name)
    other = clients.at(client, NEW)

    assert (other.version, other.package) == (NEW, client.package)
    assert other.place != client.place
    assert not any(clients.version_of(package) for package in other.packages[1:])
    assert clients.at(client, client.version) is client


def test_the_records_hold_no_place_and_say_what_the_table_says() -> None:
    for path in sorted((places.ROOT / "lab" / "drift").glob("*.jsonl")):
        text = path.read_text("utf-8")
        assert not ABSOLUTE.search(text), path.name
        assert len(text.encode()) < 400_000, path.name
    for one in drift.load_all():
        assert clients.get(one.client)
        assert one.rules in dialects.names(older=True)


def test_every_version_that_a_row_says_was_run_has_a_record_of_it() -> None:
    seen = {(one.rules, one.version, one.day) for one in drift.load_all() if one.agrees}
    for kept in results.load_versions():
        seen.add((dialects.get(f"{kept.dialect}@{kept.version}").name, kept.version, kept.date))
    for row in dialects.table(older=True):
        for run in row.runs:
            assert (row.name, *run) in seen or (run.version in row.version and row.lab), (row.name, run)
