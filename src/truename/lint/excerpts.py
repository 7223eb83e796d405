"""Render findings as plain text, each with its line of the source."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.conventions import Finding

__all__ = ["find_excerpt", "finding_place", "render_findings"]

_MAX_BYTES: Final = 16 * 1024 * 1024
_LONGEST: Final = 1_000_000
_LEAST: Final = 20
# Text further away from the name is cut before it is escaped: one line may have megabytes.
_FAR: Final = 500
_MORE: Final = "..."
_TAB: Final = "    "


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line in three parts, all printable: the text before the name, the name, and the text after it."""

    line: int
    before: str
    name: str
    after: str

    @property
    def number(self) -> str:
        """The prefix of the line: ``14 | ``."""
        return f"{self.line} | "

    @property
    def lead(self) -> str:
        """The prefix of the mark's line, as wide as the number and the text before the name."""
        return f"{' ' * (len(self.number) - 2)}| {' ' * _width(self.before)}"

    @property
    def mark(self) -> str:
        """The mark under the name; "" if the column is unknown."""
        return "^" * _width(self.name)

    def __str__(self) -> str:
        mark = f"\n{self.lead}{self.mark}" if self.mark else ""
        return f"{self.number}{self.before}{self.name}{self.after}{mark}"


def find_excerpt(finding: Finding, width: int) -> Excerpt | None:
    """Return the excerpt of a finding's line; None if it has no line.

    A long line is cut around the name; tabs become spaces, and unprintable characters are escaped.
    """
    place = finding.location
    if place is None or not place.line:
        return None
    lines = _lines(place.file)
    if place.line > len(lines) or len(lines[place.line - 1]) > _LONGEST:
        return None
    parts = _parts(lines[place.line - 1], place.column - 1, finding.tools)
    return Excerpt(place.line, *_cut(*parts, room=max(_LEAST, width - len(f"{place.line} | "))))


def escape_unprintable(text: str) -> str:
    r"""Return a text with unprintable characters escaped.

    >>> escape_unprintable("a\x1b[31m")
    'a\\x1b[31m'
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _parts(line: str, start: int, tools: Sequence[str]) -> tuple[str, str, str]:
    if start < 0:
        return "", "", escape_unprintable(line[:_FAR].replace("\t", _TAB))
    start = min(start, len(line))
    # An escaped name is longer in the source than its value; then only its first character is marked.
    name = next((tool for tool in tools[:1] if tool and line.startswith(tool, start)), line[start : start + 1])
    end = start + len(name)
    before, shown, after = (
        escape_unprintable(part.replace("\t", _TAB))
        for part in (line[max(0, start - _FAR) : start], name, line[end : end + _FAR])
    )
    return before.lstrip(" "), shown, after


def _cut(before: str, name: str, after: str, *, room: int) -> tuple[str, str, str]:
    """Shorten the parts to the available width: the name is kept, then the text before it."""
    name = _fitting(name, room - 2 * len(_MORE))
    left = room - _width(name)
    most = max(left // 2, left - _width(after))
    if _width(before) > most:
        before = _MORE + _fitting(before[::-1], most - len(_MORE), more="")[::-1]
    return before, name, _fitting(after, left - _width(before))


def _fitting(text: str, room: int, more: str = _MORE) -> str:
    if _width(text) <= room:
        return text
    used = 0
    for number, one in enumerate(text):
        used += _width(one)
        if used > room - len(more):
            return f"{text[:number]}{more}" if room >= len(more) else ""
    return text


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF") for one in text)


@lru_cache(maxsize=16)
def _lines(file: str) -> tuple[str, ...]:
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return ()
        raw = path.read_bytes()
    except (OSError, ValueError):
        return ()
    return tuple(raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"))


_MAX_TEXT_LENGTH: Final = 200


def render_findings(findings: Iterable[Finding], width: int = 100) -> str:
    """Return the findings with their excerpts, in printable characters only."""
    texts: list[str] = []
    for finding in findings:
        rule = finding.rule
        lines = [escape_unprintable(f"{finding_place(finding)}  {rule.severity.value}  {rule.code} {rule.name}")]
        lines.append(f"  {escape_unprintable(finding.fact)}")
        excerpt = find_excerpt(finding, width - 2)
        if excerpt is not None:
            lines += [f"  {line}" for line in str(excerpt).split("\n")]
        lines.append(f"  {escape_unprintable(finding.remedy)}")
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def finding_place(finding: Finding) -> str:
    """Return the location of a finding: file, line and column; the server's name if the line is unknown."""
    # The server chooses its label, so it is cut.
    location, server = finding.location, finding.server[:_MAX_TEXT_LENGTH]
    if location is None or not location.file:
        return (location.key if location else "") or server or "-"
    if location.line:
        return ":".join(str(part) for part in (location.file, location.line, location.column) if part)
    return f"{location.file} ({server})" if server else location.file
