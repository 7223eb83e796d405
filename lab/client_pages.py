"""The measured part of the pages in ``docs/clients``, made from the same tables that the program uses.

Each page is written by people but for one part between two marks; ``python -m lab.client_pages`` makes that anew, and a
test fails where it is out of date.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.cli.clients import facts
from truename.clients.table import config_files

if TYPE_CHECKING:
    from truename.clients.table import ConfigFile
    from truename.dialects import Dialect

__all__ = ["CLIENTS", "FOLDER", "part", "renewed"]

FOLDER: Final = Path(__file__).parents[1] / "docs" / "clients"
CLIENTS: Final = (
    "claude-code",
    "claude-desktop",
    "cursor",
    "vscode",
    "codex",
    "gemini-cli",
    "copilot-cli",
    "windsurf",
    "cline",
    "opencode",
)
_BEGIN: Final = "<!-- measured: made by `python -m lab.client_pages` -->"
_END: Final = "<!-- end -->"
_PART: Final = re.compile(re.escape(_BEGIN) + r".*?" + re.escape(_END), re.DOTALL)
_LAB: Final = "lab"
_EXAMPLES: Final = ("get_weather", "fs.list", "has space", "天気取得", "x" * 70)
_SYSTEMS: Final = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}
_QUIRKS: Final = {"comment": "comments", "trailing-comma": "trailing commas", "bom": "a byte order mark"}


def part(client: str) -> str:
    """Return the measured part of one client's page."""
    files = [file for file in config_files(client) if file.paths]
    row = dialects.get(files[0].dialect)
    lines = [
        _BEGIN,
        f"A tool of server `{_LAB}`, and what the model sees:",
        "",
        "| the server's name | shown as |",
        "|---|---|",
    ]
    lines += [f"| {_brief(name)} | {_fate(row, name)} |" for name in _EXAMPLES]
    lines += ["", "| | |", "|---|---|"]
    lines += [f"| {label} | {_cell(text)} |" for label, text in facts(row).items() if label != "styles"]
    lines += ["", "| scope | file | the client itself refuses |", "|---|---|---|"]
    lines += [_row(file) for file in files if not file.legacy]
    lines += ["", *dict.fromkeys(f"- {note}" for file in files for note in (file.reload, *file.notes) if note)]
    return "\n".join([*lines, _END])


def _fate(row: Dialect, name: str) -> str:
    seen = row.simulate(_LAB, [name])
    if seen.refused:
        return f"the whole {seen.scope} fails" if seen.scope else "refused"
    return _brief(seen.shown[name]) if name in seen.shown else "dropped"


def _row(file: ConfigFile) -> str:
    by_place: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for system, title in _SYSTEMS.items():
        by_place[file.paths.get(system, ())].append(title)
    everywhere = len(by_place) == 1
    places = [
        ", ".join(f"`{_cell(pattern)}`" for pattern in patterns) + ("" if everywhere else f" ({', '.join(titles)})")
        for patterns, titles in by_place.items()
        if patterns
    ]
    refused = ", ".join(words for quirk, words in _QUIRKS.items() if quirk in file.refuses)
    return f"| {file.scope} | {'<br>'.join(places)} | {refused or '-'} |"


def _brief(name: str) -> str:
    return f"`{name}`" if len(name) <= 40 else f"`{name[:16]}`...`{name[-10:]}` ({len(name)} characters)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<up>/", "").replace("<project>/", "")


def renewed(page: str, client: str) -> str:
    """Return the page with its measured part made anew. Raises `ValueError` if it has none."""
    if not _PART.search(page):
        message = f"the page of {client} has no part between {_BEGIN} and {_END}"
        raise ValueError(message)
    return _PART.sub(lambda _: part(client), page)


def main() -> int:
    """Renew all pages."""
    for client in CLIENTS:
        path = FOLDER / f"{client}.md"
        path.write_text(renewed(path.read_text("utf-8"), client), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
