"""Decide what a new tool was: the record of the decision first, then the redirect in the ledger, which completes it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from truename.errors import StoreError
from truename.ledger import Redirect

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date

    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.trust.renames import ArrivedTool, RenameStore

__all__ = ["RenameDecisions", "about_rename", "listed_until", "redirect_accepted"]


def listed_until(today: date, days: int) -> str:
    """Return the last day on which an old name is listed.

    >>> from datetime import date
    >>> listed_until(date(2027, 1, 2), 30)
    '2027-02-01'
    """
    with suppress(OverflowError):
        return (today + timedelta(days=days)).isoformat()
    return "9999-12-31"


def redirect_accepted(book: RenameStore, ledger: Ledger) -> bool:
    """Have the ledger redirect the old id of each accepted rename, and return whether there was anything to do.

    An id that an operator redirected elsewhere meanwhile stays as it is. Raises `LedgerError`.
    """
    if ledger.readonly or not _unwritten(book, ledger):
        return False
    with ledger.transaction():
        # A decision that was taken back since the record was read stays taken back; who does that waits for the ledger.
        try:
            book.refresh()
        except StoreError:
            return False
        wanted = _unwritten(book, ledger)
        # The shared scope comes last: once it is recorded, all of it is done.
        for scope in sorted({"", *ledger.scopes}, reverse=True) if wanted else ():
            ledger.scoped(scope).record(wanted)
    return bool(wanted)


def _unwritten(book: RenameStore, ledger: Ledger) -> list[Redirect]:
    return [
        Redirect(name=str(one.old), id=one.id, until=one.until)
        for one in book.accepted
        if one.old is not None and _is_unwritten(one.old, ledger)
    ]


def _is_unwritten(old: ToolId, ledger: Ledger) -> bool:
    standing = ledger.scoped("").withdrawn.get(str(old))
    # A redirect of an id to itself takes an earlier one back.
    return standing is None or (standing.status == "redirected" and standing.id == old)


def about_rename(one: ArrivedTool) -> dict[str, object]:
    """Return the fields of the audit record about a new tool of a server, and what it was or probably was."""
    return {
        "tool": str(one.id),
        "server": one.server,
        "upstream_name": one.name,
        "digest": one.digest,
        "old": None if one.old is None else str(one.old),
    }


@dataclass(frozen=True)
class RenameDecisions:
    """The decisions of a person about renames, on a record and a ledger. All methods raise `StoreError`, `LedgerError`.

    Nothing is recorded in the audit log: whoever decides records it, with `about_rename`.
    """

    book: RenameStore
    ledger: Ledger

    def accept(
        self, new: ToolId, old: ToolId, *, by: str, until: str, digest: str = "", shown: ArrivedTool | None = None
    ) -> ArrivedTool | None:
        """Say that a new tool is the old one; None if it cannot be said now, or the definition is another one.

        With ``shown``, also None if the record is another one than was looked at: somebody decided meanwhile.
        """
        found = self.book.accept(new, old, by=by, until=until, digest=digest, shown=shown)
        if found is not None:
            redirect_accepted(self.book, self.ledger)
        return found

    def reject(self, new: ToolId, *, by: str, digest: str = "", shown: ArrivedTool | None = None) -> ArrivedTool | None:
        """Say that a new tool is none of those that left; None as for `accept`, or if nobody has to say so any more."""
        return self.book.reject(new, by=by, digest=digest, shown=shown)

    def undo(self, new: ToolId) -> ArrivedTool | None:
        """Take a decision back, with its redirect; return what was decided, None if there was nothing.

        The record is opened before the redirect ends: gateways complete what is accepted. One that ends in between is
        completed by the next `undo`.
        """
        one = self.book.reopen(new)
        if one is None:
            return None
        olds = {one.old} if one.word == "accepted" else set()
        if one.is_reopening:
            olds = {each.id for each in self.book.suspects(one)}
        with self.ledger.transaction():
            for scope in sorted({"", *self.ledger.scopes}, reverse=True):
                ledger = self.ledger.scoped(scope)
                ledger.record([Redirect(name=str(old), id=old) for old in _leading(ledger, new, olds)])
        self.book.reopened(new)
        return one


def _leading(ledger: Ledger, new: ToolId, olds: Collection[ToolId | None]) -> list[ToolId]:
    """Return those of the old ids that are redirected to the new one."""
    found = []
    for old in olds:
        standing = None if old is None else ledger.withdrawn.get(str(old))
        if old is not None and standing is not None and (standing.status, standing.id) == ("redirected", new):
            found.append(old)
    return sorted(found)
