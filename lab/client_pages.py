"""The tables of the pages in ``docs/clients``, made from the same tables that the program uses.

Each page is written by people but for the parts between two marks: names, limits and files.
``python -m lab.client_pages`` makes these anew, and a test fails where one is out of date.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.cli.clients import facts
from truename.clients.selection import OWN_SCOPES
from truename.clients.table import config_files

if TYPE_CHECKING:
    from truename.clients.table import ConfigFile
    from truename.dialects import Dialect

__all__ = ["CLIENTS", "FOLDER", "parts", "renewed"]

FOLDER: Final = Path(__file__).parents[1] / "docs" / "clients"
_RESULTS: Final = FOLDER.parent / "compatibility" / "clients"
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
_MARK: Final = "<!-- {}: made by `python -m lab.client_pages` -->"
_END: Final = "<!-- end -->"
_PART: Final = re.compile(r"<!-- (\w+): made by `python -m lab.client_pages` -->.*?" + re.escape(_END), re.DOTALL)
_VARIABLES: Final = "`${NAME:-PATH}` is the value of the environment variable NAME, or else PATH."
_LAB: Final = "lab"
_EXAMPLES: Final = ("get_weather", "fs.list", "has space", "天気取得", "x" * 70)
_SYSTEMS: Final = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}
_QUIRKS: Final = {"comment": "comments", "trailing-comma": "trailing commas", "bom": "a byte order mark"}
_LIMITS: Final = {
    "characters": "legal characters",
    "length": "length",
    "tools": "number of tools",
    "too long": "a name that is too long",
    "illegal": "a name with an illegal character",
    "became equal": "names that become equal",
    "listed twice": "a name that a server lists twice",
    "two servers'": "one name at two servers",
    "reserved": "reserved names",
}


def parts(client: str) -> dict[str, str]:
    """Return the generated parts of one client's page, by name."""
    files = [file for file in config_files(client) if file.paths]
    row = dialects.get(files[0].dialect)
    return {name: f"{_MARK.format(name)}\n\n{text}\n\n{_END}" for name, text in _texts(row, files).items()}


def _texts(row: Dialect, files: list[ConfigFile]) -> dict[str, str]:
    names = ["| tool of a server `lab` | shown as |", "|---|---|"]
    names += [f"| {_brief(name)} | {_fate(row, name)} |" for name in _EXAMPLES]
    known = facts(row)
    if row.chars is not None and "chars" not in row.unknown:
        known["characters"] = f"`{known['characters']}`"
    limits = ["| limit | value |", "|---|---|"]
    limits += [f"| {title} | {_cell(known[label])} |" for label, title in _LIMITS.items() if label in known]
    version = f", version {row.version}" if row.version else ""
    seen = (
        f"a run of the client{version}" if row.confidence == "run" else f"the client's code or documentation{version}"
    )
    limits += ["", f"Known from {seen} ({row.date}). {_results(row)}"]
    present = [file for file in files if not file.legacy]
    places = [
        "| scope | file | to load a change | syntax that the client refuses |",
        "|---|---|---|---|",
        *map(_row, present),
    ]
    variables = ["", _VARIABLES] if any("${" in line for line in places) else []
    return {
        "names": "\n".join(names),
        "limits": "\n".join(limits),
        "files": "\n".join([*places, *variables, "", _edited(present), *_notes(present)]),
    }


def _edited(files: list[ConfigFile]) -> str:
    """Return the sentence about the files that ``connect`` changes."""
    scopes = {file.scope for file in files}
    sentence = (
        f"`connect` changes {' and '.join(f'`{one}`' for one in sorted(scopes & OWN_SCOPES, reverse=True))} files"
    )
    if "project" in scopes:
        sentence += ", and `project` files with `--scope project`"
    return f"{sentence}; no others." if scopes - OWN_SCOPES - {"project"} else f"{sentence}."


def _notes(files: list[ConfigFile]) -> list[str]:
    """Return the notes, each once, with its scopes in front unless it is about all of them."""
    scopes: defaultdict[str, list[str]] = defaultdict(list)
    for file in files:
        for note in file.notes:
            scopes[note] += [file.scope] if file.scope not in scopes[note] else []
    all_scopes = {file.scope for file in files}
    lines = [
        f"- {note}" if set(found) == all_scopes else f"- {', '.join(found).capitalize()}: {note}"
        for note, found in scopes.items()
    ]
    return ["", *lines] if lines else []


def _results(row: Dialect) -> str:
    """Return links to the results of the client's own runs, if there are any, and to those of all."""
    pages = (row.name, row.name.removesuffix("-cli"), f"{row.name}-cli")
    page = next((page for page in pages if (_RESULTS / f"{page}.md").is_file()), None)
    own = f"[Its runs](../compatibility/clients/{page}.md), " if page else ""
    return f"{own}{'all' if own else 'All'} results: [Can I use this tool name?](../compatibility/index.md)."


def _fate(row: Dialect, name: str) -> str:
    if "chars" in row.unknown and dialects.get("universal").check(name):
        return "not known"
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
    return f"| {file.scope} | {'<br>'.join(places)} | {file.reload or '-'} | {refused or '-'} |"


def _brief(name: str) -> str:
    return f"`{name}`" if len(name) <= 40 else f"`{name[:16]}`...`{name[-10:]}` ({len(name)} characters)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<up>/", "").replace("<project>/", "")


def renewed(page: str, client: str) -> str:
    """Return the page with its generated parts made anew. Raises `ValueError` if one of them is not there."""
    made = parts(client)
    found = [one[1] for one in _PART.finditer(page)]
    if sorted(found) != sorted(made):
        message = f"the page of {client} has the parts {found}, not each of {list(made)} once"
        raise ValueError(message)
    return _PART.sub(lambda one: made[one[1]], page)


def main() -> int:
    """Renew all pages."""
    for client in CLIENTS:
        path = FOLDER / f"{client}.md"
        path.write_text(renewed(path.read_text("utf-8"), client), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
