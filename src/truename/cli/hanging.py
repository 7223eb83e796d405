"""Lines whose last part is wrapped under its own beginning, so that what stands before it is read as a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from truename.cli.rendering import output, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.text import Text

__all__ = ["shortened", "show_hanging"]


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text that is too long for its place.

    >>> shortened("get_weather", 8), shortened("get", 8)
    ('get_w...', 'get')
    """
    shown = printable(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def show_hanging(rows: Iterable[Sequence[Text]], *, indent: int = 0, error: bool = False) -> None:
    """Print rows of equally many parts; all but the last are kept in one piece."""
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
