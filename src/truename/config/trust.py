"""What is done about definitions that are new or have changed: the table ``[trust]``, read strictly."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.config.fields import TEXT, Row, chosen, read_row_table, row_schema
from truename.errors import ConfigError, excerpt, spelling_remedy
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["HANDLINGS", "TRUST", "Handling", "Trust", "plain_trust", "read_trust", "strictest"]

Handling = Literal["warn", "quarantine", "block"]
First = Literal["trust", "review"]
Serving = Literal["pinned", "hidden"]
Results = Literal["off", "warn", "block"]
HANDLINGS: Final[tuple[Handling, ...]] = get_args(Handling)
"""What is done about something, from the mildest."""
_MEMORY: Final = "memory"

_RULES: Final[Mapping[str, Handling]] = MappingProxyType(
    {
        # Texts with these hide something from people: no definition of an honest server was found to have them.
        **dict.fromkeys(("bidirectional_text", "control_character"), "quarantine"),
        **dict.fromkeys(("hidden_instruction", "encoded_payload"), "quarantine"),
        # Who comes later and can be taken for somebody else.
        **dict.fromkeys(("shadowed_tool", "near_name", "confusable_name"), "quarantine"),
        # Zero-width spaces are copied along from web pages: one tool in 808 of real servers has some.
        **dict.fromkeys(("invisible_character", "steered_call", "capability_mismatch"), "warn"),
        # What honest authors do too, though none should.
        **dict.fromkeys(("self_praise", "stuffed_text", "foreign_parameter"), "warn"),
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
    words of their own. ``results``: what is done about an answer that looks like an attack on the model; while it is
    off none is looked at. ``pins`` is the file of the pins, if it is not the usual one, or ``memory``. ``lock`` is a
    `truename.lock`: definitions that were reviewed, and count as pinned before any was seen.

    Rules that are not named keep their defaults, as in a file. Raises `ConfigError` for a rule or a word that is none.
    """

    first: First = "trust"
    drift: Handling = "warn"
    quarantine: Serving = "pinned"
    results: Results = "off"
    rules: Mapping[str, Handling] = field(default_factory=lambda: MappingProxyType({}))
    servers: Mapping[str, Trust] = field(default_factory=lambda: MappingProxyType({}))
    pins: str | None = None
    lock: str | None = None

    def __post_init__(self) -> None:
        for rule, handling in self.rules.items():
            if (found := _wrong(rule, handling)) is not None:
                raise ConfigError(file="trust", key=f"rules.{excerpt(rule)[1:-1]}", problem=found[0], remedy=found[1])
        object.__setattr__(self, "rules", MappingProxyType({**_RULES, **self.rules}))

    def of(self, server: str) -> Trust:
        """Return what holds for a server."""
        return self.servers.get(server, self)

    @property
    def is_strict(self) -> bool:
        """Whether anything may be kept back: then what can't be remembered is not shown either."""
        return self.first == "review" or any(one.drift != "warn" for one in (self, *self.servers.values()))


def _wrong(rule: str, handling: str) -> tuple[str, str] | None:
    """Say what is wrong with what is to be done about a rule's findings, and what to do; None if nothing is."""
    if rule not in _RULES:
        return "it is no such rule", spelling_remedy(rule, _RULES)
    return (
        None if handling in HANDLINGS else (f"{excerpt(handling)} is no choice", spelling_remedy(handling, HANDLINGS))
    )


def _text(fields: Fields, name: str) -> str | None:
    return fields.text(name)


def _under(base: Path, path: str | None) -> str | None:
    """Return a path as seen from the directory of the configuration."""
    return path if path is None or path == _MEMORY else str(base / at_home(path))


_OWN: Final[Mapping[str, Row]] = {
    "first": chosen(get_args(First), "Whether what is there first is trusted, or waits for a review."),
    "drift": chosen(HANDLINGS, "What is done about a definition that changed."),
    "quarantine": chosen(get_args(Serving), "What is shown meanwhile: the pinned definition, or nothing."),
    "results": chosen(get_args(Results), "What is done about an answer that looks like an attack on the model."),
}
_ROWS: Final[Mapping[str, Row]] = {
    **_OWN,
    "pins": Row(_text, TEXT, "The file of the pins, or memory."),
    "lock": Row(_text, TEXT, "A truename.lock whose definitions are pins before any was seen."),
}
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


def read_trust(fields: Fields, name: str, base: Path) -> Trust | None:
    """Read the table ``trust``; what is wrong is noted, and None returned for what can't be used."""
    table = fields.nested(name, "an object")
    if table is None:
        return None
    before = len(fields.faults)
    whole = _read(table, Trust(), _ROWS, ("rules", "servers"))
    whole = replace(whole, pins=_under(base, whole.pins), lock=_under(base, whole.lock))
    servers = table.nested("servers", "an object: SERVER -> object")
    own = {key: _server(servers, key, whole) for key in servers or () if servers is not None}
    if len(fields.faults) != before:
        return None
    return replace(whole, servers=MappingProxyType(own))


def plain_trust(trust: Trust) -> dict[str, Any]:
    """Return the table that is read to this. For single servers all is written: what is said there is never empty."""
    said = {name: getattr(trust, name) for name in (*_ROWS, "rules")}
    plain = {name: value for name, value in said.items() if value != getattr(Trust(), name)}
    own = {key: {name: getattr(one, name) for name in (*_OWN, "rules")} for key, one in trust.servers.items()}
    return {**plain, "servers": own} if own else plain


def _server(servers: Fields, key: str, whole: Trust) -> Trust:
    table = servers.nested(key, "an object")
    if table is None:
        servers.faults.add(servers.where(excerpt(key)[1:-1]), "it is empty", "Leave it out, or fill it.")
        return whole
    return _read(table, whole, _OWN, ("rules",))


def _read(table: Fields, whole: Trust, rows: Mapping[str, Row], more: tuple[str, ...]) -> Trust:
    said = read_row_table(table, rows, more)
    return replace(whole, **said, rules={**whole.rules, **_ruled(table)})


def _ruled(table: Fields) -> dict[str, Handling]:
    found: dict[str, Handling] = {}
    for rule, said in table.pairs("rules").items():
        if (wrong := _wrong(rule, said)) is not None:
            table.faults.add(f"{table.where('rules')}.{excerpt(rule)[1:-1]}", *wrong)
        else:
            found[rule] = next(one for one in HANDLINGS if one == said)
    return found
