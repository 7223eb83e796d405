"""The shapes of tasks, in both ways that the protocol has had for them.

In 2025-11-25 a client asks for a task (``task`` in its call); since 2026-07-28 tasks are an extension, and the server
decides (``resultType: "task"``, SEP-2663). Either way a task has an id, which is a name like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    TASKS_EXTENSION,
    TASKS_VERSION,
    is_modern,
)

__all__ = [
    "ASKED_FOR",
    "METHODS",
    "RELATED",
    "TASK_ID",
    "Begun",
    "begun_in",
    "follows",
    "is_state",
    "mismatch",
    "related_to",
    "renamed",
    "time_to_live",
    "undeclared",
    "unknown",
    "way_of",
]

RELATED: Final = "io.modelcontextprotocol/related-task"
TASK_ID: Final = "taskId"
# The field of a call that asks for a task, and of the result that has one, in 2025-11-25.
ASKED_FOR: Final = "task"
_BY_VERSION: Final = "tasks/list", "tasks/get", "tasks/result", "tasks/cancel"
_BY_EXTENSION: Final = "tasks/get", "tasks/update", "tasks/cancel"
_LONGEST_LIFE: Final = 1e15
# The methods that there are, by whether they are those of the stateless era.
METHODS: Final[Mapping[bool, frozenset[str]]] = {False: frozenset(_BY_VERSION), True: frozenset(_BY_EXTENSION)}


def way_of(version: str) -> bool | None:
    """Return whether a version has tasks in the way of the stateless era (True) or of 2025-11-25; None if in no way."""
    return True if is_modern(version) else False if version == TASKS_VERSION else None


def follows(capabilities: Mapping[str, Any]) -> bool:
    """Tell whether a client of the stateless era declares that it can follow tasks."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, Mapping) and TASKS_EXTENSION in extensions


class Begun(NamedTuple):
    """A task that a server began: its id, and for how many milliseconds it is kept (None: for ever)."""

    id: str
    ttl: float | None


def begun_in(result: Mapping[str, Any], *, modern: bool) -> Begun | None:
    """Return the task that a call became, None if this is a result of the call itself."""
    if modern:
        task: object = result if result.get("resultType") == ASKED_FOR else None
    else:
        task = result.get(ASKED_FOR)
    if task is None or not isinstance(task, Mapping) or not isinstance(id := task.get(TASK_ID), str):
        return None
    return Begun(id, time_to_live(task, modern=modern))


def time_to_live(task: Mapping[str, Any], *, modern: bool) -> float | None:
    """Return for how many milliseconds from its beginning a task is kept; None: for ever, or nobody says.

    >>> time_to_live({"ttl": 10**400}, modern=False), time_to_live({"ttlMs": -1}, modern=True)
    (1000000000000000.0, 0)
    """
    said = task.get("ttlMs" if modern else "ttl")
    # What is no number is not equal to itself.
    if isinstance(said, bool) or not isinstance(said, int | float) or said != said:  # noqa: PLR0124
        return None
    return max(0, min(said, _LONGEST_LIFE))


def is_state(result: Mapping[str, Any], *, modern: bool) -> bool:
    """Tell whether a result says how a task stands, and not only that something was done."""
    return TASK_ID in result and ("ttlMs" if modern else "ttl") in result


def related_to(params: Mapping[str, Any] | None) -> str | None:
    """Return the task that a message says it belongs to."""
    meta = (params or {}).get("_meta")
    related = meta.get(RELATED) if isinstance(meta, Mapping) else None
    id = related.get(TASK_ID) if isinstance(related, Mapping) else None
    return id if isinstance(id, str) else None


def renamed(message: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return a message with a task under another id, wherever the protocol has ids; nothing else of it changes.

    >>> renamed({"taskId": "1", "result": {"content": ["1"], "_meta": {"x": "1"}}}, "1", "1-b2")
    {'taskId': '1-b2', 'result': {'content': ['1'], '_meta': {'x': '1'}}}
    """
    if old == new:
        return dict(message)
    inner = {key: message[key] for key in (ASKED_FOR, "result") if isinstance(message.get(key), Mapping)}
    return _renamed_here({**message, **{key: _renamed_here(one, old, new) for key, one in inner.items()}}, old, new)


def _renamed_here(message: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    body = dict(message)
    if body.get(TASK_ID) == old:
        body[TASK_ID] = new
    if related_to(body) == old:
        related = {**body["_meta"][RELATED], TASK_ID: new}
        body["_meta"] = {**body["_meta"], RELATED: related}
    return body


def unknown() -> MCPError:
    """Build the error for an id that is of no task of this client."""
    return MCPError(INVALID_PARAMS, "Task not found: it expired, or it belongs to another client.")


def undeclared() -> MCPError:
    """Build the error for a client that did not say that it follows tasks."""
    text = "Declare the tasks extension in the capabilities of this request."
    extensions: dict[str, Any] = {TASKS_EXTENSION: {}}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, text, {"requiredCapabilities": {"extensions": extensions}})


def mismatch() -> MCPError:
    """Build the error for a header that names another task than the body."""
    return MCPError(HEADER_MISMATCH, f"Mcp-Name header does not match the request body's {TASK_ID!r} parameter")
