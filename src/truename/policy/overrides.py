"""The operator's word on tools: fields of their metadata by id or glob on ids, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.errors import ConfigError, excerpt
from truename.policy.globs import fault_in
from truename.policy.said import FIELDS, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["read_metadata"]

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
        raise ConfigError(file=file, key="metadata", problem=f"it is no table of at most {_MOST:,}", remedy=_REMEDY)
    faults: list[ConfigError] = []
    read = {glob: found for glob, entry in table.items() if (found := _entry(glob, entry, file, faults)) is not None}
    if len(faults) == 1:
        raise faults[0]
    if faults:
        message = f"{file} has {len(faults)} faults"
        raise ExceptionGroup(message, faults)
    return MappingProxyType(read)


def _entry(glob: object, entry: object, file: str, faults: list[ConfigError]) -> Mapping[str, Any] | None:
    where = f"metadata.{excerpt(str(glob))}"
    problem = fault_in(glob) if isinstance(glob, str) else "it is no text"
    if problem:
        faults.append(ConfigError(file=file, key=where, problem=f"it fits no tool: {problem}", remedy=_REMEDY))
    if not isinstance(entry, Mapping) or len(entry) > len(FIELDS) * 8:
        faults.append(ConfigError(file=file, key=where, problem="it is no table of fields", remedy=_REMEDY))
        return None
    said = read_fields(entry)
    faults += _told(said.faults, where, file)
    return MappingProxyType(dict(said.values))


def _told(faults: Mapping[str, str], where: str, file: str) -> Iterator[ConfigError]:
    for name, problem in faults.items():
        close = [] if name in FIELDS else get_close_matches(name, FIELDS, 1)
        remedy = f"Did you mean {close[0]!r}?" if close else _REMEDY
        yield ConfigError(file=file, key=f"{where}.{name}", problem=problem, remedy=remedy)
