"""Consent to a configuration that was found: given by a person, for these bytes at this place, and taken back."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import fake
from truename.cli._errors import UsageError
from truename.cli._sources import CODE, files_at, is_allowed, open_found
from truename.config.consent import ConsentStore, consent_key
from truename.config.files import ConfigFiles
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

Files = dict[str, bytes | None]


@dataclass
class Terminal:
    """Standard input of a person who types."""

    typed: str = ""
    meanwhile: Callable[[], object] = lambda: None

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        self.meanwhile()
        return self.typed


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a person in front of the command who types this."""

    def types(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr("truename.cli._sources.is_terminal", lambda: True)

    return types


@pytest.fixture
def found(tmp_path: Path) -> Path:
    """A configuration of one server, in the directory where commands run."""
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"w": fake("w", "get")}}))
    return path


def needs_consent(run: Run, *words: str) -> bool:
    done = run(*(words or ("names", "--json")))
    return done.status == 2 and done.document["errors"][0]["code"] == CODE


def test_what_was_allowed_is_used_until_it_changes(run: Run, found: Path) -> None:
    assert needs_consent(run)
    told = run("allow")
    assert told.status == 0
    assert "starts" in told.out
    assert run("names").status == 0

    found.write_text(found.read_text() + " ")

    assert needs_consent(run)
    assert "mcp.json changed since it was allowed" in run("names").err
    assert run("allow", "mcp.json").status == 0
    assert run("names").status == 0


def test_consent_is_taken_back(run: Run, found: Path) -> None:
    run("allow")

    assert run("allow", "--revoke", "--json").document == {"file": str(found), "revoked": True}
    assert needs_consent(run)
    assert run("allow", "--revoke", found.name).out == "mcp.json was not allowed; nothing changed.\n"


def test_all_that_is_allowed_is_listed_with_what_became_of_it(run: Run, found: Path, tmp_path: Path) -> None:
    assert run("allow", "--list").out == "Nothing is allowed.\n"
    for name in ("changed", "gone", "broken"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mcp.json").write_text(found.read_text())
        run("allow", tmp_path / name / "mcp.json")
    run("allow")
    (tmp_path / "changed" / "mcp.json").write_text("{}")
    (tmp_path / "broken" / "mcp.json").write_text("{")
    (tmp_path / "gone" / "mcp.json").unlink()

    listed = {one["file"]: one["state"] for one in run("allow", "--list", "--json").document["allowed"]}

    assert listed == {
        str(tmp_path / "changed" / "mcp.json"): "changed",
        str(tmp_path / "broken" / "mcp.json"): "changed",
        str(tmp_path / "gone" / "mcp.json"): "gone",
        str(found): "allowed",
    }
    assert "changed" in run("allow", "--list").out
    assert run("allow", "--list", "--revoke").status == 2


def test_allowing_tells_programs_what_they_would_start(run: Run, tmp_path: Path) -> None:
    settings = '[telemetry]\nendpoint = "https://collector.example"\n'
    servers = {
        "a": {
            "command": "sh",
            "args": ["-c", "x $1", "--token", "rm -rf /"],
            "env": {"LD_PRELOAD": "./x.so", "TOKEN": "s3cret-9f2c"},
        },
        "b": {"url": "https://b.example/${HOST}", "headers": {"Authorization": "Bearer ${B}"}, "disabled": True},
        "c": {"command": 5, "args": "no"},
        "d": {},
    }
    (tmp_path / "mcp.json").write_text(
        json.dumps({"mcpServers": servers, "truename": {"deep": [["$${NO} ${file:/x}"]]}})
    )
    (tmp_path / "truename.toml").write_text(settings)

    told = run("allow", "--json").document

    assert told["file"] == str(tmp_path / "mcp.json")
    assert told["files"] == [str(tmp_path / "mcp.json"), str(tmp_path / "truename.toml")]
    assert told["servers"] == [
        {"key": "a", "does": "starts LD_PRELOAD=./x.so TOKEN='***' sh -c 'x $1' --token 'rm -rf /'"},
        {"key": "b", "does": "connects to https://b.example/${HOST} (disabled)"},
        {"key": "c", "does": "starts 5"},
        {"key": "d", "does": "does nothing"},
    ]
    assert told["references"] == [
        {"reference": "${HOST}", "place": "mcpServers.b.url"},
        {"reference": "${B}", "place": "mcpServers.b.headers.Authorization"},
        {"reference": "${file:/x}", "place": "truename.deep[0][0]"},
    ]
    assert told["addresses"] == [{"place": "telemetry.endpoint", "address": "https://collector.example"}]


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("\n", 2), ("", 2), ("yy\n", 2)])
def test_a_person_is_shown_what_would_run_and_no_is_the_default(
    run: Run, found: Path, types: Callable[[str], None], answer: str, status: int
) -> None:
    types(answer)

    done = run("names")

    assert done.status == status
    assert "starts" in done.err
    assert "tests.gateway.servers.normal" in done.err.replace("\n", "")
    assert "Allow it as it is now? [y/N]" in done.err
    assert is_allowed(found, files_at(found), ConsentStore.here().get(found)) is (status == 0)


def test_a_yes_is_remembered(run: Run, found: Path, types: Callable[[str], None]) -> None:
    types("y\n")
    assert run("names").status == 0

    again = run("names")

    assert (again.status, "Allow it" in again.err) == (0, False)
    found.write_text(found.read_text() + " ")
    types("n\n")
    assert "mcp.json changed since it was allowed." in run("names").err


def test_nothing_shown_is_an_order_to_a_terminal(run: Run, tmp_path: Path, types: Callable[[str], None]) -> None:
    hostile = {
        "a\x1b[2J": {"command": "\x1b]0;x\x07sh", "args": ["\x1b[8m; rm -rf", "\u202egnp"], "env": {"\x1b[A": "1"}}
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": hostile}))
    types("n\n")

    shown = run("names").err

    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "rm -rf" in shown


def test_what_is_said_yes_to_is_what_is_used_though_the_file_changes_meanwhile(
    found: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def race() -> None:
        found.write_text(json.dumps({"mcpServers": {"evil": {"command": "evil"}}}))
        (found.with_name("truename.toml")).write_text('[policy]\ndefault = "allow"\n')

    monkeypatch.setattr(sys, "stdin", Terminal("y\n", race))
    monkeypatch.setattr("truename.cli._sources.is_terminal", lambda: True)

    config = open_found(found)

    assert [server.key for server in config.servers] == ["w"]
    assert config.settings.policy is None
    with pytest.raises(UsageError):
        open_found(found, may_ask=False)


CHANGES: list[tuple[str, Files]] = [
    ("the configuration", {"mcp.json": b'{"mcpServers": {"x": {"command": "${A}"}}}'}),
    ("a blank", {"mcp.json": b'{"mcpServers": {"w": {"command": "${A}"}}} '}),
    ("the settings beside it", {"truename.toml": b'env_file = "a.env"\nstyle = "prefixed"\n'}),
    ("no settings beside it", {"truename.toml": None}),
    ("the variables", {"a.env": b"A=evil\n"}),
    ("other variables", {"truename.toml": b'env_file = "b.env"\n', "b.env": b"A=true\n"}),
]


@pytest.mark.parametrize("changes", [changes for _, changes in CHANGES], ids=[name for name, _ in CHANGES])
def test_every_file_that_decides_what_runs_is_part_of_what_was_allowed(
    run: Run, tmp_path: Path, changes: Files
) -> None:
    lay(tmp_path, {"mcp.json": b'{"mcpServers": {"w": {"command": "${A}"}}}', "a.env": b"A=true\n"})
    lay(tmp_path, {"truename.toml": b'env_file = "a.env"\n'})
    run("allow")
    assert open_found(tmp_path / "mcp.json", may_ask=False).servers[0].command == "true"

    lay(tmp_path, changes)

    assert needs_consent(run)


def test_settings_that_appear_beside_an_allowed_configuration_need_consent(run: Run, found: Path) -> None:
    run("allow")
    found.with_name("truename.toml").write_text('[policy]\ndefault = "allow"\n')

    assert needs_consent(run)


def lay(directory: Path, files: Files) -> None:
    for name, raw in files.items():
        path = directory / name
        if raw is None:
            path.unlink()
        else:
            path.write_bytes(raw)
            path.chmod(0o600)


def test_the_same_bytes_in_another_directory_need_consent_of_their_own(run: Run, found: Path, tmp_path: Path) -> None:
    run("allow")
    other = tmp_path / "other"
    other.mkdir()
    (other / "mcp.json").write_bytes(found.read_bytes())
    # Relative paths in it would be other programs.
    (other / "link.json").symlink_to(found)
    (other / "hard.json").hardlink_to(found)

    for name in ("mcp.json", "link.json", "hard.json"):
        with pytest.raises(UsageError, match="needs consent"):
            open_found(other / name, may_ask=False)


def test_a_link_that_comes_to_lead_elsewhere_needs_consent(run: Run, found: Path, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / ".mcp.json"
    found.rename(real)
    link.symlink_to(real)
    run("allow")
    assert run("names").status == 0
    link.unlink()
    (tmp_path / "evil.json").write_text(json.dumps({"mcpServers": {"e": {"command": "evil"}}}))

    link.symlink_to(tmp_path / "evil.json")

    assert needs_consent(run)


def test_a_directory_that_is_replaced_by_a_link_needs_consent(tmp_path: Path, run: Run) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mcp.json").write_text('{"mcpServers": {"a": {"command": "./run.sh"}}}')
    run("allow", tmp_path / "mine" / "mcp.json")
    assert open_found(tmp_path / "mine" / "mcp.json", may_ask=False)
    (tmp_path / "mine").rename(tmp_path / "away")

    (tmp_path / "mine").symlink_to(tmp_path / "theirs")

    with pytest.raises(UsageError, match="needs consent"):
        open_found(tmp_path / "mine" / "mcp.json", may_ask=False)


def test_a_directory_reached_by_a_link_is_the_same_directory(tmp_path: Path, found: Path, run: Run) -> None:
    run("allow")
    (tmp_path / "link").symlink_to(tmp_path)

    assert open_found(tmp_path / "link" / found.name, may_ask=False).servers[0].key == "w"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes by name here")
@pytest.mark.parametrize("name", ["mcp.json", "truename.toml", "a.env"])
def test_a_pipe_is_not_waited_for(run: Run, tmp_path: Path, name: str) -> None:
    lay(tmp_path, {"mcp.json": b'{"mcpServers": {}, "truename": {"env_file": "a.env"}}', "a.env": b""})
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)

    if name == "truename.toml":
        assert files_at(tmp_path / "mcp.json").paths == (tmp_path / "mcp.json",)
    else:
        done = run("allow", "mcp.json")
        assert (done.status, "regular file" in done.err) == (2, True)


def test_what_a_configuration_names_is_not_looked_for_before_it_is_allowed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []

    def look(path: Path) -> bytes:
        looked.append(path)
        return b""

    monkeypatch.setattr("truename.config.files.env_bytes", look)
    lay(tmp_path, {"mcp.json": b'{"mcpServers": {}, "truename": {"env_file": "/net/thief/${HOME}"}}'})

    assert needs_consent(run)
    assert looked == []
    run("allow")
    assert looked != []


def test_a_file_that_was_not_judged_is_not_read(tmp_path: Path) -> None:
    files = ConfigFiles(regular=True)
    (tmp_path / "a.json").write_text("{}")
    files.text(tmp_path / "a.json")
    files.seal()
    (tmp_path / "a.json").write_text("changed")

    assert files.text(tmp_path / "a.json") == "{}"
    with pytest.raises(ConfigError, match="it changed while it was read"):
        files.has(tmp_path / "b.json")


def test_a_path_on_the_command_line_is_consent_for_that_command(run: Run, found: Path) -> None:
    assert run("names", found.name).status == 0
    assert needs_consent(run)


def test_consent_is_kept_for_its_owner_alone(run: Run, found: Path) -> None:
    run("allow")
    file = ConsentStore.here().file(found)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def _linked(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def _for_another_path(file: Path) -> None:
    said = json.loads(file.read_text()) | {"path": "/elsewhere/mcp.json"}
    file.write_text(json.dumps(said))


SPOILED: dict[str, Callable[[Path], object]] = {
    "no JSON": lambda file: file.write_text("{"),
    "another shape": lambda file: file.write_text("[]"),
    "more fields": lambda file: file.write_text(file.read_text().replace("{", '{"x": 1, ')),
    "no text": lambda file: file.write_text(file.read_text().replace('"sha256', '1, "y": "sha256')),
    "a number": lambda file: file.write_text(json.dumps(json.loads(file.read_text()) | {"digest": 1})),
    "a link": _linked,
    "another path's": _for_another_path,
    "half a character": lambda file: file.write_text(
        json.dumps(json.loads(file.read_text()) | {"path": "/" + chr(0xD800)})
    ),
    "a directory that others write": lambda file: file.parent.chmod(0o777),
    "nested": lambda file: file.write_text("[" * 60_000),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_consent_that_is_damaged_or_might_be_another_users_is_none(
    run: Run, found: Path, spoil: Callable[[Path], object]
) -> None:
    run("allow")
    spoil(ConsentStore.here().file(found))

    assert needs_consent(run)
    assert run("allow", "--list", "--json").document == {"allowed": []}
    assert run("allow").status == 0
    assert run("names").status == 0


def test_consent_is_to_a_path_as_it_is_spelled(tmp_path: Path) -> None:
    (tmp_path / "Dir").mkdir()

    assert consent_key(tmp_path / "Dir" / "mcp.json") != consent_key(tmp_path / "dir" / "mcp.json")
    assert consent_key(tmp_path / "Dir" / ".." / "mcp.json") == consent_key(tmp_path / "mcp.json")


parts = st.dictionaries(st.sampled_from(["a.toml", "b.json", "b.jsonc"]), st.none() | st.binary(max_size=3), min_size=1)


@given(parts, parts)
def test_two_sets_of_files_have_one_digest_only_if_they_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, one: Files, other: Files
) -> None:
    digests = [_digest(tmp_path_factory.mktemp("files"), files) for files in (one, other)]

    assert (digests[0] == digests[1]) is (one == other)


def _digest(directory: Path, laid: Files) -> str:
    files = ConfigFiles()
    for name, raw in laid.items():
        if raw is not None:
            (directory / name).write_bytes(raw)
        files.has(directory / name)
    return files.digest(directory)


@pytest.mark.parametrize("command", ["init", "import"])
def test_what_a_command_was_asked_to_write_is_allowed(run: Run, tmp_path: Path, command: str) -> None:
    source = tmp_path / "theirs.json"
    source.write_text(json.dumps({"mcpServers": {"w": fake("w", "get")}}))

    done = run(command, source, *(["--from", "fastmcp"] if command == "import" else []))

    assert (tmp_path / "truename.toml").exists(), done.err
    assert run("names").status == 0


def test_variables_that_stood_there_before_are_not_allowed_with_what_is_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text(json.dumps({"mcpServers": {"w": fake("w", "get")}}))
    (tmp_path / "truename.env").write_text("A=1\n")

    run("init", "theirs.json")

    assert needs_consent(run)
