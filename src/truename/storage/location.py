"""Name the place of the state: a database file or memory, and the files that earlier versions kept instead of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.storage.revision_file import Revision

__all__ = ["StateLocation"]


@dataclass(frozen=True)
class StateLocation:
    """A state database: its file, or None for memory.

    ``former`` names for each owner the file that an earlier version kept its state in; the owner imports it when it
    makes its tables. ``known`` is a revision that the database had according to the audit log.

    >>> StateLocation.of("gateway.db").path, StateLocation.of(None).path
    (PosixPath('gateway.db'), None)
    """

    path: Path | None = None
    former: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    known: Revision | None = None

    @property
    def exists(self) -> bool:
        """Whether the file, or the record of its revision, is there: a lost database is refused, not created again."""
        places = () if self.path is None else (self.path, self.path.with_name(f"{self.path.name}.revision"))
        return any(place.is_symlink() or place.exists() for place in places)

    def has(self, part: str) -> bool:
        """Return whether an owner may have state, in the database or in the file of an earlier version."""
        return self.exists or ((former := self.former.get(part)) is not None and former.exists())

    @classmethod
    def of(cls, where: StateLocation | Path | str | None) -> StateLocation:
        """Return a location for a path, for a location itself, or for None (memory). Raises `StoreError` for a URL."""
        if isinstance(where, StateLocation):
            return where
        if isinstance(where, str) and "://" in where:
            problem, remedy = "only a file can hold the state so far", "Give the path of a file."
            raise StoreError(file=where, key="", problem=problem, remedy=remedy, code="unusable")
        return cls(None if where is None else Path(where))
