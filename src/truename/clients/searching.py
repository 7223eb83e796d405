"""Where a client may be given an address at which tools are searched, and where it takes fewer tools than it would get.

A client with lists hides the tools that it denies; behind a search the model sees `call_tool` alone, which runs any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.clients.kept import matches
from truename.clients.plan import Note
from truename.editing import ABSENT, reached
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from truename.clients.choosing import Choice
    from truename.clients.find import Found, Sighting

__all__ = ["LIMITING", "crowded", "lists_about", "restricted", "searched_beside_lists"]

# A call through `call_tool` goes around these: a permission that denies or asks, a list of the tools that are offered
# or left out, a hook.
LIMITING: Final = frozenset({"deny", "ask", "only", "without", "hook"})
_MOST: Final = 3


def restricted(found: Found, sighting: Sighting) -> bool:
    """Tell whether an entry says which tools it offers, if only that it offers none."""
    former = None if found.document is None else reached(found.document.value, sighting.where)
    return any(reached(former, kind.path) is not ABSENT for kind in found.file.entry if kind.effect == "only")


def lists_about(mine: Sequence[Found], choice: Choice) -> Iterator[tuple[str, Path]]:
    """Yield what of a client's lists limits its servers at the gateway, and in which file."""
    servers = [*(one.sighting for one in choice.taken), *choice.already]
    keys = dict.fromkeys(one.server.key for one in servers)
    for found in mine:
        for kept in found.kept:
            if kept.effect in LIMITING and any(matches(kept, key, None) for key in keys):
                yield kept.text, kept.path
        for one in found.servers:
            if one in servers and restricted(found, one):
                yield f"tools of {one.server.key}", one.path


def searched_beside_lists(client: str, lists: Iterable[tuple[str, Path]], *, is_asked: bool) -> ConfigError:
    """Return why a client with lists of tools can't be given an address that searches."""
    texts: dict[str, Path] = dict(lists)
    told = ", ".join(map(excerpt, list(texts)[:_MOST]))
    more = f" and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    why = "with --search" if is_asked else "as tool_search is set"
    instead = (
        "Connect without --search" if is_asked else "Set tool_search to off, and connect other clients with --search"
    )
    return ConfigError(
        code="searched_beside_lists",
        file=str(next(iter(texts.values()))),
        key="",
        problem=f"it limits the tools of {client} ({told}{more}), and {why} the model could call each of them",
        remedy=f"{instead}. To have the gateway say what these lists say: truename policy from-client {client}",
    )


def crowded(dialect: str, number: int, *, has_lists: bool) -> Iterator[Note]:
    """Yield that a client gets more tools than it is known to take."""
    rules = dialects.get(dialect)
    if rules.max_tools is None or number <= rules.max_tools:
        return
    fact = f"{rules.title} takes {rules.max_tools:,} tools, and these are {number:,}"
    advice = "Connect with --search: few tools are listed, and the others searched."
    if has_lists:
        advice = "Switch off servers that it does not need, or show it fewer tools with a profile."
    yield Note(kind="crowded", subject=rules.name, fact=fact, advice=advice)
