"""Rewrite the names in a text: quoted names change; every other place with an old name is reported."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from truename.migration.search_patterns import Lexicon, alternatives, is_plain_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.migration.protocol_versions import ProtocolStatement

__all__ = [
    "REASONS",
    "FunctionNameSlot",
    "FunctionTool",
    "Leftover",
    "ReadFunctions",
    "RewrittenText",
    "TextEdit",
    "kind_of",
    "rewrite",
]


@dataclass(frozen=True, slots=True)
class FunctionNameSlot:
    """A place for a name in a declaration: the text from ``start`` to ``end``, and the text around the new name."""

    start: int
    end: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that is a tool: the tool's name, the offset of the function's name, and the places for a new name.

    With ``has_name`` the declaration names the tool, so the function's name does not matter. Without it and without
    ``gaps``, only renaming the function renames the tool, which a person has to do, since the function has callers.
    """

    name: str
    start: int
    gaps: tuple[FunctionNameSlot, ...] = ()
    has_name: bool = False


# A reader of the functions in a text, with its file name, that are tools.
ReadFunctions = Callable[[str, str], tuple[FunctionTool, ...]]


# File endings of languages in which names may be unquoted.
KINDS: Final = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
_LOOK: Final = 400
_YAML_LEAD: Final = re.compile(
    r"[ \t]*(?P<dash>(?:-[ \t]{1,20}){0,9})(?P<key>(?:[\w.-]{1,80}|\"[^\"]{1,80}\"|'[^']{1,80}'):[ \t]{1,20})?"
)
_YAML_FLOW: Final = re.compile(r"\[(?:[^\[\]{}\"'#]{0,300},)?[ \t]{0,20}\Z")
_YAML_KEY_TAIL: Final = re.compile(r":(?=\s|\Z)")
_YAML_END: Final = re.compile(r"[ \t]{0,80}(?:[ \t]#[^\n]*)?(?=\r?\n|\Z)")
_YAML_FLOW_END: Final = re.compile(r"[ \t]{0,20}[,\]]")
_YAML_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_YAML_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_BLOCK: Final = re.compile(r"(?:^|[ \t:-])[|>][+-]?[0-9]?[+-]?[ \t]*(?:[ \t]#[^\n]*)?\r?", re.MULTILINE)
_TOML_KEY: Final = re.compile(r"[ \t]*")
_TOML_KEY_TAIL: Final = re.compile(r"[ \t]{0,80}=")
_TOML_HEAD: Final = re.compile(r"[ \t]*(?P<open>\[{1,2})[ \t]{0,20}")
_TOML_SAFE: Final = re.compile(r"[A-Za-z0-9_-]+")


def kind_of(file: str) -> str:
    """Return the language of a file by its name: ``yaml``, ``toml``, "" for all others.

    >>> kind_of("agents/tools.YML"), kind_of("tools.json")
    ('yaml', '')
    """
    return next((kind for ending, kind in KINDS.items() if file.lower().endswith(ending)), "")


@dataclass(frozen=True)
class PlainNameContext:
    """A text and its language, to examine places in it."""

    text: str
    kind: str

    def is_plain(self, start: int, end: int) -> bool:
        """Return whether this span is a whole unquoted key or value."""
        if not self.kind:
            return False
        lead = self.text[max(self.text.rfind("\n", max(0, start - _LOOK), start) + 1, start - _LOOK) : start]
        return self._in_yaml(lead, start, end) if self.kind == "yaml" else self._in_toml(lead, end)

    def allows(self, old: str, new: str) -> bool:
        """Return whether both names are valid there without quotes."""
        if self.kind == "toml":
            return bool(_TOML_SAFE.fullmatch(old) and _TOML_SAFE.fullmatch(new))
        return _YAML_SAFE.fullmatch(new) is not None and new.lower() not in _YAML_WORDS

    def _in_yaml(self, lead: str, start: int, end: int) -> bool:
        block = bisect_right(self._blocks, (start, len(self.text) + 1)) - 1
        if block >= 0 and start < self._blocks[block][1]:
            return False
        flow = _YAML_FLOW.search(lead)
        found = _YAML_LEAD.fullmatch(lead[: flow.start()] if flow else lead)
        if found is None:
            return False
        if flow is not None:
            return _YAML_FLOW_END.match(self.text, end) is not None
        if found["key"] is None and _YAML_KEY_TAIL.match(self.text, end):
            return True
        return bool(found["key"] or found["dash"]) and _YAML_END.match(self.text, end) is not None

    def _in_toml(self, lead: str, end: int) -> bool:
        if self._has_long_strings:
            return False
        if _TOML_KEY.fullmatch(lead):
            return _TOML_KEY_TAIL.match(self.text, end) is not None
        head = _TOML_HEAD.fullmatch(lead)
        closing = self.text[end : end + _LOOK].lstrip(" \t")
        return head is not None and closing.startswith("]" * len(head["open"]))

    @cached_property
    def _has_long_strings(self) -> bool:
        # Lines in multi-line strings look like keys.
        return '"""' in self.text or "'''" in self.text

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        """The spans of literal and folded block texts, which contain no keys."""
        found: list[tuple[int, int]] = []
        indent, begun, at = -1, 0, 0
        for line in self.text.splitlines(keepends=True):
            content = line.lstrip(" ")
            if indent >= 0 and content.strip() and len(line) - len(content) <= indent:
                found.append((begun, at))
                indent = -1
            at += len(line)
            if indent < 0 and _BLOCK.search(line.rstrip("\n")) and line.rstrip().endswith(("|", ">", "+", "-")):
                indent, begun = len(line) - len(content), at
        return [*found, (begun, at)] if indent >= 0 else found


_QUOTES: Final = frozenset("\"'`")
_SHOWN: Final = 160
_MOST_LEFT: Final = 10_000
# The reasons why an old name remains, with the remedy.
REASONS: Final = {
    "code": "code without quotes: change it by hand if it means the tool",
    "several": "several names written as one: write each name, or change the pattern",
    "pattern": "a regular expression: write the new name, escaped",
    "shown": "a client's spelling: --server KEY changes it for the server with that key",
    "part": "part of a longer name or path: change it by hand if it means the tool",
    "unsafe": "the new name is not valid here without quotes: put it in quotes",
    "bare": "without quotes, as in prose: change it by hand if it means the tool",
    "file name": "the name of the file: rename the file (--rename-files)",
    "more": "the file has more than are listed",
    "glob": "a pattern that matches the old name and not the new one: change it by hand",
    "unowned": "it does not say which server it means: change it by hand if it means the tool",
    "unreadable": "the client's file has a syntax error: correct it, and repeat the rename",
    "managed": "a file of the administrators: ask them",
    "link": "a link to another file: change that file by hand",
    "encoding": "the file is not UTF-8, or too large: change it by hand",
}


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One change: its position (line and column from 1, offset in the text), the old text and the new one."""

    line: int
    column: int
    start: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """A remaining old name: its position (line 0: the whole file), the line's text, and the reason (see `REASONS`)."""

    line: int
    column: int
    name: str
    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class RewrittenText:
    """A rewritten text, with its changes and the remaining old names."""

    text: str
    edits: tuple[TextEdit, ...]
    leftovers: tuple[Leftover, ...]


def rewrite(
    text: str,
    renames: Mapping[str, str] | Lexicon,
    kind: str = "",
    *,
    protocol: ProtocolStatement | None = None,
    functions: Sequence[FunctionTool] = (),
) -> RewrittenText:
    """Replace old names by new ones where a text has them as whole quoted tokens.

    ``kind`` is ``yaml`` or ``toml`` for texts that also have unquoted names. A stated old version of ``protocol``
    becomes the new one. ``functions`` are those in the text that are tools: if one gives the tool its name, the new
    name is written into the declaration, and the function does not change. Raises `MigrationError` for a name that
    cannot be written.

    >>> done = rewrite('call("fs.list") or "my-fs.lister", fs.list() and `fs.*`', {"fs.list": "fs_list"})
    >>> done.text
    'call("fs_list") or "my-fs.lister", fs.list() and `fs.*`'
    >>> [(left.name, left.column, left.reason) for left in done.leftovers]
    [('fs.list', 36, 'code'), ('fs.*', 51, 'several')]
    """
    lexicon = renames if isinstance(renames, Lexicon) else Lexicon.of(renames)
    search = _NameSearch(text, lexicon, PlainNameContext(text, kind), tuple(functions))
    found = {edit.start: edit for edit in (*search.edits(), *search.named())}
    if protocol is not None:
        found = {edit.start: edit for edit in search.stated(protocol)} | found
    edits = tuple(found[start] for start in sorted(found))
    parts: list[str] = []
    done = 0
    for edit in edits:
        parts += (text[done : edit.start], edit.new)
        done = edit.start + len(edit.old)
    changed = "".join(parts) + text[done:] if parts else text
    return RewrittenText(changed, edits, tuple(search.leftovers(edits)))


@dataclass(frozen=True)
class _NameSearch:
    text: str
    lexicon: Lexicon
    around: PlainNameContext
    functions: tuple[FunctionTool, ...] = ()

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(at.end() for at in re.finditer("\n", self.text))]

    def _at(self, start: int) -> tuple[int, int]:
        line = bisect_right(self._lines, start)
        return line, start - self._lines[line - 1] + 1

    def _edit(self, start: int, old: str, new: str) -> TextEdit:
        return TextEdit(*self._at(start), start, old, new)

    def edits(self) -> Iterator[TextEdit]:
        for found in self.lexicon.file_names.finditer(self.text):
            yield self._edit(found.start(), found["text"], self.lexicon.files[found["text"]])
        for found in self.lexicon.names.finditer(self.text):
            old = found["text"]
            new = self.lexicon.meanings.get(old)
            if new is None:
                continue
            if self._is_quoted(*found.span()) or (self.around.is_plain(*found.span()) and self.around.allows(old, new)):
                yield self._edit(found.start(), old, new)

    def named(self) -> Iterator[TextEdit]:
        """Yield the new names for declarations that took the name from their function."""
        for one in self.functions:
            new = self.lexicon.meanings.get(one.name)
            for gap in one.gaps if new is not None else ():
                yield self._edit(gap.start, self.text[gap.start : gap.end], f"{gap.before}{new}{gap.after}")

    def stated(self, protocol: ProtocolStatement) -> Iterator[TextEdit]:
        for start, version in protocol.statements(self.text):
            if version == protocol.old:
                yield self._edit(start, protocol.old, protocol.new)

    def _is_quoted(self, start: int, end: int) -> bool:
        before, after = self.text[start - 1 : start], self.text[end : end + 1]
        if before not in _QUOTES or not before:
            return False
        if self.text[start - 2 : start - 1] == "\\":
            return self.text[end : end + 2] == f"\\{before}"
        return after == before

    def leftovers(self, edits: tuple[TextEdit, ...]) -> Iterator[Leftover]:
        starts = [edit.start for edit in edits]

        def is_outside(found: tuple[int, Leftover]) -> bool:
            place = bisect_right(starts, found[0]) - 1
            return place < 0 or found[0] >= starts[place] + len(edits[place].old)

        shown = (
            (found.start(), self._left(found.start(), found[0], "shown"))
            for found in self.lexicon.shown.finditer(self.text)
        )
        searches = (self._bare(frozenset(starts)), self._several(), shown)
        found = {start: left for search in searches for start, left in self._first(filter(is_outside, search)).items()}
        yield from (found[start] for start in sorted(found))

    def _first(self, found: Iterator[tuple[int, Leftover]]) -> dict[int, Leftover]:
        """Return the first left-overs, as many as a person can read; mark the last one if there are more."""
        listed = dict(islice(found, _MOST_LEFT))
        more = next(found, None)
        if more is not None:
            start, left = more
            listed[start] = replace(left, reason="more")
        return listed

    def _bare(self, changed: frozenset[int]) -> Iterator[tuple[int, Leftover]]:
        # The names of functions that do not name their tools.
        own_names = {one.start for one in self.functions if one.has_name or one.gaps}
        for found in self.lexicon.names.finditer(self.text):
            name, start = found["text"], found.start()
            if start in changed or start in own_names:
                continue
            reason = "pattern" if name in self.lexicon.escaped else ""
            if name in self.lexicon.meanings:
                reason = self._reason(name, start, found.end())
            if reason:
                yield start, self._left(start, name, reason)

    def _reason(self, name: str, start: int, end: int) -> str:
        before, after = self.text[max(0, start - 1) : start], self.text[end : end + 1]
        beyond = self.text[end + 1 : end + 2]
        if is_plain_word(name):
            # A common word appears everywhere; only calls and declarations are worth checking.
            return "code" if after == "(" and before != "." else ""
        if self.around.is_plain(start, end):
            return "unsafe"
        if after == "(":
            return "code"
        if after == "|" and before != "|" and _is_word(beyond):
            return "several"
        is_longer = before in {".", "/", "\\"} or after in {"/", "\\"} or (after == "." and _is_word(beyond))
        return "part" if is_longer else "bare"

    def _several(self) -> Iterator[tuple[int, Leftover]]:
        for found in self.lexicon.several.finditer(self.text):
            prefix, rest = found["text"], found[0][len(found["text"]) :]
            names = alternatives(rest)
            if not names or any(prefix + name in self.lexicon.meanings for name in names):
                yield found.start(), self._left(found.start(), found[0], "several")

    def _left(self, start: int, name: str, reason: str) -> Leftover:
        line, column = self._at(start)
        earliest = max(0, start - _SHOWN // 2)
        first = max(self.text.rfind("\n", earliest, start) + 1, earliest)
        end = self.text.find("\n", start, first + _SHOWN)
        return Leftover(line, column, name, reason, self.text[first : first + _SHOWN if end < 0 else end].strip())


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
