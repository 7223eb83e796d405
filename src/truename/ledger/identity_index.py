"""Find recorded identities otherwise than by their keys: by integration, by server, without their versions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from truename.identity import ToolId
    from truename.ledger.rows import LedgerRows

__all__ = ["IdentityIndex", "MemoryIdentityIndex", "unversioned"]


class IdentityIndex(Protocol):
    """Finds identities, present and former, without reading the others."""

    def variants(self, texts: Collection[str]) -> Iterable[ToolId]:
        """Return the identities that are one of these texts (`unversioned`) and a version."""
        ...

    def servers_with(self, integration: str) -> Iterable[str]:
        """Return the servers that ever had an identity of this integration."""
        ...

    def last_bound(self, server: str, version: int | None, most: int, /) -> Iterable[tuple[str, ToolId]]:
        """Return the present identities of a server with the tools' names, at least ``most`` of them if it has so many.

        The one of the tool that was first seen last comes first. With ``version``, only those of this version of their
        integration.
        """
        ...


class MemoryIdentityIndex:
    """The index of identities that are all in memory."""

    def __init__(self, bindings: LedgerRows[ToolId]) -> None:
        self._bindings = bindings
        self._variants: defaultdict[str, list[ToolId]] = defaultdict(list)
        self._servers: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def add(self, id: ToolId, server: str) -> None:
        """Take in a new identity."""
        self._variants[unversioned(id)].append(id)
        self._servers[id.integration][server] = None

    def variants(self, texts: Collection[str]) -> list[ToolId]:
        """Return the identities that are one of these texts and a version."""
        return [id for text in texts for id in self._variants.get(text, ())]

    def servers_with(self, integration: str) -> tuple[str, ...]:
        """Return the servers that ever had an identity of this integration."""
        return tuple(self._servers.get(integration, ()))

    def last_bound(self, server: str, version: int | None, _most: int, /) -> Iterable[tuple[str, ToolId]]:
        """Return the present identities of a server with the tools' names, the last first."""
        rows = self._bindings.group(server).rows
        found = ((name, rows[name]) for name in reversed(tuple(rows)))
        return ((name, id) for name, id in found if version in {None, id.integration_version})


def unversioned(id: ToolId) -> str:
    """Return an id up to the version of its tool, without that.

    >>> from truename.identity import ToolId
    >>> unversioned(ToolId.parse("fs/list@2"))
    'fs@1/list@'
    """
    text = str(id)
    return text[: text.rindex("@") + 1]
