"""The operator's word on tools: fields of their metadata by id or glob on ids, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.errors import excerpt
from truename.policy.gathering import Faults, fault
from truename.policy.globs import ById, fault_in
from truename.policy.said import FIELDS, Said, read_fields, strictest

if TYPE_CHECKING:
    from truename.catalog import Unfolded
    from truename.identity import ToolId

__all__ = ["Overrides", "read_metadata"]

_MOST: Final = 10_000
_REMEDY: Final = "Mend it; metadata that can't be read whole is not used."


def read_metadata(table: object, file: str = "metadata") -> Mapping[str, Mapping[str, Any]]:
    """Read the ``metadata`` table of a configuration: ``[metadata."phone/ios_*"]`` with fields of `Metadata`.

    What is returned can be read again, to the same. Raises `ConfigError` with the file and the key, or an
    `ExceptionGroup` of them, for a field that is not known, a value that is none, a glob that could fit no tool.

    >>> read_metadata({"phone/ios_*": {"platforms": ["IOS"]}})["phone/ios_*"]
    mappingproxy({'platforms': ('ios',)})
    >>> read_metadata({"phone/tap": {"is_for_lm": False}})
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: metadata: metadata.'phone/tap'.is_for_lm: it is no field of a tool's metadata. ...
    """
    if not isinstance(table, Mapping) or len(table) > _MOST:
        raise fault(file, "metadata", f"it is no table of at most {_MOST:,}", _REMEDY)
    faults = Faults(file, _REMEDY)
    read = {glob: found for glob, entry in table.items() if (found := _entry(glob, entry, faults)) is not None}
    faults.raise_any()
    return MappingProxyType(read)


class Overrides:
    """The operator's word on tools' metadata, by what it is about."""

    def __init__(self, table: Mapping[str, Mapping[str, Any]]) -> None:
        self._table = ById({glob: Said(values=values) for glob, values in table.items()})

    def __bool__(self) -> bool:
        return bool(self._table)

    def about(self, id: ToolId | Unfolded) -> Said:
        """Return what is said of a tool: an exact id goes before globs, of several the strictest counts."""
        exact, globbed = (strictest(said for _, said in entries) for entries in self._table.about(id))
        return exact.over(globbed)


def _entry(glob: object, entry: object, faults: Faults) -> Mapping[str, Any] | None:
    where = f"metadata.{excerpt(str(glob))}"
    if problem := fault_in(glob) if isinstance(glob, str) else "it is no text":
        faults.add(where, f"it fits no tool: {problem}")
    if not isinstance(entry, Mapping) or len(entry) > len(FIELDS) * 8:
        faults.add(where, "it is no table of fields")
        return None
    said = read_fields(entry)
    for name, problem in said.faults.items():
        close = [] if name in FIELDS else get_close_matches(name, FIELDS, 1)
        faults.add(f"{where}.{name}", problem, f"Did you mean {close[0]!r}?" if close else "")
    return MappingProxyType(dict(said.values))
