"""Generate the pages of the rules: ``python -m truename.lint.pages docs/reference/rules``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.lint.rules import RULES, UPKEEP
from truename.policy.policy import NAMES_NOTHING, UNGUARDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.conventions import Rule

__all__ = ["main", "pages"]

_INDEX: Final = "index.md"
_POLICY: Final = (NAMES_NOTHING, UNGUARDED)
_FAMILIES: Final = (
    ("TN10", "Policies and legality"),
    ("TN11", "Colliding names"),
    ("TN12", "Spelling"),
    ("TN13", "Ownership of names"),
    ("TN14", "Platforms"),
    ("TN15", "Characters"),
    ("TN16", "Other tools' names and calls"),
    ("TN17", "Prompt injection"),
    ("TN18", "References"),
    ("TN19", "Linting itself"),
)
_USAGE: Final = 2


def pages() -> Mapping[str, str]:
    """Return the text of every page by file name."""
    rules = sorted((*_POLICY, *RULES.values()), key=lambda rule: rule.code)
    return {_INDEX: _index(rules)} | {f"{rule.code}.md": _page(rule) for rule in rules}


def main(words: Sequence[str]) -> int:
    """Write the pages into a directory, and remove those of removed rules; return the exit status."""
    if len(words) != 1:
        sys.stderr.write("usage: python -m truename.lint.pages DIRECTORY\n")
        return _USAGE
    directory = Path(words[0])
    directory.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in directory.glob("TN*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (directory / name).write_text(text, "utf-8")
    return 0


def _index(rules: Iterable[Rule]) -> str:
    rules = list(rules)
    parts = ["# Rules", "", "Generated from the rules; `truename explain CODE` shows the same in a terminal."]
    parts += ["[Another page](../doctor.md) has the rules of `truename doctor` (TN001 to TN042).", ""]
    for prefix, title in _FAMILIES:
        of_family = [rule for rule in rules if rule.code.startswith(prefix)]
        if of_family:
            parts += [f"## {title}", "", "| rule | severity | finding |", "|---|---|---|"]
            for rule in of_family:
                what = rule.what.replace("|", "\\|")
                parts.append(f"| [{rule.code}]({rule.code}.md) {rule.name} | {rule.severity.value} | {what} |")
            parts.append("")
    return "\n".join(parts)


def _page(rule: Rule) -> str:
    finder = "`truename.policy.policy`" if rule in _POLICY else "`truename lint`"
    parts = [f"# {rule.code} {rule.name}", "", f"*{rule.severity.value}*, found by {finder}", "", rule.what]
    for heading, text in (("Why", rule.why), ("Example", rule.example), ("Instead", rule.instead)):
        if text:
            parts += ["", f"## {heading}", "", text]
    if rule not in _POLICY and rule.name not in UPKEEP:
        text = (
            f"In Python, after the name: `# truename: ignore[{rule.code}] the reason`. For names by glob, in the "
            f'convention: `suppressions = [{{ rule = "{rule.code}", tools = ["old_*"], reason = "..." }}]`; to turn it '
            f'off or change its severity: `severities = {{ {rule.code} = "off" }}`. For all current findings: '
            "`truename lint --write-baseline`."
        )
        parts += ["", "## Suppress it", "", text]
    return "\n".join([*parts, "", "[All rules](index.md)", ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
