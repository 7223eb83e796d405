"""Run a page of the documentation from top to bottom, in an empty directory below an empty home directory."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import yaml

from tests.docs.blocks import NOT_RUN_LANGUAGES, Block, Command, commands, differs, read_blocks
from tests.shared import ROOT
from truename.config import parse
from truename.config.settings import SETTINGS
from truename.editing.document import Document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PageError", "PageRun", "parse_block"]

_SECONDS: Final = 120
_READY: Final = 60
_HOME: Final = "/home/you"
_PORT: Final = re.compile(r"(?<![\w.])(87\d\d)(?![\w.])")
_SERVER: Final = '[mcpServers.any]\ncommand = "any"\n'
_TABLES: Final = frozenset(SETTINGS) | {"mcpServers", "truename"}


class PageError(AssertionError):
    """A block of a page does not do what the page says."""

    def __init__(self, page: str, line: int, problem: str) -> None:
        super().__init__(f"{page}:{line}: {problem}")


class _EveryVariable(dict[str, str]):
    """An environment in which every variable is set: a page says which ones its reader sets."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "a-value-for-tests-only-000000000000"

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return self[name]


def _parse_toml(text: str, path: Path) -> None:
    keys = tomllib.loads(text).keys()
    if _TABLES & keys:
        # Settings that are shown without servers are read as part of a configuration that has one.
        parse(text if "mcpServers" in keys else f"{text}\n{_SERVER}", path, _EveryVariable())


def _parse_json(text: str, path: Path) -> None:
    content = json.loads(text)
    if path.name == "truename.json" and isinstance(content, dict) and _TABLES & content.keys():
        parse(text, path, _EveryVariable())


_PARSERS: Final[Mapping[str, Callable[[str, Path], object]]] = {
    "json": _parse_json,
    "jsonc": lambda text, path: Document.parse(text.encode(), path, "jsonc"),
    "toml": _parse_toml,
    "yaml": lambda text, _: list(yaml.safe_load_all(text)),
    "python": lambda text, path: compile(text, path, "exec", flags=0x2000, dont_inherit=True),
}


def parse_block(page: str, block: Block, path: Path) -> None:
    """Parse a block of JSON, TOML, YAML or Python; load it if it is a configuration. Raises `PageError`."""
    if (parser := _PARSERS.get(block.language)) is None:
        return
    try:
        parser(block.text, path)
    except Exception as error:
        problems = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        raise PageError(
            page, block.line, f"this {block.language} is refused: {'; '.join(map(str, problems))}"
        ) from error


class PageRun:
    """One run of a page: its directory, its ports, the servers that it started, the scope of its Python blocks."""

    def __init__(self, page: str, root: Path) -> None:
        self.page = page
        self.home, self.state = root / "home", root / "state"
        self.directory = self.home / "demo"
        self.directory.mkdir(parents=True)
        self.state.mkdir()
        (root / "tmp").mkdir()
        (self.directory / "examples").symlink_to(ROOT / "examples")
        self._variables, self._current = self.state / "variables", self.state / "directory"
        self._current.write_text(f"{self.directory}\n", "utf-8")
        self._environ = {
            "HOME": str(self.home),
            "TMPDIR": str(root / "tmp"),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "PYTHONDONTWRITEBYTECODE": "1",
            "USER": "you",
        }
        self._variables.write_text("", "utf-8")
        self._ports: dict[str, str] = {}
        self._servers: list[subprocess.Popen[str]] = []
        self._python: subprocess.Popen[str] | None = None

    def run(self, text: str) -> None:
        """Run all blocks of a page's text. Raises `PageError` at the first that does not do what the page says."""
        try:
            for block in read_blocks(text):
                self._run_block(block)
        finally:
            self._end()

    def _run_block(self, block: Block) -> None:
        path = self.directory / (block.title or f"truename.{block.language}")
        parse_block(self.page, block, path)
        if block.not_run or (block.language in NOT_RUN_LANGUAGES and not block.title):
            return
        if block.title:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._with_free_ports(block.text), "utf-8")
        elif block.language == "console":
            for command in commands(block):
                self._run_command(command)
        elif block.language in {"python", "pycon"}:
            self._run_python(block)
        elif block.language not in _PARSERS:
            kind = f"language {block.language!r}" if block.language else "no language"
            raise PageError(self.page, block.line, f"a block with {kind}: use console, text, or a title")

    def _with_free_ports(self, text: str) -> str:
        return _PORT.sub(lambda found: self._ports.setdefault(found[1], _free_port()), text)

    def _as_shown(self, printed: str) -> str:
        """Return an output with the ports and the home directory that the page shows."""
        for shown, port in self._ports.items():
            printed = re.sub(rf"(?<!\d){port}(?!\d)", shown, printed)
        return printed.replace(str(self.home), _HOME)

    def _start(self, command: str, output: IO[str] | int) -> subprocess.Popen[str]:
        # What a command exports, and the directory that it changes to, hold for those after it.
        script = (
            f'. "{self._variables}"; cd "$(cat "{self._current}")"\n{self._with_free_ports(command)}\n'
            f'__status=$?; export -p > "{self._variables}"; pwd > "{self._current}"; exit $__status'
        )
        return subprocess.Popen(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=self._environ,
            cwd=self.directory,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def _run_command(self, command: Command) -> None:
        if command.is_server:
            self._run_server(command)
            return
        process = self._start(command.text, subprocess.PIPE)
        try:
            printed, _ = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            _end_group(process)
            raise PageError(
                self.page, command.line, f"`{command.text}` does not end; a server's line ends in ' &'"
            ) from error
        printed = self._as_shown(printed)
        if process.returncode != command.status:
            raise PageError(
                self.page,
                command.line,
                f"`{command.text}` exits with {process.returncode}, not {command.status}:\n{printed}",
            )
        if command.expected and differs(command.expected, printed):
            expected = "\n".join(command.expected)
            raise PageError(
                self.page, command.line, f"`{command.text}` prints\n{printed}\nand the page says\n{expected}"
            )

    def _run_server(self, command: Command) -> None:
        log = self.state / f"server-{len(self._servers)}"
        with log.open("w", encoding="utf-8") as output:
            process = self._start(f"exec {command.text.removesuffix(' &')}", output)
        self._servers.append(process)
        port = self._port_of(command)
        until = time.monotonic() + _READY
        while not (_answers(port) and not _misses(command.expected, self._as_shown(log.read_text("utf-8")))):
            if process.poll() is not None or time.monotonic() > until:
                printed = self._as_shown(log.read_text("utf-8"))
                raise PageError(
                    self.page, command.line, f"`{command.text}` does not serve as the page says:\n{printed}"
                )
            time.sleep(0.05)

    def _port_of(self, command: Command) -> str:
        files = (self.directory / word for word in command.text.split() if word.endswith((".toml", ".json", ".py")))
        texts = [self._with_free_ports(command.text), *(path.read_text("utf-8") for path in files if path.is_file())]
        for text in texts:
            for port in self._ports.values():
                if re.search(rf"(?<!\d){port}(?!\d)", text):
                    return port
        raise PageError(self.page, command.line, f"`{command.text}` names no port 87xx at which it answers")

    def _run_python(self, block: Block) -> None:
        if self._python is None:
            worker = [sys.executable, str(Path(__file__).with_name("worker.py"))]
            self._python = subprocess.Popen(
                worker,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environ,
                cwd=self.directory,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        asked = {
            "language": block.language,
            "text": self._with_free_ports(block.text),
            "line": block.line,
            "page": self.page,
        }
        self._python.stdin.write(json.dumps(asked) + "\n")
        self._python.stdin.flush()
        answer = self._python.stdout.readline()
        if wrong := json.loads(answer) if answer else "the Python process ended":
            raise PageError(self.page, block.line, self._as_shown(wrong))

    def _end(self) -> None:
        if self._python is not None:
            assert self._python.stdin is not None
            assert self._python.stdout is not None
            self._python.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._python.wait(timeout=10)
            _end_group(self._python)
            self._python.stdout.close()
        for process in reversed(self._servers):
            _end_group(process)


def _free_port() -> str:
    """Return a free port of four digits: lines with it are as long as the page shows them."""
    while True:
        port = random.randrange(2000, 9999)
        if 8700 <= port < 8800:
            continue
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return str(port)


def _answers(port: str) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), timeout=1):
        return True
    return False


def _misses(expected: tuple[str, ...], printed: str) -> bool:
    return bool(expected) and differs((*expected, "..."), printed)


def _end_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=15)
    if process.stdout is not None:
        process.stdout.close()
