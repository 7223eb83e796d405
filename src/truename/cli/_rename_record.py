"""Tell what servers renamed, certainly or perhaps: why a tool is denied, where one went, and the command to decide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.cli._rendering import show, styled
from truename.errors import InvalidToolId, UnknownTool, excerpt
from truename.identity import ToolId
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.storage import StateLocation
    from truename.trust.renames import ArrivedTool, DepartedTool

__all__ = ["RenameRecord", "show_renames"]

_MOST_IDS: Final = 3
_MOST_SENTENCES: Final = 20


@dataclass(frozen=True)
class RenameRecord:
    """What is on record of the renames that servers made; empty without a state (None).

    All methods raise `StoreError` if the record cannot be read.
    """

    location: StateLocation | None = None

    @cached_property
    def book(self) -> RenameStore:
        """The record as it was read once; its file is closed."""
        where = self.location if self.location is not None and self.location.has("rename") else None
        with RenameStore(where, readonly=where is not None) as book:
            return book

    def departed(self, error: UnknownTool) -> DepartedTool | None:
        """Return the tool that left its server's list and that an unknown name or id meant; None if it means none."""
        id = error.id if isinstance(error.id, ToolId) else _parsed(error.text)
        times = (one for several in self.book.departed.values() for one in several if one.id == id)
        return max(times, key=lambda one: one.began, default=None)

    def successors(self, old: DepartedTool) -> list[ArrivedTool]:
        """Return the new tools that a former one may be and on which nobody decided; the proposed one comes first."""
        new = [one for one in self.book.arrived.values() if one.is_open and one.may_be(old)]
        return sorted(new, key=lambda one: (one.old != old.id, one.number, one.id))

    def sentence(self, id: ToolId) -> str:
        """Return a sentence on what a tool was, certainly or perhaps, and the command to decide; "" if on nothing."""
        new = self.book.arrived.get(id)
        others = [] if new is None else sorted({one.id for one in self.book.suspects(new)})
        if new is None or (not new.is_open and new.word != "accepted"):
            return ""
        if new.word == "accepted":
            return _accepted(new, others)
        until = f"Until you decide, it is denied what {_listed(others)} {'is' if len(others) == 1 else 'are'} denied"
        reject = f"else `truename renames reject {id}`"
        if new.old is None:
            how = f"`truename renames accept {id} --was TOOL` if it is one of them, {reject}"
            return f"{id} came after tools left its server, and may be one of them. {until}: {how}."
        how = f"`truename renames accept {id}` if it is {new.old}, {reject}"
        return f"{id} was {_sure(new)} {new.old}, which its server renamed. {until}: {how}."

    def sentence_departed(self, old: DepartedTool) -> str:
        """Return a sentence on where a tool went that left its server's list, and the command to decide."""
        gone = f"{old.id} left the list of server {excerpt(old.server)} on {old.at[:10]}"
        new = self.successors(old)
        if not new:
            return f"{gone}, and no new tool may be it."
        first = new[0].id
        if new[0].old == old.id:
            how = f"`truename renames accept {first}` if that is right, else `truename renames reject {first}`"
            return f"{gone}. It was {_sure(new[0])} renamed to {first}: {how}."
        how = f"`truename renames accept {'TOOL' if len(new) > 1 else first} --was {old.id}` if it is"
        return f"{gone}. It may be {_listed([one.id for one in new], 'or')} now: {how}."

    def plain(self, id: ToolId) -> dict[str, object]:
        """Return what a tool was, certainly or perhaps, as JSON; empty if nothing is on record."""
        new = self.book.arrived.get(id)
        if new is None:
            return {}
        suspects = sorted({str(one.id) for one in self.book.suspects(new)})
        old = None if new.old is None else str(new.old)
        return {"renamed": {"state": new.word, "old": old, "certain": new.is_certain, "may_be": suspects}}

    def plain_departed(self, old: DepartedTool) -> dict[str, object]:
        """Return where a tool went that left its server's list, as JSON."""
        became = [{"id": str(one.id), "proposed": one.old == old.id} for one in self.successors(old)]
        return {"id": str(old.id), "server": old.server, "since": old.at, "may_be": became}


def show_renames(record: RenameRecord, ids: Iterable[ToolId]) -> None:
    """Print a sentence for each of these tools that a server renamed, certainly or perhaps."""
    told = [text for id in ids if (text := record.sentence(id))]
    for text in told[:_MOST_SENTENCES]:
        show(styled("renamed: ", "yellow"), text)
    if len(told) > _MOST_SENTENCES:
        show(f"... and {len(told) - _MOST_SENTENCES:,} more: `truename renames list` shows all.")


def _accepted(new: ArrivedTool, others: Sequence[ToolId]) -> str:
    by = f"by {excerpt(new.by)[1:-1]}" if new.by else "by trust.auto_accept"
    text = f"{new.id} is the former {new.old}, accepted {by}: `truename renames undo {new.id}` takes that back."
    if not others:
        return text
    return f"{text} It may also be {_listed(others, 'or')}: `truename renames accept {new.id}` says that it is not."


def _sure(new: ArrivedTool) -> str:
    return "certainly" if new.is_certain else "probably"


def _listed(ids: Sequence[ToolId], word: str = "and") -> str:
    if len(ids) > _MOST_IDS:
        return f"{', '.join(map(str, ids[:_MOST_IDS]))} {word} {len(ids) - _MOST_IDS:,} more"
    *first, last = map(str, ids)
    return f"{', '.join(first)} {word} {last}" if first else last


def _parsed(text: str) -> ToolId | None:
    try:
        return ToolId.parse(text)
    except InvalidToolId:
        return None
