"""The fields of a rule, one reader each: what the field may hold, and what is wrong with what it holds.

A reader returns the value as a rule keeps it and raises `ValueError` with a clause for people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from truename.errors import excerpt
from truename.policy.decision import Outcome
from truename.policy.globs import fault_in
from truename.policy.principal_globs import principal_fault

__all__ = ["HINTS", "TERMS", "Annotations", "hint"]

Annotations = Mapping[str, Any]
_Reader = Callable[[object], Any]
_MOST: Final = 1_000
_LONGEST: Final = 1_024


def _said(name: str, default: Callable[[Annotations], bool]) -> Callable[[Annotations], bool]:
    def read(annotations: Annotations) -> bool:
        value = annotations.get(name)
        return value if isinstance(value, bool) else default(annotations)

    return read


_read_only: Final = _said("readOnlyHint", lambda _: False)
# The defaults are those of the Model Context Protocol; anything but true or false counts as not said.
HINTS: Final[Mapping[str, Callable[[Annotations], bool]]] = MappingProxyType(
    {
        "readOnlyHint": _read_only,
        "destructiveHint": _said("destructiveHint", lambda annotations: not _read_only(annotations)),
        "idempotentHint": _said("idempotentHint", lambda _: False),
        "openWorldHint": _said("openWorldHint", lambda _: True),
    }
)


def hint(name: str, annotations: Annotations) -> bool:
    """Return what a tool says of itself; what it does not say is what the protocol takes for granted.

    >>> hint("destructiveHint", {}), hint("destructiveHint", {"readOnlyHint": True})
    (True, False)
    >>> hint("readOnlyHint", {"readOnlyHint": "yes"})
    False
    """
    return HINTS[name](annotations)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        message = f"it is no text of 1 to {_LONGEST:,} characters"
        raise ValueError(message)
    return value


def _outcome(value: object) -> str:
    if not isinstance(value, str) or value not in get_args(Outcome):
        message = f"it is none of {', '.join(get_args(Outcome))}"
        raise ValueError(message)
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST:
        message = f"it is no list of 1 to {_MOST:,} texts"
        raise ValueError(message)
    return tuple(_text(item) for item in value)


def _globs(value: object) -> tuple[str, ...]:
    globs = _texts(value)
    for glob in globs:
        if fault := fault_in(glob):
            message = f"{excerpt(glob)} fits no tool: {fault}"
            raise ValueError(message)
    return globs


def _principals(value: object) -> tuple[str, ...]:
    globs = _texts(value)
    for glob in globs:
        if fault := principal_fault(glob):
            message = f"{excerpt(glob)}: {fault}"
            raise ValueError(message)
    return globs


def _hints(value: object) -> Mapping[str, bool]:
    if not isinstance(value, Mapping) or not value:
        message = "it is no object of hints"
        raise ValueError(message)
    for name, wanted in value.items():
        if name not in HINTS or not isinstance(wanted, bool):
            message = f"{excerpt(str(name))} is none of {', '.join(HINTS)}, or is neither true nor false"
            raise ValueError(message)
    return MappingProxyType(dict(value))


TERMS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {
        "name": _text,
        "outcome": _outcome,
        "reason": _text,
        "tools": _globs,
        "but": _globs,
        "servers": _texts,
        "upstream": _texts,
        "annotations": _hints,
        "principals": _principals,
        "agents": _texts,
        "clients": _texts,
        "platforms": _texts,
        "apps": _texts,
    }
)
