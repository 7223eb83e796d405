"""Near names for an error: what finds them is built beside the loop, when somebody first calls a name of no tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.gateway.protocol.digesting import off_loop
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from truename.naming import NameTable

__all__ = ["near_names_ready"]

# To build the index for so few takes some milliseconds.
_FEW: Final = 500


async def near_names_ready(name: str, names: NameTable) -> None:
    """Wait until near names of this one are found at once; nearly all names are a tool's, and need none."""
    if name not in names.exact and len(names) > _FEW and not names.suggester.is_ready:
        await off_loop(NameSuggester.prepare, names.suggester)
