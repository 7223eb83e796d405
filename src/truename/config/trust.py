"""The table ``[trust]``: how new and changed definitions, and suspicious answers, are handled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.config.field_types import BOOLEAN, PATH, STORE_PATH, choice, read_named, whole
from truename.config.fields import EMPTY, FieldType, plain_table, read_table, rows_of, setting, table_schema
from truename.errors import ConfigError, excerpt, spelling_remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.config.fields import Fields

__all__ = ["HANDLINGS", "TRUST", "Handling", "Trust", "strictest"]

Handling = Literal["warn", "quarantine", "block"]
First = Literal["trust", "review"]
Serving = Literal["pinned", "hidden"]
Results = Literal["off", "warn", "block"]
HANDLINGS: Final[tuple[Handling, ...]] = get_args(Handling)
"""How a finding can be handled, from the mildest."""

_RULES: Final[Mapping[str, Handling]] = MappingProxyType(
    {
        # Texts with these hide something from people: no definition of an honest server was found to have them.
        **dict.fromkeys(("bidirectional_text", "control_character"), "quarantine"),
        **dict.fromkeys(("hidden_instruction", "encoded_payload"), "quarantine"),
        # A tool that comes later and can be taken for another one.
        **dict.fromkeys(("shadowed_tool", "near_name", "confusable_name"), "quarantine"),
        # Zero-width spaces are copied along from web pages: one tool in 808 of real servers has some.
        **dict.fromkeys(("invisible_character", "steered_call", "capability_mismatch"), "warn"),
        # Honest authors write these too, though none should.
        **dict.fromkeys(("self_praise", "stuffed_text", "foreign_parameter"), "warn"),
    }
)


def strictest(handlings: Iterable[Handling]) -> Handling | None:
    """Return the strictest of several ways to handle a definition; None if there are none."""
    return max(handlings, key=HANDLINGS.index, default=None)


def _wrong(rule: str, handling: str) -> tuple[str, str] | None:
    """Return the problem of a setting for a rule's findings and the remedy; None if it is valid."""
    if rule not in _RULES:
        return "there is no such rule", spelling_remedy(rule, _RULES)
    if handling not in HANDLINGS:
        return f"{excerpt(handling)} is not one of: {', '.join(HANDLINGS)}", spelling_remedy(handling, HANDLINGS)
    return None


def _read_rules(fields: Fields, name: str) -> Mapping[str, Handling]:
    found: dict[str, Handling] = {}
    for rule, given in fields.pairs(name).items():
        if (wrong := _wrong(rule, given)) is not None:
            fields.add(f"{name}.{excerpt(rule)[1:-1]}", *wrong)
        else:
            found[rule] = next(one for one in HANDLINGS if one == given)
    return found


@dataclass(frozen=True, kw_only=True)
class ServerTrust:
    """The handling of one server's new and changed definitions, and of its answers.

    Rules that are not named keep their defaults, as in a file. Raises `ConfigError` for a rule or a handling that does
    not exist.
    """

    first: First = setting(
        "trust",
        choice(get_args(First)),
        "Whether a definition without a pin is trusted when it is first seen, or is pending until it is reviewed.",
        live=True,
    )
    drift: Handling = setting(
        "warn", choice(HANDLINGS), "How a definition that no longer matches its pin is handled.", live=True
    )
    quarantine: Serving = setting(
        "pinned",
        choice(get_args(Serving)),
        "Whether the pinned definition of a quarantined tool is still shown, as long as calls made by it can be right, "
        "or the tool is hidden.",
        live=True,
    )
    results: Results = setting(
        "off",
        choice(get_args(Results)),
        "How an answer that looks like an attack on the model is handled; with off no answer is checked.",
        live=True,
    )
    auto_accept: bool = setting(
        False,
        BOOLEAN,
        "Whether a certain rename by the server is accepted without a review: the definitions are equal and "
        "distinctive, and no other tool of the server has, or had, the same.",
        live=True,
    )
    rules: Mapping[str, Handling] = setting(
        _RULES,
        FieldType(
            name="table: rule -> `warn`, `quarantine` or `block`",
            read=_read_rules,
            schema={
                "type": "object",
                "properties": {name: {"enum": list(HANDLINGS)} for name in _RULES},
                "additionalProperties": False,
            },
            plain=dict,
        ),
        "How a finding of a rule in a new or changed definition is handled.",
        live=True,
    )

    def __post_init__(self) -> None:
        for rule, handling in self.rules.items():
            if (found := _wrong(rule, handling)) is not None:
                raise ConfigError(file="trust", key=f"rules.{excerpt(rule)[1:-1]}", problem=found[0], remedy=found[1])
        object.__setattr__(self, "rules", MappingProxyType({**_RULES, **self.rules}))


_OWN: Final = rows_of(ServerTrust)


def _read_servers(fields: Fields, name: str) -> Mapping[str, object] | None:
    # Each server's fields are laid over those of the whole table when that is read.
    return read_named(fields, name, lambda _, table: read_table(table, _OWN), any_name=True)


def _plain_servers(servers: Mapping[str, Trust]) -> dict[str, Any]:
    """Return the tables of single servers: every field, because a default there may differ from the whole table."""
    return {key: {name: _OWN[name].type.plain(getattr(one, name)) for name in _OWN} for key, one in servers.items()}


@dataclass(frozen=True, kw_only=True)
class Trust(ServerTrust):
    """The handling of new and changed definitions, and of answers: the default, and per server."""

    servers: Mapping[str, Trust] = setting(
        EMPTY,
        FieldType(
            name="tables by SERVER",
            read=_read_servers,
            schema={"type": "object", "additionalProperties": table_schema(_OWN)},
            plain=_plain_servers,
            rows=_OWN,
            key="SERVER",
        ),
        "Other handling for single servers, by their keys.",
        live=True,
    )
    pins: str | None = setting(None, STORE_PATH, "File of the pins, a URL or `memory`; default: the state database.")
    renamed_for: int = setting(
        90,
        whole(0, 36_500, name="whole number from 0 to 36,500"),
        "How long the old name of a tool that its server renamed stays listed, once the rename is accepted.",
        unit="days",
        live=True,
    )
    lock: str | None = setting(
        None, PATH, "A truename.lock: its reviewed definitions are pinned before any is seen.", live=True
    )

    def of(self, server: str) -> Trust:
        """Return the trust settings of a server: its own table in `trust.servers`, else these."""
        return self.servers.get(server, self)

    @property
    def is_strict(self) -> bool:
        """Whether the settings can withhold a definition. If so, a definition that cannot be stored is not shown."""
        return self.first == "review" or any(one.drift != "warn" for one in (self, *self.servers.values()))


_ROWS: Final = rows_of(Trust)


def _read(fields: Fields, name: str) -> Trust | None:
    table = fields.table(name)
    if table is None:
        return None
    before = len(fields.errors)
    found = read_table(table, _ROWS)
    if len(fields.errors) != before:
        return None
    servers = found.pop("servers", {})
    whole = Trust(**found)
    own = {
        key: replace(whole, **{**one, "rules": {**whole.rules, **one.get("rules", {})}}) for key, one in servers.items()
    }
    return replace(whole, servers=MappingProxyType(own))


TRUST: Final = FieldType(
    name="table",
    read=_read,
    schema=table_schema(_ROWS),
    plain=partial(plain_table, rows=_ROWS),
    rows=_ROWS,
)
