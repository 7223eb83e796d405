"""Detect a client's dialect from the client info that it sends.

The result is a hint, not a proof: a client can send anything. A name or header that is longer than 256 characters, or
not text, is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from truename.dialects.registry import fold, get, table
from truename.errors import UnknownDialect, excerpt

if TYPE_CHECKING:
    from truename.dialects.dialect import Dialect

__all__ = ["Detection", "detect"]

_LONGEST = 256
_WRAPPER = re.compile(r"\(via mcp-remote[^()]*\)", re.IGNORECASE)
_VENDORS = {"claudeai": "claude-ai", "claudecode": "claude-code"}


@dataclass(frozen=True, slots=True)
class Detection:
    """The dialect that was recognised, or None, and the evidence for it."""

    dialect: Dialect | None
    evidence: str


@cache
def _patterns(field: str) -> tuple[tuple[str, Dialect], ...]:
    found = [(pattern.lower(), row) for row in table() if row.kind != "own" for pattern in getattr(row, field)]
    return tuple(sorted(found, key=lambda item: -len(item[0])))


def _match(field: str, text: str) -> Dialect | None:
    lowered = text.lower()
    return next((row for pattern, row in _patterns(field) if fnmatchcase(lowered, pattern)), None)


def _shared(name: str) -> Dialect | None:
    """Return the universal dialect for the default name that a library sends for clients that set no name."""
    everyones = get("universal")
    return everyones if name.lower() in everyones.client_info else None


def _by_alias(name: str) -> Dialect | None:
    try:
        found = get(name)
    except UnknownDialect:
        return None
    return None if found.kind == "own" else found


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) and len(value) <= _LONGEST else ""


def _client_name(client_info: object) -> str:
    if isinstance(client_info, Mapping):
        return _text(client_info.get("name"))
    return _text(client_info) or _text(getattr(client_info, "name", None))


def _from_name(name: str) -> Detection | None:
    inner = _WRAPPER.sub("", name).strip()
    found = None if not inner or _shared(inner) else _match("client_info", inner) or _by_alias(inner)
    if found is None and inner != name:
        found = get("mcp-remote")
    return Detection(found, f"clientInfo.name {excerpt(name)}") if found else None


def _from_vendor(value: str) -> Detection | None:
    found = _VENDORS.get(fold(value))
    return Detection(get(found), f"header x-anthropic-client: {excerpt(value)}") if found else None


def _from_user_agent(value: str) -> Detection | None:
    found = _match("user_agents", value)
    return Detection(found, f"User-Agent {excerpt(value)}") if found else None


def _from_override(headers: Mapping[str, str]) -> Detection | None:
    chosen, forced = headers.get("x-truename-dialect", ""), headers.get("x-openai-mode", "").lower()
    if chosen:
        return Detection(get(chosen), f"header x-truename-dialect: {excerpt(chosen)}")
    if forced == "true":
        return Detection(get("openai"), "header x-openai-mode: true")
    return Detection(None, "header x-openai-mode: false, so nothing is detected") if forced == "false" else None


def _unrecognised(name: str, agent: str) -> Detection:
    if (found := _shared(name)) is not None:
        return Detection(found, f"clientInfo.name {excerpt(name)} is the Python SDK's default, which many clients send")
    sent = [f"clientInfo.name {excerpt(name)}"] if name else []
    sent += [f"User-Agent {excerpt(agent)}"] if agent else []
    return Detection(None, f"{' and '.join(sent)} not known" if sent else "the client sent neither a name nor a header")


def detect(client_info: object = None, headers: Mapping[str, str] | None = None) -> Detection:
    """Detect the dialect of a client from the first of these sources that is conclusive.

    In this order: the headers ``x-truename-dialect`` and ``x-openai-mode``, clientInfo's name (a text, a mapping with
    ``name`` or an object with ``.name``), the headers ``x-anthropic-client`` and ``User-Agent``. Header names are
    compared without case. A name that a library sends by default means universal, unless a header is conclusive.
    Raises :class:`truename.errors.UnknownDialect` if ``x-truename-dialect`` asks for one that does not exist.

    >>> detect("claude-ai (via mcp-remote 0.1.18)").dialect.name
    'claude-desktop'
    >>> detect({"name": "mcp"}).dialect.name
    'universal'
    >>> detect("cursor-vscode", {"X-OpenAI-Mode": "false"}).dialect
    """
    sent = {key.lower(): _text(value) for key, value in (headers or {}).items() if isinstance(key, str)}
    name, agent = _client_name(client_info), sent.get("user-agent", "")
    return (
        _from_override(sent)
        or _from_name(name)
        or _from_vendor(sent.get("x-anthropic-client", ""))
        or _from_user_agent(agent)
        or _unrecognised(name, agent)
    )
