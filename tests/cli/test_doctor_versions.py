"""`truename doctor` by version: of the clients that are installed, and of those that are named with one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from truename import dialects

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a.b", "a_b", "get_weather")]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with Codex, its configuration, and a dump of the server that it has."""
    home, project = tmp_path / "home", tmp_path / "home" / "work"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text('[mcp_servers.lab]\nurl = "http://127.0.0.1:9/mcp"\n')
    project.mkdir()
    (tmp_path / "dump.json").write_text(json.dumps({"lab": TOOLS}))
    (home / "bin").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(project)
    return home


def install(home: Path, version: str | None, says: str = "") -> None:
    """Install Codex as npm does, or as a program whose version no file tells."""
    program = home / "lib" / "node_modules" / "@openai" / "codex" / "codex.js"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n: > {home}/was-run\necho {says}\n")
    program.chmod(0o755)
    if version is not None:
        program.with_name("package.json").write_text(json.dumps({"name": "@openai/codex", "version": version}))
    (home / "bin" / "codex").symlink_to(program)


def of_codex(document: Any) -> dict[str, Any]:
    (codex,) = (one for one in document["clients"] if one["client"] == "codex")
    found: dict[str, Any] = codex
    return found


@pytest.mark.parametrize(
    ("version", "dialect", "unrun"),
    [
        ("0.100.0", "codex-cli@0.100.0", None),
        ("0.171.0", "codex-cli", None),
        ("999.0.0", "codex-cli", "Codex 999.0.0 was not run; the rules are those of "),
        ("0.1.0", "codex-cli@0.20.0", "Codex 0.1.0 was not run; the rules are those of 0.20.0"),
    ],
)
def test_the_rules_are_those_of_the_version_that_is_installed(
    home: Path, run: Run, version: str, dialect: str, unrun: str | None
) -> None:
    install(home, version)

    document = run("doctor", "--json").document
    said = run("doctor").out

    (installed,) = document["installed"]
    assert (installed["client"], installed["version"]) == ("codex", version)
    assert installed["source"].endswith("@openai/codex/package.json")
    codex = of_codex(document)
    assert (codex["dialect"], codex["release"]) == (dialect, version)
    assert (codex["unrun"] or "").startswith(unrun or "")
    assert (codex["unrun"] is None) == (unrun is None)
    assert codex["confidence"] == ("run" if unrun is None else "read")
    assert f"codex  {version}" in said
    assert unrun is None or unrun in " ".join(said.split())
    assert not (home / "was-run").exists()


def test_a_program_is_run_only_with_the_option_that_says_so(home: Path, run: Run) -> None:
    install(home, None, "codex-cli 0.130.0")

    assert run("doctor", "--json").document["installed"][0]["version"] is None
    assert "its version is in no file (--run-clients asks it)" in run("doctor").out
    assert not (home / "was-run").exists()

    document = run("doctor", "--json", "--run-clients").document
    assert (document["installed"][0]["version"], document["installed"][0]["source"]) == ("0.130.0", "its --version")
    assert of_codex(document)["dialect"] == "codex-cli@0.130.0"
    assert (home / "was-run").exists()


def test_a_program_whose_version_a_file_tells_is_not_run(home: Path, run: Run) -> None:
    install(home, "0.100.0", "codex-cli 0.130.0")

    assert of_codex(run("doctor", "--json", "--run-clients").document)["dialect"] == "codex-cli@0.100.0"
    assert not (home / "was-run").exists()


@pytest.mark.usefixtures("home")
def test_a_client_that_is_not_installed_gets_its_newest_rules(run: Run) -> None:
    document = run("doctor", "--json").document

    assert document["installed"] == []
    assert (of_codex(document)["dialect"], of_codex(document)["release"]) == ("codex-cli", None)


def test_a_version_that_is_named_counts_more_than_the_installed_one(home: Path, run: Run) -> None:
    install(home, "0.171.0")

    for name in ("codex@0.50", "codex-cli@0.50"):
        document = run("doctor", "--json", "--for", name).document
        assert document["installed"] == []
        assert (of_codex(document)["dialect"], of_codex(document)["release"]) == ("codex-cli@0.50.0", "0.50")


def test_a_dump_is_checked_for_the_version_that_is_named(home: Path, run: Run) -> None:
    dump = home.parent / "dump.json"
    old, new = (run("doctor", dump, "--json", "--for", f"codex@{version}").document for version in ("0.100", "0.171"))

    assert [one["rule"] for one in old["findings"]][:1] == ["tools_merged"]
    assert "tools_merged" not in [one["rule"] for one in new["findings"]]
    said = run("doctor", dump, "--for", "codex@0.105.1-beta.2").out
    assert "0.105.1-beta.2 not run" in said or "run, 0." in said


@pytest.mark.parametrize("name", ["codex@", "codex@x", "openai@1", "codex@1@2", "nobody@1"])
@pytest.mark.usefixtures("home")
def test_what_is_no_version_is_refused_before_anything_is_read(run: Run, name: str) -> None:
    done = run("doctor", "--for", name)

    assert (done.status, done.out) == (2, "")
    assert "is not a version of" in done.err or "Unknown client" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("names", "{dump}", "--for", "codex@0.60"),
        ("resolve", "get_weather", "{dump}", "--for", "codex@999"),
        ("clients", "codex@999"),
        ("lint", "{dump}", "--for", "codex@999"),
        ("profiles", "{dump}", "--for", "codex@999"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_says_that_a_version_was_not_run(home: Path, run: Run, words: tuple[str, ...]) -> None:
    done = run(*(word.format(dump=home.parent / "dump.json") for word in words))

    version = words[-1].partition("@")[2]
    unrun = dialects.get(words[-1]).unrun
    if unrun:
        assert f"note: Codex {version} was not run; the rules are those of" in done.err
    else:
        assert version == "0.60"
        assert "note:" not in done.err


def test_names_are_those_of_the_version(home: Path, run: Run) -> None:
    (home.parent / "long.json").write_text(json.dumps({"lab": [{**TOOLS[0], "name": "a_long_" * 9 + "name"}]}))

    for version, most in (("0.50.0", 64), ("0.171.0", 128)):
        table = run("names", home.parent / "long.json", "--for", f"codex@{version}", "--json").document
        name = table["tools"][0]["name"]
        assert len(name) <= most - len("mcp__truename__")
        assert (len(name) == 67) == (most == 128)


def test_the_versions_of_a_client_are_listed(run: Run) -> None:
    codex = run("clients", "codex", "--json").document

    assert codex["release"] is codex["unrun"] is None
    assert [one["name"] for one in codex["versions"]][-1] == "codex-cli"
    assert codex["versions"][0]["name"] == "codex-cli@0.20.0"
    assert codex["versions"][-1]["runs"] == codex["runs"]
    assert "codex-cli@0.100.0 (run with " in " ".join(run("clients", "codex").out.split())
