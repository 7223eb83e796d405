"""Give each tool a name that begins with its server's prefix, for gateways that put one in front of every name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from truename.errors import AmbiguousName, ResolutionError
from truename.identity import digest_of, fold
from truename.ledger import Claim
from truename.naming import resolve
from truename.naming.candidates import key_forms
from truename.naming.words import distinguishing_words, drop_words, prefix_words, snake, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["ShapedNames", "choose_prefixes", "export_table"]

_LEAST: Final = 12
_DIGEST: Final = 4
_TOOL: Final = "tool"


def export_table(gateway: str) -> str:
    """Return the ledger's table for the names that only this gateway lists."""
    return f"export/{gateway}"


def choose_prefixes(names: NameTable, servers: Mapping[str, Sequence[Tool]]) -> dict[str, str]:
    """Choose for each server the prefix with which most of its names begin, another one for each server.

    Of equally good prefixes, the server's key comes first, also spelled as in names, then the server's part of a name,
    then the shortest. A server whose names have no common beginning gets its key.
    """
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for server, tools in sorted(servers.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        prefix = next(one for one in _candidates(names, server, tools) if fold(one) not in taken)
        taken.add(fold(prefix))
        chosen[server] = prefix
    return chosen


def _candidates(names: NameTable, server: str, tools: Sequence[Tool]) -> Iterator[str]:
    parts = {names.assigned(tool.id).prefix.rstrip("_") for tool in tools}
    beginnings: Counter[str] = Counter()
    for tool in tools:
        own = names[tool.id].split("_")
        beginnings.update("_".join(own[:end]) for end in range(1, len(own)))
    key = words(server)
    plain = "_".join(key_forms(key, key)[0]) if key else f"{_TOOL}_{digest_of(server, _DIGEST)}"
    keys = (server, snake(server), plain)
    ranked = sorted(beginnings, key=lambda one: (-beginnings[one], one not in keys, one not in parts, len(one), one))
    yield from (one for one in ranked if one)
    yield plain
    number = 2
    while True:
        yield f"{plain}_{number}"
        number += 1


class ShapedNames:
    """Names that begin with a prefix: the table's own where it does, else a second name of the same tool.

    A second name is short enough for the table's client, no other tool has it or ever had it, and a tool keeps the one
    that the ledger records. `claims` are those to record.
    """

    def __init__(self, names: NameTable, gateway: str) -> None:
        self._names, self._table = names, export_table(gateway)
        self._taken: dict[str, ToolId] = {fold(name): id for id, name in names.whole.items()}
        self._held = {} if names.ledger is None else names.ledger.held_by(tuple(names), self._table)
        self._keep: dict[str, Mapping[tuple[str, ...], frozenset[str]]] = {}
        self._room = names.generator.room
        self.claims: list[Claim] = []

    def name(self, tool: Tool, prefix: str, separator: str = "_") -> str:
        """Return the name of a tool behind this prefix, in snake case; the gateway lists it with its own separator."""
        lead = f"{prefix}_"

        def fits(name: str) -> bool:
            return self._fits(name, lead) and not self._means_several(name.replace("_", separator))

        if fits(self._names[tool.id]):
            return self._names[tool.id]
        held = self._held.get(tool.id)
        if held is not None and fits(held):
            chosen = held
        else:
            chosen = next(one for one in self._forms(tool, lead) if fits(one) and self._is_free(one, tool.id))
            self.claims.append(
                Claim(name=chosen, id=tool.id, table=self._table, server=tool.origin.server_id, prefix=lead)
            )
        self._taken[fold(chosen)] = tool.id
        return chosen

    @staticmethod
    def _fits(name: str, lead: str) -> bool:
        return name.startswith(lead) and len(name) > len(lead)

    def _means_several(self, listed: str) -> bool:
        """Return whether a name with the gateway's separator is another tool's own name as well."""
        try:
            resolve(listed, self._names)
        except AmbiguousName:
            return True
        except ResolutionError:
            return False
        return False

    def _is_free(self, name: str, id: ToolId) -> bool:
        key, ledger = fold(name), self._names.ledger
        if self._taken.get(key, id) != id:
            return False
        return ledger is None or (ledger.holder(key) in (None, id) and not ledger.bars(name, id))

    def _forms(self, tool: Tool, lead: str) -> Iterator[str]:
        """Yield the words of the tool behind the prefix, shortened to fit, best first; then with digits of its id."""
        own = _own_words(tool.origin.name)
        begin = tuple(lead.rstrip("_").split("_"))
        rest = own[len(begin) :] if own[: len(begin)] == begin and len(own) > len(begin) else own
        room = max(self._room - len(lead), _LEAST)
        if len("_".join(rest)) <= room:
            yield lead + "_".join(rest)
        elif (dropped := drop_words(rest, room, self._distinguishing(tool))) is not None:
            yield lead + "_".join(dropped)
        for digits in range(_DIGEST, 65):
            # In the end more than fits: a tool always gets a name.
            short = prefix_words(rest, max(room - digits - 1, 1))
            yield f"{lead}{'_'.join(short)}_{digest_of(str(tool.id), digits)}"

    def _distinguishing(self, tool: Tool) -> frozenset[str]:
        server = tool.origin.server_id
        if server not in self._keep:
            siblings = (_own_words(one.origin.name) for one in self._names.catalog.of_server(server))
            self._keep[server] = distinguishing_words(siblings)
        return self._keep[server].get(_own_words(tool.origin.name), frozenset())


def _own_words(name: str) -> tuple[str, ...]:
    return words(name) or (_TOOL,)
