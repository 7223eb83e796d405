"""What is done about definitions that are new or have changed: the table ``[trust]``, read strictly."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.config.rows import TEXT, Row, chosen, read_row_table, row_schema
from truename.errors import excerpt
from truename.policy.gathering import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.config.fields import Fields

__all__ = ["HANDLINGS", "TRUST", "Handling", "Trust", "read_trust", "strictest"]

Handling = Literal["warn", "quarantine", "block"]
First = Literal["trust", "review"]
Serving = Literal["pinned", "hidden"]
HANDLINGS: Final[tuple[Handling, ...]] = get_args(Handling)
"""What is done about something, from the mildest."""

_RULES: Final[Mapping[str, Handling]] = MappingProxyType(
    {
        # Texts with these hide something from people: no definition of an honest server was found to have them.
        **dict.fromkeys(("bidirectional_text", "control_character"), "quarantine"),
        **dict.fromkeys(("hidden_instruction", "encoded_payload"), "quarantine"),
        # Who comes later and can be taken for somebody else.
        **dict.fromkeys(("shadowed_tool", "near_name", "confusable_name"), "quarantine"),
        # Zero-width spaces are copied along from web pages: one tool in 808 of real servers has some.
        **dict.fromkeys(("invisible_character", "steered_call", "capability_mismatch"), "warn"),
    }
)


def strictest(handlings: Iterable[Handling]) -> Handling | None:
    """Return the strictest of these; None for none."""
    return max(handlings, key=HANDLINGS.index, default=None)


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What is done about what is new or has changed.

    ``first`` says whether what nobody knows is trusted because it is there first, or waits for a review. ``drift``:
    what is done about a definition that is no longer the pinned one; in quarantine the pinned one goes on being served
    (``quarantine`` is ``pinned``) as long as calls made by it can be right, or the tool is ``hidden``. ``rules``: what
    is done about a finding of a rule, by the rule's name; of other rules nothing is asked. ``servers`` are those with
    words of their own. ``pins`` is the file of the pins, if it is not the usual one, or ``memory``.
    """

    first: First = "trust"
    drift: Handling = "warn"
    quarantine: Serving = "pinned"
    rules: Mapping[str, Handling] = field(default_factory=lambda: _RULES)
    servers: Mapping[str, Trust] = field(default_factory=lambda: MappingProxyType({}))
    pins: str | None = None

    def of(self, server: str) -> Trust:
        """Return what holds for a server."""
        return self.servers.get(server, self)

    @property
    def is_strict(self) -> bool:
        """Whether anything may be kept back: then what can't be remembered is not shown either."""
        return self.first == "review" or any(one.drift != "warn" for one in (self, *self.servers.values()))


def _file(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    return text if text is None or text == "memory" else str(Path(text).expanduser())


_OWN: Final[Mapping[str, Row]] = {
    "first": chosen(get_args(First), "Whether what is there first is trusted, or waits for a review."),
    "drift": chosen(HANDLINGS, "What is done about a definition that changed."),
    "quarantine": chosen(get_args(Serving), "What is shown meanwhile: the pinned definition, or nothing."),
}
_ROWS: Final[Mapping[str, Row]] = {**_OWN, "pins": Row(_file, TEXT, "The file of the pins, or memory.")}
_RULED: Final = {
    "type": "object",
    "properties": {name: {"enum": list(HANDLINGS)} for name in _RULES},
    "additionalProperties": False,
    "description": "What is done about a finding of a rule in a definition that is new or changed.",
}
_SERVERS: Final = {
    "type": "object",
    "additionalProperties": row_schema(_OWN, {"rules": _RULED}),
    "description": "What is done otherwise about single servers.",
}
TRUST: Final[Mapping[str, Any]] = row_schema(_ROWS, {"rules": _RULED, "servers": _SERVERS})
"""What a schema says of the table."""


def read_trust(fields: Fields, name: str, _: Path) -> Trust | None:
    """Read the table ``trust``; what is wrong is noted, and None returned for what can't be used."""
    table = fields.nested(name, "an object")
    if table is None:
        return None
    before = len(fields.faults)
    whole = _read(table, Trust(), _ROWS, ("rules", "servers"))
    servers = table.nested("servers", "an object: SERVER -> object")
    own = {key: _server(servers, key, whole) for key in servers or () if servers is not None}
    return replace(whole, servers=MappingProxyType(own)) if len(fields.faults) == before else None


def _server(servers: Fields, key: str, whole: Trust) -> Trust:
    table = servers.nested(key, "an object")
    if table is None:
        servers.faults.add(servers.where(excerpt(key)[1:-1]), "it is empty", "Leave it out, or fill it.")
        return whole
    return _read(table, whole, _OWN, ("rules",))


def _read(table: Fields, whole: Trust, rows: Mapping[str, Row], more: tuple[str, ...]) -> Trust:
    said = read_row_table(table, rows, more)
    return replace(whole, **said, rules=MappingProxyType({**whole.rules, **_ruled(table)}))


def _ruled(table: Fields) -> dict[str, Handling]:
    found: dict[str, Handling] = {}
    for rule, said in table.pairs("rules").items():
        where = f"{table.where('rules')}.{excerpt(rule)[1:-1]}"
        handling = next((one for one in HANDLINGS if one == said), None)
        if rule not in _RULES:
            table.faults.add(where, "it is no such rule", nearest(rule, _RULES))
        elif handling is None:
            table.faults.add(where, f"{excerpt(said)} is no choice", nearest(said, HANDLINGS))
        else:
            found[rule] = handling
    return found
