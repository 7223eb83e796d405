"""The metadata of declared tools that counts: the operator's word before the author's, and what can't be read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from truename.catalog import Origin, Tool
from truename.conventions import Finding, Severity
from truename.conventions.metadata import LIMITS
from truename.errors import excerpt
from truename.identity import ToolId
from truename.identity.foreign import component, dotted_component
from truename.lint.upkeep import UPKEEP
from truename.policy import Exposure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.conventions import Declaration

__all__ = ["unreadable", "with_metadata"]

_SPOKEN: Final = ("_meta", "annotations")
_NOWHERE: Final = "x"
_MOST: Final = 400


def with_metadata(declarations: Iterable[Declaration], entries: Mapping[str, Mapping[str, Any]]) -> list[Declaration]:
    """Return the declarations with what the operator's table says of them, as a gateway would read it.

    Which server will have the tools of a source is not known, so of such only entries for every server are about them:
    ``*/ios_*``, ``*``.
    """
    judge = _Judge(entries)
    return [
        replace(one, metadata=judge.exposure(one).metadata_of(_tool(one))) if entries else one for one in declarations
    ]


def unreadable(declarations: Iterable[Declaration], entries: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield a finding for each tool whose metadata can't be read; what the operator says of a field mends it."""
    judge = _Judge(entries)
    for one in declarations:
        faults = judge.exposure(one).faults(_tool(one)) if not one.definition.keys().isdisjoint(_SPOKEN) else {}
        if faults:
            yield _finding(one, faults)


class _Judge:
    """The operator's entries: all of them, and those that are about every server."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._all = Exposure(metadata=entries)
        everywhere = {glob: said for glob, said in entries.items() if not glob.partition("/")[0].strip("*@")}
        self._everywhere = Exposure(metadata=everywhere)

    def exposure(self, one: Declaration) -> Exposure:
        return self._all if one.server else self._everywhere


def _tool(one: Declaration) -> Tool:
    suite, name, _ = dotted_component(one.name)
    said = one.identity
    integration = said.integration or component(one.server or _NOWHERE).name
    id = ToolId(integration, said.version or 1, suite, name, said.version_of(one.name))
    return Tool(id, Origin(one.server, one.name, one.server), one.definition)


def _finding(one: Declaration, faults: Mapping[str, str]) -> Finding:
    is_hidden = not faults.keys().isdisjoint(LIMITS)
    fields: defaultdict[str, list[str]] = defaultdict(list)
    for field, problem in faults.items():
        fields[problem].append(field)
    told = "; ".join(f"{', '.join(several)}: {problem}" for problem, several in fields.items())
    rule = UPKEEP["unreadable_metadata"]
    return Finding(
        rule=rule if is_hidden else replace(rule, severity=Severity.WARNING),
        fact=f"{excerpt(one.name)} has metadata that can't be read{', so nobody is shown it' if is_hidden else ''} "
        f"({told if len(told) <= _MOST else f'{told[:_MOST]}...'}).",
        remedy="Mend its definition, or say it in [metadata] of the settings.",
        location=one.location,
        server=one.server,
        tools=(one.name,),
    )
