"""The normal form of what a golden run notes: without what differs from run to run."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tests.support.golden_servers import (
    Members,
    Number,
    read_exactly,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.golden_requests import Step


__all__ = ["DROPPED", "LATE", "RECORDED", "id_of", "is_request", "normal_message", "normal_text"]

_CHANGING: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "<key>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.:+Z-]*"), "<time>"),
    (re.compile(r"(?<=retired on )\d{4}-\d\d-\d\d"), "<date>"),
    (re.compile(r"00-[0-9a-f]{32}-[^\"]{16}-0[01]"), "<trace>"),
)
RECORDED: Final = frozenset({"arguments", "context", "id", "name", "result", "server", "tool"})
DROPPED: Final = frozenset(
    {"hash", "previous", "number", "at", "seconds", "serial", "session", "trace", "files", "version"}
)


# When servers hear of these is a race.
LATE: Final = frozenset({"notifications/cancelled", "resources/unsubscribe"})


def normal_text(text: str) -> str:
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text


def normal_message(message: Any, step: Step, ids: Sequence[str]) -> str:
    """Write one message without what differs from run to run."""
    own = id_of(step.body)

    def changed(value: Any, key: str | None = None) -> Any:
        if isinstance(value, Members):
            # The order of keys means nothing; of a key that stands twice it stays.
            return Members(
                sorted(([name, changed(one, name)] for name, one in value), key=lambda member: str(member[0]))
            )
        if isinstance(value, list):
            return [changed(one) for one in value]
        if key == "id" and (isinstance(value, Number), str(value)) == own:
            return "<id>"
        if key in {"requestState", "elicitationId"} and isinstance(value, str):
            return f"<{key}>"
        if isinstance(value, Number) and key in {"progressToken", "requestId"}:
            return value if str(value) != str(step.number) else "<number>"
        return value

    def question(tree: Any) -> Any:
        if isinstance(tree, Members) and {"method", "id"} <= {name for name, _ in tree}:
            return Members([name, "<question>" if name == "id" else one] for name, one in tree)
        return tree

    text = written(question(changed(message)))
    for id in ids:
        text = text.replace(id, "<session>")
    return normal_text(text)


def is_request(body: bytes) -> bool:
    """Tell whether a line is a request without any fault, which is answered under its id."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0" or said.keys() & {"result", "error"}:
        return False
    has_id = isinstance(said.get("id"), int | str) and not isinstance(said["id"], bool)
    # Half of a character is none.
    return (
        has_id
        and str(said["id"]).isprintable()
        and isinstance(said.get("method"), str)
        and isinstance(said.get("params"), dict | None)
    )


def id_of(body: bytes) -> tuple[bool, str] | None:
    with suppress(ValueError, TypeError, RecursionError):
        id = dict(read_exactly(body)).get("id")
        if isinstance(id, str):
            return isinstance(id, Number), str(id)
    return None
