"""`python -m tests.docs.five_minutes [--without-install] FOLDER`: the first minutes of a new user, in README's steps.

A fresh home has the files of three clients: servers that share tool names, two secrets in plain text, and one file that
was cut off. The trial follows README to a called tool and to a `truename
doctor` without findings, and writes for each step the time, the exit status and a picture of the terminal.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import mcp
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.shared import ROOT

__all__ = ["SECRETS", "Step", "Trial"]

# A picture takes the reader's own font, and loads none from another host.
_FONTS: Final = re.compile(r"@font-face\s*\{.*?\}|<!--.*?-->", re.DOTALL)

SECRETS: Final = ("ghp_q7Xf0Kz2LpV9sWtR4mYb6NcD1eHj3Ua5GiOk", "sk-live-8841aa02c19f47")
_COLUMNS: Final = 80
_COLOUR: Final = r"(?:\x1b\[[0-9;]*m)*"
_MOVING: Final = re.compile(
    rf"{_COLOUR}[\u2800-\u28ff]{_COLOUR} [^\r\n\x1b]*{_COLOUR}\n?|\x1b\[\d*[AK]|\x1b\[\?25[hl]|\r"
)


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
        self.home = folder / "home"
        self.work = self.home / "truename"
        self.steps: list[Step] = []
        self._programs = programs
        self._port = _free_port()

    def run(self) -> None:
        """Do all of it."""
        self._make_home()
        broken = self.home / ".cursor" / "mcp.json"
        if self._programs is None:
            install = "python3 -m venv .venv && .venv/bin/pip install -q -c requirements/constraints.txt '.[gateway]'"
            self._do("Install from the checkout", install)
            self._programs = self.work / ".venv" / "bin"
        self._do("See the problem", "truename demo")
        self._do("Diagnose the clients", "truename doctor --start")
        broken.write_text(broken.read_text("utf-8") + "}", "utf-8")
        self._do("Diagnose again, with the file mended", "truename doctor --start")
        self._do("Write one configuration", "truename init --copy-secrets")
        gateway = self._start_gateway()
        try:
            for client in ("claude-code", "cursor", "codex"):
                self._do(f"Connect {client}", f"truename connect {client} --url {self.address} --yes")
            self._call()
            self._do("Diagnose at the end", "truename doctor --start")
        finally:
            gateway.terminate()
            gateway.wait()

    @property
    def address(self) -> str:
        """The gateway's address, without a path."""
        return f"http://127.0.0.1:{self._port}"

    def _make_home(self) -> None:
        self.home.mkdir(parents=True)
        for part in ("src", "requirements", "examples"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, self.work / part, ignore=ignored, symlinks=True)
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, self.work / file)
        servers = self.work / "examples" / "servers"

        def entry(name: str, **env: str) -> dict[str, object]:
            return {"command": "python", "args": [str(servers / f"{name}.py")], **({"env": env} if env else {})}

        claude = {"mcpServers": {"tickets": entry("tickets", TICKETS_TOKEN=SECRETS[0]), "notes": entry("notes")}}
        (self.home / ".claude.json").write_text(json.dumps(claude, indent=2), "utf-8")
        cursor = {"mcpServers": {"notes": entry("notes"), "agenda": entry("agenda", AGENDA_API_KEY=SECRETS[1])}}
        text = json.dumps(cursor, indent=2)
        # The last bracket is missing, as after an editor that crashed.
        (self.home / ".cursor").mkdir()
        (self.home / ".cursor" / "mcp.json").write_text(text.removesuffix("}"), "utf-8")
        (self.home / ".codex").mkdir()
        codex = f'[mcp_servers.wiki]\ncommand = "python"\nargs = ["{servers / "wiki.py"}"]\n'
        (self.home / ".codex" / "config.toml").write_text(codex, "utf-8")

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "PIP_INDEX_URL", "TMPDIR") if name in os.environ}
        path = [str(self._programs), str(Path(sys.executable).parent)] if self._programs else []
        path.append(os.environ["PATH"])
        home = {"HOME": str(self.home), "PATH": os.pathsep.join(path)}
        return {**kept, **home, "TERM": "xterm-256color", "COLUMNS": str(_COLUMNS), "LC_ALL": "C.UTF-8"}

    def _do(self, title: str, command: str) -> None:
        """Run a command in a terminal."""
        ours, theirs = pty.openpty()
        began = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.work,
            env=self._environment(),
        )
        os.close(theirs)
        shown = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            while True:
                try:
                    piece = terminal.read(65_536)
                except OSError:  # the other end of the terminal is closed
                    break
                if not piece:
                    break
                shown += piece
        status = process.wait()
        text = _settled(shown.decode("utf-8", "replace"))
        self.steps.append(
            Step(title=title, command=command, status=status, seconds=time.monotonic() - began, shown=text)
        )

    def _start_gateway(self) -> subprocess.Popen[bytes]:
        command = f"truename serve truename.toml --http 127.0.0.1:{self._port}"
        began = time.monotonic()
        log = self.work / "gateway.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command.split(), stdout=file, stderr=file, cwd=self.work, env=self._environment()
            )
        while "Ctrl-C ends it." not in log.read_text("utf-8"):
            if process.poll() is not None or time.monotonic() - began > 60:
                raise AssertionError(log.read_text("utf-8"))
            time.sleep(0.05)
        seconds = time.monotonic() - began
        self.steps.append(
            Step(
                title="Start the gateway",
                command=f"{command} &",
                status=0,
                seconds=seconds,
                shown=log.read_text("utf-8"),
            )
        )
        return process

    def _call(self) -> None:
        """Call a tool at the address that is in Claude Code's own file now."""
        servers = json.loads((self.home / ".claude.json").read_text("utf-8"))["mcpServers"]
        addresses = [one["url"] for one in servers.values() if "url" in one]
        began = time.monotonic()
        shown = asyncio.run(_searched(addresses))
        seconds = time.monotonic() - began
        command = "(the client calls the search of its tickets)"
        self.steps.append(Step(title="Call a tool", command=command, status=0, seconds=seconds, shown=shown))

    def write(self, folder: Path) -> Path:
        """Write a picture of each step, and the table of all; return the table's file."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = ["| step | command | status | seconds |", "|---|---|---|---|"]
        for number, step in enumerate(self.steps, 1):
            console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
            console.print(Text(f"$ {step.command}", style="bold"))
            console.print(Text.from_ansi(step.shown))
            picture = folder / f"{number:02}.svg"
            picture.write_text(_FONTS.sub("", console.export_svg(title=step.title, theme=MONOKAI)), "utf-8")
            rows.append(f"| [{step.title}]({picture.name}) | `{step.command}` | {step.status} | {step.seconds:.1f} |")
        table = folder / "index.md"
        table.write_text("\n".join(rows) + "\n", "utf-8")
        return table


async def _searched(addresses: list[str]) -> str:
    for address in addresses:
        async with mcp.Client(address) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            wanted = [name for name in names if name in {"search", "tickets_search"}]
            if wanted:
                result = await client.call_tool(wanted[0], {"query": "slow"})
                return f"{wanted[0]}: {' '.join(getattr(part, 'text', '') for part in result.content)}"
    raise AssertionError(addresses)


def _settled(text: str) -> str:
    """Return what stays on a terminal: without the moving lines, and the sequences that move the cursor."""
    return _MOVING.sub("", text.replace("\r\n", "\n"))


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main(words: list[str]) -> int:
    """Do the trial in a folder that is made anew; return the exit status."""
    is_installed = "--without-install" in words
    (folder,) = (Path(word).absolute() for word in words if not word.startswith("-"))
    shutil.rmtree(folder, ignore_errors=True)
    trial = Trial(folder, Path(sys.executable).parent if is_installed else None)
    trial.run()
    sys.stdout.write(trial.write(folder / "pictures").read_text("utf-8"))
    total = sum(step.seconds for step in trial.steps)
    sys.stdout.write(f"\n{total:.1f} s in all; the last status is {trial.steps[-1].status}\n")
    return trial.steps[-1].status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
