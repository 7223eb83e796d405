"""Which version of a client is installed: told by files, and by the program itself only when it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from truename.clients import Machine, config_files, installed_versions
from truename.clients.installed_versions import InstalledClient, _table, ask_version, installed_client
from truename.dialects import ClientVersion

if TYPE_CHECKING:
    from pathlib import Path

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="programs are files with a mode")
pytestmark = POSIX


class Home:
    """A home with programs in ``bin``; ``project`` is below it, as most are."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.bin = self.home / "bin"
        self.project = self.home / "work"
        for folder in (self.bin, self.project):
            folder.mkdir(parents=True)

    def file(self, name: str, content: Any = "", mode: int = 0o755) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        path.chmod(mode)
        return path

    def link(self, name: str, target: Path) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        return path

    def find(self, client: str = "codex", *paths: str) -> InstalledClient | None:
        environ = {"PATH": os.pathsep.join(paths or (str(self.bin),))}
        machine = Machine(system="linux", home=self.home, environ=environ, project=self.project, root=self.home)
        return installed_client(client, machine)

    def version(self, client: str = "codex", *paths: str) -> str | None:
        found = self.find(client, *paths)
        return None if found is None else found.version


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


NPM = "lib/node_modules/@openai/codex"
PACKAGE = {"name": "@openai/codex", "version": "0.50.0"}


def test_npms_link_leads_to_the_package_that_says_the_version(home: Home) -> None:
    home.link("bin/codex", home.file(f"{NPM}/bin/codex.js"))
    package = home.file(f"{NPM}/package.json", PACKAGE)

    found = home.find()

    assert found is not None
    assert (found.version, found.source, found.program) == ("0.50.0", str(package), home.bin / "codex")


def test_a_shim_that_is_no_link_has_its_package_below_the_prefix_or_beside_it(home: Home) -> None:
    home.file("bin/codex", "#!/bin/sh\n")
    home.file(f"{NPM}/package.json", PACKAGE)
    home.file("npm/gemini", "#!/bin/sh\n")
    home.file("npm/node_modules/@google/gemini-cli/package.json", {"name": "@google/gemini-cli", "version": "0.61.0"})

    assert home.version() == "0.50.0"
    assert home.version("gemini-cli", str(home.home / "npm")) == "0.61.0"


@pytest.mark.parametrize(
    ("client", "name", "written", "version"),
    [
        ("codex", "@openai/codex", "0.130.0-linux-x64", "0.130.0"),
        ("codex", "@openai/codex", "0.130.0-alpha.2-darwin-arm64", "0.130.0-alpha.2"),
        ("codex", "@openai/codex", "0.130.0-linux", "0.130.0-linux"),
        ("cline", "@cline/cli-linux-x64", "3.0.65", "3.0.65"),
        ("cline", "@cline/core", "0.0.86", ""),
        ("cline", "x@cline/cli-linux-x64", "1.0.0", ""),
    ],
)
def test_a_package_for_one_platform_is_of_the_same_version(
    home: Home, client: str, name: str, written: str, version: str
) -> None:
    home.link(f"bin/{client}", home.file(f"lib/node_modules/{name}/bin/{client}"))
    home.file(f"lib/node_modules/{name}/package.json", {"name": name, "version": written})

    assert home.version(client) == version


@pytest.mark.parametrize(
    ("client", "target", "version"),
    [
        ("codex", "opt/homebrew/Cellar/codex/0.50.0/bin/codex", "0.50.0"),
        ("codex", "opt/homebrew/Caskroom/codex/0.51.0-alpha.1/codex-arm64", "0.51.0-alpha.1"),
        ("gemini-cli", "opt/homebrew/Cellar/gemini-cli/0.61.0/bin/gemini", "0.61.0"),
        ("claude-code", ".local/share/claude/versions/2.1.330", "2.1.330"),
        # The version of something else.
        ("codex", "opt/homebrew/Cellar/node/24.1.0/lib/node_modules/x/codex.js", ""),
        ("codex", ".pyenv/versions/3.11.1/bin/codex", ""),
        ("codex", "opt/homebrew/Cellar/codex/latest/bin/codex", ""),
        ("codex", "opt/Cellar", ""),
    ],
)
def test_a_package_manager_writes_the_version_into_the_path(home: Home, client: str, target: str, version: str) -> None:
    names = {"codex": "codex", "gemini-cli": "gemini", "claude-code": "claude"}
    home.link(f"bin/{names[client]}", home.file(target))

    assert home.version(client) == version


def test_without_a_program_on_the_path_the_newest_folder_of_the_installer_counts(home: Home) -> None:
    for version in ("2.1.9", "2.1.10", "2.1.10-beta.1", "not-one"):
        home.file(f".local/share/claude/versions/{version}")

    found = home.find("claude-code")

    assert found is not None
    assert (found.version, found.program.name) == ("2.1.10", "2.1.10")


def test_the_first_program_on_the_path_counts_even_if_no_file_tells_its_version(home: Home) -> None:
    home.file("first/codex", "#!/bin/sh\n")
    home.link("bin/codex", home.file(f"{NPM}/bin/codex.js"))
    home.file(f"{NPM}/package.json", PACKAGE)

    found = home.find("codex", str(home.home / "first"), str(home.bin))

    assert found is not None
    assert (found.version, found.source) == ("", "")


def test_programs_of_the_project_and_of_relative_directories_do_not_count(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.link("work/node_modules/.bin/codex", home.file("work/node_modules/@openai/codex/bin/codex.js"))
    home.file("work/node_modules/@openai/codex/package.json", {"name": "@openai/codex", "version": "6.6.6"})
    monkeypatch.chdir(home.project)

    assert home.find("codex", str(home.project / "node_modules/.bin"), "node_modules/.bin", "", ".") is None


HOSTILE: dict[str, Any] = {
    "no JSON": "{",
    "a list": "[1]",
    "deep": "[" * 100_000,
    "no version": {"name": "@openai/codex"},
    "a number": {"name": "@openai/codex", "version": 5},
    "another package": {"name": "codex", "version": "1.0.0"},
    "markup": {"name": "@openai/codex", "version": "1.0\x1b[31m"},
    "long": {"name": "@openai/codex", "version": "1." * 1_000_000},
    "large": {"name": "@openai/codex", "version": "1.0.0", "x": "y" * 2_000_000},
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_package_that_tells_nothing_usable_leaves_the_version_open(home: Home, content: Any) -> None:
    home.link("bin/codex", home.file(f"{NPM}/bin/codex.js"))
    home.file(f"{NPM}/package.json", content)

    assert home.version() == ""


def test_pipes_loops_and_directories_are_no_files(home: Home) -> None:
    home.link("bin/codex", home.file(f"{NPM}/bin/codex.js"))
    os.mkfifo(home.home / NPM / "package.json")
    home.link("bin/gemini", home.home / "bin" / "gemini")
    (home.bin / "qwen").mkdir()
    home.file("bin/cline", "", 0o644)

    assert home.version() == ""
    assert [home.find(name) for name in ("gemini-cli", "qwen-code", "cline")] == [None, None, None]


def test_a_path_of_any_length_and_a_client_without_programs_are_no_trouble(home: Home) -> None:
    assert home.find("codex", *("/x" * 500 for _ in range(3000)), "a\0b") is None
    assert home.find("cursor") is None
    assert home.find("no such client") is None


def test_every_row_is_a_client_with_files() -> None:
    assert {file.client for file in config_files()} >= _table().keys()


def program(home: Home, text: str) -> InstalledClient:
    return InstalledClient(client="codex", program=home.file("bin/codex", f"#!/bin/sh\n{text}\n"))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("echo codex-cli 0.50.0", "0.50.0"),
        ("echo v1.2.3-beta.1", "1.2.3-beta.1"),
        ("echo '2.1.330 (Claude Code)'", "2.1.330"),
        ("echo no version", ""),
        ("echo 1", ""),
        ("echo 0.50.0 >&2", ""),
        ("exit 3", ""),
        ("echo 0.50.0; exit 3", "0.50.0"),
        ("head -c 100000 /dev/zero; echo 0.50.0", ""),
        ("kill -9 $$", ""),
    ],
)
def test_a_program_is_asked_for_its_version(home: Home, text: str, version: str) -> None:
    found = ask_version(program(home, text), home.home)

    assert found.version == version
    assert found.source == ("its --version" if version else "")
    assert not version or ClientVersion.parse(version)


def running(group: int) -> list[str]:
    """Return the states of a group's processes that have not ended."""
    found = subprocess.run(["ps", "-o", "stat=", "-g", str(group)], capture_output=True, text=True, check=False)
    return [state for state in found.stdout.split() if not state.startswith("Z")]


def test_a_program_that_does_not_end_is_ended_with_what_it_started(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_versions, "_SECONDS", 0.5)
    found = ask_version(program(home, "echo $$ > $0.pid; sleep 1000 & sleep 1000"), home.home)

    assert found.version == ""
    pid = int((home.bin / "codex.pid").read_text())
    # A signal that was sent takes effect when the process gets its turn.
    until = time.monotonic() + 10
    while running(pid) and time.monotonic() < until:
        pass
    assert running(pid) == []


def test_a_program_that_is_none_is_left_alone(home: Home) -> None:
    path = home.file("bin/codex", "\x7fnot a program")
    found = InstalledClient(client="codex", program=path)

    assert ask_version(found, home.home) == found
    assert ask_version(InstalledClient(client="codex", program=home.bin / "gone"), home.home).version == ""
