"""Compare the list of a running gateway with an export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.clients.exporters.export import Export, ExportedTool
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

    ``missing`` are exported tools that are not listed, ``other`` names that have another tool's description, ``extra``
    listed names that are not exported, each with the tool whose name without the export it is, ``twice`` names that
    are listed more than once.
    """

    matching: int
    missing: tuple[ExportedTool, ...] = ()
    other: tuple[ListedAsOther, ...] = ()
    extra: tuple[tuple[str, ExportedTool | None], ...] = ()
    twice: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether the gateway lists exactly the exported names, each once."""
        return not (self.missing or self.other or self.extra or self.twice)


def compare(export: Export, names: NameTable, listed: Sequence[object]) -> ListComparison:
    """Compare a gateway's answer to tools/list with an export; entries without a name are extra.

    The description tells which tool a name stands for, as far as it is the server's own text, unchanged, and of one
    tool only.
    """
    wanted = export.listed()
    plain = {one.plain: one for one in export.tools}
    texts = {one.id: _text(names.catalog[one.id].shown) for one in export.tools}
    owners: dict[str, list[ExportedTool]] = {}
    for one in export.tools:
        owners.setdefault(texts[one.id], []).append(one)
    found: dict[str, str] = {}
    twice: dict[str, None] = {}
    for name, text in _read(listed):
        if name in found:
            twice[name] = None
        found.setdefault(name, text)
    other = [
        ListedAsOther(tool=wanted[name], described=owners[text][0])
        for name, text in found.items()
        if name in wanted and text and text != texts[wanted[name].id] and len(owners.get(text, ())) == 1
    ]
    return ListComparison(
        matching=len(wanted.keys() & found.keys()) - len(other),
        missing=tuple(one for name, one in wanted.items() if name not in found),
        other=tuple(other),
        extra=tuple((name, plain.get(name)) for name in found if name not in wanted),
        twice=tuple(twice),
    )


def _read(listed: Sequence[object]) -> Iterator[tuple[str, str]]:
    for one in listed:
        name = one.get("name") if isinstance(one, dict) else None
        yield (name if isinstance(name, str) else "", _text(one) if isinstance(one, dict) else "")


def _text(definition: Mapping[str, object]) -> str:
    text = definition.get("description")
    return " ".join(text.split()) if isinstance(text, str) else ""
