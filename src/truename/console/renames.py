"""The renames by servers that wait for a decision, as the page of reviews shows them, and the decisions on them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from anyio import to_thread

from truename.console.refusals import RefusedError
from truename.console.text_changes import changed_lines, first_that_fit
from truename.errors import InvalidToolId, StoreError
from truename.identity import ToolId
from truename.ledger import open_ledger
from truename.trust.rename_decisions import RenameDecisions, about_rename, listed_until
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from truename.console.page import PageRequest
    from truename.console.text_changes import ChangedPart
    from truename.gateway import Gateway
    from truename.trust.renames import ArrivedTool

__all__ = ["ProposedRename", "decide_rename", "proposed_renames"]

Found = TypeVar("Found")
_MOST_SHOWN: Final = 20
_MOST_SUSPECTS: Final = 20
_GONE: Final = "Nobody has to decide on this tool any more, or it is not what the page showed. Reload."
_NOTHING: Final = "This form has no decision. Reload the page, and repeat."


@dataclass(frozen=True, kw_only=True)
class ProposedRename:
    """A new tool, and what it was: probably one tool, or one of several."""

    new: ArrivedTool
    suspects: tuple[str, ...]
    more: int
    lines: Sequence[ChangedPart]


def proposed_renames(gateway: Gateway) -> tuple[list[ProposedRename], int]:
    """Return the new tools on which somebody has to decide, proposals first, and their number. Waits for the state."""
    location = gateway.config.state_location()
    if not location.has("rename"):
        return [], 0
    with RenameStore(location) as book:
        found = [one for one in book.arrived.values() if one.is_open]
        found.sort(key=lambda one: (one.old is None, not one.is_certain, -one.score, one.number))
        made = (_proposed(gateway, book, one) for one in found[:_MOST_SHOWN])
        return first_that_fit(made, lambda one: one.lines), len(found)


def _proposed(gateway: Gateway, book: RenameStore, one: ArrivedTool) -> ProposedRename:
    suspects = [str(each.id) for each in book.suspects(one)]
    if one.old is not None:
        suspects = [str(one.old)]
    lines: Sequence[ChangedPart] = ()
    tool = gateway.registry.catalog.get(one.id)
    if one.old is not None and tool is not None:
        lines = changed_lines(_definition(gateway, one.old) or "", dict(tool.current))
    return ProposedRename(
        new=one,
        suspects=tuple(suspects[:_MOST_SUSPECTS]),
        more=max(len(suspects) - _MOST_SUSPECTS, 0),
        lines=lines,
    )


def _definition(gateway: Gateway, id: ToolId) -> object:
    try:
        pin = gateway.registry.vetting.book.pins().get(str(id))
    except StoreError:
        return None
    return None if pin is None else pin.content


async def decide_rename(asked: PageRequest) -> None:
    """Say that a new tool is the one that it probably was, or that it is none of those that left.

    Raises `RefusedError` for a tool on which somebody decided, and for another definition or proposal than was shown.
    """
    is_accepted = {"accept": True, "reject": False}.get(asked.field("answer"))
    if is_accepted is None:
        raise RefusedError(400, _NOTHING)
    gateway = asked.gateway
    if not gateway.config.state_location().has("rename"):
        raise RefusedError(409, _GONE)
    one = await _with_book(gateway, lambda book: _shown(book, asked))
    by = asked.session.principal.key
    until = listed_until(datetime.now(UTC).date(), gateway.config.settings.trust.renamed_for)
    if is_accepted and one.old is None:
        raise RefusedError(409, _GONE)

    def decide(book: RenameStore) -> ArrivedTool | None:
        with closing(open_ledger(gateway.config.state_location())) as ledger:
            decisions = RenameDecisions(book, ledger)
            if is_accepted and one.old is not None:
                return decisions.accept(one.id, one.old, by=by, until=until, shown=one)
            return decisions.reject(one.id, by=by, shown=one)

    record = {"what": f"rename_{'accepted' if is_accepted else 'rejected'}", **about_rename(one)}
    async with gateway.audit.deciding("name", {**record, "by": by, "via": "console"}):
        if await _with_book(gateway, decide) is None:
            raise RefusedError(409, _GONE)


def _shown(book: RenameStore, asked: PageRequest) -> ArrivedTool:
    """Return the new tool that the page showed, as it showed it."""
    try:
        one = book.arrived.get(ToolId.parse(asked.path["key"]))
    except InvalidToolId as error:
        raise RefusedError(409, _GONE) from error
    if one is None or not one.is_open:
        raise RefusedError(409, _GONE)
    shown = asked.field("digest"), asked.field("old")
    if shown != (one.digest, "" if one.old is None else str(one.old)):
        raise RefusedError(409, _GONE)
    return one


async def _with_book(gateway: Gateway, do: Callable[[RenameStore], Found]) -> Found:
    def done() -> Found:
        with RenameStore(gateway.config.state_location()) as book:
            return do(book)

    return await to_thread.run_sync(done)
