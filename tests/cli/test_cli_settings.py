"""Settings in truename.toml: with servers a configuration, without them for the mcpServers file beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from truename import Catalog, Ledger, project
from truename.cli._sources import configuration

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

SERVERS = {"github": {"command": "some-server"}}


def write(directory: Path, toml: str, name: str = "mcp.json", **more: Any) -> Path:
    (directory / "truename.toml").write_text(toml)
    path = directory / name
    path.write_text(json.dumps({"mcpServers": SERVERS, **more}))
    return path


@pytest.mark.parametrize("source", ["mcp.json", "truename.toml", None])
def test_settings_apply_to_the_servers_beside_them(run: Run, tmp_path: Path, source: str | None) -> None:
    path = write(tmp_path, 'server_name = "lab"\nstate = "names.ledger"\n[aliases]\ngithub = "gh"\n')
    run("allow")

    config = configuration(source)

    assert config.path == path
    assert [server.key for server in config.servers] == ["github"]
    assert (config.settings.server_name, config.settings.aliases) == ("lab", {"github": "gh"})
    assert config.state_location().path == tmp_path / "names.ledger"


def test_a_files_own_settings_go_before_those_beside_it(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[truename]\nserver_name = "lab"\nstyle = "prefixed"\n', truename={"server_name": "truename"}
    )

    settings = configuration(str(path)).settings

    assert (settings.server_name, settings.style) == ("truename", "prefixed")


def test_settings_of_a_file_with_servers_of_its_own_are_not_used_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, 'server_name = "lab"\n[mcpServers.other]\ncommand = "x"\n')

    own, beside = configuration("truename.toml"), configuration(str(path))

    assert ([server.key for server in own.servers], own.settings.server_name) == (["other"], "lab")
    assert ([server.key for server in beside.servers], beside.settings.server_name) == (["github"], "truename")
    assert "has servers of its own" in " ".join(capsys.readouterr().err.split())


def test_settings_without_any_servers_say_where_they_belong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('style = "prefixed"\n')

    done = run("names")

    assert (done.status, done.out) == (2, "")
    assert "truename.toml has settings but no servers" in done.err
    assert "Add [mcpServers.KEY]" in done.err


def test_settings_in_a_file_of_another_name_are_not_taken_for_servers(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "")
    (tmp_path / "other.toml").write_text('style = "prefixed"\n')

    done = run("names", "other.toml")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: other.toml has no servers\n  Add [mcpServers.KEY]")


@pytest.mark.parametrize(
    ("toml", "fact"),
    [("stile = 1\n", "truename.toml: stile: it is not a setting"), ("= 1\n", "truename.toml: line 1, column 1")],
)
def test_what_is_wrong_in_settings_is_told_with_their_own_file(run: Run, tmp_path: Path, toml: str, fact: str) -> None:
    path = write(tmp_path, toml)

    done = run("names", path)

    assert (done.status, done.out) == (2, "")
    assert fact in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("--for", "cursr"), "Unknown client or provider: 'cursr' Did you mean 'cursor'"),
        (("--only", "githib"), "has no server 'githib' Did you mean 'github'?"),
        (("--only", "zzz"), "has no server 'zzz' It has github."),
    ],
)
def test_a_view_that_does_not_exist_is_told_before_anything_starts(
    run: Run, tmp_path: Path, words: tuple[str, ...], fact: str
) -> None:
    path = write(tmp_path, "")

    done = run("serve", path, *words)

    assert (done.status, done.out) == (2, "")
    assert fact in " ".join(done.err.split())


def test_a_state_directory_that_can_not_be_is_an_error_of_the_ledger(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    done = run("serve", path, "--json")

    assert done.status == 2
    assert [error["code"] for error in done.document["errors"]] == ["unusable"]
    assert "fault of Truename" not in done.err


def test_serve_names_the_whole_command_when_the_ledger_was_begun_otherwise(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "")
    ledger = tmp_path / "names.ledger"
    project(Catalog.from_mcp({"github": ["search"]}), "universal", ledger=Ledger.open(ledger))

    done = run("serve", path, "--state", ledger, "--server-name", "lab")

    assert done.status == 2
    assert f"`truename rename {path} --all --server-name lab --state {ledger}`" in " ".join(done.err.split())
