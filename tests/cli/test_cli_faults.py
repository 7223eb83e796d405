"""Whatever is wrong is told in a line of fact and one of advice, with the right exit status; never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import HOSTILE, Run
from truename.cli._errors import split
from truename.cli._rendering import printable, say_error
from truename.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = [
    ("names", "{}"),
    ("resolve", "x", "{}"),
    ("serve", "{}"),
    ("history", "x", "{}"),
    ("rename", "{}", "--all"),
]
BROKEN = {
    "json": b'{"mcpServers": {"a": ',
    "dump": b'[{"name": "a"},',
    "empty": b"",
    "nothing": b"{}",
    "utf-16": '{"a": []}'.encode("utf-16"),
    "torn gzip": gzip.compress(b"[]")[:-6],
    "no servers": b'{"truename": {"style": "prefixed"}}',
    "bad settings": b'{"mcpServers": {"a": {}}, "truename": {"stile": "x"}}',
    "deep": b"[" * 100_000,
    "number": b"7",
    "names": json.dumps({"a": ["", "a\x1b[31m", "x" * 2_000]}).encode(),
}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_input_is_a_usage_error(run: Run, tmp_path: Path, words: tuple[str, ...], content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    done = run(*(word.format(path) for word in words))

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_file_that_is_not_there_is_named(run: Run, words: tuple[str, ...]) -> None:
    done = run(*(word.format("nowhere.json") for word in words))

    assert (done.status, done.out) == (2, "")
    assert "nowhere.json" in done.err


@pytest.mark.parametrize("name", ["nowhere.json", "~nobody-of-this-name/nowhere.json"])
@pytest.mark.parametrize("words", [("serve",), ("audit", "verify"), ("pins", "list"), ("approvals", "list")])
def test_a_configuration_that_is_not_there_is_no_dump(run: Run, words: tuple[str, ...], name: str) -> None:
    done = run(*words, name)

    assert (done.status, done.out) == (2, "")
    assert f"{name}: it cannot be read (No such file or directory)" in " ".join(done.err.split())


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_directory_is_no_source(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(*(word.format(tmp_path) for word in words))

    assert (done.status, done.out) == (2, "")


@pytest.mark.parametrize("words", [("names",), ("resolve", "x"), ("serve",), ("rename", "--all")], ids=lambda w: w[0])
def test_without_a_source_the_defaults_are_named(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)

    assert done.status == 2
    assert done.err.splitlines()[0] == (
        "error: no SOURCE was given, and there is no truename.toml, .mcp.json or mcp.json here"
    )


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("nmaes",), 'Unknown command "nmaes".'),
        (("names", "--stile", "x"), "--stile"),
        (("resolve",), "NAME"),
        (("names", "{dump}", "--style", "camel"), "'camel' is not a style"),
        (("names", "{dump}", "--for", "cursr"), "Unknown client or provider: 'cursr'"),
        (("names", "{dump}", "--alias", "sf"), "'sf' is not an alias"),
        (("names", "{dump}", "--server-name", "x" * 65), "--server-name: 'xxxx"),
        (("names", "{dump}", "--alias", "sf=\x1b[31m"), "cannot be an alias"),
        (("names", "{dump}", "--state", "none"), "no ledger found at none"),
        (("serve", "{dump}"), "is a dump of tools, not a configuration of servers"),
        (("serve", "{dump}", "--http", "nowhere"), "'nowhere' is not HOST:PORT"),
        (("serve", "{dump}", "--http", "127.0.0.1:99999"), "is not HOST:PORT"),
        (("serve", "{dump}", "--http", "http://127.0.0.1:8750/mcp"), "is a URL Write HOST:PORT: --http 127.0.0.1:8750"),
        (("serve", "{dump}", "--names", "some"), "--names"),
        (("serve", "{dump}", "--http", "1", "--only", "b"), "are for stdio"),
        (("history", "x", "--state", "memory"), "a ledger in memory has no history"),
        (("history", "x", "{dump}"), "is a dump of tools"),
        (("rename", "{dump}"), "a rename takes two names, an old one and a new one"),
    ],
)
def test_wrong_words_are_a_usage_error(run: Run, dump: Path, words: tuple[str, ...], fact: str) -> None:
    done = run(*(word.format(dump=dump) for word in words))

    assert (done.status, done.out) == (2, "")
    assert fact in " ".join(done.err.split())
    assert done.err.startswith("error: ")


def test_wrong_words_are_told_as_json_too(run: Run) -> None:
    done = run("names", "--stile", "x", "--json")

    assert done.status == 2
    assert [error["code"] for error in done.document["errors"]] == ["usage"]


def test_all_that_is_wrong_is_told_at_once(run: Run, dump: Path) -> None:
    done = run("names", dump, "--style", "declared", "--for", "openai", "--json")

    codes = [error["code"] for error in done.document["errors"]]
    assert done.status == 1
    assert sorted(codes) == ["duplicate_name", "no_legal_name", "no_legal_name"]
    assert done.err.count("error: ") == 2


def test_a_style_that_a_client_can_not_have_is_told_once_not_once_a_tool(run: Run, dump: Path) -> None:
    done = run("names", dump, "--style", "canonical", "--for", "openai")

    told = " ".join(done.err.split())
    assert (done.status, done.err.count("error: ")) == (1, 1)
    assert "and 5 other tools have no legal name for openai in style canonical" in told
    assert "Styles that are legal there: prefixed, on-conflict" in told
    assert "`--for native`, or `truename serve --names canonical`" in told


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ({"mcp": {"a": {"type": "local", "command": ["x"]}}}, "looks like a configuration in an unknown form"),
        ({"context_servers": {"a": {"url": "http://x"}}}, '{"mcpServers": {...}}, {"servers": {...}}, or [mcpServers'),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}, "an error response of a server"),
    ],
)
def test_a_source_of_another_shape_is_told_what_it_is(run: Run, tmp_path: Path, content: object, fact: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))

    done = run("names", path)

    assert (done.status, done.out) == (2, "")
    assert fact in " ".join(done.err.split())


def test_a_path_that_the_system_refuses_is_no_fault_of_ours(
    run: Run, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr("truename.cli.names.open_workspace", fail)
    done = run("names", dump)

    assert done.status == 2
    assert done.err.startswith("error: /somewhere: Permission denied\n  Check the path")


def test_an_error_has_its_fields_as_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{")

    (error,) = run("names", path, "--json").document["errors"]

    assert error["code"] == "invalid_config"
    assert error["file"] == str(path)
    assert error["remedy"] == "Fix the file there."


def test_a_fault_of_our_own_shows_a_traceback_only_when_asked(
    run: Run, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("truename.cli.names.open_workspace", fail)
    told = run("names", dump)
    monkeypatch.setenv("TRUENAME_DEBUG", "1")

    assert told.status == 2
    assert told.err.startswith("error: ZeroDivisionError\n  This is a bug in Truename")
    with pytest.raises(ZeroDivisionError):
        run("names", dump)


def test_markup_in_names_is_text(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"[red]srv[/red]": ["[bold]run[/bold]", ":boom:", "[link=http://x]y[/link]"]}))

    compared = run("names", path, "--compare", "--style", "declared", "--for", "native")
    found = run("resolve", "[bold]run[/bold]", path, "--explain")

    assert (compared.status, found.status) == (0, 0)
    for name in ("[bold]run[/bold]", ":boom:", "[link=http://x]y[/link]"):
        assert name in compared.out
    assert "it is '[bold]run[/bold]' of server '[red]srv[/red]'" in found.out
    assert "\x1b" not in compared.out + found.out


@pytest.mark.parametrize(
    "words",
    [
        ("resolve", HOSTILE, "{dump}"),
        ("resolve", HOSTILE, "{dump}", "--explain", "--json"),
        ("names", HOSTILE),
        ("names", "{dump}", "--for", HOSTILE),
        ("names", "{dump}", "--style", HOSTILE),
        ("clients", HOSTILE),
        ("history", HOSTILE, "--state", HOSTILE),
        ("serve", HOSTILE),
        (HOSTILE,),
        ("names", f"--{HOSTILE}"),
    ],
)
def test_nothing_hostile_reaches_the_terminal(run: Run, dump: Path, words: tuple[str, ...]) -> None:
    done = run(*(word.replace("{dump}", str(dump)) for word in words))

    shown = (done.out + done.err).replace("\n", "")
    assert done.status in (1, 2)
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It is so. Do this.", ("It is so", "Do this.")),
        ("only a fact", ("only a fact", "")),
        ("It is 'A. B. C' so. `truename x` helps.", ("It is 'A. B. C' so", "`truename x` helps.")),
        ("mcp.json: 1.5 is bad. Write 2.", ("mcp.json: 1.5 is bad", "Write 2.")),
    ],
)
def test_a_text_is_parted_into_fact_and_advice(text: str, parts: tuple[str, str]) -> None:
    assert split(text) == parts


def test_a_command_in_an_advice_is_never_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    done = run("nmaes")

    assert done.err.splitlines()[-1] == "  `truename --help` lists the commands."
    assert "Available" not in done.err


def test_a_long_advice_is_indented_and_left_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "50")
    done = run("doctor", "--for", "windsurf")

    _, advice = done.err.splitlines()
    assert advice == "  `truename doctor` lists the clients that were found; for others pass a file or a dump."


@pytest.mark.parametrize("columns", ["20", "80", "100", ""])
def test_a_path_in_an_error_is_in_one_piece_whatever_the_width_of_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    path = tmp_path / ("a long folder " * 12).strip() / ("x" * 200) / "mcp.json"
    done = run("names", path)

    assert done.status == 2
    assert len(done.err.splitlines()) == 2
    assert str(path) in done.err


@given(
    fact=st.text(st.characters(codec="utf-8"), max_size=60),
    advice=st.text(st.sampled_from("`/. :\n\t-ab天"), max_size=60),
    width=st.integers(1, 200),
)
def test_an_error_takes_a_line_for_what_happened_and_one_for_what_to_do(fact: str, advice: str, width: int) -> None:
    said = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": str(width)}), redirect_stderr(said):
        say_error(fact, advice)

    wanted = [f"error: {printable(fact)}".rstrip()]
    if advice:
        wanted.append(f"  {printable(advice)}".rstrip())
    assert said.getvalue().splitlines() == wanted


HELPED = [name for name in app if not name.startswith("-") and name != "install-completion"]
_HELPS = """
import contextlib, io, json, sys
from truename.cli import main
helps = {}
for command in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main([command, "--help"]) == 0
    helps[command] = said.getvalue()
print(json.dumps(helps))
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of every command on a terminal of 80 columns: of one process, which keeps the width of its first."""
    command, environ = [sys.executable, "-c", _HELPS, *HELPED], {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environ, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("command", HELPED)
def test_the_help_of_a_command_fits_80_columns_and_ends_with_words_of_its_own(
    helps: dict[str, str], command: str
) -> None:
    assert max(map(len, helps[command].splitlines())) <= 80
    assert "COMMAND --help" not in helps[command]


WITHOUT_GATEWAY = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"anyio", "mcp"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
for command in sys.argv[1:]:
    importlib.import_module(f"truename.cli.{command}")
"""


def test_commands_that_may_start_servers_need_the_gateway_only_when_they_do() -> None:
    commands = ("connect", "diff", "doctor", "lint", "lock", "names", "policy", "profiles", "rename", "replay", "serve")

    subprocess.run([sys.executable, "-c", WITHOUT_GATEWAY, *commands], check=True, timeout=60)
