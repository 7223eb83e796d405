"""`truename explain`: show what a rule checks, why, an example, and what to write instead."""

from typing import Annotated

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._options import JsonOutput
from truename.cli._rendering import Cell, print_json, print_table, show, show_hanging, styled
from truename.cli._rules import RULEBOOK, found_by, rule_asked
from truename.conventions import Rule, Severity

__all__ = ["explain"]

_SCHEMA = "truename.explain/1"
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
Wanted = Annotated[
    str | None, Parameter(completer=_completion.rules, name="RULE", help="The code of a rule (TN104), or its name.")
]


def explain(rule: Wanted = None, /, *, as_json: JsonOutput = False) -> int:
    """Show the page of a rule; without one, all rules."""
    if rule is None:
        _show_all(as_json=as_json)
        return 0
    found = rule_asked(rule)
    if as_json:
        print_json({"schema": _SCHEMA, "rule": _plain(found)})
    else:
        severity = styled(found.severity.value, _STYLES[found.severity])
        show(styled(f"{found.code} {found.name}", "bold"), "  ", severity)
        show("")
        show(found.what)
        show("")
        parts = {"why": found.why, "example": found.example, "instead": found.instead, "found by": _finder(found)}
        show_hanging((styled(heading, "dim"), styled(text)) for heading, text in parts.items() if text)
    return 0


def _show_all(*, as_json: bool) -> None:
    if as_json:
        print_json({"schema": _SCHEMA, "rules": [_plain(one) for one in RULEBOOK.values()]})
        return
    rows: list[list[Cell]] = [
        [styled(one.code, "bold"), styled(one.severity.value, _STYLES[one.severity]), f"{one.name}: {one.what}"]
        for one in RULEBOOK.values()
    ]
    print_table(["rule", "severity", "finding"], rows)
    show("")
    show("`truename explain TN104` shows the details of a rule.")


def _finder(rule: Rule) -> str:
    return found_by(rule).rstrip(",")


def _plain(rule: Rule) -> dict[str, object]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "what": rule.what,
        "why": rule.why,
        "example": rule.example,
        "instead": rule.instead,
        "found_by": _finder(rule).strip("`"),
    }
