"""What servers list beside tools: prompts become a catalogue of their own, resources get their owners."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Final

from truename.errors import LedgerError
from truename.gateway.upstream.lists import NOTHING
from truename.gateway.views.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.catalog import Catalog
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.known import KnownServer
    from truename.gateway.upstream.lists import Lists
    from truename.gateway.views.naming import Namer
    from truename.ledger import Ledger

__all__ = ["Others"]

_KINDS: Final = ("prompts", "resources", "templates", "skills")


class Others:
    """The prompts and resources of all servers, as they were last listed."""

    def __init__(self, servers: Iterable[str], ledger: Ledger, news: RateLimitedLog, nothing: Catalog) -> None:
        self.prompts = nothing
        self.resources = Resources(dict.fromkeys(servers, NOTHING))
        self._ledger = ledger
        self._log = news
        self._changed: frozenset[tuple[str, str]] = frozenset()

    def copied(self) -> Others:
        """Return the same, which goes its own way from now on."""
        other: Others = copy(self)
        other._changed = frozenset()
        return other

    def follow(self, other: Others) -> None:
        """Have what another one took in."""
        self.prompts, self.resources = other.prompts, other.resources
        self._changed |= other._changed

    def changes(self) -> frozenset[tuple[str, str]]:
        """Return whose prompts or resources changed since this was last asked: ``(kind, server)``."""
        changed, self._changed = self._changed, frozenset()
        return changed

    def take(self, pool: Mapping[str, KnownServer], namer: Namer) -> None:
        """Take what is listed now: prompts are named as tools are, in a scope of their own (`ViewSpec.scope`)."""
        lists = {key: upstream.lists for key, upstream in pool.items()}
        before = self.resources.lists
        changed = {
            (kind, key)
            for key, now in lists.items()
            for kind in _KINDS
            if getattr(now, kind) != getattr(before.get(key, NOTHING), kind)
        }
        changed |= {(kind, key) for key in before.keys() - lists for kind in _KINDS if getattr(before[key], kind)}
        if not changed and list(lists) == list(before):
            return
        self._changed |= {("prompts" if kind == "prompts" else "resources", key) for kind, key in changed}
        listed = {key: one.prompts for key, one in lists.items() if one.prompts}
        with self._ledger.transaction():
            found = namer.admit(listed, pool)
            self.prompts = namer.bound(found)
        for notice in found.notices:
            self._log.tell(("prompt", notice.server, notice.code), f"a prompt is omitted: {notice.text}")
        # Last: what it has is what the next lists are compared with.
        self.resources = self._owned(lists)

    def _owned(self, lists: Mapping[str, Lists]) -> Resources:
        """Return the resources, and have the ledger know whose each URI is.

        Another gateway may do the same now: owners are read and recorded in one transaction, so both agree. What
        hinders the recording is told, and matters after a restart, and to other gateways, only.
        """
        if not self._ledger.readonly:
            try:
                with self._ledger.transaction():
                    found = Resources(lists, self.resources, self._ledger.owners)
                    self._ledger.own(found.shown_plain())
            except LedgerError as error:
                told = f"the servers of resources cannot be recorded, so a restart loses them: {error}"
                self._log.tell("owners", told)
            else:
                return found
        return Resources(lists, self.resources, self._ledger.owners)
