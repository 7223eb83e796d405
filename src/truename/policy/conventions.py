"""Reading a convention from a configuration: strictly, with every fault at once and the key of each."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from truename.errors import ConfigError, excerpt
from truename.policy.clauses import CLAUSES, step
from truename.policy.convention import Convention, preset_table
from truename.policy.presets import PRESETS

__all__ = ["CONVENTION", "plain_convention", "read_convention"]

_WHERE: Final = "convention"
_REMEDY: Final = "Mend it; a convention that can't be read whole is not used."
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
        raise ConfigError(file=file, key=_WHERE, problem="it is no table", remedy="Write [convention].")
    faults = [_unknown(key, file) for key in table if key not in _KEYS]
    given: dict[str, Any] = {key: value for key, value in table.items() if key in CLAUSES}
    preset = table.get(_PRESET, "mcp")
    if not isinstance(preset, str) or preset not in PRESETS:
        faults.append(_no_preset(preset, file))
        # What follows from the preset would be told too, and is right as soon as its name is.
        preset = next(iter(get_close_matches(str(preset)[:100], PRESETS, 1)), "mcp")
    try:
        found = Convention(**preset_table(preset, given), preset=preset, file=file)
    except* ConfigError as group:
        faults += [error for error in _leaves(group) if isinstance(error, ConfigError)]
    if len(faults) == 1:
        raise faults[0]
    if faults:
        message = f"{file} has {len(faults)} faults"
        raise ExceptionGroup(message, faults)
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


def _unknown(key: object, file: str) -> ConfigError:
    problem = "it is no key of a convention"
    return ConfigError(file=file, key=_WHERE + step(key), problem=problem, remedy=_nearest(str(key), _KEYS))


def _no_preset(preset: object, file: str) -> ConfigError:
    problem = f"{excerpt(str(preset))} is no preset"
    remedy = _nearest(str(preset), tuple(PRESETS))
    return ConfigError(file=file, key=f"{_WHERE}.{_PRESET}", problem=problem, remedy=remedy)


def _nearest(word: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(word[:100], known, 1)
    return f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(known)}."


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]
