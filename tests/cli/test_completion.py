"""Completion in a shell: the words that `truename` offers, without starting or resolving anything."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from truename import Catalog, Ledger, project
from truename.cli import main
from truename.cli._command_list import COMMANDS
from truename.cli.app import app

BASH = shutil.which("bash")
CONFIGURATION = {
    "mcpServers": {
        "git": {"command": "a-program-that-does-not-exist", "env": {"TOKEN": "${A_VARIABLE_THAT_IS_NOT_SET}"}},
        "github": {"url": "http://127.0.0.1:1/mcp"},
    },
    "truename": {"profiles": {"engineers": {"tools": ["*"]}}, "contexts": {"phone": {"platform": "ios"}}},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a configuration that nobody has allowed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcp.json").write_text(json.dumps(CONFIGURATION))
    return tmp_path


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the candidates for the last word."""
    capsys.readouterr()
    assert main(["__complete", *words]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.split("begin", 1)[1].splitlines() if line]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("names", "--for", ""), "cursor"),
        (("names", "--for", "codex@"), "codex@0.100.0"),
        (("doctor", "--for", "codex@0.1"), "codex@0.171.0"),
        (("connect", ""), "claude-code"),
        (("disconnect", ""), "claude-code"),
        (("resolve", "x", "--style", ""), "canonical"),
        (("serve", "--only", ""), "github"),
        (("serve", "--context", ""), "phone"),
        (("login", ""), "git"),
        (("names", "--profile", ""), "engineers"),
        (("explain", ""), "TN104"),
        (("lint", "--rule", ""), "TN104"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("here")
def test_a_word_is_completed_from_tables_and_from_the_configuration_here(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], wanted: str
) -> None:
    assert wanted in offered(capsys, *words)


def test_servers_are_those_of_the_configuration_that_the_command_line_names(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = here / "other.toml"
    other.write_text('[mcpServers.jira]\ncommand = "jira-server"\n')

    assert offered(capsys, "serve", str(other), "--only", "") == ["jira"]


@pytest.fixture
def recorded(here: Path) -> Path:
    """A configuration with a state that has the names of two tools, and a token."""
    state = here / "state.db"
    with closing(Ledger.open(state)) as ledger:
        project(Catalog.from_mcp({"git": ["push", "pull"]}), "universal", ledger=ledger)
    config = here / "truename.toml"
    config.write_text(f'state = "{state}"\n[mcpServers.git]\ncommand = "git-server"\n')
    assert main(["token", "add", "ana", str(config)]) == 0
    return config


def test_tools_and_tokens_are_those_on_record_and_only_of_a_configuration_that_is_allowed(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert offered(capsys, "resolve", "") == []
    assert offered(capsys, "token", "revoke", "") == []

    assert main(["allow", str(recorded)]) == 0

    assert set(offered(capsys, "resolve", "git@")) == {"git@1/push@1", "git@1/pull@1"}
    assert offered(capsys, "token", "revoke", "") == ["ana"]


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": 3, "truename": []}', "\0"])
def test_a_configuration_that_cannot_be_read_offers_nothing_and_shows_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcp.json").write_text(content)

    for words in (("serve", "--only", ""), ("resolve", ""), ("names", "--profile", "")):
        assert offered(capsys, *words) == []
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.usefixtures("here")
def test_bash_completes_with_the_script_that_is_installed(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(app.generate_completion(prog_name="truename", shell="bash"))
    program = tmp_path / "truename"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m truename "$@"\n')
    program.chmod(0o755)
    asked = """
source "$1"; PATH="$2:$PATH"
COMP_WORDS=(truename serve --only gith); COMP_CWORD=3; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
$(complete -p truename | sed 's/.*-F \\([^ ]*\\).*/\\1/') truename gith --only
echo "${COMPREPLY[@]}"
"""
    assert BASH is not None
    done = subprocess.run(
        [BASH, "-c", asked, "bash", str(script), str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "github"


EXAMPLES = [example.words for commands in COMMANDS.values() for command in commands for example in command.examples]


@pytest.mark.parametrize("words", EXAMPLES)
def test_each_example_of_the_help_is_a_command_line_that_is_understood(words: str) -> None:
    app.parse_args(words.split(), exit_on_error=False, print_error=False)
