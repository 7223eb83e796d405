"""Compare the list of a running gateway with an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.catalog import Tool
    from truename.clients.exporters.export import Export, ExportedTool
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["ListComparison", "compare"]


@dataclass(frozen=True, kw_only=True)
class ListedAsOther:
    """A listed name that has the description of another tool than the exported one."""

    tool: ExportedTool
    described: ExportedTool


@dataclass(frozen=True, kw_only=True)
class ListComparison:
    """The differences between an export and a gateway's list.

    ``missing`` are exported tools that are not listed, ``other`` names that are described as another tool, ``unknown``
    names with neither the description nor the parameters of their tool, ``extra`` listed names that are not exported,
    each with the tool whose name without the export it is, ``twice`` names that are listed more than once.
    """

    matching: int
    missing: tuple[ExportedTool, ...] = ()
    other: tuple[ListedAsOther, ...] = ()
    unknown: tuple[ExportedTool, ...] = ()
    extra: tuple[tuple[str, ExportedTool | None], ...] = ()
    twice: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the gateway lists exactly the exported names, each once, and each as its tool."""
        return not (self.missing or self.other or self.unknown or self.extra or self.twice)


@dataclass(frozen=True, kw_only=True)
class _Described:
    """What tells tools apart: the text of a description, and the names of the parameters, if there is a schema."""

    text: str
    parameters: frozenset[str] | None


def compare(export: Export, names: NameTable, listed: Sequence[object]) -> ListComparison:
    """Compare a gateway's answer to tools/list with an export; entries without a name are extra.

    A gateway may change descriptions, so one tells which tool a name stands for only if it is one tool's own, or if the
    parameters are those of one of the tools that share it.
    """
    wanted = export.listed()
    plain = {one.plain: one for one in export.tools}
    own = {one.id: _forms(names.catalog[one.id]) for one in export.tools}
    owners: dict[str, list[ExportedTool]] = {}
    for one in export.tools:
        for text in {form.text for form in own[one.id]} - {""}:
            owners.setdefault(text, []).append(one)
    found: dict[str, _Described] = {}
    twice: dict[str, None] = {}
    for name, described in _read(listed):
        if name in found:
            twice[name] = None
        found.setdefault(name, described)
    other: list[ListedAsOther] = []
    unknown: list[ExportedTool] = []
    for name, described in found.items():
        if name not in wanted:
            continue
        tool = wanted[name]
        whose = _owner(tool, described, owners.get(described.text, ()), own)
        if whose is not None:
            other.append(ListedAsOther(tool=tool, described=whose))
        elif not _may_be(own[tool.id], described):
            unknown.append(tool)
    return ListComparison(
        matching=len(wanted.keys() & found.keys()) - len(other) - len(unknown),
        missing=tuple(one for name, one in wanted.items() if name not in found),
        other=tuple(other),
        unknown=tuple(unknown),
        extra=tuple((name, plain.get(name)) for name in found if name not in wanted),
        twice=tuple(twice),
    )


def _owner(
    tool: ExportedTool,
    described: _Described,
    owners: Sequence[ExportedTool],
    own: Mapping[ToolId, Sequence[_Described]],
) -> ExportedTool | None:
    """Return the other tool that a description is of; None if it is this tool's, nobody's, or several tools'."""
    if tool not in owners:
        return owners[0] if len(owners) == 1 else None
    if described.parameters is None or any(described == form for form in own[tool.id]):
        return None
    fitting = [one for one in owners if any(described == form for form in own[one.id])]
    return fitting[0] if len(fitting) == 1 else None


def _may_be(own: Sequence[_Described], described: _Described) -> bool:
    if not own[0].text or own[0].parameters is None or described.parameters is None:
        return True
    return any(described.text == form.text or described.parameters == form.parameters for form in own)


def _forms(tool: Tool) -> tuple[_Described, ...]:
    """Return a tool as it is shown here, and as its server describes it: a gateway has the latter."""
    return _described(tool.shown), _described(tool.definition)


def _read(listed: Sequence[object]) -> Iterator[tuple[str, _Described]]:
    for one in listed:
        definition = one if isinstance(one, dict) else {}
        name = definition.get("name")
        yield (name if isinstance(name, str) else "", _described(definition))


def _described(definition: Mapping[str, object]) -> _Described:
    text, schema = definition.get("description"), definition.get("inputSchema")
    parameters = None
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        parameters = frozenset(map(str, properties)) if isinstance(properties, Mapping) else None
    return _Described(text=" ".join(text.split()) if isinstance(text, str) else "", parameters=parameters)
