"""Say what is near to an id that is not there."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

from truename.errors import InvalidToolId, UnknownToolId
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["unknown_tool_id"]

_MOST_COMPARED: Final = 1_000
_SUGGESTED: Final = 3
_ALIKE: Final = 0.6


def unknown_tool_id(id: ToolId | str, known: Collection[ToolId]) -> UnknownToolId:
    """Return the error for an id that is not among those known, with the ids that are near to it.

    Of many ids only the first thousand are compared; the same id in another spelling is found among all.

    >>> unknown_tool_id("Salesforce@v1/get_leads", [ToolId.parse("salesforce@1/get_leads@1")]).suggestions
    ('salesforce@1/get_leads@1',)
    """
    text = str(id)
    try:
        meant = ToolId.parse(text)
    except InvalidToolId:
        meant = None
    if meant is not None and meant in known:
        return UnknownToolId(text=text, suggestions=(str(meant),))
    compared = [str(one) for one in islice(known, _MOST_COMPARED)]
    return UnknownToolId(text=text, suggestions=tuple(get_close_matches(text, compared, _SUGGESTED, _ALIKE)))
