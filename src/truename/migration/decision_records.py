"""Write the decision record (MADR) of a rename: reasons, alternatives, consequences."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from truename.migration.plan import RenamePlan
    from truename.migration.protocol_versions import ProtocolStatement

__all__ = ["FIELDS", "OldNamesDecision", "decision_record", "next_number", "record_file_name"]

FIELDS: Final = (
    "Status",
    "Date",
    "Context and Problem Statement",
    "Considered Options",
    "Decision Outcome",
    "Consequences",
    "More Information",
)
_NUMBERED: Final = re.compile(r"([0-9]{4})[-_].*\.(?:md|markdown|rst|txt|adoc)")
_TITLED: Final = 3
_LISTED: Final = 200
_KEPT: Final = "**Rename, and keep the old names listed until {until}.** Until then they reach the same tools."
_BROKEN: Final = (
    "**Rename in one step, a clean break.** No old name is an alias: a call by one fails with unknown_tool."
)
_FILES: Final = "**Rename in the files.** Running gateways are not changed: no ledger entry is made."


@dataclass(frozen=True, slots=True, kw_only=True)
class OldNamesDecision:
    """The decision about old names: listed ``until`` a day, a ``clean_break``, or neither; with its reason."""

    number: int
    day: date
    until: str = ""
    clean_break: bool = False
    protocol: ProtocolStatement | None = None
    reason: str = ""
    status: str = "accepted"


def next_number(names: Iterable[str]) -> int:
    """Return the next free number, given the file names in a directory of decision records."""
    return 1 + max((int(found[1]) for name in names if (found := _NUMBERED.fullmatch(name))), default=0)


def record_file_name(plan: RenamePlan, number: int) -> str:
    """Return the file name of the record."""
    olds = list(plan.renames)
    what = re.sub(r"[^a-z0-9]+", "-", olds[0].lower()).strip("-")[:60] if len(olds) == 1 else f"{len(olds)}-tools"
    return f"{number:04d}-rename-{what or 'a-tool'}.md"


def decision_record(plan: RenamePlan, decision: OldNamesDecision) -> str:
    """Return the record as Markdown, with all `FIELDS`."""
    pairs = [f"{_name(old)} to {_name(new)}" for old, new in plan.renames.items()]
    title = ", ".join(pairs) if len(pairs) <= _TITLED else f"{len(pairs)} tools"
    counted = "1 tool has" if len(plan.renames) == 1 else f"{len(plan.renames)} tools have"
    context = (
        decision.reason or f"{counted} to be renamed (state the reason here).",
        "",
        "The names are used in source code, fixtures, documentation, permissions and prompts, and by models.",
    )
    lines = [
        f"# {decision.number:04d}. Rename {title}",
        "",
        f"- Status: {decision.status}",
        f"- Date: {decision.day.isoformat()}",
        *_section("Context and Problem Statement", context),
        *_section("Considered Options", _options(decision)),
        *_section("Decision Outcome", _outcome(plan, decision)),
        *_section("Consequences", _consequences(plan, decision)),
        *_section("More Information", _more(plan)),
    ]
    return "\n".join(lines) + "\n"


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {heading}", "")
    yield from lines


def _name(name: str) -> str:
    return name if name.isprintable() else excerpt(name)


def _options(decision: OldNamesDecision) -> Iterator[str]:
    until = decision.until or "a set day"
    yield "- Keep the names, and translate them for each client that refuses them."
    yield f"- {_KEPT.format(until=until)}"
    yield f"- {_BROKEN}"
    if not (decision.until or decision.clean_break):
        yield f"- {_FILES}"


def _outcome(plan: RenamePlan, decision: OldNamesDecision) -> Iterator[str]:
    chosen = _KEPT.format(until=decision.until) if decision.until else _BROKEN if decision.clean_break else _FILES
    yield f"Chosen: {chosen}"
    if decision.protocol is not None:
        step = f"{decision.protocol.old} to {decision.protocol.new}"
        yield f"This is a breaking change of the tools: the protocol version goes from {step}."
    yield ""
    yield from ("| old name | new name |", "|---|---|")
    for old, new in list(plan.renames.items())[:_LISTED]:
        yield f"| `{_cell(old)}` | `{_cell(new)}` |"
    if len(plan.renames) > _LISTED:
        yield f"| and {len(plan.renames) - _LISTED} more | |"


def _cell(name: str) -> str:
    return _name(name).replace("|", "\\|")


def _consequences(plan: RenamePlan, decision: OldNamesDecision) -> Iterator[str]:
    yield "- Good: one name everywhere, in sources, fixtures, documentation and configurations."
    if decision.clean_break:
        yield "- Bad: older peers reject the new names, and newer peers the old ones: all must upgrade together."
    elif decision.until:
        yield f"- Neutral: lists are longer until {decision.until}, since they have both names."
    for name in plan.control_plane:
        yield f"- Bad: `{_name(name)}` performs the upgrade; older peers must be upgraded by its old name first."


def _more(plan: RenamePlan) -> Iterator[str]:
    yield "- Old names are never given to other tools."
    if len(plan.renames) == 1:
        names = shlex.join(map(_name, *plan.renames.items()))
        yield f"- `truename rename {names} --check PATH` finds remaining uses of the old name."
    else:
        yield "- `truename rename --map FILE --check PATH` finds remaining uses of old names."
