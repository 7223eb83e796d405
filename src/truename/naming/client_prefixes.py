"""Compute the affixes (prefix and suffix) that clients add to the gateway's names.

A name that a client sends back with its affixes resolves to the tool. No tool gets a name that looks as if it had such
affixes; otherwise a client's form of one tool's name could be another tool's name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from truename import dialects
from truename.identity import fold

__all__ = ["has_client_affixes", "strip_affixes"]

_Affixes = tuple[str, str]
_PROBE: Final = "truename_probe"
# Models prepend these to names by mistake (reported for several providers).
_MODEL_PREFIXES: Final = (("functions.", ""), ("default_api.", ""), ("default_api:", ""))


@lru_cache(maxsize=64)
def _client_affixes(server_name: str) -> tuple[tuple[str, str], ...]:
    """Return the affixes that the clients add to a name of this server."""
    frames = set()
    for name in dialects.names(older=True):
        shown = dialects.get(name).shown(server_name, _PROBE) or ""
        before, found, after = shown.partition(_PROBE)
        if found and (before or after):
            frames.add((before, after))
    return tuple(sorted(frames))


@lru_cache(maxsize=64)
def _folded_affixes(server_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folded prefixes and suffixes that a name must not have."""
    beginnings = {f"{fold(before)}_" for before, _ in _client_affixes(server_name) if before}
    endings = {f"_{fold(after)}" for _, after in _client_affixes(server_name) if after}
    return tuple(beginnings), tuple(endings)


def has_client_affixes(text: str, server_name: str) -> tuple[bool, bool]:
    """Return whether a name begins with a client's prefix, and whether it ends with a client's suffix.

    A name that equals a suffix counts too: with tools ``search`` and ``mcp_search``, a gateway with the key ``search``
    would have two tools that clients show as ``search_mcp_search``.

    >>> has_client_affixes("truename:search", "truename"), has_client_affixes("mcp_truename", "truename")
    ((True, False), (False, True))
    """
    beginnings, endings = _folded_affixes(server_name)
    folded = fold(text)
    return folded.startswith(beginnings), f"_{folded}".endswith(endings)


@lru_cache(maxsize=64)
def _by_length(server_name: str) -> tuple[tuple[int, dict[str, tuple[_Affixes, ...]]], ...]:
    """Return the affixes by the length of the prefix and by prefix, so that a text is compared with few of them."""
    lengths: dict[int, dict[str, tuple[_Affixes, ...]]] = {}
    for before, after in (*_client_affixes(server_name), *_MODEL_PREFIXES):
        same = lengths.setdefault(len(before), {})
        same[before.lower()] = (*same.get(before.lower(), ()), (before, after))
    return tuple(lengths.items())


@lru_cache(maxsize=64)
def _outermost(server_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all prefixes, and the suffixes of affixes without prefix, for a quick test that most texts fail."""
    frames = (*_client_affixes(server_name), *_MODEL_PREFIXES)
    beginnings, endings = (
        {before.lower() for before, _ in frames if before},
        {after.lower() for before, after in frames if not before},
    )
    return tuple(beginnings), tuple(endings)


def strip_affixes(text: str, server_name: str, *, exact: bool = False) -> list[str]:
    """Return the names that some client would show as this text, by removing its affixes.

    With ``exact``, the affixes must have the client's case; else case is ignored.

    >>> strip_affixes("MCP__truename__search", "truename")
    ['search']
    >>> strip_affixes("MCP__truename__search", "truename", exact=True)
    []
    """
    lowered = text.lower()
    beginnings, endings = _outermost(server_name)
    if not lowered.startswith(beginnings) and not lowered.endswith(endings):
        return []
    found = (
        text[length : len(text) - len(after)]
        for length, frames in _by_length(server_name)
        for before, after in frames.get(lowered[:length], ())
        if len(text) > length + len(after)
        and (text.startswith(before) and text.endswith(after) if exact else lowered.endswith(after.lower()))
    )
    return list(dict.fromkeys(found))
