"""`python -m tests.docs.five_minutes [--without-install] FOLDER [PAGE]`: the first minutes of a new user, by README.

A fresh home has the files of three clients. Servers share tool names; secrets in plain text are in a variable, in
arguments and in a header; one server is reached over HTTP; one file was cut off. The trial types the commands that
README has, answers their questions, repairs the file as `truename doctor` says, and calls tools at the addresses that
are in the clients' own files then. It writes a picture of each step, and the table of all steps into a page. FOLDER is
the user's home; pictures show its path.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import mcp
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.docs.terminal import COLUMNS, Terminal
from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ADDRESS", "CLIENTS", "SECRETS", "Step", "Trial", "is_free"]

SECRETS: Final = ("ghp_q7Xf0Kz2LpV9sWtR4mYb6NcD1eHj3Ua5GiOk", "sk-live-8841aa02c19f47", "hb-5521cc7e90ab34")
CLIENTS: Final = ("claude-code", "cursor", "codex")
ADDRESS: Final = ("127.0.0.1", 8750)
_ANSWERS: Final = {"[y/N]": "y"}
_BROKEN: Final = re.compile(r"ends too early: '([]}]+)' is missing.*?(~/\S+?\.json):\d+")
_PATIENCE: Final = 60.0
_INSTALLING: Final = 600.0
_WORDS_A_MINUTE: Final = 220
# A picture takes the reader's own font, and loads none from another host.
_FONTS: Final = re.compile(r"@font-face\s*\{.*?\}|<!--.*?-->", re.DOTALL)
# A folder with it was made by a trial, and may be removed.
_MARK: Final = ".truename-trial"
_LAST_LINES: Final = 12
_BEGIN, _END = "<!-- five-minutes: begin -->", "<!-- five-minutes: end -->"
_README: Final = ROOT / "README.md"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step: its command as a person types it, how it ended, how long it took, and everything that it printed."""

    title: str
    command: str
    status: int
    seconds: float
    shown: str


class Trial:
    """A new user's machine, and what they do on it. ``programs`` is a folder with `truename`; None: it is installed."""

    def __init__(self, folder: Path, programs: Path | None) -> None:
        self.home = folder
        self.work = self.home / "truename"
        self.steps: list[Step] = []
        self._programs = programs
        self._port = _free_port()

    def run(self) -> None:
        """Do all of it. Raises `AssertionError` where a person could not go on; the steps until then are there."""
        self._make_home()
        install, first, own = (_commands(heading) for heading in ("Install", "First run", "Your own clients"))
        doctor, init, serve, connect, doctor_again = own
        if self._programs is None:
            begin = next(number for number, line in enumerate(install) if "-m venv" in line)
            self._do("Install from the checkout", " && ".join(install[begin:]), _INSTALLING)
            # pip says where packages came from.
            last = "\n".join(self.steps[0].shown.splitlines()[-_LAST_LINES:])
            self.steps[0] = replace(self.steps[0], shown=f"...\n{last}")
            self._programs = self.work / ".venv" / "bin"
        with self._handbook(), ExitStack() as stack:
            self._do("See the problem", first[0])
            diagnosed = self._do("Diagnose the clients", doctor)
            self._repair(diagnosed)
            self._do("Diagnose again, with the file repaired", doctor)
            self._do("Write one configuration", init)
            gateway = stack.enter_context(self._start_gateway(serve))
            for client in CLIENTS:
                self._do(f"Connect {client}", connect.replace("claude-code", client))
            self._call("Call tools of Claude Code's file", self._addresses(".claude.json"))
            self._call("Call tools of Cursor's file", self._addresses(".cursor/mcp.json"))
            self._call("Call a tool of Codex's file", self._addresses(".codex/config.toml"))
            self._do("Diagnose at the end", doctor_again)
            self._end(gateway)

    def _make_home(self) -> None:
        self.home.mkdir(parents=True)
        (self.home / _MARK).touch()
        for part in ("src", "requirements", "examples"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, self.work / part, ignore=ignored, symlinks=True)
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, self.work / file)
        servers = self.work / "examples" / "servers"

        def entry(name: str, *args: str, **env: str) -> dict[str, object]:
            return {"command": "python", "args": [str(servers / f"{name}.py"), *args], **({"env": env} if env else {})}

        claude = {"mcpServers": {"tickets": entry("tickets", TICKETS_TOKEN=SECRETS[0]), "notes": entry("notes")}}
        (self.home / ".claude.json").write_text(json.dumps(claude, indent=2), "utf-8")
        cursor = {"mcpServers": {"notes": entry("notes"), "agenda": entry("agenda", "--api-key", SECRETS[1])}}
        text = json.dumps(cursor, indent=2)
        # The last brackets are missing, as after an editor that crashed.
        (self.home / ".cursor").mkdir()
        (self.home / ".cursor" / "mcp.json").write_text(text.removesuffix("\n  }\n}"), "utf-8")
        (self.home / ".codex").mkdir()
        codex = (
            f'[mcp_servers.wiki]\ncommand = "python"\nargs = ["{servers / "wiki.py"}"]\n\n[mcp_servers.handbook]\n'
            f'url = "http://127.0.0.1:{self._port}/mcp"\nhttp_headers = {{ Authorization = "Bearer {SECRETS[2]}" }}\n'
        )
        (self.home / ".codex" / "config.toml").write_text(codex, "utf-8")

    @contextmanager
    def _handbook(self) -> Iterator[None]:
        """Run somebody's server over HTTP, as it ran before the user came."""
        command = [sys.executable, "-m", "tests.docs.handbook", str(self._port), SECRETS[2]]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            while is_free(("127.0.0.1", self._port)):
                assert process.poll() is None
            yield
        finally:
            process.kill()
            process.wait()

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "PIP_INDEX_URL", "TMPDIR") if name in os.environ}
        path = [str(self._programs), str(Path(sys.executable).parent)] if self._programs else []
        path.append(os.environ["PATH"])
        home = {"HOME": str(self.home), "PATH": os.pathsep.join(path)}
        return {**kept, **home, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}

    def _terminal(self, command: str) -> Terminal:
        return Terminal(command, self.work, self._environment(), _ANSWERS)

    def _do(self, title: str, command: str, patience: float = _PATIENCE) -> str:
        """Run a command in a terminal until it ends; return what it printed."""
        began = time.monotonic()
        with self._terminal(command) as terminal:
            terminal.until(None, patience)
            self._note(title, command, terminal.process.returncode, began, terminal.shown)
        return self.steps[-1].shown

    def _note(self, title: str, command: str, status: int, began: float, shown: str) -> None:
        seconds = time.monotonic() - began
        self.steps.append(Step(title=title, command=command, status=status, seconds=seconds, shown=shown))

    def _repair(self, diagnosed: str) -> None:
        """Repair the file that the doctor names, by what it says of it."""
        plain = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", diagnosed).split())
        found = _BROKEN.search(plain)
        assert found is not None, plain
        file = self.home / found[2].removeprefix("~/")
        with file.open("a", encoding="utf-8") as text:
            text.write(found[1])

    @contextmanager
    def _start_gateway(self, command: str) -> Iterator[Terminal]:
        """Run the gateway in another terminal, until it says that it serves."""
        began = time.monotonic()
        with self._terminal(command) as terminal:
            serves = terminal.until("Ctrl-C ends it.", _PATIENCE)
            status = 0 if serves else terminal.process.returncode
            self._note("Start the gateway", command, status, began, terminal.shown)
            assert serves, terminal.text
            yield terminal

    def _end(self, gateway: Terminal) -> None:
        began, before = time.monotonic(), gateway.shown.count("\n")
        gateway.type("\x03")
        gateway.until(None, _PATIENCE)
        self._note(
            "End the gateway",
            "Ctrl-C",
            gateway.process.returncode,
            began,
            "\n".join(gateway.shown.splitlines()[before:]),
        )

    def _addresses(self, file: str) -> list[str]:
        """Return the addresses in a client's file."""
        text = (self.home / file).read_text("utf-8")
        content = tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
        (servers,) = content.values()
        return [one["url"] for one in servers.values()]

    def _call(self, title: str, addresses: list[str]) -> None:
        """Call each tool whose name has `search` in it, at the addresses that are in a client's file."""
        began = time.monotonic()
        shown = asyncio.run(_searched(addresses))
        assert shown, addresses
        self._note(title, "(the client calls its tools)", 0, began, shown)

    def write(self, folder: Path) -> list[str]:
        """Write a picture of each step; return the lines of the table of all."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        rows = ["| step | command | exit status | seconds |", "|---|---|---|---|"]
        for number, step in enumerate(self.steps, 1):
            console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
            console.print(Text(f"$ {step.command}", style="bold"))
            console.print(Text.from_ansi(step.shown))
            picture = folder / f"{number:02}.svg"
            svg = console.export_svg(title=step.title, theme=MONOKAI, unique_id=f"step-{number:02}")
            picture.write_text(_FONTS.sub("", svg), "utf-8")
            link = f"[{step.title}](../images/start/{picture.name})"
            rows.append(f"| {link} | `{step.command}` | {step.status} | {step.seconds:.1f} |")
        rows.append(f"| all | | | {sum(step.seconds for step in self.steps):.1f} |")
        return rows


async def _searched(addresses: list[str]) -> str:
    lines: list[str] = []
    for address in addresses:
        async with mcp.Client(address) as client:
            for tool in (await client.list_tools()).tools:
                if "search" in tool.name:
                    result = await client.call_tool(tool.name, {"query": "a"})
                    answer = " ".join(getattr(part, "text", "") for part in result.content)
                    lines.append(f"{tool.name}: {answer}")
    return "\n".join(lines)


def _commands(heading: str) -> list[str]:
    """Return the commands of the first console block below a heading of README, without their comments."""
    section = _README.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    block = section.split("```console\n")[1].split("```")[0]
    return [re.sub(r"\s+#.*", "", line.removeprefix("$ ")) for line in block.splitlines()]


def is_free(address: tuple[str, int]) -> bool:
    """Tell whether nobody listens at an address."""
    with closing(socket.socket()) as found:
        return found.connect_ex(address) != 0


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _reading() -> str:
    text = _README.read_text("utf-8").split("\n## The library\n")[0]
    words, whole = len(text.split()), len(_README.read_text("utf-8").split())
    return (
        f'README has {words} words up to "The library", code included: {words / _WORDS_A_MINUTE:.1f} minutes at '
        f"{_WORDS_A_MINUTE} words a minute. The whole of README has {whole:,} words."
    )


def main(words: list[str]) -> int:
    """Do the trial in a folder that is made anew; return the exit status."""
    is_installed = "--without-install" in words
    folder, *page = (Path(word).absolute() for word in words if not word.startswith("-"))
    if not is_free(ADDRESS):
        sys.stderr.write("Port 8750, the gateway's default, is in use. End what listens there.\n")
        return 2
    if folder.exists() and not (folder / _MARK).exists():
        sys.stderr.write(f"{folder} is not a folder of a trial. Name another one.\n")
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    trial = Trial(folder, Path(sys.executable).parent if is_installed else None)
    trial.run()
    pictures = ROOT / "docs" / "images" / "start" if page else folder / "pictures"
    table = "\n".join(trial.write(pictures))
    sys.stdout.write(f"{table}\n")
    for file in page:
        before, rest = file.read_text("utf-8").split(_BEGIN)
        version = ".".join(map(str, sys.version_info[:3]))
        measured = f"Measured on {time.strftime('%Y-%m-%d')}, Python {version}, {os.cpu_count()} cores. {_reading()}"
        file.write_text(f"{before}{_BEGIN}\n\n{measured}\n\n{table}\n\n{_END}{rest.split(_END)[1]}", "utf-8")
    return trial.steps[-2].status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
