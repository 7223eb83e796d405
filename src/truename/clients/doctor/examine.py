"""Examine cases: a diagnosis of each client, and findings that concern no single client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

from truename.clients.doctor.file_findings import check_files
from truename.clients.doctor.tool_findings import check_kept_names, check_limits, check_lists, check_tools
from truename.conventions import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.clients.doctor.cases import ClientCase
    from truename.conventions import Finding

__all__ = ["Diagnosis", "DoctorReport", "examine"]

_REFUSED: Final = ("comment_refused", "trailing_comma_refused", "byte_order_mark_refused")
_WORST_FIRST: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The findings about one client, the worst first."""

    case: ClientCase
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(one.rule.severity is severity for one in self.findings)

    @property
    def tools(self) -> int:
        """The number of tools of the client's servers that were asked."""
        return self.case.lists.tools

    @cached_property
    def _refused(self) -> frozenset[str]:
        files = {one.location.file for one in self.findings if one.rule.name in _REFUSED and one.location}
        servers = self.case.lists.servers if files else ()
        return frozenset(one.key for one in servers if one.location and one.location.file in files)

    @property
    def unread(self) -> int:
        """The number of tools of servers in files that the client refuses."""
        return sum(len(one.definitions or ()) for one in self.case.lists.servers if one.key in self._refused)

    @property
    def lost(self) -> int:
        """The number of tools that the client certainly cannot call: by their names, or because it refuses the file."""
        names = (fate for fate in self.case.direct.lost if fate.loss != "unknown")
        return self.unread + sum(fate.server not in self._refused for fate in names)

    @property
    def uncertain(self) -> int:
        """The number of tools that share a name, where it is unknown which one a call runs."""
        return sum(fate.loss == "unknown" and fate.server not in self._refused for fate in self.case.direct.lost)

    @property
    def lost_through(self) -> int:
        """The number of tools that the client could not call through the gateway."""
        return self.case.lost_through


@dataclass(frozen=True, kw_only=True)
class DoctorReport:
    """The result of an examination: a diagnosis of each client, and findings that concern no single client."""

    diagnoses: tuple[Diagnosis, ...]
    general: tuple[Finding, ...] = ()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the worst first."""
        return _sorted([*self.general, *(one for diagnosis in self.diagnoses for one in diagnosis.findings)])


def examine(cases: Iterable[ClientCase], general: Iterable[Finding] = ()) -> DoctorReport:
    """Examine each case, and each set of lists once. Starts and writes nothing.

    A case whose servers were not asked gets only findings about its files. ``general`` are findings made elsewhere,
    such as servers that did not start.
    """
    cases = tuple(cases)
    lists = {id(case.lists): case.lists for case in cases}
    # Cases with the same servers have the same findings about lists.
    about = {(one.rule.code, one.fact): one for several in lists.values() for one in check_lists(several)}
    seen: set[object] = set()
    return DoctorReport(
        diagnoses=tuple(Diagnosis(case=case, findings=_sorted(_new(_of(case), seen))) for case in cases),
        general=_sorted([*general, *about.values()]),
    )


def _of(case: ClientCase) -> Iterator[Finding]:
    return chain(check_files(case.files, case.dialect), check_tools(case), check_limits(case), check_kept_names(case))


def _new(findings: Iterable[Finding], seen: set[object]) -> Iterator[Finding]:
    """Drop findings already reported for the same client: its cases in other projects share most servers."""
    for one in findings:
        mark = (one.rule.code, one.client, one.server, one.tools, one.location, "" if one.tools else one.fact)
        if mark not in seen:
            seen.add(mark)
            yield one


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=_rank))


def _rank(finding: Finding) -> tuple[int, bool, str]:
    return _WORST_FIRST.index(finding.rule.severity), finding.confidence == "read", finding.rule.code
