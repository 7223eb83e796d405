"""Decide what a new tool was: the record of the decision first, then the redirect in the ledger, which completes it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from truename.ledger import Redirect

if TYPE_CHECKING:
    from datetime import date

    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.trust.renames import ArrivedTool, RenameStore

__all__ = ["RenameDecisions", "about_rename", "complete_decisions", "listed_until"]


def listed_until(today: date, days: int) -> str:
    """Return the last day on which an old name is listed.

    >>> from datetime import date
    >>> listed_until(date(2027, 1, 2), 30)
    '2027-02-01'
    """
    with suppress(OverflowError):
        return (today + timedelta(days=days)).isoformat()
    return "9999-12-31"


def complete_decisions(book: RenameStore, ledger: Ledger) -> bool:
    """Have the ledger follow the record of decisions, and return whether there was anything to do.

    The old id of each accepted rename gets its redirect; one that an operator redirected elsewhere stays as it is. A
    tool whose decision was taken back loses the redirects to it. Raises `LedgerError` and `StoreError`.
    """
    if ledger.readonly or not (book.reopening or _unwritten(book, ledger)):
        return False
    with ledger.transaction():
        # Since the record was read, a decision may have been taken back or made again.
        book.refresh()
        # The shared scope comes last: once it is recorded, all of it is done.
        scopes = [ledger.scoped(scope) for scope in sorted({"", *ledger.scopes}, reverse=True)]
        reopening = book.reopening
        for scope in scopes:
            scope.record([end for one in reopening for end in _ends(scope, one, book)])
        wanted = _unwritten(book, ledger)
        for scope in scopes if wanted else ():
            scope.record(wanted)
    for one in reopening:
        book.reopened(one.id)
    return bool(wanted or reopening)


def _unwritten(book: RenameStore, ledger: Ledger) -> list[Redirect]:
    return [
        Redirect(name=str(one.old), id=one.id, until=one.until)
        for one in book.accepted
        if one.old is not None and _is_unwritten(one.old, ledger)
    ]


def _ends(ledger: Ledger, one: ArrivedTool, book: RenameStore) -> list[Redirect]:
    """Return what ends the redirects from tools that a new one may be to it: redirects of their ids to themselves."""
    standings = {id: ledger.withdrawn.get(str(id)) for id in sorted({each.id for each in book.suspects(one)})}
    return [
        Redirect(name=str(old), id=old)
        for old, standing in standings.items()
        if standing is not None and (standing.status, standing.id) == ("redirected", one.id)
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
        shown = self._completed(new, shown)
        found = self.book.accept(new, old, by=by, until=until, digest=digest, shown=shown)
        if found is not None:
            complete_decisions(self.book, self.ledger)
        return found

    def reject(self, new: ToolId, *, by: str, digest: str = "", shown: ArrivedTool | None = None) -> ArrivedTool | None:
        """Say that a new tool is none of those that left; None as for `accept`, or if nobody has to say so any more."""
        return self.book.reject(new, by=by, digest=digest, shown=self._completed(new, shown))

    def _completed(self, new: ToolId, shown: ArrivedTool | None) -> ArrivedTool | None:
        """Complete an earlier `undo` of this tool that was interrupted; return what was looked at, as it is then."""
        one = self.book.arrived.get(new)
        if one is None or not one.is_reopening:
            return shown
        complete_decisions(self.book, self.ledger)
        return replace(shown, decided="") if shown == one else shown

    def undo(self, new: ToolId) -> ArrivedTool | None:
        """Take a decision back, with its redirect; return what was decided, None if there was nothing.

        The record is opened before the redirect ends. If the process ends in between, a gateway or the next decision
        ends the redirect (`complete_decisions`).
        """
        one = self.book.reopen(new)
        if one is not None:
            complete_decisions(self.book, self.ledger)
        return one
