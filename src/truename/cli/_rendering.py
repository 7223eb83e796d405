"""Print text, tables, diffs and JSON to the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import UTC, datetime
from difflib import unified_diff
from functools import reduce
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

__all__ = [
    "Cell",
    "count",
    "diff",
    "is_wide",
    "output",
    "print_json",
    "print_table",
    "printable",
    "say",
    "say_error",
    "say_json",
    "shortened",
    "show",
    "show_diff",
    "show_hanging",
    "shown_time",
    "styled",
    "utc_time",
]

Cell: TypeAlias = "Text | str"
_UNWRAPPED: Final = 1_000
_WIDE: Final = 100
_GAP: Final = 3
_LEAST: Final = 24
_MOST_DIVIDED: Final = 3
_HIDDEN: Final = "***"
_CONTEXT: Final = 2
# A long table is printed in parts: the first rows are seen at once.
_ROWS: Final = 1_000
_LONGEST: Final = 240
# Masks secrets by name in the whole diff: it also shows lines that are not about servers.
_NAMED: Final = re.compile(
    r"(?P<name>[\w.-]{0,60}(?:token|secret|passw|api_?key|credential|authorization)[\w.-]{0,60})"
    r"(?P<between>\"?\s*[:=]\s*\"?)(?P<value>[^\",}\]\s][^\",}\]]{0,2000})",
    re.IGNORECASE,
)
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
# Shorter texts are too common to mask.
_SHORTEST_SECRET: Final = 4


def printable(text: str) -> str:
    r"""Escape everything in a text that is not printable: control characters, line ends, bidirectional marks.

    >>> printable("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def styled(text: str, style: str = "") -> Text:
    """Return a text in one style, never interpreted as markup."""
    from rich.text import Text  # noqa: PLC0415 - rich costs 25 ms, and what answers in JSON prints no text

    return Text(printable(text), style=style, overflow="fold")


def _text(cell: Cell) -> Text:
    return styled(cell) if isinstance(cell, str) else cell


def output(*, error: bool = False) -> Console:
    """Return the console of stdout or stderr; lines are wrapped only on a terminal.

    ``COLUMNS`` sets the width of both; ``NO_COLOR`` is honoured, and only a terminal gets colours.
    """
    from rich.console import Console  # noqa: PLC0415 - as in `styled`

    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else _UNWRAPPED
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False)


def is_wide() -> bool:
    """Return whether stdout is a terminal with room for a third column."""
    console = output()
    return console.width >= _WIDE and (console.is_terminal or console.width < _UNWRAPPED)


def show(*parts: Cell, error: bool = False) -> None:
    """Print one line made of parts; plain strings are escaped.

    The terminal wraps long lines itself, so that a copied path or command contains no line end.
    """
    from rich.text import Text  # noqa: PLC0415 - as in `styled`

    line = Text.assemble(*map(_text, parts))
    line.rstrip()
    output(error=error).print(line, soft_wrap=True)


def say(*parts: Cell) -> None:
    """Print one line on stderr."""
    show(*parts, error=True)


def say_error(fact: str, advice: str) -> None:
    """Print an error on stderr: the fact, and below it the advice."""
    say(styled("error: ", "bold red"), styled(fact))
    if advice:
        say(styled(f"  {advice}"))


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[Cell]], *, whole: int | None = None, error: bool = False
) -> None:
    """Print rows under headings; a cell that is too long is folded, never cut.

    ``whole`` is the column that people copy from; it is not folded if the others fit into the rest.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as in `styled`
    from rich.table import Table  # noqa: PLC0415 - as in `styled`

    console = output(error=error)
    cells = [list(map(_text, row)) for row in rows]
    widths = _widths(headings, cells, whole, console.width)
    # Parts of one table are equally wide.
    step = max(1, len(cells)) if None in widths else _ROWS
    for start in range(0, max(1, len(cells)), step):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", show_header=start == 0)
        for heading, width in zip(headings, widths, strict=True):
            table.add_column(heading, overflow="fold", width=width)
        for row in cells[start : start + step]:
            table.add_row(*row)
        with console.capture() as captured:
            console.print(table)
        text = "\n".join(line.rstrip() for line in captured.get().splitlines())
        console.file.write(f"{text}\n")


def _widths(headings: Sequence[str], cells: list[list[Text]], whole: int | None, room: int) -> list[int | None]:
    """Return the widths of the columns; None lets rich decide, which folds the longest first."""
    free: list[int | None] = [None] * len(headings)
    longest = [max([len(head), *(row[i].cell_len for row in cells)]) for i, head in enumerate(headings)]
    if len(cells) > _ROWS and sum(longest) + _GAP * (len(headings) - 1) <= room:
        return [*longest]
    if whole is None or len(headings) > _MOST_DIVIDED:
        return free
    left = room - _GAP * (len(headings) - 1) - longest[whole]
    others = [i for i in range(len(headings)) if i != whole]
    if sum(longest) - longest[whole] <= left or left < _LEAST * len(others):
        return free
    free[whole] = longest[whole]
    for place, i in enumerate(others):
        free[i] = min(longest[i], left // (len(others) - place))
        left -= free[i] or 0
    return free


def say_json(document: object) -> None:
    """Print a JSON document on stderr, in one line."""
    sys.stderr.write(f"{json.dumps(document, ensure_ascii=True)}\n")


def print_json(document: object) -> None:
    """Print a JSON document on stdout, in ASCII, so that names cannot contain control sequences."""
    sys.stdout.write(f"{json.dumps(document, indent=2, ensure_ascii=True)}\n")


def shown_time(at: str) -> str:
    """Return a timestamp as people read it, without ``T`` and time zone."""
    return at.replace("T", " ").removesuffix("+00:00")


def utc_time(seconds: float) -> str:
    """Return seconds since 1970 as a timestamp in UTC, such as 2026-11-22T10:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def shortened(text: str, most: int) -> str:
    """Return a text cut to a number of characters, with an ellipsis.

    >>> shortened("get_weather", 8), shortened("get", 8)
    ('get_w...', 'get')
    """
    shown = printable(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def show_hanging(rows: Iterable[Sequence[Text]], *, indent: int = 0, error: bool = False) -> None:
    """Print rows of equally many parts; only the last part is wrapped, indented below itself."""
    from rich.table import Table  # noqa: PLC0415 - as in `styled`

    console = output(error=error)
    grid = Table.grid(padding=(0, 2))
    for number, row in enumerate(rows):
        if number == 0:
            grid.add_column(width=max(0, indent - 2), no_wrap=True)
            for at in range(len(row)):
                grid.add_column(no_wrap=at < len(row) - 1, overflow="fold")
        grid.add_row("", *row)
    with console.capture() as captured:
        console.print(grid)
    spare = 0 if indent else 2
    text = "\n".join(line.rstrip()[spare:] for line in captured.get().splitlines())
    if text:
        console.file.write(f"{text}\n")


def diff(path: Path, before: bytes | None, after: bytes | None, secrets: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a unified diff, with secrets masked; None is a file that does not exist."""
    hidden = _spellings(secrets)
    old, new = ([] if raw is None else raw.decode("utf-8", "replace").splitlines() for raw in (before, after))
    here, there = (str(path) if raw is not None else "/dev/null" for raw in (before, after))
    for line in unified_diff(old, new, here, there, n=_CONTEXT, lineterm=""):
        yield _shown(reduce(lambda text, secret: text.replace(secret, _HIDDEN), hidden, line))


def _shown(line: str) -> str:
    # Cut first: a hostile line may have megabytes.
    shown = _NAMED.sub(_masked, line[:_LONGEST]).expandtabs(4)
    return shown if len(line) <= _LONGEST else f"{shown}... ({len(line):,} characters)"


def show_diff(path: Path, before: bytes | None, after: bytes | None, secrets: Iterable[str]) -> None:
    """Print a unified diff on stdout, with secrets masked."""
    for line in diff(path, before, after, secrets):
        output().print(styled(line, _STYLES.get(line[:1], "")), soft_wrap=True)
    show("")


def _masked(found: re.Match[str]) -> str:
    """Mask the value of a secret-like name, unless it is a reference or the name of a variable."""
    if "$" in found["value"] or "{" in found["value"] or found["name"].lower().endswith("env_var"):
        return found[0]
    return f"{found['name']}{found['between']}{_HIDDEN}"


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Return the secrets with their JSON escapes, the longest first."""
    plain = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
    written = {json.dumps(secret, ensure_ascii=plain_only)[1:-1] for secret in plain for plain_only in (True, False)}
    return sorted(plain | written, key=len, reverse=True)


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
