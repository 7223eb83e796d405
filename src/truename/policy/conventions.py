"""Reading a convention from a configuration: strictly, with every fault at once and the key of each."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from truename.errors import ConfigError, excerpt
from truename.policy.clauses import CLAUSES, step
from truename.policy.convention import Convention, preset_table
from truename.policy.gathering import Faults, fault, nearest
from truename.policy.presets import PRESETS

__all__ = ["CONVENTION", "plain_convention", "read_convention"]

_WHERE: Final = "convention"
_PRESET: Final = "preset"
_KEYS: Final = (_PRESET, *CLAUSES)
# The JSON Schema of the table, which refuses nothing that the reader takes.
CONVENTION: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        _PRESET: {"enum": list(PRESETS), "description": "What the convention begins with; mcp if left out."},
        **{name: {**clause.schema, "description": clause.what} for name, clause in CLAUSES.items()},
    },
    "additionalProperties": False,
}


def read_convention(table: object, file: str = _WHERE) -> Convention:
    """Read the ``convention`` table of a configuration; ``preset`` is what it begins with (``mcp`` if left out).

    Lists and texts take the preset's place; ``categories``, ``owners``, ``families`` and ``severities`` are joined
    with its own. Raises `ConfigError` with the file and the key, or an `ExceptionGroup` of them. A rule that does not
    exist is no fault here: what knows all rules reports it (`Convention.named_rules`).

    >>> read_convention({"preset": "trailblaze", "apps": ["payments"]}).apps
    ('payments',)
    >>> read_convention({"prest": "trailblaze"}, "truename.toml")
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: truename.toml: convention.prest: it is no key of a convention. Did you mean 'preset'?
    """
    if not isinstance(table, Mapping):
        raise fault(file, _WHERE, "it is no table", "Write [convention].")
    faults = Faults(file)
    for key in table:
        if key not in _KEYS:
            faults.add(_WHERE + step(key), "it is no key of a convention", nearest(key, _KEYS))
    given: dict[str, Any] = {key: value for key, value in table.items() if key in CLAUSES}
    preset = table.get(_PRESET, "mcp")
    if not isinstance(preset, str) or preset not in PRESETS:
        faults.add(f"{_WHERE}.{_PRESET}", f"{excerpt(str(preset))} is no preset", nearest(preset, PRESETS))
        # What follows from the preset would be told too, and is right as soon as its name is.
        preset = next(iter(get_close_matches(str(preset)[:100], PRESETS, 1)), "mcp")
    try:
        found = Convention(**preset_table(preset, given), preset=preset, file=file)
    except (ConfigError, ExceptionGroup) as error:
        faults.adopt(error)
    faults.raise_any()
    return found


def plain_convention(convention: Convention) -> dict[str, Any]:
    """Return a convention's table as a configuration writes it: its preset, and what differs from that.

    >>> plain_convention(Convention.of("trailblaze", apps=["pay"], severities={"casing": "off"}))
    {'preset': 'trailblaze', 'apps': ('pay',), 'severities': {'casing': 'off'}}
    """
    preset = Convention.of(convention.preset)
    found: dict[str, Any] = {_PRESET: convention.preset}
    for name in CLAUSES:
        value, usual = getattr(convention, name), getattr(preset, name)
        if value == usual:
            continue
        found[name] = _difference(value, usual) if isinstance(value, Mapping) else value
    if "severities" in found:
        found["severities"] = {rule: word or "off" for rule, word in found["severities"].items()}
    if "suppressions" in found:
        found["suppressions"] = [vars(one) for one in convention.suppressions]
    return found


def _difference(table: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    left_out = dict.fromkeys(usual.keys() - table.keys(), False)
    return {key: value for key, value in table.items() if key not in usual or usual[key] != value} | left_out
