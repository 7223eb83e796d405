"""The page of `docs/compatibility` about versions: what was watched, what changed, which rules hold for which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab import clients
from lab.verdicts import code
from truename import dialects
from truename.dialects import ClientVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lab.drift import Drifted, Watched
    from lab.results import Run
    from truename.dialects import Dialect

__all__ = ["drift_page"]

_MADE: Final = "<!-- made by `python -m lab page` from lab/drift; do not edit -->"
_MOST: Final = 12
_EXAMPLES: Final = ("get_x", "fs.list")
_INTRODUCTION: Final = (
    "Clients change how they write the names of tools. `python -m lab watch` installs the newest of each client that "
    "the [lab](../measurements/lab.md) can run, shows it servers with awkward names without Truename, and compares "
    "every tool with the rules of the [dialect](../glossary.md#dialect) table for that version. The records are data: "
    "`lab/drift/CLIENT.jsonl` has a line for each version and each set of rules that it was compared with."
)
_COLUMNS: Final = (
    "*Rules of* is the version with which these rules were seen last before the comparison; *differ* counts the tools "
    "that they predict wrongly. Words after a client's name are the configuration that was run."
)
_CORRECTED: Final = (
    " Each version with wrong predictions was compared again after the table was corrected: the table has a row of it "
    "with 0."
)
_RULES: Final = (
    "A rule holds for the versions that were run, and between two of them that agree. `truename resolve --for "
    "codex@0.50` uses the rules of the nearest older version that was run, and says so if that version was not run "
    "itself: [Versions of clients](../clients/versions.md)."
)


def drift_page(watched: Iterable[Watched], runs: Iterable[Run]) -> str:
    """Return the text of the page."""
    seen = sorted(watched, key=lambda one: (_title(one.client).lower(), one.client, _order(one)))
    parts = ["# Versions of clients", _MADE, _INTRODUCTION]
    parts += ["## Watched", _columns(seen), _watched(seen)] if seen else []
    parts += ["## What changed", *_changes([one for one in seen if not one.agrees])]
    parts += ["## Rules by version", _RULES, _by_version(), *_results(list(runs))]
    return "\n\n".join(parts) + "\n"


def _title(client: str) -> str:
    known = clients.clients()
    return known[client].title if client in known else client


def _order(one: Watched) -> tuple[ClientVersion, str]:
    return ClientVersion.parse(one.version), one.day


def _columns(seen: Sequence[Watched]) -> str:
    wrong, right = ({(one.client, one.version) for one in seen if one.agrees is agrees} for agrees in (False, True))
    return _COLUMNS + (_CORRECTED if wrong and wrong <= right else "")


def _watched(seen: Sequence[Watched]) -> str:
    lines = ["| client | version | day | rules of | tools compared | differ |", "|---|---|---|---|---:|---:|"]
    lines += (
        f"| {_title(one.client)} | {one.version} | {one.day} | {_rules(one)} | {one.tools:,} | {_differ(one)} |"
        for one in seen
    )
    return "\n".join(lines)


def _rules(one: Watched) -> str:
    return one.ran or "no run"


def _differ(one: Watched) -> str:
    failed = f" and {len(one.failures)} scenarios without any tool" if one.failures else ""
    return f"**{one.differ:,}**{failed}" if one.differ else f"0{failed}"


def _changes(changed: Sequence[Watched]) -> Iterator[str]:
    if not changed:
        yield "No version that was watched did something else than its rules say."
    for one in changed:
        yield f"### {_title(one.client)} {one.version}, beside the rules of {_rules(one)}"
        failures = [f"- {failure}" for failure in one.failures]
        yield "\n".join(failures + [_change(found) for found in one.differences[:_MOST]])
        if one.differ > _MOST:
            yield f"and {one.differ - _MOST:,} more in `lab/drift/{one.client}.jsonl`."


def _change(found: Drifted) -> str:
    expected, seen = (code("; ".join(side) or "not shown") for side in (found.expected, found.seen))
    return f"- {code(found.tool)} of {code(found.server)} ({found.scenario}): expected {expected}, seen {seen}"


def _by_version() -> str:
    shown = " | ".join(f"{code(name)} of `lab`" for name in _EXAMPLES)
    lines = [f"| client | rules | run with | {shown} | length |", "|---|---|---|" + "---|" * len(_EXAMPLES) + "---:|"]
    for row in dialects.table():
        several = dialects.versions(row.name)
        if len(several) > 1 or len(row.runs) > 1:
            lines += map(_rule, several)
    return "\n".join(lines)


def _rule(row: Dialect) -> str:
    runs = ", ".join(f"{run.version} ({run.date})" for run in row.runs)
    names = " | ".join(code(row.shown("lab", name) or "not shown") for name in _EXAMPLES)
    length = "any" if row.known_length is None else str(row.known_length)
    return f"| {row.title} | `{row.name}` | {runs} | {names} | {length} |"


def _results(runs: Sequence[Run]) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for run in sorted(runs, key=lambda one: (_title(one.client).lower(), ClientVersion.parse(one.version))):
        tools = sum(len(trial.tools) for trial in run.trials)
        told.setdefault(_title(run.client), []).append(f"{run.version} ({tools:,} tools)")
    if told:
        yield "The raw results of these runs are in `lab/results/versions`:"
        yield "\n".join(f"- {title}: {', '.join(versions)}" for title, versions in told.items())
