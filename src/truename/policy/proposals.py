"""Proposals of names: each tool gets one that no other tool of its scope has, and that no other is to get."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.policy.finding import Finding
    from truename.policy.rules import Material

__all__ = ["one_to_one"]


def one_to_one(findings: Iterable[Finding], material: Material) -> Iterator[Finding]:
    """Yield the findings without the proposals that two tools would share, or that another tool has as its name.

    Names that clients take for one count as one. The scope is a server, or everything, as names have to be unique.
    """
    listed = list(findings)
    proposals = _Proposals(listed, material)
    for finding in listed:
        other = proposals.rival(finding) if finding.suggested else ""
        if not other:
            yield finding
            continue
        fact = f"{excerpt(finding.suggested)} would fit, and {other}"
        yield replace(finding, remedy=f"{fact}: choose names that differ in a word.", suggested="")


class _Proposals:
    """Who has a name, and for whom it is proposed; by scope and folded name."""

    def __init__(self, findings: Iterable[Finding], material: Material) -> None:
        self._is_one_scope = material.convention.unique == "everywhere"
        self._holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._wanted: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._declared: Counter[tuple[str, str]] = Counter()
        for one in material.everything:
            self._holders[self._key(one.server, fold(one.name))].add(one.name)
            self._declared[self._key(one.server, one.name)] += 1
        for finding in findings:
            if finding.suggested:
                self._wanted[self._key(finding.server, fold(finding.suggested))].add(finding.tools[0])

    def _key(self, server: str, name: str) -> tuple[str, str]:
        return "" if self._is_one_scope else server, name

    def rival(self, finding: Finding) -> str:
        """Return in words who else has the proposed name or would get it, "" if nobody."""
        name, key = finding.tools[0], self._key(finding.server, fold(finding.suggested))
        if self._declared[self._key(finding.server, name)] > 1:
            return "several tools have the name that it would replace"
        if others := self._wanted[key] - {name}:
            return f"{excerpt(min(others))} would get it too"
        others = self._holders[key] - {name}
        return f"{excerpt(min(others))} is there already" if others else ""
