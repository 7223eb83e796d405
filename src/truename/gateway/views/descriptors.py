"""The descriptors of tools/list: the servers' definitions under their wire names, and for a time under old ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.protocol.own_meta import OWN_PREFIX, without_own_meta
from truename.gateway.protocol.pages import WrittenItem
from truename.gateway.protocol.schemas import readable
from truename.gateway.views.app_bridge import with_ui_uris
from truename.gateway.views.resources import behind
from truename.naming import ListedName, listing, renamed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import date

    from truename.dialects import Dialect
    from truename.gateway.views.texts import ServerTexts
    from truename.identity import ToolId
    from truename.naming import NameTable

    Described = tuple[tuple[ToolId, Mapping[str, Any]], ...]

__all__ = ["META_PREFIX", "described", "described_again"]

META_PREFIX: Final = OWN_PREFIX
# One text for all tools, instead of one for each.
_META_OF: Final = {key: f"{META_PREFIX}{key}" for key in ("openai_name", "canonical_name")}


def described(
    table: NameTable,
    openai: Dialect,
    flat: Sequence[NameTable],
    today: date,
    texts: ServerTexts,
    *,
    is_alone: bool = False,
) -> tuple[tuple[ToolId, Mapping[str, Any]], ...]:
    """Return the descriptors of a table with their tools: definitions with the wire name, and the two other names.

    ``openai_name`` is the wire name where OpenAI accepts it, else the tool's name in the first of the ``flat`` tables
    that has it; a tool that the style gives no legal name has none. A name that was
    redirected has a descriptor of its own until its day is over; its description begins with the present name. What is
    said of the server's own tools is said as ``texts`` reads it. Where a server is alone (``is_alone``), its tools link
    to their apps as it says; elsewhere behind its key.
    """
    return tuple(
        (one.id, _descriptor(one, table, openai, flat, texts, is_alone=is_alone)) for one in listing(table, today)
    )


def described_again(
    before: Described,
    names: tuple[NameTable, NameTable],
    changed: Collection[ToolId],
    *,
    openai: Dialect,
    flat: Sequence[NameTable],
    texts: ServerTexts,
) -> Described:
    """Return the descriptors of the later of two tables, made from those of the earlier one.

    ``changed`` are the tools that are gone, new, or described otherwise. No old names may be listed in either.
    """
    earlier, later = names
    rows = list(before)
    for at in sorted((earlier.position(id) for id in changed if id in earlier and id not in later), reverse=True):
        del rows[at]
    for at, id in sorted((later.position(id), id) for id in changed if id in later):
        row = id, _descriptor(ListedName(later[id], id), later, openai, flat, texts).written()
        if id in earlier:
            # What is said of the same tool in the same words is the same, so that nothing is written again.
            is_same = earlier.catalog[id] is later.catalog[id] and rows[at][1] == row[1]
            rows[at] = rows[at] if is_same else row
        else:
            rows.insert(at, row)
    return tuple(rows)


def _descriptor(
    listed: ListedName,
    table: NameTable,
    openai: Dialect,
    flat: Sequence[NameTable],
    texts: ServerTexts,
    *,
    is_alone: bool = False,
) -> WrittenItem:
    wire, id = listed.name, listed.id
    definition = without_own_meta(readable(renamed(texts.definition(table.catalog[id]), listed)))
    candidates = (wire, *(other[id] for other in flat if id in other))
    legal = next((name for name in candidates if not openai.check(name)), None)
    names = {**({"openai_name": legal} if legal else {}), "canonical_name": str(id)}
    meta = definition.get("_meta")
    meta = dict(meta) if isinstance(meta, dict) else {}
    if not is_alone:
        meta = dict(with_ui_uris(meta, partial(behind, table.catalog[id].origin.server)))
    meta |= {_META_OF[key]: name for key, name in names.items()}
    if listed.now:
        meta |= {f"{META_PREFIX}renamed_to": listed.now, f"{META_PREFIX}listed_until": listed.until}
    return WrittenItem({**definition, "name": wire, **names, "_meta": meta})
