"""What an operator declares of a server's ids, whatever is on record of them; and requests counted before parsing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import mutated_bytes, text, value
from truename import Catalog
from truename.catalog import ServerIdentity, identity_changes
from truename.errors import LedgerError
from truename.gateway.protocol.entries import EntryCounter

if TYPE_CHECKING:
    from random import Random

    from truename import ToolId

__all__ = ["TARGETS"]

_INTEGRATIONS: Final = (None, None, "salesforce", "sf", "Data-Grout")
_VERSIONS: Final = (None, 1, 2, 10, 10**18 - 1)


def identities(chance: Random) -> None:
    servers = {text(chance)[:80]: [text(chance)[:80] for _ in range(chance.randrange(5))] for _ in range(3)}
    before = _declared(chance, servers)
    catalog = Catalog.from_mcp(servers, identities=before, strict=False)
    for id, tool in catalog.items():
        said = before.get(tool.origin.server, ServerIdentity())
        must(id.integration_version == (said.version or 1), "the version of an integration is the declared one")
        must(id.version == said.version_of(tool.origin.name), "the version of a tool is the declared one")
        must(said.integration is None or id.integration.startswith(said.integration), "so is the integration")
    bound = {(tool.origin.server, tool.origin.name): id for id, tool in catalog.items()}
    must(not identity_changes(bound, before), "what was declared is what is on record")
    _declared_anew(chance, servers, bound)


def _declared_anew(chance: Random, servers: dict[str, list[str]], bound: dict[tuple[str, str], ToolId]) -> None:
    now = _declared(chance, servers)
    kept = Catalog.from_mcp(servers, bound=bound, identities=now, strict=False)
    for id, tool in kept.items():
        origin = tool.origin.server, tool.origin.name
        # A tool that was left out has none on record: its id was another's, and is not as it is declared now.
        is_new = origin not in bound
        must(is_new or bound[origin] == id, "an id on record stays until it is renamed")
        must(not is_new or id not in bound.values(), "an id on record never becomes another tool's")
    if identity_changes(bound, now):
        try:
            Catalog.from_mcp(servers, bound=bound, identities=now)
        except LedgerError as error:
            must(error.code == "identity_mismatch", "a change of what is on record is told as one")
        else:
            must(False, "a change of what is on record is refused")


def _declared(chance: Random, servers: dict[str, list[str]]) -> dict[str, ServerIdentity]:
    return {
        key: ServerIdentity(
            integration=chance.choice(_INTEGRATIONS),
            version=chance.choice(_VERSIONS),
            versions={name: chance.choice((1, 2, 3)) for name in names if chance.random() < 0.3},
        )
        for key, names in servers.items()
        if chance.random() < 0.6
    }


def entries(chance: Random) -> None:
    given: Any = value(chance, 6)
    raw = json.dumps(given, indent=chance.choice((None, 1)), ensure_ascii=chance.random() < 0.5)
    whole = raw.encode("utf-8", "surrogatepass")
    must(_counted(chance, whole) == _entries(given), "keys and items are counted as a parser finds them")
    _counted(chance, mutated_bytes(chance, whole))


def _counted(chance: Random, raw: bytes) -> int:
    counter, cut = EntryCounter(), EntryCounter()
    at = sum_of_pieces = 0
    while at < len(raw):
        # At most some thousand pieces: chance whose bytes are used up draws the smallest each time.
        step = chance.randrange(1 + len(raw) // 4_000, 40 + len(raw) // 50)
        sum_of_pieces = cut.feed(raw[at : at + step])
        at += step
    found = counter.feed(raw) if raw else 0
    must(sum_of_pieces == found, "the count is the same however a text is cut")
    return found


def _entries(given: Any) -> int:
    if isinstance(given, dict):
        return len(given) + sum(map(_entries, given.values()))
    return len(given) + sum(map(_entries, given)) if isinstance(given, list) else 0


TARGETS: Final = (identities, entries)
