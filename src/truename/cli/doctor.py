"""`truename doctor`: diagnose the tools of the clients on this machine, or of the given sources."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from truename.cli import _completion
from truename.cli._doctor_input import DoctorResult, run_doctor, show_plan
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._garbage import collecting_later
from truename.cli._options import JsonOutput
from truename.cli._rendering import Cell, count, print_json, print_table, shortened, show, show_hanging, styled
from truename.cli._sarif import result_of, sarif_log, write_sarif
from truename.clients import FoundFile
from truename.clients.doctor import RULES, Diagnosis, DoctorReport, ToolFate, would_start
from truename.conventions import Finding, Location, Severity

__all__ = ["doctor"]

_FILES: Final = 8
_KEY: Final = 32
_COMMAND: Final = 240
_ROWS: Final = 10
_OF_A_KIND: Final = 4
_FINDINGS: Final = 6
_KINDS_LEFT: Final = 6
_OF_ONE_RULE: Final = 2
_ALSO: Final = 3
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
# Rules whose findings are grouped by the tool that the client keeps or runs.
_WHOSE_END_COUNTS: Final = ("tools_merged", "wrong_tool")
_KINDS: Final = ("client", "framework", "provider", "spec", "own")
SCHEMA: Final = "truename.clients.doctor/1"
_MORE = "`truename doctor --all` shows each case and its remedy."
Source = Annotated[
    str, Parameter(help="A dump of tools/list, a client's configuration, or a server's http(s) address.")
]
For = Annotated[
    tuple[str, ...],
    Parameter(
        name="--for",
        metavar="CLIENT",
        completer=_completion.clients,
        show_default=False,
        help="Only this client, framework or provider; codex@0.50 for a version. May be repeated.",
    ),
]
Start = Annotated[bool, Parameter(show_default=False, help="Start the servers that are found without asking.")]
RunClients = Annotated[
    bool,
    Parameter(
        name="--run-clients",
        show_default=False,
        help="Run CLIENT --version of each client whose version no file tells.",
    ),
]
Project = Annotated[
    Path | None, Parameter(show_default=False, help="The project directory to check (default: the current one).")
]
Sarif = Annotated[
    str | None,
    Parameter(
        show_default=False,
        allow_leading_hyphen=True,
        help="Write the findings as SARIF 2.1.0 to this file; - is stdout.",
    ),
]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="Show every finding.")]


def show_report(looked: DoctorResult, *, everything: bool) -> None:
    """Print the examined files, a line per client, the findings, and the gain through the gateway."""
    # The first case of a client is for the present project; its later cases are for other projects.
    titles = {one.case.name: one.case.called for one in reversed(looked.report.diagnoses)}
    groups = _grouped(looked.report, titles)
    _show_files(looked.intake.files, None if everything else _FILES)
    _show_installed(looked)
    _show_registered(looked)
    _show_unasked(looked)
    _show_clients(looked.report, everything=everything)
    _show_findings(groups, titles, everything=everything)
    _show_end(looked, groups)


def _show_files(files: Sequence[FoundFile], most: int | None) -> None:
    told = [found for found in files if found.problem is not None or found.servers or found.kept]
    if not told:
        return
    shown = sorted(told, key=lambda found: (found.problem is None, not found.servers))[:most]
    rows: list[list[Cell]] = [
        [styled(_short(str(found.path))), f"{found.file.title}, {found.file.scope}", _state(found)] for found in shown
    ]
    print_table(["file", "client", "servers"], rows, whole=0)
    if left := len(told) - len(shown):
        show(styled(f"and {count(left, 'more file')} (--all)", "dim"))
    show("")


def _show_installed(looked: DoctorResult) -> None:
    """Print the installed versions, and where the rules are those of another version."""
    rules = {one.case.client: one.case.dialect for one in looked.report.diagnoses}
    rows = []
    for name, one in looked.installed.items():
        said = one.version or "its version is in no file (--run-clients asks it)"
        dialect = rules.get(name)
        note = dialect.unrun if dialect is not None and one.version else ""
        rows.append((styled(name, "bold"), Text.assemble(styled(said), styled(f"  {note}", "dim"), overflow="fold")))
    if rows:
        show("Installed clients:")
        show_hanging(rows, indent=2)
        show("")


def _show_registered(looked: DoctorResult) -> None:
    """Print the names in the MCP registry that entries have."""
    if not looked.registered:
        return
    show("Names in the MCP registry, as the files say:")
    rows = [
        (
            styled(shortened(one.server.key, _KEY), "bold"),
            Text.assemble(styled(one.registry_name or ""), styled(f"  {_place(one.location)}", "dim"), overflow="fold"),
        )
        for one in looked.registered[:_FILES]
    ]
    show_hanging(rows, indent=2)
    if (left := len(looked.registered) - _FILES) > 0:
        show(styled(f"  and {left} more (--json lists all)", "dim"))
    show("")


def _state(found: FoundFile) -> Text:
    if found.problem is not None:
        return styled("cannot be read", "bold red")
    keys = ", ".join(shortened(one.server.key, _KEY) for one in found.servers[:4])
    more = len(found.servers) - 4
    return styled(f"{keys} and {more} more" if more > 0 else keys or "-")


def _show_unasked(looked: DoctorResult) -> None:
    if looked.unasked:
        known = "so their tools are unknown"
        fact = f"{count(len(looked.unasked), 'server')} not started, {known}."
        show(fact if looked.declined else f"{fact} `truename doctor --start` would start:")
        if not looked.declined:
            show_plan(looked.unasked[:_FILES], most=_COMMAND)
            if (left := len(looked.unasked) - _FILES) > 0:
                show(styled(f"  and {left} more (--json lists all)", "dim"))
        show("")
    if looked.of_project:
        files = list(dict.fromkeys(_short(str(one.path)) for one in looked.of_project))
        show(f"Servers in a project's file are started only if that file is named: {', '.join(files[:3])}")
        show("")


def _show_clients(report: DoctorReport, *, everything: bool) -> None:
    told = sorted((one for one in report.diagnoses if one.tools), key=_worst)
    kinds = list(dict.fromkeys(one.case.dialect.kind for one in told))
    rows: list[list[Cell]] = []
    rest: list[Diagnosis] = []
    for kind in kinds:
        of_kind = [one for one in told if one.case.dialect.kind == kind]
        most = len(of_kind) if everything else _ROWS if len(kinds) == 1 else _OF_A_KIND
        rows += [[styled(f"{kind}s", "dim"), "", "", ""]] if len(kinds) > 1 else []
        rows += map(_row, of_kind[:most])
        rest += of_kind[most:]
    if not rows:
        return
    print_table(["client", "cannot be called", "through Truename", "known by"], rows)
    if rest:
        losing = sum(bool(one.lost) for one in rest)
        lost = f", {losing} of them with losses" if losing else ", nothing lost"
        show(styled(f"and {len(rest)} more{lost} (--all)", "dim"))
    show("")


def _worst(one: Diagnosis) -> tuple[int, int, int, int, str]:
    kind = _KINDS.index(one.case.dialect.kind)
    return kind, -one.lost, -one.uncertain, -one.count(Severity.ERROR), one.case.called


def _row(one: Diagnosis) -> list[Cell]:
    dialect = one.case.dialect
    known = f"{dialect.confidence}, {dialect.version}" if dialect.version else dialect.confidence
    if dialect.unrun:
        known = f"{dialect.release} not run" + (f", rules of {dialect.version}" if dialect.runs else "")
    refused = ", file refused" if one.unread else ""
    uncertain = f", {one.uncertain:,} uncertain" if one.uncertain else ""
    lost = f"{one.lost:,} of {one.tools:,}{refused}{uncertain}"
    through = styled(f"{one.lost_through:,}", "red" if one.lost_through else "green")
    return [
        styled(one.case.called, "bold"),
        styled(lost, "bold red" if one.lost else "yellow" if one.uncertain else "green"),
        styled("connected", "dim") if one.case.is_connected else through,
        styled(known, "green" if dialect.confidence == "run" else "dim"),
    ]


def _show_findings(groups: Sequence[list[Finding]], titles: Mapping[str, str], *, everything: bool) -> None:
    chosen = groups if everything else _chosen(groups)
    show_hanging(
        (styled(one[0].rule.severity.value, _STYLES[one[0].rule.severity]), styled(one[0].rule.code, "dim"), text)
        for one in chosen
        for text in [_text(one, titles)]
    )
    left = len(groups) - len(chosen)
    if left:
        shown = {id(group) for group in chosen}
        counted = Counter(group[0].rule.name for group in groups if id(group) not in shown)
        told = ", ".join(f"{number:,} {name}" for name, number in list(counted.items())[:_KINDS_LEFT])
        more = ", ..." if len(counted) > _KINDS_LEFT else ""
        show(styled(f"and {left:,} more: {told}{more} (--all)", "dim"))
    if groups:
        show("")


def _grouped(report: DoctorReport, titles: Mapping[str, str]) -> list[list[Finding]]:
    """Group the findings that have one cause in several clients, by severity and number of clients."""
    groups: defaultdict[object, list[Finding]] = defaultdict(list)
    for one in report.findings:
        end = one.fact.partition(titles.get(one.client, ""))[2] if one.rule.name in _WHOSE_END_COUNTS else ""
        groups[(one.rule.code, one.server, one.tools, end) if one.tools else one].append(one)
    return sorted(
        groups.values(),
        key=lambda group: (list(_STYLES).index(group[0].rule.severity), -len({one.client for one in group})),
    )


def _chosen(groups: Sequence[list[Finding]]) -> list[list[Finding]]:
    """Choose the worst groups, at most two per rule."""
    seen: Counter[str] = Counter()
    first: list[list[Finding]] = []
    for group in groups:
        seen[group[0].rule.code] += 1
        if seen[group[0].rule.code] <= _OF_ONE_RULE:
            first.append(group)
    return first[:_FINDINGS]


def _text(group: Sequence[Finding], titles: Mapping[str, str]) -> Text:
    first = _typical(group, titles)
    others = {one.client: one for one in group if one.client != first.client}
    marks = {
        client: "" if one.confidence == first.confidence else f" ({one.confidence})" for client, one in others.items()
    }
    named = [f"{titles.get(client, client)}{mark}" for client, mark in marks.items()]
    more = f" and {len(named) - _ALSO} more" if len(named) > _ALSO else ""
    also = f" Also in {', '.join(named[:_ALSO])}{more}." if named else ""
    title = titles.get(first.client, first.client)
    whose = "" if title in first.fact else title
    place = "" if first.location is None else _place(first.location)
    known = ", ".join(part for part in (whose, first.confidence) if part)
    told = "".join(f"{part} - " for part in (known, place) if part)
    return Text.assemble(
        styled(f"{first.fact}{also}"), "\n", styled(told, "dim"), styled(first.remedy, "green"), overflow="fold"
    )


def _typical(group: Sequence[Finding], titles: Mapping[str, str]) -> Finding:
    """Return the finding whose text is the most common in the group: reasons differ between clients."""
    said = [one.fact.replace(titles.get(one.client, one.client), "") for one in group]
    common, _ = Counter(said).most_common(1)[0]
    return group[said.index(common)]


def _place(location: Location) -> str:
    short = _short(location.file)
    return f"{short}:{location.line}:{location.column}" if location.line else short


def _show_end(looked: DoctorResult, groups: Sequence[list[Finding]]) -> None:
    report = looked.report
    if not groups and not report.diagnoses:
        show("No client's configuration was found. Pass a dump, a configuration or a server's URL.")
        return
    # A group counts once, as it is printed.
    counts = Counter(group[0].rule.severity for group in groups)
    told = ", ".join(count(counts[level], level.value) for level in Severity if counts[level])
    show(styled(f"{told or 'Nothing is wrong'}; nothing was changed.", "bold"))
    _show_gain(report)


def _show_gain(report: DoctorReport) -> None:
    """Print how many tools the gateway would save for the client that loses most."""
    # For a client that is connected already, its findings have the advice.
    losing = sorted((one for one in report.diagnoses if one.lost and not one.case.is_connected), key=_worst)
    if not losing:
        return
    own = [one for one in losing if one.case.client]
    worst = (own or losing)[0]
    show(
        styled(
            f"{worst.case.called} cannot call {worst.lost:,} of the {count(worst.tools, 'tool')} of its servers; ",
            "bold red",
        ),
        styled(f"through Truename: {worst.lost_through:,}.", "bold green"),
    )
    connect = f", `truename connect {worst.case.client}` connects the client" if worst.case.client else ""
    begin = "`truename init` proposes one configuration" if own else "`truename serve` runs in front of these servers"
    show(f"{begin}{connect}.")


def _short(path: str) -> str:
    home, here = str(Path.home()), str(Path.cwd())
    if path.startswith(f"{here}/"):
        return path[len(here) + 1 :]
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def document(looked: DoctorResult) -> dict[str, object]:
    """Return the input and the report as JSON; later versions may add keys, but never change them."""
    report = looked.report
    return {
        "schema": SCHEMA,
        "files": [
            {
                "path": str(found.path),
                "client": found.file.client,
                "scope": found.file.scope,
                "readable": found.problem is None,
                "servers": [one.server.key for one in found.servers],
                "kept_names": len(found.kept),
            }
            for found in looked.intake.files
        ],
        "registry_names": [
            {
                "server": one.server.key,
                "file": one.location.file,
                "line": one.location.line,
                "registry_name": one.registry_name,
            }
            for one in looked.registered
        ],
        "dumps": list(dict.fromkeys(str(one.path) for one in looked.intake.listings)),
        "installed": [
            {"client": one.client, "version": one.version or None, "program": str(one.program), "source": one.source}
            for one in looked.installed.values()
        ],
        "asked": looked.asked,
        "not_asked": [
            {
                "server": one.server.key,
                "file": str(one.path or ""),
                "clients": list(one.clients),
                "would_start": would_start(one.written or one.server),
                "project": one.of_project,
            }
            for one in (*looked.unasked, *looked.of_project)
        ],
        "clients": [_client(one) for one in report.diagnoses],
        "findings": [_finding(one) for one in report.findings],
        "summary": {level.value: sum(one.rule.severity is level for one in report.findings) for level in Severity},
    }


def _client(diagnosis: Diagnosis) -> dict[str, object]:
    case = diagnosis.case
    dialect = case.dialect
    told: dict[str, object] = {
        "client": case.name,
        "title": case.called,
        "dialect": dialect.name,
        "kind": dialect.kind,
        "version": dialect.version,
        "confidence": dialect.confidence,
        "release": dialect.release or None,
        "unrun": dialect.unrun or None,
        "servers": [server.key for server in case.lists.servers],
        "servers_not_asked": [server.key for server in case.lists.servers if server.definitions is None],
    }
    if diagnosis.tools:
        told["tools"] = {
            "listed": diagnosis.tools,
            "lost": diagnosis.lost,
            "in_refused_files": diagnosis.unread,
            "uncertain": diagnosis.uncertain,
            "changed": len(case.direct.changed),
            "lost_through_truename": diagnosis.lost_through,
            # Tools that fail together with another are only counted: they may be all tools.
            "fates": [_fate(one) for one in (*case.direct.lost, *case.direct.changed) if one.loss != "falls"],
        }
    return told


def _fate(fate: ToolFate) -> dict[str, object]:
    told: dict[str, object] = {"server": fate.server, "tool": fate.tool, "shown": fate.shown}
    if fate.loss:
        reached = None if fate.reaches is None else {"server": fate.reaches[0], "tool": fate.reaches[1]}
        return told | {"loss": fate.loss, "scope": fate.scope, "reaches": reached}
    return told | {"change": fate.change}


def _finding(finding: Finding) -> dict[str, object]:
    place = finding.location
    return {
        "code": finding.rule.code,
        "rule": finding.rule.name,
        "severity": finding.rule.severity.value,
        "fact": finding.fact,
        "remedy": finding.remedy,
        "client": finding.client,
        "confidence": finding.confidence,
        "server": finding.server,
        "tools": list(finding.tools),
        "location": None
        if place is None
        else {"file": place.file, "line": place.line, "column": place.column, "key": place.key},
    }


def doctor(
    *sources: Source,
    clients: For = (),
    start: Start = False,
    project: Project = None,
    run_clients: RunClients = False,
    as_json: JsonOutput = False,
    sarif: Sarif = None,
    everything: Everything = False,
) -> int:
    """Report the tools that clients would refuse, drop, cut, merge or misroute, and the remedies. Nothing is changed.

    Without a SOURCE, all clients on this machine are checked. Servers are started only with your consent, or with
    --start; servers in a project's file only if that file is named.
    """
    if as_json and sarif == "-":
        raise UsageError(fact="--json and --sarif - both write to stdout", advice="Give --sarif a file.")
    with collecting_later():
        may_ask = not as_json and sarif != "-"
        looked = run_doctor(sources, clients, project, start=start, may_ask=may_ask, run_clients=run_clients)
        if sarif is not None:
            results = map(result_of, looked.report.findings)
            write_sarif(sarif_log(results, RULES.values(), Path.cwd(), more=_MORE), sarif)
        if as_json:
            print_json(document(looked))
        elif sarif != "-":
            show_report(looked, everything=everything)
    return _status(looked.report)


def _status(report: DoctorReport) -> int:
    findings = report.findings
    failed = any(one.rule.name == "server_failed" for one in findings)
    bad = any(one.rule.severity is not Severity.NOTE and one.rule.name != "server_failed" for one in findings)
    if bad:
        return EXIT_FINDINGS
    return EXIT_UPSTREAM if failed else 0
