"""What a model reads when a call cannot be made: an ``isError`` result whose text says what to do instead.

Not JSON-RPC errors: those end the run in some frameworks, and others hide their text (house, section 9.12).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from truename.errors import (
    AmbiguousName,
    ApprovalRequired,
    QuotaExceeded,
    ResolutionError,
    RetiredName,
    UnknownTool,
    excerpt,
)
from truename.gateway.views.descriptors import META_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection

    from truename.errors import TruenameError

__all__ = ["REPEATS", "error_result", "wrong_name_text"]

REPEATS: Final = 3
_SHOWN: Final = 5


def error_result(error: TruenameError, text: str | None = None) -> dict[str, Any]:
    """Return the result for a call that was not made, or whose outcome is not known."""
    # What the operator decides on; a client may name it when it calls again.
    key = error.approval_key if isinstance(error, ApprovalRequired) else ""
    waiting: dict[str, Any] = {f"{META_PREFIX}approval": key} if key else {}
    if isinstance(error, QuotaExceeded):
        waiting[f"{META_PREFIX}retry_after"] = error.retry_after
    return {
        "content": [{"type": "text", "text": text or str(error)}],
        "isError": True,
        "_meta": {f"{META_PREFIX}error": error.code, **waiting},
    }


def among(error: ResolutionError, shown: Collection[str], hidden: Collection[str]) -> ResolutionError:
    """Return the error without the names that this session could not call: where all are such, there is no tool."""

    def callable_here(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name in shown or name not in hidden)

    if isinstance(error, UnknownTool):
        return replace(error, suggestions=callable_here(error.suggestions))
    if isinstance(error, AmbiguousName):
        candidates = callable_here(error.candidates)
        return replace(error, candidates=candidates) if candidates else UnknownTool(text=error.text, trail=error.trail)
    if isinstance(error, RetiredName) and error.successor is not None and not callable_here((error.successor,)):
        return replace(error, successor=None)
    return error


def wrong_name_text(error: ResolutionError, shown: Collection[str], times: int) -> str:
    """Return the text for a wrong name; from the third time in a row it tells to stop. ``shown`` are right ones."""
    if times < REPEATS:
        return str(error)
    names: tuple[str, ...] = ()
    if isinstance(error, AmbiguousName):
        names = error.candidates
    elif isinstance(error, UnknownTool):
        names = error.suggestions
    listed = ", ".join(excerpt(name)[1:-1] for name in (names or tuple(shown))[:_SHOWN])
    keep = f"keep using tools: {listed}" if listed else "there are no tools to use now"
    return f"{excerpt(error.text)} has failed {times} times. Do not repeat this call; {keep}."
