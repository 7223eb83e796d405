"""How findings word what they have in common: names in a row, and who declared a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.policy.declaration import Declaration

__all__ = ["listed", "owner_of"]

_MOST: Final = 4


def listed(words: Sequence[str], word: str = "and") -> str:
    """Return words in a row, the first few of many.

    >>> listed(["a"]), listed(["a", "b"], "or"), listed(["a", "b", "c", "d", "e", "f"])
    ('a', 'a or b', 'a, b, c, d and 2 more')
    """
    shown = [text if text.isprintable() else excerpt(text) for text in words[:_MOST]]
    if len(words) > _MOST:
        return f"{', '.join(shown)} and {len(words) - _MOST:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def owner_of(declaration: Declaration) -> str:
    """Return by whom a tool is declared, as far as that is known: team, server, place.

    >>> from truename.policy import Declaration, Metadata
    >>> owner_of(Declaration(name="tap", metadata=Metadata(owner="core"))), owner_of(Declaration(name="tap"))
    ('core', 'an unnamed source')
    """
    at = declaration.location
    place = f"{at.file}:{at.line}" if at and at.line else at.file if at else ""
    who = declaration.metadata.owner or declaration.server
    found = f"{who} ({place})" if who and place else who or place
    return (found if found.isprintable() else excerpt(found)) or "an unnamed source"
