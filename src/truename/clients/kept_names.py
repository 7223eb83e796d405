"""Read the tool names in clients' files: allow lists, approvals, hooks, policies and agents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.machine import like
from truename.editing import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.clients.table import ConfigFile, ConfigPlace

Where = tuple[str | int, ...]

__all__ = ["SPELLINGS", "KeptName", "kept_names", "matches", "respell", "split_name"]

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_SUFFIX: Final = re.compile(r"\((?:[^()]|\([^()]*\))*\)?\Z")
_LONGEST: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSpelling:
    """A way in which clients write tool names.

    ``tool`` is the template of one tool, ``whole`` are templates of all tools of a server. ``argument``: text in
    parentheses may follow. ``split``: the key of an unknown server ends at the first separator; otherwise such a name
    cannot be parsed. ``pattern``: names are regular expressions.
    """

    name: str
    tool: str
    whole: tuple[str, ...]
    argument: bool = False
    split: bool = True
    pattern: bool = False

    @property
    def is_without_server(self) -> bool:
        """Whether names of this spelling do not include their server."""
        return not any("{server}" in template for template in (self.tool, *self.whole))


class KeptNameParts(NamedTuple):
    """A parsed name: ``template.format(server=..., tool=...) + suffix``; ``tool`` is None for a whole server."""

    server: str | None
    tool: str | None
    template: str
    suffix: str = ""


SPELLINGS: Final[Mapping[str, KeptSpelling]] = {
    one.name: one
    for one in (
        KeptSpelling(name="tool", tool="{tool}", whole=("*",), argument=True),
        KeptSpelling(name="tool(pattern)", tool="{tool}", whole=("*",), argument=True),
        KeptSpelling(name="server", tool="", whole=("{server}",)),
        KeptSpelling(
            name="mcp__server__tool",
            tool="mcp__{server}__{tool}",
            whole=("mcp__{server}__*", "mcp__{server}"),
            argument=True,
        ),
        KeptSpelling(
            name="mcp__server__tool.*",
            tool="mcp__{server}__{tool}",
            whole=("mcp__{server}__.*", "mcp__{server}.*", "mcp__{server}__", "mcp__{server}"),
            pattern=True,
        ),
        KeptSpelling(name="server:tool", tool="{server}:{tool}", whole=("{server}:*",)),
        KeptSpelling(name="mcp:server:tool", tool="mcp:{server}:{tool}", whole=("mcp:{server}:*", "mcp:{server}")),
        KeptSpelling(name="Mcp(server:tool)", tool="Mcp({server}:{tool})", whole=("Mcp({server}:*)", "Mcp({server})")),
        KeptSpelling(name="server(tool)", tool="{server}({tool})", whole=("{server}(*)", "{server}")),
        KeptSpelling(name="@server/tool", tool="@{server}/{tool}", whole=("@{server}/*", "@{server}")),
        KeptSpelling(name="server/tool", tool="{server}/{tool}", whole=("{server}/*",)),
        KeptSpelling(name="server_tool", tool="{server}_{tool}", whole=("{server}_*", "{server}*"), split=False),
        KeptSpelling(name="mcp_server_tool", tool="mcp_{server}_{tool}", whole=("mcp_{server}_*",), argument=True),
        KeptSpelling(name="server__tool", tool="{server}__{tool}", whole=("{server}__*",)),
    )
}


@lru_cache(maxsize=4096)
def sanitized_forms(name: str) -> tuple[str, ...]:
    """Return a name and its forms in clients that replace other characters than letters, digits, ``_`` and ``-``.

    >>> sanitized_forms("claude.ai  Foo")
    ('claude.ai  Foo', 'claude_ai__Foo', 'claude_ai_Foo')
    """
    plain = _ILLEGAL.sub("_", name)
    return tuple(dict.fromkeys((name, plain, re.sub("_+", "_", plain))))


def split_name(text: str, spelling: KeptSpelling, servers: Iterable[str] = ()) -> KeptNameParts | None:
    """Parse a kept name; return None if it does not have this spelling, as the client's built-in tools.

    >>> split_name("mcp__git_hub__*", SPELLINGS["mcp__server__tool"]).server
    'git_hub'
    >>> split_name("a__b__c", SPELLINGS["server__tool"], ["a__b"])
    KeptNameParts(server='a__b', tool='c', template='{server}__{tool}', suffix='')
    """
    if not text or len(text) > _LONGEST:
        return None
    if spelling.pattern and text.startswith("^"):
        found = split_name(text[1:], spelling, servers)
        return found._replace(template="^" + found.template) if found and found.template else found
    whole, suffix = _split_suffix(text, spelling)
    if spelling.is_without_server:
        return (
            KeptNameParts(None, None, "*") if whole in spelling.whole else KeptNameParts(None, whole, "{tool}", suffix)
        )
    return _known_servers(spelling, tuple(servers)).of(whole, suffix) or _parse_unknown(whole, suffix, spelling)


def _split_suffix(text: str, spelling: KeptSpelling) -> tuple[str, str]:
    if spelling.pattern and text.endswith("$"):
        return text[:-1], "$"
    if not spelling.argument or not (found := _SUFFIX.search(text)) or not found.start():
        return text, ""
    return text[: found.start()], found[0]


class _KnownServers:
    """An index of the known servers by the prefixes of their names, so that a name is looked up instead of compared."""

    def __init__(self, spelling: KeptSpelling, servers: Iterable[str]) -> None:
        before, _, self._after = spelling.tool.partition("{tool}")
        self._spelling = spelling
        self._wholes: dict[str, tuple[str, str]] = {}
        self._starts: dict[str, str] = {}
        for server in sorted(servers, key=len, reverse=True):
            for written in sanitized_forms(server):
                for template in spelling.whole:
                    self._wholes.setdefault(template.format(server=written), (server, template))
                if before:
                    self._starts.setdefault(before.format(server=written), server)
        self._lengths = sorted({len(start) for start in self._starts}, reverse=True)

    def of(self, text: str, suffix: str) -> KeptNameParts | None:
        """Parse a name of one of the known servers."""
        if text in self._wholes:
            server, template = self._wholes[text]
            return KeptNameParts(server, None, template, suffix)
        for length in self._lengths:
            server = self._starts.get(text[:length], "")
            if server and len(text) > length + len(self._after) and text.endswith(self._after):
                tool = text[length : len(text) - len(self._after)]
                return KeptNameParts(server, tool, self._spelling.tool, suffix)
        return None


_known_servers: Final = lru_cache(maxsize=64)(_KnownServers)


def _parse_unknown(text: str, suffix: str, spelling: KeptSpelling) -> KeptNameParts | None:
    """Parse a name of an unknown server."""
    if not spelling.split:
        return KeptNameParts(None, text, "", suffix)
    for template, pattern in _patterns(spelling):
        if found := pattern.fullmatch(text):
            named = found.groupdict()
            return KeptNameParts(named["server"], named.get("tool"), template, suffix)
    return None


@lru_cache(maxsize=64)
def _patterns(spelling: KeptSpelling) -> tuple[tuple[str, re.Pattern[str]], ...]:
    templates = [template for template in (*spelling.whole[:1], spelling.tool, *spelling.whole[1:]) if template]
    escaped = (
        re.escape(template).replace(r"\{server\}", "(?P<server>.+?)").replace(r"\{tool\}", "(?P<tool>.+)")
        for template in templates
    )
    return tuple(zip(templates, (re.compile(pattern, re.DOTALL) for pattern in escaped), strict=True))


_NOT_SIMPLE: Final = re.compile(r"[\\()\[\]{}+?^$|]")
_WILD: Final = re.compile(r"[*?]")


@dataclass(frozen=True, kw_only=True)
class KeptName:
    """A tool name in a client's file. Without a ``tool`` it means the whole ``server``; both may contain globs.

    ``where`` is the path to the text: a value, or a key if ``is_key``. ``within`` is the whole text of which the name
    is one alternative, as in a hook's ``mcp__a__x|mcp__b__y``. ``server`` is None if the name cannot be parsed
    (opencode's ``a_b_c``). ``effect`` is allow, deny or ask (a permission), only or without (lists of offered or
    hidden tools), hook, alias or setting. ``opaque``: a regular expression that is too complex to analyse; its server
    and tool are None.
    """

    text: str
    spelling: str
    path: Path
    where: tuple[str | int, ...]
    server: str | None
    tool: str | None
    effect: str
    is_key: bool = False
    within: str = ""
    opaque: bool = False
    template: str = field(default="", repr=False)
    suffix: str = field(default="", repr=False)


def matches(kept: KeptName, server: str, tool: str | None, shown: str | None = None) -> bool:
    """Return whether a kept name matches a tool or, with ``tool=None``, may match any tool of the server.

    ``shown`` is the name under which the client shows the tool, if known. An opaque name may match any server, but
    matches no single tool.

    >>> from pathlib import Path
    >>> kept = KeptName(text="mcp__a__get_*", spelling="mcp__server__tool", path=Path(), where=(), server="a",
    ...                 tool="get_*", effect="allow")
    >>> matches(kept, "a", "get_it"), matches(kept, "a", "set_it"), matches(kept, "a", None)
    (True, False, True)
    """
    spelling = SPELLINGS[kept.spelling]
    pattern = to_glob(kept.text.removesuffix(kept.suffix), regular=spelling.pattern)
    if kept.opaque or pattern is None:
        return tool is None
    if spelling.is_without_server:
        is_owned = kept.server is None or _covers(kept.server, server, regular=False)
        return is_owned and (tool is None or any(like(one, pattern) for one in sanitized_forms(tool)))
    owners = sanitized_forms(server)
    texts = (template.format(server=owner) for template in spelling.whole for owner in owners)
    whole_server = {to_glob(text, regular=spelling.pattern) for text in texts}
    if pattern in whole_server or (shown is not None and like(shown, pattern)):
        return True
    if tool is None or not spelling.tool:
        return _may_match(kept, pattern, server, spelling)
    return any(
        like(spelling.tool.format(server=owner, tool=one), pattern) for owner in owners for one in sanitized_forms(tool)
    )


def respell(kept: KeptName, server: str, tool: str | None) -> str:
    """Return the text of a kept name for another server, and for another tool if one is given.

    A name for a whole server remains one, and a glob that matches the new name is kept.

    >>> from pathlib import Path
    >>> kept = KeptName(text="@git/*", spelling="@server/tool", path=Path(), where=(), server="git", tool=None,
    ...                 effect="allow", template="@{server}/*")
    >>> respell(kept, "tn", None), respell(kept, "tn", "status")
    ('@tn/*', '@tn/status')
    """
    if kept.opaque or (server == kept.server and tool == kept.tool):
        return kept.text
    spelling = SPELLINGS[kept.spelling]
    if kept.server is None and tool is None and not spelling.is_without_server:
        return kept.text
    template = kept.template or (spelling.tool if tool or kept.tool else spelling.whole[0])
    if kept.tool is None and tool is not None:
        template = ("^" if template.startswith("^") else "") + spelling.tool if spelling.tool else template
    if kept.server and _WILD.search(kept.server) and _covers(kept.server, server, regular=spelling.pattern):
        # A glob that matches the new server is kept.
        server = kept.server
    return template.format(server=server, tool=_new_tool(kept, tool, spelling)) + kept.suffix


def to_glob(text: str, *, regular: bool) -> str | None:
    """Convert a name in a client's file to a glob; None for a regular expression that is too complex.

    >>> to_glob("^mcp__a__.*", regular=True), to_glob("mcp__(a|b)__.*", regular=True)
    ('mcp__a__*', None)
    """
    if not regular:
        return text
    simple = text.removeprefix("^").removesuffix("$").replace(".+", ".*").replace(".*", "*")
    return None if _NOT_SIMPLE.search(simple) else simple.replace(".", "?")


def _may_match(kept: KeptName, pattern: str, server: str, spelling: KeptSpelling) -> bool:
    if kept.server is not None:
        return _covers(kept.server, server, regular=spelling.pattern)
    # An unparsed name matches if it begins with the server's prefix, or is a glob that could.
    start = spelling.tool.partition("{tool}")[0]
    starts = [start.format(server=owner) for owner in sanitized_forms(server)]
    literal = _WILD.split(pattern)[0]
    return any(literal.startswith(one) or (literal != pattern and one.startswith(literal)) for one in starts)


def _new_tool(kept: KeptName, tool: str | None, spelling: KeptSpelling) -> str | None:
    if tool is None or kept.tool is None or not _WILD.search(kept.tool):
        return kept.tool if tool is None else tool
    glob = to_glob(kept.tool, regular=spelling.pattern)
    return kept.tool if glob is not None and like(tool, glob) else tool


def _covers(kept: str, server: str, *, regular: bool) -> bool:
    if kept in sanitized_forms(server):
        return True
    pattern = to_glob(kept, regular=regular) if _WILD.search(kept) else None
    return pattern is not None and any(like(one, pattern) for one in sanitized_forms(server))


_MOST: Final = 10_000
_HOOK: Final = "mcp__server__tool.*"
_EFFECTS: Final[Mapping[object, str]] = {
    True: "allow",
    False: "deny",
    "allow": "allow",
    "deny": "deny",
    "ask": "ask",
    "confirm": "ask",
    "ask_user": "ask",
}


class _FoundText(NamedTuple):
    """A text that may be a tool name: its path, the value at that path, and the server that the path names."""

    where: Where
    text: str
    value: object
    server: str | None
    is_key: bool = False


class _NamesReader(NamedTuple):
    """The file that is read, and the known servers."""

    path: Path
    value: object
    servers: tuple[str, ...]


def kept_names(
    file: ConfigFile,
    path: Path,
    value: object,
    entries: Iterable[tuple[str, Where]],
    servers: Iterable[str],
    *,
    most: int = _MOST,
) -> tuple[KeptName, ...]:
    """Return the tool names in a file, without the client's built-in tools, and at most so many.

    ``entries`` are the file's servers with their paths, ``servers`` the keys of all known servers of the client.
    """
    reading = _NamesReader(path, value, tuple(servers))
    inside = (
        name
        for key, where in entries
        for place in file.entry
        for found_text in _find_texts(value_at(value, where), place.path, where, key)
        for name in _read_name(found_text, place.spelling, place.effect, reading)
    )
    beside = (name for place in file.kept for name in _read_place(place, reading))
    names = (name for both in (inside, beside) for name in both if not _is_builtin(file, name))
    return tuple(islice(names, most))


def _read_place(place: ConfigPlace, reading: _NamesReader) -> Iterator[KeptName]:
    for found_text in _find_texts(reading.value, place.path, (), None):
        if place.spelling == "policy":
            yield from _read_rule(found_text, reading)
        elif place.effect == "hook":
            yield from _read_hook(found_text, reading)
        else:
            effect, decision = place.effect, found_text.value
            if effect == "by-value":
                decision = decision.get("default") if isinstance(decision, dict) else decision
                effect = _EFFECTS.get(decision, "setting") if isinstance(decision, str | bool) else "setting"
            yield from _read_name(found_text, place.spelling, effect, reading)


def _read_name(found_text: _FoundText, spelling: str, effect: str, reading: _NamesReader) -> Iterator[KeptName]:
    found = split_name(found_text.text, SPELLINGS[spelling], reading.servers)
    if found is not None:
        owned = found if found_text.server is None else found._replace(server=found_text.server)
        yield _kept_name(found_text, spelling, effect, reading.path, owned)


def _read_hook(found_text: _FoundText, reading: _NamesReader) -> Iterator[KeptName]:
    matcher = found_text.text
    if "(" in matcher:
        # A pattern with groups is not split into its alternatives.
        pieces = [matcher] if "mcp__" in matcher else []
    else:
        pieces = [piece for piece in matcher.split("|") if piece.removeprefix("^").startswith("mcp__")]
    for piece in pieces:
        known = to_glob(piece, regular=True) is not None
        found = split_name(piece, SPELLINGS[_HOOK], reading.servers) if known else None
        yield _kept_name(found_text, _HOOK, "hook", reading.path, found or KeptNameParts(None, None, ""), piece=piece)


def _read_rule(found_text: _FoundText, reading: _NamesReader) -> Iterator[KeptName]:
    """Read one rule of Gemini CLI's policies: ``mcpName`` is a server, ``toolName`` a tool of it or a full name."""
    rule = found_text.value if isinstance(found_text.value, dict) else {}
    effect = _EFFECTS.get(str(rule.get("decision")), "setting")
    server = rule.get("mcpName")
    server = server if isinstance(server, str) and server else None
    if server is not None:
        at = _FoundText((*found_text.where, "mcpName"), server, None, server)
        yield _kept_name(at, "server", effect, reading.path, KeptNameParts(server, None, "{server}"))
    for at in _find_texts(rule, ("toolName",), found_text.where, server):
        yield from _read_name(at, "mcp_server_tool" if server is None else "tool", effect, reading)


def _kept_name(
    found_text: _FoundText, spelling: str, effect: str, path: Path, found: KeptNameParts, *, piece: str = ""
) -> KeptName:
    text = piece or found_text.text
    return KeptName(
        text=text,
        spelling=spelling,
        path=path,
        where=found_text.where,
        server=found.server,
        tool=found.tool,
        effect=effect,
        is_key=found_text.is_key,
        within="" if text == found_text.text else found_text.text,
        opaque=SPELLINGS[spelling].pattern and to_glob(text, regular=True) is None,
        template=found.template,
        suffix=found.suffix,
    )


def _find_texts(value: object, path: tuple[str, ...], where: Where, server: str | None) -> Iterator[_FoundText]:
    """Yield the texts at a path of keys: a string, each string of a list, or an object with an empty text."""
    if not path:
        if isinstance(value, list):
            pairs = enumerate(value)
            yield from (_FoundText((*where, at), item, item, server) for at, item in pairs if isinstance(item, str))
        elif isinstance(value, str | dict):
            yield _FoundText(where, value if isinstance(value, str) else "", value, server)
        return
    step, rest = path[0], path[1:]
    if step == "{name}":
        yield from (_FoundText((*where, key), str(key), item, server, is_key=True) for key, item in _items(value))
    elif step in {"*", "{server}"}:
        for key, item in _items(value):
            yield from _find_texts(item, rest, (*where, key), str(key) if step == "{server}" else server)
    elif isinstance(value, dict) and step in value:
        yield from _find_texts(value[step], rest, (*where, step), server)


def _items(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _is_builtin(file: ConfigFile, name: KeptName) -> bool:
    text = name.text.removesuffix(name.suffix)
    return any(text == builtin or (builtin != "*" and like(text, builtin)) for builtin in file.builtin)
