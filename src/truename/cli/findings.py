"""The doctor's report as people read it: at most a screenful, the worst first, with what to do about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from truename.cli.asking import show_plan
from truename.cli.rendering import output, print_table, show, styled
from truename.policy import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.cli.looking import Looked
    from truename.cli.rendering import Cell
    from truename.clients import Found
    from truename.doctor import Diagnosis, Report
    from truename.policy import Finding, Location

__all__ = ["show_report"]

_FILES: Final = 8
_ROWS: Final = 10
_FINDINGS: Final = 6
_OF_ONE_RULE: Final = 2
_ALSO: Final = 3
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
# Clients keep the one or the other tool; those that keep the same are told together.
_WHOSE_END_COUNTS: Final = ("tools-merged", "wrong-tool")
_KINDS: Final = ("client", "framework", "provider", "spec", "own")


def show_report(looked: Looked, *, everything: bool) -> None:
    """Print what was looked at, how each client stands, the findings, and what would help."""
    most = None if everything else _FILES
    _show_files(looked.intake.files, most)
    _show_unasked(looked)
    _show_clients(looked.report, None if everything else _ROWS)
    _show_findings(looked.report, everything=everything)
    _show_end(looked)


def _show_files(files: Sequence[Found], most: int | None) -> None:
    told = [found for found in files if found.problem is not None or found.servers or found.kept]
    if not told:
        return
    shown = sorted(told, key=lambda found: (found.problem is None, not found.servers))[:most]
    rows: list[list[Cell]] = [
        [styled(_short(str(found.path))), f"{found.file.title}, {found.file.scope}", _state(found)] for found in shown
    ]
    print_table(["file", "client", "servers"], rows, whole=0)
    if left := len(told) - len(shown):
        show(styled(f"and {_count(left, 'file')} more (--all)", "dim"))
    show("")


def _state(found: Found) -> Text:
    if found.problem is not None:
        return styled("can't be read", "bold red")
    keys = ", ".join(one.server.key for one in found.servers[:4])
    more = len(found.servers) - 4
    return styled(f"{keys} and {more} more" if more > 0 else keys or "-")


def _show_unasked(looked: Looked) -> None:
    if looked.unasked:
        known = "so their tools are not known" if not looked.asked else "so the tools of the others are not known"
        show(f"{_count(len(looked.unasked), 'server')} not asked, {known}. `truename doctor --start` would start:")
        show_plan(looked.unasked[:_FILES])
        if len(looked.unasked) > _FILES:
            show(styled(f"  and {len(looked.unasked) - _FILES} more (--json lists all)", "dim"))
        show("")
    if looked.of_project:
        files = list(dict.fromkeys(_short(str(one.path)) for one in looked.of_project))
        show(f"Servers that a project configures are started only if its file is named: {', '.join(files[:3])}")
        show("")


def _show_clients(report: Report, most: int | None) -> None:
    told = sorted((one for one in report.diagnoses if one.tools), key=_worst)
    if not told:
        return
    rows = [_row(one) for one in told[:most]]
    print_table(["client", "can't be called", "through Truename", "known by"], rows)
    if len(rows) < len(told):
        rest = told[len(rows) :]
        fine = sum(not one.lost for one in rest)
        lost = f", {len(rest) - fine} of them with losses" if fine < len(rest) else ", nothing lost"
        show(styled(f"and {_count(len(rest), 'more client')}{lost} (--all)", "dim"))
    show("")


def _worst(one: Diagnosis) -> tuple[bool, int, int, int, str]:
    kind = _KINDS.index(one.case.dialect.kind)
    return not one.lost, kind, -one.lost, -one.count(Severity.ERROR), one.case.called


def _row(one: Diagnosis) -> list[Cell]:
    dialect = one.case.dialect
    known = f"{dialect.confidence}, {dialect.version}" if dialect.version else dialect.confidence
    return [
        styled(one.case.called, "bold"),
        styled(f"{one.lost:,} of {one.tools:,}{_uncertain(one)}", "bold red" if one.lost else "green"),
        styled(f"{one.lost_through:,}", "red" if one.lost_through else "green"),
        styled(known, "green" if dialect.confidence == "run" else "dim"),
    ]


def _uncertain(one: Diagnosis) -> str:
    return f", {one.uncertain:,} uncertain" if one.uncertain else ""


def _show_findings(report: Report, *, everything: bool) -> None:
    titles = {one.case.name: one.case.called for one in report.diagnoses}
    groups = _grouped(report, titles)
    chosen = groups if everything else _chosen(groups)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    said = ""
    for group in chosen:
        rule, remedy = group[0].rule, group[0].remedy
        grid.add_row(
            styled(rule.severity.value, _STYLES[rule.severity]),
            styled(rule.code, "dim"),
            _text(group, titles, remedy != said),
        )
        said = remedy
    _print(grid)
    left = [group for group in groups if all(group is not one for one in chosen)]
    if left:
        counted = Counter(group[0].rule for group in left)
        told = ", ".join(f"{number:,} {rule.name}" for rule, number in list(counted.items())[:6])
        show(styled(f"and {len(left):,} more: {told} (--all)", "dim"))
    if groups:
        show("")


def _print(grid: Table) -> None:
    console = output()
    with console.capture() as captured:
        console.print(grid)
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    if text:
        console.file.write(f"{text}\n")


def _grouped(report: Report, titles: Mapping[str, str]) -> list[list[Finding]]:
    """Put together what one cause does in several clients, what most of them do first."""
    groups: defaultdict[object, list[Finding]] = defaultdict(list)
    for one in report.findings:
        end = one.fact.partition(titles.get(one.client, ""))[2] if one.rule.name in _WHOSE_END_COUNTS else ""
        groups[(one.rule.code, one.server, one.tools, end) if one.tools else one].append(one)
    return sorted(groups.values(), key=lambda group: (list(_STYLES).index(group[0].rule.severity), -_clients(group)))


def _clients(group: Iterable[Finding]) -> int:
    return len({one.client for one in group})


def _chosen(groups: Sequence[list[Finding]]) -> list[list[Finding]]:
    """Choose the worst few, and not more than two of a kind as long as there are others."""
    seen: Counter[str] = Counter()
    first: list[list[Finding]] = []
    for group in groups:
        seen[group[0].rule.code] += 1
        if seen[group[0].rule.code] <= _OF_ONE_RULE:
            first.append(group)
    return first[:_FINDINGS]


def _text(group: Sequence[Finding], titles: dict[str, str], with_remedy: bool) -> Text:
    first = _typical(group, titles)
    others = [titles.get(one, one) for one in dict.fromkeys(one.client for one in group) if one != first.client]
    also = f" Also in {_listed(others)}." if others else ""
    mark = " (read, not run)" if first.confidence == "read" else ""
    place = f" {_place(first.location)}" if first.location is not None else ""
    text = Text.assemble(styled(first.fact), styled(also), styled(f"{mark}{place}", "dim"), overflow="fold")
    if with_remedy:
        text.append_text(Text.assemble("\n", styled(first.remedy, "green")))
    return text


def _typical(group: Sequence[Finding], titles: dict[str, str]) -> Finding:
    """Return the finding whose words suit most of the group: reasons differ from client to client."""
    said = [one.fact.replace(titles.get(one.client, one.client), "") for one in group]
    common, _ = Counter(said).most_common(1)[0]
    return group[said.index(common)]


def _listed(titles: Sequence[str]) -> str:
    shown = ", ".join(titles[:_ALSO])
    return f"{shown} and {len(titles) - _ALSO} more" if len(titles) > _ALSO else shown


def _place(location: Location) -> str:
    short = _short(location.file)
    return f"{short}:{location.line}:{location.column}" if location.line else short


def _show_end(looked: Looked) -> None:
    report = looked.report
    findings = report.findings
    if not findings and not report.diagnoses:
        show("No client's configuration was found. Give a dump, a configuration or a server's address.")
        return
    counts = Counter(one.rule.severity for one in findings)
    told = ", ".join(_count(counts[level], level.value) for level in Severity if counts[level])
    show(styled(f"{told or 'Nothing is wrong'}; nothing was changed.", "bold"))
    _show_gain(report)


def _show_gain(report: Report) -> None:
    """Say what the gateway would change, in numbers, for the client that loses most."""
    losing = sorted((one for one in report.diagnoses if one.lost), key=_worst)
    if not losing:
        return
    own = [one for one in losing if one.case.client]
    worst = (own or losing)[0]
    show(
        styled(f"{worst.lost:,} of {worst.tools:,} tools can't be called from {worst.case.called}; ", "bold red"),
        styled(f"through Truename: {worst.lost_through:,}.", "bold green"),
    )
    connect = f", `truename connect {worst.case.client}` puts it in place" if worst.case.client else ""
    begin = "`truename init` proposes one configuration" if own else "`truename serve` is put in front of these servers"
    show(f"{begin}{connect}.")


def _short(path: str) -> str:
    home, here = str(Path.home()), str(Path.cwd())
    if path.startswith(f"{here}/"):
        return path[len(here) + 1 :]
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
