"""Spelling: the names that a tool would like, best first, before anybody else is asked."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog import usable_aliases
from truename.identity import digest_of, fold
from truename.naming.frames import framed_edges
from truename.naming.shorten import drop_words, prefix_words, server_variants, telling_words
from truename.naming.words import snake, split, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import Catalog, Tool
    from truename.dialects import Dialect
    from truename.naming.style import Style

__all__ = ["Speller", "Spelling"]

_LEAST_SERVER_ROOM: Final = 32
_ANY: Final = 10_000
_FALLBACK: Final = "tool"
_SEPARATORS: Final = "_-."
_ID_SYNTAX: Final = re.compile(r"[/~%]+")
_VERBATIM, _ADAPTED, _TRANSLITERATED, _GIVES_WAY = range(4)


class Spelling(NamedTuple):
    """One wish: the text, the server's part that it begins with (with separator), and how it came about.

    ``rank`` 0 is a plain form with the tool's own name verbatim; 1 has it adapted (case, separators), 2 transliterated;
    3 gives way to all plain forms (stutter removed, shortened).
    """

    text: str
    prefix: str = ""
    rank: int = 0
    how: str = "as declared"
    shortened: bool = False


class _ServerPart(NamedTuple):
    text: str
    words: tuple[str, ...]
    own: tuple[str, ...]
    alias: str | None


class Speller:
    """Spells tools of one catalogue for one dialect in one style; pure, and bound to nothing that changes."""

    def __init__(
        self, catalog: Catalog, dialect: Dialect, style: Style, server_name: str, former: tuple[str, ...] = ()
    ) -> None:
        """Bind the speller; ``former`` are server names under which clients framed these names before."""
        self.catalog = catalog
        self.dialect = dialect
        self.style = style
        self.server_name = server_name
        self._own_words = tuple((name, fold(name).partition("_")[0]) for name in dict.fromkeys((server_name, *former)))
        # A word that is not the gateway's own either: `tool_search` is a name that clients frame for a gateway `tool`.
        taken = {word for name in (server_name, *former) for word in fold(name).split("_")}
        self._word = next(word for n in count(1) if (word := f"{_FALLBACK}{n if n > 1 else ''}") not in taken)
        room = dialect.room(server_name)
        self.room = _ANY if room is None else room
        self._snake = dialect.words == "snake"
        self._aliases = usable_aliases(catalog.aliases, {id.integration for id in catalog})
        self._servers: dict[tuple[str, str], _ServerPart] = {}
        self._told: dict[str, Mapping[tuple[str, ...], frozenset[str]]] = {}
        self._illegal: re.Pattern[str] | None = None
        if dialect.chars is not None:
            self._illegal = re.compile(f"[^{re.escape(''.join(sorted(dialect.chars)))}]+")
        self.separator = self._legal_or_underscore(style.separator)
        self._dot = self._legal_or_underscore(style.dot)
        # Seed 004 writes the label as it is in front of its colon.
        self._verbatim_server = self._illegal is None or self.separator == ":"

    def _legal_or_underscore(self, text: str) -> str:
        return "_" if self._illegal is not None and self._illegal.search(text) else text

    def wishes(self, tool: Tool) -> tuple[Spelling, ...]:
        """Return the spellings that the style wants for this tool, best first; never empty."""
        if self.style.spelling == "canonical":
            return (Spelling(str(tool.id), how="the canonical id"),)
        if self.style.spelling == "verbatim":
            return (Spelling(tool.origin.name),)
        if self.style.prefix == "always":
            return self._prefixed(tool)
        bare = self._bare(tool)
        return (bare, *self._prefixed(tool)) if self.style.prefix == "on-conflict" else (bare,)

    def fitted(self, tool: Tool, suffix: str) -> str:
        """Return the name with this suffix, shortened as far as it must be."""
        name = self._shortened(tool, self.room - len(suffix)) + suffix
        # A word that has to stand there takes room too.
        more = len(self.led(name)) - len(name)
        return self.led(self._shortened(tool, self.room - len(suffix) - more) + suffix) if more else name

    def _shortened(self, tool: Tool, room: int) -> str:
        if self.style.prefix == "always":
            return self._fit_prefixed(tool, room).text.rstrip("_")
        return self._fit_tool(tool, self.led(self.tool_text(tool)), room).rstrip("_")

    def tool_text(self, tool: Tool) -> str:
        """Return the tool's own part, legal in this dialect but for its length."""
        name = tool.origin.name
        if self._snake:
            text = snake(name)
        else:
            # These three are the syntax of ids and their encodings: with them a name could read as another tool's id.
            name = _ID_SYNTAX.sub("_", name)
            text = name.replace(".", self._dot) if self._dot != "." else name
            if self._illegal is not None and self._illegal.search(text):
                joined = self._illegal.sub("_", text) if text.isascii() else "_".join(split(text))
                text = joined.strip("_")
            text = self._trimmed(text)
        return text if text.strip(_SEPARATORS) else f"{_FALLBACK}_{digest_of(str(tool.id), 4)}"

    def _trimmed(self, text: str) -> str:
        """Take off separators at the edges that may not stand there."""
        first, last = self.dialect.first, self.dialect.last
        if first is not None and text[:1] not in first:
            text = text.lstrip(_SEPARATORS)
        if last is not None and text[-1:] not in last:
            text = text.rstrip(_SEPARATORS)
        return text

    def server_part(self, tool: Tool) -> _ServerPart:
        """Return the server's part of this tool's names: its alias, or the words of its key."""
        key = (tool.origin.server_id, tool.id.integration)
        part = self._servers.get(key)
        if part is None:
            part = self._servers[key] = self._make_server_part(tool)
        return part

    def _make_server_part(self, tool: Tool) -> _ServerPart:
        label, integration = tool.origin.server, tool.id.integration
        # A key that became a lossy id is spelled from its own words: a digest says nothing to a reader.
        plain = integration if label.lower() == integration else label
        full = words(plain) or words(integration)
        own = words(plain.rstrip("/").rpartition("/")[2]) or full
        alias = self._aliases.get(integration)
        text = self._legal(alias if alias is not None else label if self._verbatim_server else plain)
        if self.led(text) != text and self.led(own[0]) == own[0]:
            text = "_".join(own)
        return _ServerPart(text or "_".join(full), full, own, alias)

    def _legal(self, shown: str) -> str:
        if self._snake:
            return snake(shown)
        shown = _ID_SYNTAX.sub("_", shown)
        if self._illegal is None:
            return shown
        return self._illegal.sub("_", shown).strip("_") if shown.isascii() else ""

    def _bare(self, tool: Tool) -> Spelling:
        text = self.led(self.tool_text(tool))
        how = "the tool's own name" if text == tool.origin.name else "the tool's own name, adapted to the client"
        if len(text) <= self.room:
            return Spelling(text, rank=self._rank(tool, text), how=how)
        return Spelling(self._fit_tool(tool, text, self.room), rank=_GIVES_WAY, how="shortened", shortened=True)

    @staticmethod
    def _rank(tool: Tool, text: str) -> int:
        """Rank a plain form: a look-alike never takes the name of a tool that is called so itself."""
        own = tool.origin.name
        if text == own:
            return _VERBATIM
        return _ADAPTED if own.isascii() else _TRANSLITERATED

    def led(self, text: str) -> str:
        """Put a word where a name must not begin or end so: at a wrong first character, or at a client's own frame."""
        first = self.dialect.first
        if first is not None and text[:1] not in first:
            text = f"{self._word}_{text}"
        begins, ends = self.framed(text)
        if ends:
            text = f"{text}_{self._word}"
            begins, _ = self.framed(text)
        return f"{self._word}_{text}" if begins else text

    def framed(self, text: str) -> tuple[bool, bool]:
        """Tell whether a name begins, and whether it ends, like one that a client has framed."""
        lowered = text.lower()
        # Nearly no name has the gateway's own in it; the look at the frames is for those that do.
        edges = [framed_edges(text, name) for name, word in self._own_words if word in lowered]
        return any(begins for begins, _ in edges), any(ends for _, ends in edges)

    def _prefixed(self, tool: Tool) -> tuple[Spelling, ...]:
        server, text = self.server_part(tool), self.tool_text(tool)
        prefix = f"{self.style.lead}{server.text}{self.separator}"
        how = f"alias {server.alias} for {tool.id.integration}" if server.alias else f"the server's name, {server.text}"
        name = self.led(prefix + text)
        if len(name) > self.room:
            return (self._fit_prefixed(tool, self.room),)
        full = Spelling(name, prefix, self._rank(tool, text), how)
        if self.style.lead or not _stutters(server.text, text):
            return (full,)
        short = Spelling(self.led(text), "", _GIVES_WAY, f"the tool's name already begins with {server.text}")
        return (short, full._replace(rank=_GIVES_WAY))

    def _fit_prefixed(self, tool: Tool, room: int) -> Spelling:
        server, text = self.server_part(tool), self.tool_text(tool)
        lead, separator = self.style.lead, self.separator
        plain = Spelling(
            self.led(f"{lead}{server.text}{separator}{text}"), f"{lead}{server.text}{separator}", _GIVES_WAY, ""
        )
        if len(plain.text) <= room:
            return plain
        if not server.alias and room >= _LEAST_SERVER_ROOM:
            for variant in server_variants(server.own, server.words):
                prefix = f"{lead}{'_'.join(variant)}{separator}"
                if len(name := self.led(prefix + text)) <= room:
                    return Spelling(
                        name, prefix, _GIVES_WAY, f"the server's part shortened to {'_'.join(variant)}", shortened=True
                    )
        return Spelling(
            self._fit_tool(tool, self.led(text), room),
            "",
            _GIVES_WAY,
            "shortened to the tool's own words",
            shortened=True,
        )

    def _fit_tool(self, tool: Tool, text: str, room: int) -> str:
        if len(text) <= room:
            return text
        own = self._split(tool)
        shorter = drop_words(own, room, self._telling(tool.origin.server_id).get(own, frozenset()))
        if shorter is not None:
            return self.led("_".join(shorter))
        digest = digest_of(str(tool.id), 4)
        return self.led(f"{'_'.join(prefix_words(own, room - 5))}_{digest}")

    def _split(self, tool: Tool) -> tuple[str, ...]:
        own = words(tool.origin.name) if self._snake else split(tool.origin.name)
        return own or (_FALLBACK,)

    def _telling(self, server_id: str) -> Mapping[tuple[str, ...], frozenset[str]]:
        if server_id not in self._told:
            self._told[server_id] = telling_words(self._split(tool) for tool in self._siblings[server_id])
        return self._told[server_id]

    @cached_property
    def _siblings(self) -> Mapping[str, list[Tool]]:
        servers: dict[str, list[Tool]] = {}
        for tool in self.catalog.values():
            servers.setdefault(tool.origin.server_id, []).append(tool)
        return servers


def _stutters(server: str, text: str) -> bool:
    return text == server or (text.startswith(server) and text[len(server)] in "_-.")
