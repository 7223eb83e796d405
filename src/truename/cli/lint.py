"""`truename lint`: check the names and texts of tools before they are released."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.text import Text

from truename.cli import _completion
from truename.cli._client_rules import client_rules
from truename.cli._declared_tools import DeclaredSources, is_address, read_sources
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._garbage import collecting_later
from truename.cli._named_tools import CheckedNames, check_names, correct, sort_beside, sort_sources
from truename.cli._options import JsonOutput
from truename.cli._progress import busy
from truename.cli._rendering import count, output, print_json, printable, show, show_diff, styled
from truename.cli._rules import rules_asked
from truename.cli._sarif import Result, sarif_log, write_sarif
from truename.conventions import Convention, Finding, Severity
from truename.files.user import at_home
from truename.lint import RULES, LintConfiguration, load_lint_configuration, weigh
from truename.lint.baseline import Baseline, read_baseline, render_baseline
from truename.lint.declared import joined
from truename.lint.excerpts import find_excerpt, finding_place
from truename.lint.fixes import Fix, remove_stale_entries, remove_unused_comments, replace_bytes
from truename.lint.report import LintReport, WeighedFindings
from truename.lint.source_files import PYTHON, relative_to_cwd
from truename.migration import FileRewrite

__all__ = ["lint"]

SCHEMA: Final = "truename.lint/1"
_MOST: Final = 100
_WIDEST: Final = 160
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_RANK: Final = {severity: number for number, severity in enumerate(Severity)}
_ELSE: Final = "`truename lint SOURCE` also reads a dump of tools/list, a configuration or a server's URL."
# More shadowed tools than this are a collection of alternative servers, not an attack.
_ALIKE: Final = "shadowed_tool"
_CROWD: Final = 20
_HIDDEN: Final = {"comment": "by a comment", "convention": "by the convention", "baseline": "in the baseline"}
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_TEXT: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
_HERE = (".",)
# Codes of rules about a single name: legality and spelling.
_SPELLED = ("TN10", "TN12")
_LONGEST = 128
# The placeholder for a new name if the rules propose none, or one that is taken.
_ANY = "NEW_NAME"
_MORE = "`truename explain {code}` shows this too."
_KINDS: Final[Mapping[str, Literal["inSource", "external"]]] = {
    "comment": "inSource",
    "convention": "external",
    "baseline": "external",
}
Source = Annotated[
    str,
    Parameter(
        help="A Python file, a directory, a dump of tools/list, a configuration, a server's http(s) URL, or a file "
        "that names tools, such as a skill or an agent."
    ),
]
For = Annotated[
    tuple[str, ...],
    Parameter(
        name="--for",
        metavar="CLIENT",
        completer=_completion.clients,
        show_default=False,
        help="A client that must accept every name. May be repeated.",
    ),
]
Preset = Annotated[
    str | None,
    Parameter(
        name="--preset", metavar="PRESET", help="The convention to check: trailblaze, provider-safe, canonical or mcp."
    ),
]
Team = Annotated[str | None, Parameter(name="--team", metavar="TEAM", help="The team that owns these tools.")]
OnlyRule = Annotated[
    tuple[str, ...],
    Parameter(
        name="--rule",
        metavar="RULE",
        completer=_completion.rules,
        show_default=False,
        help="Only this rule, by code or name. May be repeated.",
    ),
]
Exclude = Annotated[
    tuple[str, ...],
    Parameter(
        name="--exclude", metavar="GLOB", show_default=False, help="Skip files that match this glob. May be repeated."
    ),
]
Beside = Annotated[
    tuple[str, ...],
    Parameter(
        name="--beside",
        metavar="SOURCE",
        show_default=False,
        help="Tools that run together with these, but are not checked: a dump, a source, a lock, or a configuration, "
        "whose recorded names count. May be repeated.",
    ),
]
BaselineFile = Annotated[
    str | None,
    Parameter(
        name="--baseline", metavar="FILE", help="The baseline file; default: as configured, or truename-baseline.jsonl."
    ),
]
NoBaseline = Annotated[bool, Parameter(name="--no-baseline", show_default=False, help="Use no baseline.")]
WriteBaseline = Annotated[
    bool,
    Parameter(name="--write-baseline", show_default=False, help="Accept all present findings into the baseline."),
]
ApplyFixes = Annotated[
    bool,
    Parameter(
        name="--fix",
        show_default=False,
        help="Remove suppression comments and baseline entries that have no effect; correct old names in skills and "
        "agents.",
    ),
]
Diff = Annotated[
    bool, Parameter(name="--diff", show_default=False, help="Show what --fix would change, without changing it.")
]
Strict = Annotated[
    bool, Parameter(name="--strict", show_default=False, help="Count notes as findings for the exit status.")
]
Sarif = Annotated[
    str | None,
    Parameter(
        show_default=False,
        allow_leading_hyphen=True,
        help="Write the findings as SARIF 2.1.0 to this file; - is stdout.",
    ),
]
Github = Annotated[
    bool, Parameter(name="--github", show_default=False, help="Print annotations for a GitHub workflow.")
]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="Show every finding.")]


def show_linted(report: LintReport, fixes: Sequence[Fix], *, everything: bool, command: str = "") -> None:
    """Print the findings (at most the worst hundred), a summary, and the next command."""
    findings = report.findings
    left = 0 if everything else max(0, len(findings) - _MOST)
    if left:
        # The worst are selected, and printed in the order of the files.
        kept = set(sorted(range(len(findings)), key=lambda i: _RANK[findings[i].rule.severity])[:_MOST])
        findings = tuple(one for number, one in enumerate(findings) if number in kept)
    show_findings(findings)
    if left:
        rest = Counter(one.rule.name for one in report.findings) - Counter(one.rule.name for one in findings)
        told = ", ".join(f"{number:,} {name}" for name, number in rest.most_common(6))
        show(styled(f"and {left:,} more: {told}{', ...' if len(rest) > 6 else ''} (--all)", "dim"))
        show("")
    for fix in fixes:
        show(styled(f"{fix.path}: {'; '.join(fix.done)}", "green"))
    show(styled(_summary(report), "bold"))
    if sum(one.rule.name == _ALIKE for one in report.findings) > _CROWD:
        show("Servers in one run are assumed to run together: lint alternatives separately.")
    if command:
        show("To rename the first of these everywhere:")
        show("  ", styled(command, "green"))


def show_findings(findings: Sequence[Finding]) -> None:
    """Print findings: location, rule, fact, source line and remedy."""
    width = min(output().width, _WIDEST)
    for one in findings:
        severity = styled(one.rule.severity.value, _STYLES[one.rule.severity])
        rule = styled(f"{one.rule.code} {one.rule.name}", "dim")
        show(styled(finding_place(one), "bold"), "  ", severity, "  ", rule)
        show("  ", styled(one.fact))
        _show_excerpt(one, width)
        show("  ", styled(one.remedy, "green"))
        show("")


def _show_excerpt(finding: Finding, width: int) -> None:
    found = find_excerpt(finding, width - 2)
    if found is not None:
        console = output()
        name = styled(found.name, "bold")
        line = Text.assemble(styled(f"  {found.number}", "dim"), found.before, name, found.after)
        mark = Text.assemble(styled(f"  {found.lead}", "dim"), styled(found.mark, "bold red"))
        for text in (line, mark)[: 2 if found.mark else 1]:
            console.print(text, no_wrap=True, overflow="ignore", crop=False)


def _summary(report: LintReport) -> str:
    counts = [count(number, level.value) for level in Severity if (number := report.count(level))]
    hidden = Counter(one.hidden for one in report.hidden)
    suppressed = [f"{number:,} suppressed {_HIDDEN[what]}" for what, number in hidden.items() if what]
    names = f" and {count(report.names, 'name')}" if report.names else ""
    about = f"in {count(report.tools, 'tool')}{names} of {count(len(report.files), 'source')}"
    if not report.files and not counts:
        return f"No Python file was found. {_ELSE}"
    if not report.tools and not report.names and not counts:
        return f"No tools are declared in {count(len(report.files), 'source')}. {_ELSE}"
    return "; ".join([f"{', '.join(counts) or 'No findings'} {about}", *suppressed]) + "."


def document(
    report: LintReport, *, failed: Sequence[str], baseline: Path | None, fixes: Sequence[Fix], convention: str
) -> dict[str, object]:
    """Return the report as JSON; later versions may add keys, but never change them."""
    return {
        "schema": SCHEMA,
        "convention": convention,
        "sources": list(report.files),
        "tools": report.tools,
        "names": report.names,
        "findings": [_plain(one) for one in report.shown],
        "suppressed": [{**_plain(one), "suppressed_by": one.hidden, "reason": one.reason} for one in report.hidden],
        "baseline": None if baseline is None else str(baseline),
        "failed": list(failed),
        "fixed": [{"file": str(fix.path), "done": list(fix.done)} for fix in fixes],
        "summary": {level.value: report.count(level) for level in Severity},
    }


def _plain(weighed: WeighedFindings) -> dict[str, object]:
    one = weighed.finding
    place = one.location
    told = None
    if place is not None:
        told = {"file": place.file, "line": place.line, "column": place.column, "key": place.key}
    return {
        "code": one.rule.code,
        "rule": one.rule.name,
        "severity": one.rule.severity.value,
        "fact": one.fact,
        "remedy": one.remedy,
        "suggested": one.suggested,
        "client": one.client,
        "confidence": one.confidence,
        "server": one.server,
        "tools": list(one.tools),
        "location": told,
        "fingerprint": weighed.fingerprint,
    }


def baseline_for(configured: LintConfiguration, option: str | None, *, must_exist: bool) -> Baseline | None:
    """Return the baseline that is named, configured, or exists under its usual name; None if there is none.

    Raises `ConfigError` for one that cannot be read, and `UsageError` for a named one that does not exist.
    """
    path, is_named = _baseline_path(configured, option)
    if path.is_file():
        return read_baseline(path)
    if is_named and must_exist:
        raise UsageError(fact=f"no baseline found at {path}", advice="`truename lint --write-baseline` creates one.")
    return None


def accept(
    report: LintReport, configured: LintConfiguration, option: str | None, held: Baseline | None, *, as_json: bool
) -> int:
    """Write all findings that can be accepted to the baseline. Entries about other sources are kept."""
    path, _ = _baseline_path(configured, option)
    made = report.entries(configured.base)
    gone = {one.fingerprint for one in report.stale}
    kept = [one for one in held.entries if one.fingerprint not in gone] if held is not None else []
    after = render_baseline([*kept, *made])
    before = held.raw if held is not None else None
    if after != before:
        replace_bytes(Fix(path=path, before=before, after=after, done=()))
    refused = len(report.shown) - sum(not one.hidden and one.can_be_accepted for one in report.shown)
    entries = after.count(b"\n") - 1
    if as_json:
        print_json({"baseline": str(path), "entries": entries, "refused": refused})
        return int(refused > 0)
    show(styled(f"{path} holds {entries:,} {'entry' if entries == 1 else 'entries'}.", "bold"))
    if refused:
        show(f"{count(refused, 'finding')} cannot be accepted: unreadable files and unknown rules.")
    return int(refused > 0)


def find_fixes(report: LintReport, held: Baseline | None, names: CheckedNames, *, write: bool) -> tuple[Fix, ...]:
    """Return the safe fixes; with ``write``, apply them. Raises `ConfigError` before anything is written.

    Corrections of names are written together or not at all, and `truename rename --undo` restores the files.
    """
    found = list(remove_unused_comments(report.unused))
    entries = remove_stale_entries(held, report.stale) if held is not None else None
    fixes = tuple(found if entries is None else [*found, entries])
    corrections = names.corrections(report)
    if write:
        correct(corrections)
        for fix in fixes:
            replace_bytes(fix)
    return (*fixes, *(_as_fix(one) for one in corrections))


def _as_fix(change: FileRewrite) -> Fix:
    done = tuple(f"{one.old} is now {one.new} (line {one.line})" for one in change.edits)
    return Fix(path=change.path, before=change.before, after=change.after or b"", done=done)


def show_fixes(fixes: Sequence[Fix]) -> None:
    """Print the fixes as a diff."""
    for fix in fixes:
        show_diff(fix.path, fix.before, fix.after, ())
    if not fixes:
        show("There is nothing to fix safely; `truename rename` changes names.")


def _baseline_path(configured: LintConfiguration, option: str | None) -> tuple[Path, bool]:
    if option is not None:
        return at_home(option), True
    is_named = bool(configured.settings.baseline or configured.convention.baseline)
    return relative_to_cwd(configured.baseline), is_named


def print_annotations(findings: Iterable[Finding]) -> None:
    """Print a GitHub workflow command for each finding."""
    for finding in findings:
        sys.stdout.write(f"{annotation(finding)}\n")


def annotation(finding: Finding) -> str:
    """Return the workflow command of a finding, escaped so that a name cannot end it or add another.

    >>> from truename.lint import UPKEEP
    >>> from truename.conventions import Finding, Location
    >>> place = Location(file="a,b.py", line=3, column=5)
    >>> annotation(Finding(rule=UPKEEP["computed_name"], fact="100% so.", remedy="", location=place))
    '::notice file=a%2Cb.py,line=3,col=5,title=TN195 computed_name::100%25 so.'
    """
    place = finding.location
    told: dict[str, object] = {}
    if place is not None and place.file:
        told["file"] = place.file
    if place is not None and place.line:
        told |= {"line": place.line, "col": place.column or 1}
    told["title"] = f"{finding.rule.code} {finding.rule.name}"
    properties = ",".join(f"{key}={printable(str(value)).translate(_PROPERTY)}" for key, value in told.items())
    text = printable(f"{finding.fact} {finding.remedy}".strip()).translate(_TEXT)
    return f"::{_LEVELS[finding.rule.severity]} {properties}::{text}"


def lint(
    *sources: Source,
    clients: For = (),
    preset: Preset = None,
    team: Team = None,
    rule: OnlyRule = (),
    exclude: Exclude = (),
    beside: Beside = (),
    baseline: BaselineFile = None,
    no_baseline: NoBaseline = False,
    write_baseline: WriteBaseline = False,
    fix: ApplyFixes = False,
    diff: Diff = False,
    strict: Strict = False,
    as_json: JsonOutput = False,
    sarif: Sarif = None,
    github: Github = False,
    everything: Everything = False,
) -> int:
    """Check the names and texts of tools against a convention, the clients' limits, and each other.

    Python sources are parsed, never imported. Without a SOURCE, the configured sources are used, else this directory.
    """
    if sum((as_json, github, sarif == "-")) > 1:
        raise UsageError(fact="--json, --github and --sarif - all write to stdout", advice="Give --sarif a file.")
    if write_baseline and no_baseline:
        raise UsageError(fact="--write-baseline adds to the baseline", advice="Leave out --no-baseline.")
    codes = rules_asked(rule)
    configured = _configured(clients, preset, team)
    held = None if no_baseline else baseline_for(configured, baseline, must_exist=not write_baseline)
    named = sources or _sources(configured)
    declaring, naming = sort_sources(named)
    excluded = (*configured.settings.exclude, *exclude)
    peers = sort_beside(beside, _beside(configured))
    with collecting_later():
        file = configured.settings_file
        named_by = None if sources or file is None else relative_to_cwd(file)
        taken = read_sources(declaring, excluded, peers.files, named_by=named_by)
        names = check_names(naming, excluded, taken, peers, configured.base)
        with busy("Checking the tools"):
            report = weigh(
                joined([taken.declared, names.declared]),
                configured,
                peers=taken.peers,
                baseline=held,
                rules=codes,
                is_whole=taken.is_whole,
            )
    if write_baseline:
        return accept(report, configured, baseline, held, as_json=as_json)
    possible = find_fixes(report, held, names, write=fix and not diff) if fix or diff else ()
    fixes = () if diff else possible
    if fixes:
        report = report.without_fixed(names.corrections(report))
    if sarif is not None:
        results = [
            Result(
                finding=one.finding,
                fingerprint=one.fingerprint,
                suppressed=_KINDS.get(one.hidden, ""),
                justification=one.reason,
            )
            for one in (*report.shown, *report.hidden)
        ]
        write_sarif(sarif_log(results, RULES.values(), Path.cwd(), more=_MORE), sarif)
    if as_json:
        path = held.path if held is not None else None
        name = configured.convention.preset
        print_json(document(report, failed=taken.failed, baseline=path, fixes=fixes, convention=name))
    elif github:
        print_annotations(report.findings)
    elif sarif != "-":
        command = _renaming(report, taken, named)
        show_linted(report, fixes, everything=everything, command=command)
        if diff or (fix and not fixes):
            show_fixes(possible)
    return _status(report, taken, strict=strict)


def _configured(clients: tuple[str, ...], preset: str | None, team: str | None) -> LintConfiguration:
    found = load_lint_configuration(Path.cwd())
    convention = found.convention if preset is None else Convention.of(preset)
    more = tuple(client_rules(name).name for name in clients)
    if more:
        convention = replace(convention, clients=tuple(dict.fromkeys((*convention.clients, *more))))
    if team is not None:
        convention = replace(convention, team=team)
    return replace(found, convention=convention)


def _sources(configured: LintConfiguration) -> tuple[str, ...]:
    named = configured.settings.sources
    return tuple(one if is_address(one) else str(relative_to_cwd(configured.base / one)) for one in named) or _HERE


def _beside(configured: LintConfiguration) -> tuple[str, ...]:
    return tuple(str(relative_to_cwd(configured.base / one)) for one in configured.settings.beside)


def _renaming(report: LintReport, taken: DeclaredSources, sources: tuple[str, ...]) -> str:
    """Return the command that renames the first tool with a finding about its name; "" if there is none."""
    finding = next((one for one in report.findings if _is_renamable(one)), None)
    if finding is None:
        return ""
    held = {one.name for one in taken.declared.declarations}
    new = finding.suggested if finding.suggested and finding.suggested not in held else _ANY
    below = not any("://" in one or one.startswith(("/", "..", "~")) for one in sources)
    # The present directory, since documents and configurations mention the name too.
    return shlex.join(["truename", "rename", finding.tools[0], new, "--apply", *(_HERE if below else sources)])


def _is_renamable(finding: Finding) -> bool:
    """Return whether a finding is about a single name in a Python source."""
    is_here = finding.location is not None and finding.location.file.endswith(PYTHON)
    name = finding.tools[0] if finding.tools else ""
    return is_here and finding.rule.code.startswith(_SPELLED) and name.isprintable() and 0 < len(name) <= _LONGEST


def _status(report: LintReport, taken: DeclaredSources, *, strict: bool) -> int:
    if any(strict or one.rule.severity is not Severity.NOTE for one in report.findings):
        return EXIT_FINDINGS
    return EXIT_UPSTREAM if taken.failed else 0
