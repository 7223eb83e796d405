"""Compute the prefixes and suffixes that clients put around the gateway's names.

A name that comes back with its frame is understood; a name that by itself begins like a frame is not given out, or a
client's form of one tool could be another tool's name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from truename import dialects
from truename.identity import fold

__all__ = ["framed_edges", "unframed"]

_Frame = tuple[str, str]
_PROBE: Final = "truename_probe"
# Models put these in front of a name out of habit (reported of several providers).
_HABITS: Final = (("functions.", ""), ("default_api.", ""), ("default_api:", ""))


@lru_cache(maxsize=64)
def _frames(server_name: str) -> tuple[tuple[str, str], ...]:
    """Return what the clients put before and behind a name for this server."""
    frames = set()
    for name in dialects.names():
        shown = dialects.get(name).shown(server_name, _PROBE) or ""
        before, found, after = shown.partition(_PROBE)
        if found and (before or after):
            frames.add((before, after))
    return tuple(sorted(frames))


@lru_cache(maxsize=64)
def _edges(server_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the beginnings and the endings, folded, that a name must not have."""
    beginnings = {f"{fold(before)}_" for before, _ in _frames(server_name) if before}
    endings = {f"_{fold(after)}" for _, after in _frames(server_name) if after}
    return tuple(beginnings), tuple(endings)


def framed_edges(text: str, server_name: str) -> tuple[bool, bool]:
    """Tell whether a name begins, and whether it ends, like one that a client has framed.

    An ending counts also as a whole name: with ``search`` and ``mcp_search``, a gateway that is called ``search`` would
    have two tools that clients show as ``search_mcp_search``.

    >>> framed_edges("truename:search", "truename"), framed_edges("mcp_truename", "truename")
    ((True, False), (False, True))
    """
    beginnings, endings = _edges(server_name)
    folded = fold(text)
    return folded.startswith(beginnings), f"_{folded}".endswith(endings)


@lru_cache(maxsize=64)
def _by_length(server_name: str) -> tuple[tuple[int, dict[str, tuple[_Frame, ...]]], ...]:
    """Return the frames by the length of their beginning, so that a text is compared a few times and not with all."""
    lengths: dict[int, dict[str, tuple[_Frame, ...]]] = {}
    for before, after in (*_frames(server_name), *_HABITS):
        same = lengths.setdefault(len(before), {})
        same[before.lower()] = (*same.get(before.lower(), ()), (before, after))
    return tuple(lengths.items())


@lru_cache(maxsize=64)
def _outermost(server_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the beginnings of frames, and the endings of those that have none: nearly no text has any."""
    frames = (*_frames(server_name), *_HABITS)
    beginnings, endings = (
        {before.lower() for before, _ in frames if before},
        {after.lower() for before, after in frames if not before},
    )
    return tuple(beginnings), tuple(endings)


def unframed(text: str, server_name: str, *, exact: bool = False) -> list[str]:
    """Return what is inside, if some client would have framed a name to be this text.

    ``exact`` takes a frame only as the client writes it; else its case does not count.

    >>> unframed("mcp__truename__search", "truename"), unframed("MCP__truename__search", "truename", exact=True)
    (['search'], [])
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
