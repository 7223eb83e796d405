"""List sentences of the documentation that a reader stumbles over: ``python -m tests.docs.readability [PAGE...]``.

The report is `build/readability.md`. It is for authors: no test fails on style.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Report", "main", "read", "sentences"]

REPORT: Final = ROOT / "build" / "readability.md"
_LONGEST: Final = 30
_FENCE: Final = re.compile(r"^ *(`{3,})[^`]*\n.*?^ *\1 *$", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK: Final = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_BLOCK: Final = re.compile(r"^\s*(#+ |[-*+] |\d+[.)] |\||>|!!!|\?\?\?|===)")
_END: Final = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[(\"*_`\[]*[A-Z`0-9\[])")
_WORD: Final = re.compile(r"\w[\w'’.-]*")
# Passives without an actor, and words that make the reader guess.
_RIDDLES: Final = (
    r"\b(?:is|are|was|were|be) (?:told|said)\b",
    r"\b(?:is|are) (?:held|had|known|meant) by\b",
    r"\b[Nn]obody\b",
    r"\bthere (?:is|are) (?:none|no such)\b",
    r"\b[Ww]hat (?:it|they|that|this) (?:costs?|is|are|says?|does|do|needs?|means?)\b",
    r"\bof (?:their|its) own\b",
    r"\bwhoever\b",
    r"\bwhatever\b",
    r"\bthe one (?:that|who)\b",
    r"\bso that\b.*\bso that\b",
)
_RIDDLE: Final = re.compile("|".join(_RIDDLES))
# Generated from code, made by the lab, or records of decisions and changes: not what a guide's author writes.
_LISTED_APART: Final = ("docs/reference/", "docs/compatibility/", "docs/adr/")


@dataclass
class Report:
    """The findings of one page: each is a line and a sentence."""

    page: str
    words: int = 0
    sentences: int = 0
    long: list[tuple[int, int, str]] = field(default_factory=list)
    what: list[tuple[int, str]] = field(default_factory=list)
    riddles: list[tuple[int, str]] = field(default_factory=list)

    @property
    def findings(self) -> int:
        """Return the number of all findings."""
        return len(self.long) + len(self.what) + len(self.riddles)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a page with their lines; cells of tables and headings are sentences too.

    >>> list(sentences("# One\\n\\nTwo is\\nhere. Three.\\n\\n| a | b. C |\\n"))
    [(1, '# One'), (3, 'Two is here.'), (3, 'Three.'), (6, 'a'), (6, 'b.'), (6, 'C')]
    """

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    text = _LINK.sub(lambda found: found[1], _COMMENT.sub(blank, _FENCE.sub(blank, text)))
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if block and (not line.strip() or _BLOCK.match(line)):
            yield from ((start, one) for one in _split(" ".join(block)))
            block = []
        if line.strip().startswith("|"):
            cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))
            yield from (
                (number, one) for cell in cells if cell and not re.fullmatch(r":?-+:?", cell) for one in _split(cell)
            )
        elif line.strip():
            start = start if block else number
            block.append(line.strip())


def _split(text: str) -> list[str]:
    return [one.strip() for one in _END.split(text) if one.strip()]


def read(page: str) -> Report:
    """Return the findings of a page."""
    report = Report(page)
    for line, sentence in sentences((ROOT / page).read_text("utf-8")):
        words = len(_WORD.findall(re.sub(r"`[^`]*`", "code", sentence)))
        report.words += words
        report.sentences += 1
        if words > _LONGEST:
            report.long.append((line, words, sentence))
        if re.match(r"[#*\-\d. ]*What(?! is\b.*\?)\b", sentence):
            report.what.append((line, sentence))
        if _RIDDLE.search(sentence):
            report.riddles.append((line, sentence))
    return report


def main(pages: Sequence[str]) -> int:
    """Write the report of some pages, or of all."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = list(pages) or [path.relative_to(ROOT).as_posix() for path in found]
    reports = [read(name) for name in names]
    reports.sort(
        key=lambda one: (one.page.startswith(_LISTED_APART), -len(one.long) - len(one.what) - len(one.riddles))
    )
    lines = ["# Readability", "", f'Sentences over {_LONGEST} words, subjects that begin with "What", and riddles.', ""]
    lines += ["| page | words | sentences | long | what | riddles |", "|---|---|---|---|---|---|"]
    for one in reports:
        counts = (one.words, one.sentences, len(one.long), len(one.what), len(one.riddles))
        lines.append(f"| {one.page} | {' | '.join(f'{count:,}' for count in counts)} |")
    for one in reports:
        if one.findings:
            lines += ["", f"## {one.page}", ""]
            lines += [f"- line {line}, {words} words: {text}" for line, words, text in one.long]
            lines += [f"- line {line}, what: {text}" for line, text in one.what]
            lines += [f"- line {line}, riddle: {text}" for line, text in one.riddles]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(lines) + "\n", "utf-8")
    guides = [one for one in reports if not one.page.startswith(_LISTED_APART)]
    sys.stdout.write(
        f"{REPORT.relative_to(ROOT)}: {len(reports)} pages, {sum(one.words for one in reports):,} words; in guides "
        f"{sum(len(one.long) for one in guides)} long sentences, {sum(len(one.what) for one in guides)} with what, "
        f"{sum(len(one.riddles) for one in guides)} riddles\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
