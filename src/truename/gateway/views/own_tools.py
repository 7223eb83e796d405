"""The gateway's own three tools, by which a large catalogue is searched, read and called: their names and definitions.

Each holds its name in the ledger like any other tool, so that what once was `search_tools` is never a server's tool;
where a server's tool had that name before, ours has another.
"""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.gateway.views.descriptors import META_PREFIX
from truename.identity import ToolId, fold
from truename.ledger import Claim
from truename.naming.client_prefixes import strip_affixes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.naming import NameTable

__all__ = [
    "ALWAYS_LOAD",
    "MOST_DESCRIBED",
    "MOST_FOUND",
    "OwnNames",
    "definitions",
    "held_names",
    "is_own",
    "known_names",
    "meant",
    "own_names",
]

ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
MOST_FOUND: Final = 50
MOST_DESCRIBED: Final = 20
# A server's key is printable, so these ids are no server's: one that is called so too gets others (`Catalog`).
_SERVER: Final = "\0truename-gateway"
_INTEGRATION: Final = "truename-gateway"
_WORDS: Final = ("search_tools", "describe_tools", "call_tool")
_MOST_TRIED: Final = 20


class OwnNames(NamedTuple):
    """What the three are called in one table."""

    search: str
    describe: str
    call: str


def is_own(server: str) -> bool:
    """Tell whether an id on record is of the gateway's own tools."""
    return server == _SERVER


def held_names(table: NameTable) -> OwnNames | None:
    """Return the names that the ledger holds for them in this table, None unless it holds all."""
    held = {} if table.ledger is None else table.ledger.held(table.dialect.name)
    found = [held[id] for id in _ids(table) if id in held]
    return OwnNames(*found) if len(found) == len(_WORDS) else None


def known_names(table: NameTable) -> OwnNames | None:
    """Return their names in this table without a change to the ledger: those that it holds, or where none can be held.

    None where they are still to be claimed.
    """
    if (held := held_names(table)) is not None:
        return held
    return OwnNames(*_chosen(table).values()) if table.ledger is None or table.ledger.readonly else None


def own_names(table: NameTable) -> OwnNames:
    """Return their names in this table, and have the ledger hold them. Raises `LedgerError`.

    >>> from truename import Catalog, Ledger, project
    >>> catalog = Catalog.of("files/list", "search_tools/call_tool")
    >>> own_names(project(catalog, "openai", style="on-conflict", ledger=Ledger.memory()))
    OwnNames(search='search_tools', describe='describe_tools', call='gateway_call_tool')
    """
    if (known := known_names(table)) is not None:
        return known
    ledger = table.ledger
    assert ledger is not None  # noqa: S101 - where there is none, they are known
    with ledger.transaction():
        chosen = _chosen(table)
        claims = [Claim(name=name, id=id, table=table.dialect.name, server=_SERVER) for id, name in chosen.items()]
        ledger.remember(None, claims, [(_SERVER, id.tool, id) for id in chosen])
    return OwnNames(*chosen.values())


def _chosen(table: NameTable) -> dict[ToolId, str]:
    taken = {fold(name) for name in table.exact}
    return {id: _first_free(id.tool, id, table, taken) for id in _ids(table)}


def _first_free(word: str, id: ToolId, table: NameTable, taken: set[str]) -> str:
    # However many of them servers have taken, they are not all; where none is legal, no tool's name is.
    free = (name for name in _candidates(word) if fold(name) not in taken and _is_free(name, id, table))
    first = tuple(islice(free, _MOST_TRIED))
    return next((name for name in first if not table.dialect.check(name, table.server_name)), first[0])


def _is_free(name: str, id: ToolId, table: NameTable) -> bool:
    ledger = table.ledger
    return ledger is None or (ledger.holder(fold(name)) in {None, id} and not ledger.bars(name, id))


def _candidates(word: str) -> Iterator[str]:
    yield word
    yield f"gateway_{word}"
    yield from (f"{word}_{number}" for number in count(2))


def _ids(table: NameTable) -> tuple[ToolId, ...]:
    """Return the ids: those that the ledger has for them, else the first that are no server's."""
    ledger = table.ledger
    bound = {} if ledger is None else ledger.bindings()
    return tuple(bound.get((_SERVER, word)) or _unbound(word, table) for word in _WORDS)


def _unbound(word: str, table: NameTable) -> ToolId:
    ids, ledger = (ToolId(_INTEGRATION, version, None, word, 1) for version in count(1)), table.ledger
    return next(id for id in ids if id not in table.catalog and (ledger is None or ledger.origin_of(id) is None))


def meant(name: str, own: OwnNames, table: NameTable) -> str:
    """Return which of these names a text stands for, as an id or in a client's frame; else the text as it is.

    >>> from truename import Catalog, project
    >>> table = project(Catalog.of("files/list"), "openai")
    >>> meant("mcp__truename__call_tool", own_names(table), table), meant("list", own_names(table), table)
    ('call_tool', 'list')
    """
    if name in own or name in table.exact:
        return name
    ids = {text: ours for ours, id in zip(own, _ids(table), strict=True) for text in (id.short, str(id))}
    inside = (text for server in table.server_names for text in strip_affixes(name, server) if text in own)
    return ids.get(name) or next(inside, name)


def definitions(names: OwnNames, table: NameTable) -> tuple[Mapping[str, Any], ...]:
    """Return their descriptors, in the order of use. They say nothing that changes with the catalogue."""
    ids = _ids(table)
    search = _definition(
        names.search,
        ids[0],
        "Finds tools that are available but not listed. Describe the task and its objects in a few words. "
        f"The result has names with one line each, the best first. Read the definition with {names.describe}, then "
        f"call the tool by its name, or through {names.call} if only listed tools can be called.",
        {
            "query": {"type": "string", "description": "The task of the tool, such as: create issue in repository"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_FOUND,
                "default": 10,
                # Where it is missing, smolagents 1.26 takes what has a default for required.
                "nullable": True,
                "description": "The greatest number of tools to return",
            },
        },
        "query",
        annotations={"readOnlyHint": True, "openWorldHint": False},
    )
    describe = _definition(
        names.describe,
        ids[1],
        f"Returns the full definitions of tools, with their input schemas, by the names from {names.search}.",
        {
            "names": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MOST_DESCRIBED,
                "description": "Names of tools",
            }
        },
        "names",
        annotations={"readOnlyHint": True, "openWorldHint": False},
    )
    call = _definition(
        names.call,
        ids[2],
        f"Calls a tool by its name from {names.search}, with arguments that match the input schema from "
        f"{names.describe}. It is the same as calling the tool directly.",
        {
            "name": {"type": "string", "description": "The name of the tool"},
            "arguments": {"type": "object", "description": "Its arguments, {} if there are none"},
        },
        "name",
    )
    return search, describe, call


def _definition(
    name: str, id: ToolId, description: str, properties: Mapping[str, Any], required: str, **more: Any
) -> Mapping[str, Any]:
    names = {"openai_name": name, "canonical_name": str(id)}
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": [required]},
        **more,
        **names,
        "_meta": {**{f"{META_PREFIX}{key}": value for key, value in names.items()}, ALWAYS_LOAD: True},
    }
