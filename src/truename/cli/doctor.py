"""`truename doctor`: what is wrong with the tools of the clients on this machine, or of what is named."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truename.cli.diagnosis import document
from truename.cli.failure import EXIT_FINDINGS, EXIT_UPSTREAM, UsageFault
from truename.cli.findings import show_report
from truename.cli.garbage import collecting_later
from truename.cli.looking import look
from truename.cli.options import JsonOutput
from truename.cli.rendering import print_json
from truename.cli.sarif import result_of, sarif_log, write_sarif
from truename.clients.doctor import RULES, DoctorReport
from truename.conventions import Severity

__all__ = ["doctor"]

_MORE = "`truename doctor --all` shows each case and its remedy."

Source = Annotated[
    str, Parameter(help="A dump of tools/list, a client's configuration, or a server's http(s) address.")
]
For = Annotated[
    tuple[str, ...],
    Parameter(name="--for", show_default=False, help="Only this client, framework or provider. May be repeated."),
]
Start = Annotated[bool, Parameter(show_default=False, help="Start the servers that are found, without asking.")]
Project = Annotated[
    Path | None, Parameter(show_default=False, help="The directory whose project files are looked at (default: here).")
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


def doctor(
    *sources: Source,
    clients: For = (),
    start: Start = False,
    project: Project = None,
    as_json: JsonOutput = False,
    sarif: Sarif = None,
    everything: Everything = False,
) -> int:
    """Report what clients would refuse, drop, cut, merge or misroute, and what to do about it. Nothing is changed.

    Without a SOURCE the clients of this machine are looked at. Servers are started only after asking, or with --start;
    those that a project's own file configures only if that file is named.
    """
    if as_json and sarif == "-":
        raise UsageFault(fact="--json and --sarif - both want stdout", advice="Give --sarif a file.")
    with collecting_later():
        looked = look(sources, clients, project, start=start, may_ask=not as_json and sarif != "-")
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
