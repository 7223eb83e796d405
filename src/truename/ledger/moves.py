"""What an operator says of names, checked before it becomes an event: texts, days, and the tools that are meant."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from truename.dialects import Reason
from truename.errors import InvalidName, InvalidToolId, LedgerError
from truename.identity import MAX_FOREIGN, ToolId

if TYPE_CHECKING:
    from truename.ledger.space import Space

__all__ = ["as_recorded", "day_of", "tool_meant"]


def as_recorded(name: str) -> str:
    """Return the one form in which a name is kept: an id in any spelling as the id, any other text as it is.

    Raises `InvalidName` for what is empty, too long or can't be printed.
    """
    if not name.strip() or len(name) > MAX_FOREIGN or not name.isprintable():
        reason = Reason("text", f"it is empty, longer than {MAX_FOREIGN:,} characters, or can't be printed")
        raise InvalidName(name=name, dialect="a ledger", reasons=(reason,))
    try:
        return str(ToolId.parse(name))
    except InvalidToolId:
        return name


def day_of(until: str | date) -> str:
    """Return a day as it is kept, "" for none. Raises `LedgerError` (``invalid_day``).

    >>> from datetime import datetime
    >>> day_of(datetime(2027, 2, 1, 12, 30)), day_of("20270201")
    ('2027-02-01', '2027-02-01')
    """
    if not until:
        return ""
    try:
        found = until if isinstance(until, date) else date.fromisoformat(until)
    except ValueError as error:
        raise LedgerError(code="invalid_day", wanted=str(until)) from error
    return date(found.year, found.month, found.day).isoformat()


def tool_meant(new: str | ToolId, space: Space) -> ToolId | None:
    """Return the tool that a name on record, an id or its text means; None if it is neither."""
    if isinstance(new, ToolId):
        return new
    standing = space.standing(new)
    if standing is not None and standing.id is not None:
        return standing.id
    try:
        return ToolId.parse(new)
    except InvalidToolId:
        return None
