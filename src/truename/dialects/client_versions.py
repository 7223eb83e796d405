"""Order the versions of clients, and tell which run of a client speaks for a version.

A version is dotted numbers, then a pre-release behind ``-``. The order is that of Semantic Versioning 2.0.0, section
11, for any count of numbers: missing ones are 0, a pre-release comes before its release, build metadata behind ``+`` is
ignored. PyPI's ``a1``, ``b1``, ``rc1`` and ``.dev1`` are read as pre-releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ClientRun", "ClientVersion", "speaks_for"]

_LONGEST: Final = 64
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"[vV]?(?P<numbers>[0-9]+(?:\.[0-9]+)*)"
    rf"(?:-(?P<pre>{_IDENTIFIERS})|\.?(?P<word>a|b|rc|dev)(?P<count>[0-9]+))?"
    rf"(?:\+{_IDENTIFIERS})?",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class ClientVersion:
    """A version of a client, as it was written; equal and ordered by what it means.

    >>> ClientVersion.parse("0.50") == ClientVersion.parse("v0.50.0+linux")
    True
    >>> ClientVersion.parse("1.0.0-alpha.9") < ClientVersion.parse("1.0.0-alpha.10") < ClientVersion.parse("1.0.0")
    True
    """

    text: str
    numbers: tuple[int, ...]
    pre: tuple[str, ...] = ()

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> ClientVersion:
        """Read a version of at most 64 characters. Raises `ValueError`."""
        found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
        if found is None:
            message = "it is not dotted numbers with an optional pre-release, such as 1.2.3-beta.1"
            raise ValueError(message)
        numbers = [int(one) for one in found["numbers"].split(".")]
        while numbers and not numbers[-1]:
            numbers.pop()
        pre = tuple(found["pre"].split(".")) if found["pre"] else ()
        if found["word"]:
            pre = (found["word"], found["count"])
        return cls(text, tuple(numbers), pre)

    @property
    def _order(self) -> tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]:
        # Numeric identifiers come before others, and are compared as numbers.
        parts = [(False, int(one), "") if _NUMBER.fullmatch(one) else (True, 0, one) for one in self.pre]
        return self.numbers, not self.pre, tuple(parts)

    def __eq__(self, other: object) -> bool:
        return self._order == other._order if isinstance(other, ClientVersion) else NotImplemented

    def __lt__(self, other: ClientVersion) -> bool:
        return self._order < other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __str__(self) -> str:
        return self.text


class ClientRun(NamedTuple):
    """A version with which a client was run, and the day."""

    version: str
    date: str


def speaks_for(version: ClientVersion, runs: Sequence[tuple[ClientRun, int]]) -> tuple[ClientRun, int, bool]:
    """Return the run whose rules apply to a version, the number of its rules, and whether that was seen.

    ``runs`` has each run with the number of the rules that were seen, oldest version first. It was seen if the version
    was run, or if the nearest older and the nearest newer version that were run have the same rules. Otherwise the
    nearest older run speaks, or the oldest of all.
    """
    older = [one for one in runs if ClientVersion.parse(one[0].version) <= version]
    newer = [one for one in runs if ClientVersion.parse(one[0].version) >= version]
    run, rules = older[-1] if older else newer[0]
    return run, rules, bool(older and newer) and newer[0][1] == rules
