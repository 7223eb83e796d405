"""The ways in which clients write a tool's name in their configuration, and taking such a name apart.

A name is taken apart with the servers that are known: the one whose spelling fits, the longest first. Only where none
fits is it split at the first separator, as the clients themselves do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["SPELLINGS", "Parts", "Spelling", "parts", "variants"]

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_SUFFIX: Final = re.compile(r"\((?:[^()]|\([^()]*\))*\)?\Z")
_LONGEST: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """``tool`` is the template of one tool's name, ``whole`` are those that mean all tools of a server.

    ``argument``: something in parentheses may follow. ``split``: an unknown server ends at the first separator;
    else such a name can't be taken apart. ``pattern``: names are regular expressions.
    """

    name: str
    tool: str
    whole: tuple[str, ...]
    argument: bool = False
    split: bool = True
    pattern: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether a name of this spelling says nothing about its server."""
        return not any("{server}" in template for template in (self.tool, *self.whole))


class Parts(NamedTuple):
    """What a name is made of: ``template.format(server=..., tool=...) + suffix``; without a tool the whole server."""

    server: str | None
    tool: str | None
    template: str
    suffix: str = ""


SPELLINGS: Final[Mapping[str, Spelling]] = {
    one.name: one
    for one in (
        Spelling(name="tool", tool="{tool}", whole=("*",), argument=True),
        Spelling(name="tool(pattern)", tool="{tool}", whole=("*",), argument=True),
        Spelling(name="server", tool="", whole=("{server}",)),
        Spelling(
            name="mcp__server__tool",
            tool="mcp__{server}__{tool}",
            whole=("mcp__{server}__*", "mcp__{server}"),
            argument=True,
        ),
        Spelling(
            name="mcp__server__tool.*",
            tool="mcp__{server}__{tool}",
            whole=("mcp__{server}__.*", "mcp__{server}.*", "mcp__{server}__", "mcp__{server}"),
            pattern=True,
        ),
        Spelling(name="server:tool", tool="{server}:{tool}", whole=("{server}:*",)),
        Spelling(name="mcp:server:tool", tool="mcp:{server}:{tool}", whole=("mcp:{server}:*", "mcp:{server}")),
        Spelling(name="Mcp(server:tool)", tool="Mcp({server}:{tool})", whole=("Mcp({server}:*)", "Mcp({server})")),
        Spelling(name="server(tool)", tool="{server}({tool})", whole=("{server}(*)", "{server}")),
        Spelling(name="@server/tool", tool="@{server}/{tool}", whole=("@{server}/*", "@{server}")),
        Spelling(name="server/tool", tool="{server}/{tool}", whole=("{server}/*",)),
        Spelling(name="server_tool", tool="{server}_{tool}", whole=("{server}_*", "{server}*"), split=False),
        Spelling(name="mcp_server_tool", tool="mcp_{server}_{tool}", whole=("mcp_{server}_*",), argument=True),
        Spelling(name="server__tool", tool="{server}__{tool}", whole=("{server}__*",)),
    )
}


@lru_cache(maxsize=4096)
def variants(name: str) -> tuple[str, ...]:
    """Return a name as it stands, and as clients write it whose names have letters, digits, ``_`` and ``-`` only.

    >>> variants("claude.ai  Foo")
    ('claude.ai  Foo', 'claude_ai__Foo', 'claude_ai_Foo')
    """
    plain = _ILLEGAL.sub("_", name)
    return tuple(dict.fromkeys((name, plain, re.sub("_+", "_", plain))))


def parts(text: str, spelling: Spelling, servers: Iterable[str] = ()) -> Parts | None:
    """Take a kept name apart, or return None for one that is not spelled so: most often a tool of the client itself.

    >>> parts("mcp__git_hub__*", SPELLINGS["mcp__server__tool"]).server
    'git_hub'
    >>> parts("a__b__c", SPELLINGS["server__tool"], ["a__b"])
    Parts(server='a__b', tool='c', template='{server}__{tool}', suffix='')
    """
    if not text or len(text) > _LONGEST:
        return None
    if spelling.pattern and text.startswith("^"):
        found = parts(text[1:], spelling, servers)
        return found._replace(template="^" + found.template) if found and found.template else found
    whole, suffix = _without_suffix(text, spelling)
    if spelling.is_bare:
        return Parts(None, None, "*") if whole in spelling.whole else Parts(None, whole, "{tool}", suffix)
    return _known(spelling, tuple(servers)).of(whole, suffix) or _split(whole, suffix, spelling)


def _without_suffix(text: str, spelling: Spelling) -> tuple[str, str]:
    if spelling.pattern and text.endswith("$"):
        return text[:-1], "$"
    if not spelling.argument or not (found := _SUFFIX.search(text)) or not found.start():
        return text, ""
    return text[: found.start()], found[0]


class _Known:
    """The known servers by what names of theirs begin with: a name is looked up, not compared with each of them."""

    def __init__(self, spelling: Spelling, servers: Iterable[str]) -> None:
        before, _, self._after = spelling.tool.partition("{tool}")
        self._spelling = spelling
        self._wholes: dict[str, tuple[str, str]] = {}
        self._starts: dict[str, str] = {}
        for server in sorted(servers, key=len, reverse=True):
            for written in variants(server):
                for template in spelling.whole:
                    self._wholes.setdefault(template.format(server=written), (server, template))
                if before:
                    self._starts.setdefault(before.format(server=written), server)
        self._lengths = sorted({len(start) for start in self._starts}, reverse=True)

    def of(self, text: str, suffix: str) -> Parts | None:
        """Take a name apart that is of one of them."""
        if text in self._wholes:
            server, template = self._wholes[text]
            return Parts(server, None, template, suffix)
        for length in self._lengths:
            server = self._starts.get(text[:length], "")
            if server and len(text) > length + len(self._after) and text.endswith(self._after):
                tool = text[length : len(text) - len(self._after)]
                return Parts(server, tool, self._spelling.tool, suffix)
        return None


@lru_cache(maxsize=64)
def _known(spelling: Spelling, servers: tuple[str, ...]) -> _Known:
    return _Known(spelling, servers)


def _split(text: str, suffix: str, spelling: Spelling) -> Parts | None:
    """Take a name apart whose server is not known."""
    if not spelling.split:
        return Parts(None, text, "", suffix)
    for template, pattern in _patterns(spelling):
        if found := pattern.fullmatch(text):
            named = found.groupdict()
            return Parts(named["server"], named.get("tool"), template, suffix)
    return None


@lru_cache(maxsize=64)
def _patterns(spelling: Spelling) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(_compiled(spelling))


def _compiled(spelling: Spelling) -> Iterator[tuple[str, re.Pattern[str]]]:
    for template in (*spelling.whole[:1], spelling.tool, *spelling.whole[1:]):
        escaped = re.escape(template).replace(r"\{server\}", "(?P<server>.+?)").replace(r"\{tool\}", "(?P<tool>.+)")
        if template:
            yield template, re.compile(escaped, re.DOTALL)
