"""The operator's texts: they mention tools by their ids, and a server's own ones by its names, as clients know them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from truename.identity import lower_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.identity import ToolId

    Read = Callable[[str], str]

__all__ = ["by_text", "told"]

# What stands together in a path or an address is one token, and so no id; a sentence may end behind one.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.\-/:@#$%&+=\\^~]+")
_ENDS: Final = ".:"
_TEXTS: Final = ("title", "description")
_NOTES: Final = "annotations"


def by_text(shown: Mapping[ToolId, str]) -> Mapping[str, str]:
    """Return the names that are shown by the texts of the tools' ids, with and without what can be left out."""
    return {text: name for id, name in shown.items() for text in (str(id), id.short)}


def told(words: Mapping[str, Any], shown: Mapping[str, str], own: Read) -> dict[str, Any]:
    """Return what the operator says of a tool as a client reads it; ``own`` reads mentions of its server's tools.

    >>> told({"description": "Not for mail: see mail/send."}, {"mail/send": "mail_send"}, str)
    {'description': 'Not for mail: see mail_send.'}
    """
    read = {**words, **_texts(words, shown, own)}
    notes = words.get(_NOTES)
    return read if notes is None else {**read, _NOTES: {**notes, **_texts(notes, shown, own)}}


def _texts(words: Mapping[str, Any], shown: Mapping[str, str], own: Read) -> dict[str, str]:
    return {field: _read(words[field], shown, own) for field in _TEXTS if field in words}


def _read(text: str, shown: Mapping[str, str], own: Read) -> str:
    """Read the text between the ids by itself: a name that was put there is not one of the server's."""
    parts: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(_ENDS)
        if "/" in token and (name := shown.get(lower_ascii(token))) is not None:
            parts += own(text[end : match.start()]), name
            end = match.start() + len(token)
    return "".join(parts) + own(text[end:])
