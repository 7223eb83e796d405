"""Comparing: what a row expects against what was observed. A row passes only if every expectation was checked."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.rows import AGENTS
from tests.acceptance.words import ERRORS, NOT_COMPARED, STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.acceptance.rows import Row

__all__ = ["FAILED", "PASSED", "SKIPPED", "Facts", "Verdict", "coded", "compare", "expected"]

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

Facts = dict[str, Any]
_MISSING: Final = object()
# What a row writes of an error in another library; its kind and its words are that library's own.
_ERROR: Final = {"type", "code", "message"}


@dataclass(frozen=True)
class Verdict:
    """What became of a row; ``reason`` is why it was skipped or failed."""

    status: str
    reason: str = ""


def expected(row: Row) -> Mapping[str, Any]:
    """Return what a row expects; of another library's error its code, and nothing of what that library logs."""
    if row.shape != AGENTS:
        return row.expect
    return {key: coded(wanted) for key, wanted in row.expect.items() if key not in NOT_COMPARED}


def coded(wanted: Any) -> Any:
    """Return an expectation with every error of another library as its code."""
    if isinstance(wanted, list):
        return [coded(item) for item in wanted]
    if not isinstance(wanted, dict):
        return wanted
    return wanted["code"] if wanted.keys() == _ERROR else {key: coded(value) for key, value in wanted.items()}


def same(left: object, right: object) -> bool:
    """Compare as JSON does: 1 is not true, and the order of keys does not count."""
    return _json(left) == _json(right)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _every_match(pattern: Any, names: Any) -> bool:
    return bool(names) and all(re.fullmatch(pattern, name) for name in names)


def _listed(wanted: Any) -> bool:
    """Tell whether something is asked at all: a text would be a list of letters, an empty list always fulfilled."""
    return isinstance(wanted, list) and bool(wanted)


def _every_has(keys: Any, descriptors: Any) -> bool:
    return _listed(keys) and bool(descriptors) and all(key in one for one in descriptors for key in keys)


def _none_has(keys: Any, descriptors: Any) -> bool:
    return _listed(keys) and bool(descriptors) and not any(key in one for one in descriptors for key in keys)


def _has_all(wanted: Any, found: Any) -> bool:
    return _listed(wanted) and all(item in found for item in wanted)


def _at_most(limit: Any, names: Any) -> bool:
    return bool(names) and type(limit) is int and max(map(len, names)) <= limit


def _among(wanted: Any, found: Any) -> bool:
    """Tell whether it is one of those; none is expected as null."""
    return wanted in found if found else wanted is None


def _same_set(wanted: Any, found: Any) -> bool:
    return same(sorted(wanted), sorted(found))


def _error(wanted: Any, code: Any) -> bool:
    return same(ERRORS.get(wanted, wanted) if isinstance(wanted, str) else wanted, code)


def _step(wanted: Any, step: Any) -> bool:
    return isinstance(wanted, str) and wanted in STEPS.get(step, (step,))


# Expectations that are no plain equality: which fact they are about, and what has to hold.
_RELATIONS: Final[Mapping[str, tuple[str, Callable[[Any, Any], bool]]]] = {
    "all_match": ("names", _every_match),
    "contains": ("names", _has_all),
    "max_len": ("names", _at_most),
    "every_has": ("descriptors", _every_has),
    "present": ("descriptors", _every_has),
    "absent": ("descriptors", _none_has),
    "has": ("record", _has_all),
    "mentions": ("message", _has_all),
    "log_mentions": ("log", _has_all),
    "candidates": ("candidates", _same_set),
    "rule": ("rules", _among),
    "error": ("error", _error),
    "step": ("step", _step),
}


def compare(expect: Mapping[str, Any], facts: Facts) -> Verdict:
    """Return whether all that is expected was observed, and if not, what differs."""
    wrong = {key: wanted for key, wanted in expect.items() if not _holds(key, wanted, facts)}
    if not wrong:
        return Verdict(PASSED)
    got = {key: _got(key, facts) for key in wrong}
    shown = {key: value for key, value in got.items() if value is not _MISSING}
    if len(shown) < len(got) and "error" in facts:
        shown |= {"error": facts["error"], "message": facts.get("message", "")}
    return Verdict(FAILED, f"expected {_short(wrong)}, got {_short(shown) if shown else 'nothing of the kind'}")


def _holds(key: str, wanted: Any, facts: Facts) -> bool:
    fact, relation = _relation(key, facts)
    if fact not in facts:
        return False
    try:
        return relation(wanted, facts[fact])
    except (TypeError, ValueError, AttributeError, re.error):
        return False


def _relation(key: str, facts: Facts) -> tuple[str, Callable[[Any, Any], bool]]:
    """Return which fact an expectation is about; one that was observed under the very word is compared as it is."""
    fact, relation = _RELATIONS.get(key, (key, same))
    return (key, same) if key in facts and fact != key else (fact, relation)


def _got(key: str, facts: Facts) -> object:
    return facts.get(_relation(key, facts)[0], _MISSING)


def _short(value: object, limit: int = 400) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= limit else f"{text[:limit]}..."
