"""The labelled attacks of the collection, and what the rules find of a category that they were not tuned with.

To leave a category out means: rows of the tables of mechanisms that were written from that category alone are removed;
then rows and the one threshold are chosen anew from the half of our own examples that is for tuning, together with the
entries of all other categories: a row stays if it finds a hostile text and flags no harmless one, and of the thresholds
the one with the fewest errors is taken (of equal ones the middle). What was chosen is tried on the category left out.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.policy.text_examples import Example, declared, findings, flagged, material_of
from tests.policy.tuning_texts import TUNING
from tests.shared import shared
from truename.conventions.convention import Convention
from truename.conventions.rules import prompt_injection, shadowing
from truename.conventions.rules.check import LintContext
from truename.conventions.rules.injection_matching import order_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.conventions.rules.injection_matching import Mechanism

__all__ = ["CATEGORIES", "Entry", "Tally", "entries", "left_out", "says", "tally"]

CATEGORIES: Final = ("phrase_injection", "unicode_smuggling", "decoded_payload", "shadowing", "capability_mismatch")
_THRESHOLDS: Final = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_TABLES: Final = (
    (prompt_injection, "MECHANISMS"),
    (prompt_injection, "EFFECTS"),
    (shadowing, "PRECEDENCE"),
)


@dataclass(frozen=True)
class Entry:
    """One labelled tool. ``category`` of a harmless one is what it resembles, "" if it resembles nothing."""

    id: str
    category: str
    is_hostile: bool
    material: LintContext


@dataclass
class Tally:
    """How many there are, and how many of them are flagged."""

    hostile: int = 0
    found: int = 0
    harmless: int = 0
    flagged: int = 0

    def count(self, *, is_hostile: bool, is_flagged: bool) -> None:
        """Add one."""
        if is_hostile:
            self.hostile += 1
            self.found += is_flagged
        else:
            self.harmless += 1
            self.flagged += is_flagged

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(mine + others for mine, others in zip(vars(self).values(), vars(other).values(), strict=True)))


def entries() -> list[Entry]:
    """Return the labelled tools of the collection."""
    rows = json.loads(shared("corpus", "attacks-detect.json").read_text("utf-8"))["entries"]
    return [_entry(row) for row in rows]


def own(examples: Iterable[Example]) -> list[Entry]:
    """Return examples of our own in the same shape."""
    return [Entry(one.name, one.category, one.is_hostile, material_of(one)) for one in examples]


def tally(rows: Iterable[Entry]) -> dict[str, Tally]:
    """Return what the rules as they are now flag, by category."""
    found: defaultdict[str, Tally] = defaultdict(Tally)
    for one in rows:
        found[one.category].count(is_hostile=one.is_hostile, is_flagged=flagged(findings(one.material)))
    return dict(found)


def left_out(category: str, rows: Sequence[Entry]) -> dict[str, Tally]:
    """Return what is flagged of all rows with rules that were tuned without a category."""
    training = own(TUNING) + [one for one in rows if one.category != category]
    kept = {name: tuple(_kept(getattr(module, name), category, training)) for module, name in _TABLES}
    with (
        patch.object(prompt_injection, "MECHANISMS", kept["MECHANISMS"]),
        patch.object(prompt_injection, "EFFECTS", kept["EFFECTS"]),
        patch.object(shadowing, "PRECEDENCE", kept["PRECEDENCE"]),
        patch.object(shadowing, "CLONED", _threshold(training)),
    ):
        return tally(rows)


def says(row: Mechanism, material: LintContext) -> bool:
    """Whether a row alone would have something reported."""
    one, texts = material.texts[0]
    if row in prompt_injection.EFFECTS and not prompt_injection.only_computes(one.name, one.description):
        return False
    return next(order_in(texts, (row,)), None) is not None


def _kept(table: Iterable[Mechanism], category: str, training: Sequence[Entry]) -> Iterator[Mechanism]:
    for row in table:
        hits = {one.is_hostile for one in training if says(row, one.material)}
        if hits == {True} and set(row.sources) != {category}:
            yield row


def _threshold(training: Sequence[Entry]) -> float:
    errors = {}
    for value in _THRESHOLDS:
        with patch.object(shadowing, "CLONED", value):
            errors[value] = sum(
                flagged(findings(one.material)) != one.is_hostile for one in training if one.material.peers
            )
    best = [value for value in _THRESHOLDS if errors[value] == min(errors.values())]
    return best[len(best) // 2]


def _entry(row: dict[str, Any]) -> Entry:
    peers = tuple(_declared(peer["server"], peer["tool"]) for peer in row.get("peers", ()))
    material = LintContext((_declared(row["server"], row["tool"]),), Convention(), peers)
    is_hostile = row["label"] == "malicious"
    category = row["category"] if is_hostile else row.get("resembles", "")
    return Entry(row["id"], category, is_hostile, material)


def _declared(server: str, tool: dict[str, Any]) -> Any:
    return declared(tool["name"], tool["description"], server)


def main() -> int:
    """Print the figures: all categories as the rules are, and each of them left out."""
    rows = entries()
    out = sys.stdout.write
    head = f"{'left out':22}{'its hostile found':>20}{'its harmless flagged':>22}{'all found':>14}{'all flagged':>13}\n"
    out(head)
    for category in ("", *CATEGORIES):
        found = left_out(category, rows) if category else tally(rows)
        whole = sum(found.values(), Tally())
        own_part = found[category] if category else whole
        out(
            f"{category or '(none)':22}{f'{own_part.found} of {own_part.hostile}':>20}"
            f"{f'{own_part.flagged} of {own_part.harmless}':>22}{f'{whole.found} of {whole.hostile}':>14}"
            f"{f'{whole.flagged} of {whole.harmless}':>13}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
