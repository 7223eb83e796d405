"""Keys and items of a JSON text, counted before it is parsed: a parser makes an object of each, and holds the loop."""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import checkpoint

__all__ = ["SLICE", "EntryCounter", "has_more_entries", "too_many_entries"]

SLICE: Final = 65_536
"""Bytes that are counted before other tasks have their turn."""

_BLANKS: Final = b" \t\r\n"
# A text stands for one item; whichever it is does not count.
_TEXT: Final = b"0"


class EntryCounter:
    r"""Counts the members of objects and the items of lists in pieces of a JSON text, in time linear in its bytes.

    What is no JSON has some count too; a parser refuses it afterwards.

    >>> counter = EntryCounter()
    >>> counter.feed(b'{"a, [b": [1, "\\", ["'), counter.feed(b', []], "c": {}}')
    (3, 5)
    """

    def __init__(self) -> None:
        self._count = 0
        self._in_text = False
        self._rest = b""
        self._open = b""

    def feed(self, piece: bytes) -> int:
        """Take the next piece, and return how many there were until now."""
        piece = self._rest + piece
        # A backslash at the end belongs to what comes.
        self._rest = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece.removesuffix(self._rest) if self._rest else piece
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = parts[1::2] if self._in_text else parts[::2]
        begins_in_text = self._in_text
        self._in_text ^= len(parts) % 2 == 0
        plain = self._open + (_TEXT if begins_in_text else b"") + _TEXT.join(outside)
        plain += _TEXT if self._in_text else b""
        plain = plain.translate(None, _BLANKS)
        # Whether an object or a list is empty is seen in the next piece.
        self._open = plain[-1:] if plain[-1:] in {b"[", b"{"} else b""
        plain = plain.removesuffix(self._open) if self._open else plain
        opened = plain.count(b"[") + plain.count(b"{")
        self._count += plain.count(b",") + opened - plain.count(b"[]") - plain.count(b"{}")
        return self._count


async def has_more_entries(text: bytes, most: int) -> bool:
    """Tell whether a JSON text has more keys and items than this; of a long one others have their turn between slices.

    Nearly all have fewer commas and brackets than that in all, and are not looked at any further.
    """
    if text.count(b",") + text.count(b"[") + text.count(b"{") <= most:
        return False
    counter = EntryCounter()
    for start in range(0, len(text), SLICE):
        if counter.feed(text[start : start + SLICE]) > most:
            return True
        await checkpoint()
    return False


def too_many_entries(most: int) -> str:
    """Return what is answered to a message that has more than the setting allows."""
    return (
        f"The message has more than the {most:,} keys and items of max_entries; nothing was run. Send less at a time."
    )
