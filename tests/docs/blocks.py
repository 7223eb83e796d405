"""Read the code blocks of a page of the documentation, and what its author said about each."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Final

from tests.shared import ROOT

__all__ = ["NOT_RUN_LANGUAGES", "Block", "Command", "commands", "differs", "matches", "pages", "read_blocks"]

# Shown and never run.
NOT_RUN_LANGUAGES: Final = frozenset({"text", "mermaid", "http"})
_FENCE: Final = re.compile(r"(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w+-]*) *(?P<attributes>.*)")
_TITLE: Final = re.compile(r'title="(?P<title>[^"]+)"')
_NOT_RUN: Final = re.compile(r"\s*<!-- not run: (?P<reason>.+?) -->\s*")
_STATUS: Final = re.compile(r"# exit status (?P<status>\d+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its language, the file that it is, its text, its line, and why it is not run."""

    language: str
    text: str
    line: int
    title: str | None = None
    not_run: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block: its words, the lines that it has to print, and its exit status."""

    text: str
    line: int
    expected: tuple[str, ...] = ()
    status: int = 0

    @property
    def is_server(self) -> bool:
        """Return whether the command goes on running until the page ends."""
        return self.text.endswith(" &")


def pages() -> list[str]:
    """Return all pages with code blocks, each by its path from the root of the checkout."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in paths if "```" in path.read_text("utf-8")]


def read_blocks(text: str) -> list[Block]:
    """Return the blocks of a page, from top to bottom. Raises ValueError for one that does not end."""
    blocks, lines = [], text.splitlines()
    number, reason = 0, None
    while number < len(lines):
        line = lines[number]
        number += 1
        if marked := _NOT_RUN.fullmatch(line):
            reason = marked["reason"]
            continue
        if (found := _FENCE.fullmatch(line)) is None:
            reason = reason if not line.strip() else None
            continue
        start = number
        while number < len(lines) and lines[number].strip() != found["fence"]:
            number += 1
        if number == len(lines):
            raise ValueError(f"the block at line {start} does not end")
        body = textwrap.dedent("\n".join(line.removeprefix(found["indent"]) for line in lines[start:number]) + "\n")
        title = _TITLE.search(found["attributes"])
        blocks.append(Block(found["language"], body, start, title and title["title"], reason))
        number, reason = number + 1, None
    return blocks


def commands(block: Block) -> list[Command]:
    r"""Return the commands of a console block; ``\`` at the end of a line continues the command.

    Raises ValueError where lines stand before the first command.
    """
    found: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), block.line + 1))
    for number, line in lines:
        if line.startswith("$ "):
            text = line.removeprefix("$ ").rstrip()
            while text.endswith("\\"):
                text += "\n" + next(lines)[1].rstrip()
            found.append(Command(text, number))
        elif not found:
            if line.strip():
                raise ValueError(f"line {number} is before the first command: begin a command with '$ '")
        elif (status := _STATUS.fullmatch(line)) and not found[-1].expected:
            found[-1] = Command(found[-1].text, found[-1].line, (), int(status["status"]))
        else:
            last = found[-1]
            found[-1] = Command(last.text, last.line, (*last.expected, line.rstrip()), last.status)
    return [Command(one.text, one.line, _trimmed(one.expected), one.status) for one in found]


def _trimmed(lines: tuple[str, ...]) -> tuple[str, ...]:
    text = "\n".join(lines).strip("\n")
    return tuple(text.split("\n")) if text else ()


def matches(expected: str, actual: str) -> bool:
    """Return whether a text is the expected one, where ``…`` stands for any text of a line."""
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), actual) is not None


def differs(expected: tuple[str, ...], printed: str) -> bool:
    """Return whether an output is not the expected lines, where the line ``...`` stands for any lines."""
    actual = tuple(line.rstrip() for line in printed.strip("\n").splitlines())
    # The places of the output up to which the lines expected so far can reach.
    reached = {0}
    for line in expected:
        if line.strip() == "...":
            reached = set(range(min(reached), len(actual) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(actual) and matches(line, actual[at])}
    return len(actual) not in reached
