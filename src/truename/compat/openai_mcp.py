"""Name MCP tools as openai-agents does, with the server as a prefix or without.

Truename's own style for this is ``server-prefix``, with a ledger. The library's names depend on which other servers are
present, unless names are ``held``.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from truename.compat.openai_tools import AgentsError, members_of
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = [
    "Held",
    "NamedMcpTool",
    "Server",
    "get_mcp_server_log_name",
    "held_by",
    "prefixed_names",
    "reserved_names",
    "unprefixed_names",
]

Server = tuple[str, "Sequence[str]"]
# The key of a shown name: the server's displayed name, the tool's own name, and its ordinal among equal ones.
Held = dict[tuple[str, str, int], str]

_LOG: Final = logging.getLogger(__name__)
_LONGEST: Final = 64
_TRANSPORT: Final = re.compile(r"sse: |streamable_http: |streamable-http: |")
_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9_-]")
_INVALID: Final = "<invalid-url>"


class NamedMcpTool(NamedTuple):
    """One tool of one server, by their positions in the lists, with its own name and the name shown to the model."""

    server: int
    tool: int
    original: str
    public: str


class _NameRequest(NamedTuple):
    # The fields are in the order in which names are assigned.
    initial: str
    seed: str
    server: int
    tool: int
    base: str
    original: str
    key: tuple[str, str, int]


def get_mcp_server_log_name(name: str) -> str:
    """Return a server's name for logs: a URL without user, password, query and fragment.

    >>> get_mcp_server_log_name("sse: https://me:secret@example.com/mcp?key=1")
    'sse: https://example.com/mcp'
    """
    matched = _TRANSPORT.match(name)
    transport = matched.group() if matched else ""
    rest = name.removeprefix(transport)
    try:
        shown = _shown(rest)
    except ValueError:
        shown = _INVALID if transport or rest.lower().startswith(("http://", "https://")) else rest
    return transport + shown


def _shown(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"}:
        return address
    host, port = parts.hostname, parts.port
    if not host or re.search(r"\s", host):
        return _INVALID
    place = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, place if port is None else f"{place}:{port}", parts.path, "", ""))


def reserved_names(tools: Iterable[object], handoffs: Iterable[object] = ()) -> frozenset[str]:
    """Return the names that no MCP tool may get: those of handoffs and of all tools, without their namespaces."""
    return frozenset(member.names.name for member in members_of([*tools, *handoffs]) if member.names.name)


def prefixed_names(
    servers: Sequence[Server], reserved: Collection[str] = (), held: Mapping[tuple[str, str, int], str] | None = None
) -> tuple[NamedMcpTool, ...]:
    """Return the names ``mcp_<server>__<tool>`` of all tools, in order.

    A name that is too long, reserved, or repeated ends with 8 hex digits of a SHA-1 instead. ``held`` names (see
    `held_by`) were shown before: they stay when servers join, and the new tool gets another name.

    >>> before = prefixed_names([("foo", ["create"])])
    >>> servers = [("foo", ["create"]), ("foo!", ["create"])]
    >>> [name.public for name in prefixed_names(servers, held=held_by([("foo", ["create"])], before))]
    ['mcp_foo__create', 'mcp_foo__create_c5bfb330']
    """
    kept = held or {}
    taken = {*reserved, *kept.values()}
    names: dict[tuple[int, int], NamedMcpTool] = {}
    for wanted in sorted(_wanted(servers, reserved, kept)):
        public = kept.get(wanted.key) or _free(wanted, taken)
        taken.add(public)
        names[wanted.server, wanted.tool] = NamedMcpTool(wanted.server, wanted.tool, wanted.original, public)
    return tuple(names[place] for place in sorted(names))


def held_by(servers: Sequence[Server], names: Iterable[NamedMcpTool]) -> Held:
    """Convert shown names to the form in which `prefixed_names` accepts them as held names."""
    places = {(wanted.server, wanted.tool): wanted.key for wanted in _wanted(servers, frozenset(), {})}
    return {places[name.server, name.tool]: name.public for name in names}


def unprefixed_names(servers: Sequence[Server]) -> tuple[str, ...]:
    """Return the tools' own names, in order; a tool that a server lists twice counts once, with a warning.

    Raises `AgentsError` ``duplicate_mcp_tool`` for a name that two servers have.
    """
    for label, tools in servers:
        for name in (name for name, count in Counter(tools).items() if count > 1):
            _LOG.warning("Server %s lists %s more than once; it counts once", excerpt(label), excerpt(name))
    once = [name for _, tools in servers for name in dict.fromkeys(tools)]
    if repeated := sorted(name for name, count in Counter(once).items() if count > 1):
        raise AgentsError(code="duplicate_mcp_tool", name=repeated[0], other=", ".join(map(excerpt, repeated)))
    return tuple(once)


def _wanted(
    servers: Sequence[Server], reserved: Collection[str], held: Mapping[tuple[str, str, int], str]
) -> list[_NameRequest]:
    listed = [
        (get_mcp_server_log_name(label), name, server, tool)
        for server, (label, tools) in enumerate(servers)
        for tool, name in enumerate(tools)
    ]
    bases = Counter(_base(label, name) for label, name, _, _ in listed)
    alike: Counter[tuple[str, str]] = Counter()
    found = []
    for label, name, server, tool in listed:
        base, seed, key = _base(label, name), f"{label}\0{name}", (label, name, alike[label, name])
        alike[label, name] += 1
        hashed = len(base) > _LONGEST or bases[base] > 1 or base in reserved
        initial = held.get(key) or (_hashed(base, seed) if hashed else base)
        found.append(_NameRequest(initial, seed, server, tool, base, name, key))
    return found


def _free(wanted: _NameRequest, taken: Collection[str]) -> str:
    public, number = wanted.initial, 0
    while public in taken:
        number += 1
        public = _hashed(wanted.base, f"{wanted.seed}\0{number}")
    return public


def _base(server: str, tool: str) -> str:
    return f"mcp_{_part(server) or 'server'}__{_part(tool) or 'tool'}"


def _part(name: str) -> str:
    return _OUTSIDE.sub("_", name).strip("_-")


def _hashed(base: str, seed: str) -> str:
    digest = hashlib.sha1(seed.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:8]
    return f"{base[: _LONGEST - 9].rstrip('_-') or 'mcp'}_{digest}"
