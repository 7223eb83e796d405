"""`truename lint`: what is wrong with the names and texts of tools, before anybody calls them."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from truename import dialects
from truename.cli.addresses import is_address
from truename.cli.annotations import print_annotations
from truename.cli.declaring import Taken, take
from truename.cli.failure import EXIT_FINDINGS, EXIT_UPSTREAM, UsageFault
from truename.cli.garbage import collecting_later
from truename.cli.linted import document, show_linted
from truename.cli.mending import accept, baseline_for, mend, show_mended
from truename.cli.options import JsonOutput
from truename.cli.rendering import print_json
from truename.cli.rulebook import rules_asked
from truename.cli.sarif import Result, sarif_log, write_sarif
from truename.conventions import Convention, Finding, Severity
from truename.lint import RULES, LintConfiguration, LintReport, configured_at, weigh
from truename.lint.source_files import PYTHON, from_here

__all__ = ["lint"]

_HERE = (".",)
# Legality and spelling: what is wrong with a name by itself.
_SPELLED = ("TN10", "TN12")
_LONGEST = 128
# What stands where the rules propose no other name, or one that is taken.
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
        help="A Python file, a directory of such, a dump of tools/list, a configuration, or a server's http(s) address."
    ),
]
For = Annotated[
    tuple[str, ...],
    Parameter(name="--for", show_default=False, help="A client that has to accept every name, too. May be repeated."),
]
Preset = Annotated[
    str | None,
    Parameter(name="--preset", help="The convention to lint by: trailblaze, provider-safe, canonical or mcp."),
]
Team = Annotated[str | None, Parameter(name="--team", help="The team whose tools these are.")]
OnlyRule = Annotated[
    tuple[str, ...],
    Parameter(name="--rule", show_default=False, help="Only this rule, by code or name. May be repeated."),
]
Exclude = Annotated[
    tuple[str, ...],
    Parameter(name="--exclude", show_default=False, help="Leave out what fits this glob. May be repeated."),
]
Beside = Annotated[
    tuple[str, ...],
    Parameter(
        name="--beside",
        show_default=False,
        help="A dump or source of tools beside which these will stand: nothing is said of them. May be repeated.",
    ),
]
BaselineFile = Annotated[
    str | None, Parameter(name="--baseline", help="The baseline; else as configured, or truename-baseline.jsonl.")
]
NoBaseline = Annotated[bool, Parameter(name="--no-baseline", show_default=False, help="Use no baseline.")]
WriteBaseline = Annotated[
    bool,
    Parameter(name="--write-baseline", show_default=False, help="Accept all that is found now, into the baseline."),
]
Mend = Annotated[
    bool,
    Parameter(name="--fix", show_default=False, help="Remove comments and entries that no longer do anything."),
]
Diff = Annotated[
    bool, Parameter(name="--diff", show_default=False, help="Show what --fix would change, and change nothing.")
]
Strict = Annotated[bool, Parameter(name="--strict", show_default=False, help="Notes count, too.")]
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
    fix: Mend = False,
    diff: Diff = False,
    strict: Strict = False,
    as_json: JsonOutput = False,
    sarif: Sarif = None,
    github: Github = False,
    everything: Everything = False,
) -> int:
    """Check the names and texts of tools against a convention, the clients' limits, and each other.

    Python sources are read, never imported. Without a SOURCE those that are configured are linted, else this directory.
    """
    if sum((as_json, github, sarif == "-")) > 1:
        raise UsageFault(fact="--json, --github and --sarif - all want stdout", advice="Give --sarif a file.")
    if write_baseline and no_baseline:
        raise UsageFault(fact="--write-baseline adds to the baseline", advice="Leave out --no-baseline.")
    codes = rules_asked(rule)
    configured = _configured(clients, preset, team)
    held = None if no_baseline else baseline_for(configured, baseline, must_exist=not write_baseline)
    named = sources or _sources(configured)
    with collecting_later():
        file = configured.settings_file
        named_by = None if sources or file is None else from_here(file)
        taken = take(named, (*configured.settings.exclude, *exclude), beside, named_by=named_by)
        report = weigh(
            taken.declared, configured, peers=taken.peers, baseline=held, rules=codes, is_whole=taken.is_whole
        )
    if write_baseline:
        return accept(report, configured, baseline, held, as_json=as_json)
    wanted = mend(report, held, write=fix and not diff) if fix or diff else ()
    fixes = () if diff else wanted
    if fixes:
        report = report.without_mended()
    if sarif is not None:
        write_sarif(sarif_log(_results(report), RULES.values(), Path.cwd(), more=_MORE), sarif)
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
            show_mended(wanted)
    return _status(report, taken, strict=strict)


def _configured(clients: tuple[str, ...], preset: str | None, team: str | None) -> LintConfiguration:
    found = configured_at(Path.cwd())
    convention = found.convention if preset is None else Convention.of(preset)
    more = tuple(dialects.get(name).name for name in clients)
    if more:
        convention = replace(convention, clients=tuple(dict.fromkeys((*convention.clients, *more))))
    if team is not None:
        convention = replace(convention, team=team)
    return replace(found, convention=convention)


def _sources(configured: LintConfiguration) -> tuple[str, ...]:
    named = configured.settings.sources
    return tuple(one if is_address(one) else str(from_here(configured.base / one)) for one in named) or _HERE


def _renaming(report: LintReport, taken: Taken, sources: tuple[str, ...]) -> str:
    """Return the command that changes the first of the names that are wrong by themselves."""
    finding = next((one for one in report.findings if _is_renamable(one)), None)
    if finding is None:
        return ""
    held = {one.name for one in taken.declared.declarations}
    new = finding.suggested if finding.suggested and finding.suggested not in held else _ANY
    below = not any("://" in one or one.startswith(("/", "..", "~")) for one in sources)
    # Documents and configurations beside the sources have the name too.
    return shlex.join(["truename", "rename", finding.tools[0], new, "--apply", *(_HERE if below else sources)])


def _is_renamable(finding: Finding) -> bool:
    """Tell whether a finding is about a name by itself, in a source that can be changed."""
    is_here = finding.location is not None and finding.location.file.endswith(PYTHON)
    name = finding.tools[0] if finding.tools else ""
    return is_here and finding.rule.code.startswith(_SPELLED) and name.isprintable() and 0 < len(name) <= _LONGEST


def _results(report: LintReport) -> list[Result]:
    return [
        Result(
            finding=one.finding,
            fingerprint=one.fingerprint,
            suppressed=_KINDS.get(one.hidden, ""),
            justification=one.reason,
        )
        for one in (*report.shown, *report.hidden)
    ]


def _status(report: LintReport, taken: Taken, *, strict: bool) -> int:
    if any(strict or one.rule.severity is not Severity.NOTE for one in report.findings):
        return EXIT_FINDINGS
    return EXIT_UPSTREAM if taken.failed else 0
