"""Protocol versions: the version of a set of tools, counted up by what changes and compared number by number."""

from __future__ import annotations

import re
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.errors import MigrationError, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHANGES", "bump", "compare_versions", "version_parts"]

_VERSION: Final = re.compile(r"(v?)((?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){0,3})")
# Which number a change counts up: from 1.0 on, and under 0.x, where the second one stands for breaking changes.
CHANGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"rename": (0, 1), "removed": (0, 1), "breaking": (0, 1), "added": (1, 1), "fixed": (2, 2)}
)


def version_parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: one to four, parted by dots, a ``v`` in front is accepted.

    Raises `MigrationError` (``invalid_version``) for anything else, ``0.3-beta`` too.

    >>> version_parts("v0.10")
    (0, 10)
    """
    return tuple(int(part) for part in _parsed(version)[1].split("."))


def bump(version: str, change: str = "rename") -> str:
    """Return the version after a change: ``rename``, ``removed``, ``breaking``, ``added`` or ``fixed``.

    A renamed tool breaks whoever knows the old name (seed 002: 0.2 becomes 0.3). As many numbers as there were stay,
    or those that the change needs. Raises `MigrationError` for a version that can't be counted, `ValueError` for an
    unknown change.

    >>> bump("0.9"), bump("1.4.2"), bump("1.4", "added"), bump("0.2", "fixed")
    ('0.10', '2.0.0', '1.5', '0.2.1')
    """
    if change not in CHANGES:
        message = f"{excerpt(change)} is no kind of change. Use one of {', '.join(CHANGES)}."
        raise ValueError(message)
    lead, text = _parsed(version)
    numbers = [int(part) for part in text.split(".")]
    place = CHANGES[change][numbers[0] == 0]
    numbers += [0] * (place + 1 - len(numbers))
    counted = [*numbers[:place], numbers[place] + 1, *(0 for _ in numbers[place + 1 :])]
    return lead + ".".join(map(str, counted))


def compare_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1: whether the left version is older, the same or newer, number by number.

    Raises `MigrationError` as `version_parts` does.

    >>> compare_versions("0.10", "0.9"), compare_versions("0.3", "v0.3.0")
    (1, 0)
    """
    pairs = zip_longest(version_parts(left), version_parts(right), fillvalue=0)
    return next((1 if one > other else -1 for one, other in pairs if one != other), 0)


def _parsed(version: str) -> tuple[str, str]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise MigrationError(
            code="invalid_version",
            problem=f"{excerpt(version)} is no protocol version",
            remedy="Write one to four numbers parted by dots, as in 0.3.",
        )
    return found[1], found[2]
