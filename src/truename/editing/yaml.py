"""Read and edit YAML from the parser's events alone: tags are never interpreted, so nothing is constructed."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from truename.editing import syntax
from truename.editing.syntax import (
    MAX_DEPTH,
    InvalidSyntax,
    ParsedText,
    SyntaxContainer,
    SyntaxEntry,
    TooDeep,
    newline_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.editing.syntax import KeyPath, Mark, Splice

__all__ = ["YAML"]

_CONSTANTS: Final = MappingProxyType(
    {
        **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
        **dict.fromkeys(("true", "True", "TRUE"), True),
        **dict.fromkeys(("false", "False", "FALSE"), False),
    }
)
# Longer numbers stay strings: Python refuses to convert them.
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,400}|0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]{1,400}|[0-9]{1,400}(?:\.[0-9]{0,400})?)(?:[eE][-+]?[0-9]{1,400})?")
_YAML_NODES_SPECIAL: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# Plain scalars that YAML 1.1 parsers read as numbers, dates or booleans.
_ELSEWHERE: Final = re.compile(
    r"[-+]?[0-9][0-9_,:.eE+-]*|0[bBoOxX][0-9a-fA-F_]+|[0-9]{4}-.*|[-+]?\.[0-9_].*|(?i:y|n|yes|no|on|off|true|false|null)"
)


@dataclass(slots=True)
class Pair:
    """A member of a mapping (offsets of its key) or an item of a sequence."""

    key: str | int
    start: int
    end: int
    node: Node


@dataclass(slots=True)
class Node:
    """A scalar, collection (``map``, ``list``) or ``alias``; a block collection ends where its last scalar does."""

    kind: str
    start: int
    end: int
    column: int
    value: Any
    is_flow: bool = False
    # For scalars: the text as written, whether it has no quotes, and whether it is a block scalar (| or >).
    text: str | None = None
    is_plain: bool = False
    is_literal: bool = False
    pairs: list[Pair] = field(default_factory=list)

    @property
    def is_block(self) -> bool:
        """Whether this is a collection in block style."""
        return self.kind in {"map", "list"} and not self.is_flow

    def child(self, step: str | int) -> Pair | None:
        """Return the member or item; for duplicate keys the last, whose value is used."""
        return next((pair for pair in reversed(self.pairs) if pair.key == step), None)


def meaning(text: str) -> object:
    """Return the value of a plain scalar under the YAML 1.2 core schema.

    >>> [meaning(text) for text in ("yes", "12:30", "0o17", "~", "1e3")]
    ['yes', '12:30', 15, None, 1000.0]
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "", 1)) if _YAML_NODES_SPECIAL.fullmatch(text) else text


def is_text(text: str) -> bool:
    """Return whether parsers of YAML 1.1 and 1.2 all read a plain scalar as a string."""
    return isinstance(meaning(text), str) and not _ELSEWHERE.fullmatch(text)


_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$](?:[A-Za-z0-9_./@$+=~:%-]*[A-Za-z0-9_./@$+=~%-])?")
_YAML_WRITE_SPECIAL: Final = {float("inf"): ".inf", float("-inf"): "-.inf"}


def member(key: str, value: object, unit: str) -> list[str]:
    """Return the lines of one member in block style, the first without indentation."""
    if not isinstance(value, dict | list) or not value:
        return [f"{name(key)}: {flow(value)}"]
    return [f"{name(key)}:", *(unit + line for line in _lines(value, unit))]


def members(value: dict[str, object], unit: str) -> list[str]:
    """Return the lines of an object in block style."""
    return [line for key, item in value.items() for line in member(key, item, unit)]


def items(value: list[object], unit: str) -> list[str]:
    """Return the lines of a list in block style."""
    lines: list[str] = []
    for one in value:
        first, *rest = _lines(one, unit)
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def flow(value: object) -> str:
    """Return a value in flow style."""
    match value:
        case str():
            return name(value)
        case float() if value in _YAML_WRITE_SPECIAL or math.isnan(value):
            return _YAML_WRITE_SPECIAL.get(value, ".nan")
        case dict():
            return f"{{{', '.join(f'{name(key)}: {flow(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(flow(item) for item in value)}]"
    return json.dumps(value)


def name(text: str) -> str:
    """Return a string as a scalar, in quotes unless every parser reads it as the same string without."""
    if _PLAIN.fullmatch(text) and is_text(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in quoted)


_GAP: Final = re.compile(r"(?<![^\s\[{,])#[^\r\n]*|,")
_LINE_END: Final = re.compile(r"\r\n|\n|\r|\Z")
_COLON: Final = re.compile(r"[ \t]*:(?:[ \t]+[&!][^\s]*)*")
_BLANKS: Final = " \t\r\n"


class _Edit:
    """Edits of one text, computed from the offsets of its nodes."""

    def __init__(self, text: str, root: Node | None) -> None:
        self.text = text
        self.root = root
        self.newline = newline_of(text)
        self.unit = " " * ((_step(root) if root else 0) or 2)

    def put(self, where: KeyPath, value: object) -> list[Splice]:
        if self.root is None:
            new = self._inline_block(_lines({where[-1]: value}, self.unit), 0)
            at = len(self.text.rstrip(_BLANKS))
            return [(at, at, self.newline + new) if at else (0, 0, new + self.newline)]
        if not where:
            return [(self.root.start, self._end(self.root), self._inline_block(_lines(value, self.unit), 0))]
        above, holder = self._find_container(where[:-1])
        pair = holder.child(where[-1])
        if pair is not None:
            return self._replace(holder, pair, value)
        if holder.kind not in {"map", "list"}:
            raise InvalidSyntax("its parent is an alias, or merged from another place")
        if holder.is_flow:
            return self._append_flow(above, holder, where[-1], value)
        end = self._end(holder)
        return [(end, end, self._block(_entry(where[-1], value, self.unit), holder.column))]

    def drop(self, where: KeyPath) -> list[Splice]:
        above, holder = self._find_container(where[:-1])
        pair = holder.child(where[-1])
        if pair is None:
            raise InvalidSyntax("the key does not exist here (it may come from an alias or a merge)")
        if holder.is_flow:
            return syntax.drop(self.text, _GAP, _box(holder), holder.pairs.index(pair))
        if len(holder.pairs) == 1 and holder is not self.root:
            return self._remove_only(above, holder, pair)
        start = pair.start if holder.kind == "map" else self._dash(holder, pair)
        if start is None or not syntax.begins_line(self.text, start):
            return [self._remove_after_dash(holder, pair)]
        return [self._remove_lines(start, self._line_end(self._end(pair.node)))]

    def _remove_after_dash(self, holder: Node, pair: Pair) -> Splice:
        """Remove the first member of an object in a list; the next member moves up behind the dash."""
        index = holder.pairs.index(pair) + 1
        following = holder.pairs[index].start if index < len(holder.pairs) else pair.start
        if following == pair.start or "#" in self.text[self._line_end(self._end(pair.node)) : following]:
            raise InvalidSyntax("it shares its line with another entry")
        return pair.start, following, ""

    def _find_container(self, where: KeyPath) -> tuple[tuple[Node, Pair] | None, Node]:
        """Return the container at a path, and the node and pair that hold it (None for the root)."""
        node, above = self.root, None
        for step in where:
            pair = node.child(step) if node else None
            if node is None or pair is None:
                raise InvalidSyntax("its parent is an alias, or merged from another place")
            above, node = (node, pair), pair.node
        if node is None:
            raise InvalidSyntax("the file is empty")
        return above, node

    def _replace(self, holder: Node, pair: Pair, value: object) -> list[Splice]:
        node, end = pair.node, self._end(pair.node)
        is_spread = isinstance(value, dict | list) and bool(value) and not node.is_flow
        if holder.is_flow or not (is_spread or node.is_block):
            lead = " " if node.start == node.end else ""
            return [(node.start, end, lead + flow(value))]
        if holder.kind == "list":
            return [(node.start, end, self._inline_block(_lines(value, self.unit), self._column(node.start)))]
        colon = self._colon(pair)
        line = self._line_end(colon)
        new = self._block(_lines(value, self.unit), self._column(pair.start) + len(self.unit)) if is_spread else ""
        if node.is_block:
            inline = "" if is_spread else f" {flow(value)}"
            return [(colon, colon, inline), (line, end, new)]
        return [(colon, end, ""), (self._line_end(end),) * 2 + (new,)]

    def _append_flow(
        self, above: tuple[Node, Pair] | None, holder: Node, step: str | int, value: object
    ) -> list[Splice]:
        """Append to a list or object in flow style; an empty one becomes block style where possible."""
        text = self.text
        if above and not holder.pairs and above[0].kind == "map" and not above[0].is_flow:
            colon = self._colon(above[1])
            if text[colon : holder.end] in {" {}", " []"}:
                column = self._column(above[1].start) + len(self.unit)
                end = self._line_end(holder.end)
                return [(colon, holder.end, ""), (end, end, self._block(_entry(step, value, self.unit), column))]
        new = flow(value) if isinstance(step, int) else f"{name(step)}: {flow(value)}"
        layout = syntax.BracketLayout(text, _GAP, self.newline, self.unit, is_inline=True, apart=" ")
        return syntax.add(layout, _box(holder), lambda _: new)

    def _remove_only(self, above: tuple[Node, Pair] | None, holder: Node, pair: Pair) -> list[Splice]:
        """Remove the only entry; its container is then written as {} or []."""
        empty = "{}" if holder.kind == "map" else "[]"
        if above is None or above[0].kind != "map":
            return [(holder.pairs[0].start if holder.kind == "map" else holder.start, self._end(holder), empty)]
        colon = self._colon(above[1])
        start = pair.start if holder.kind == "map" else self._dash(holder, pair)
        if start is None:
            raise InvalidSyntax("its dash shares a line with another entry")
        return [(colon, colon, f" {empty}"), self._remove_lines(start, self._end(holder))]

    def _remove_lines(self, start: int, end: int) -> Splice:
        """Return the edit that removes these lines, with the line end before them or, at the top, after them."""
        begin = start - self._column(start)
        if begin:
            return begin - (2 if self.text[:begin].endswith("\r\n") else 1), end, ""
        found = _LINE_END.match(self.text, end)
        return 0, found.end() if found else end, ""

    def _dash(self, holder: Node, pair: Pair) -> int | None:
        """Return the offset of an item's dash, None if the dash is not the first on its line."""
        before = holder.pairs[int(pair.key) - 1].node.end if pair.key else holder.start
        at = pair.start
        while at >= before:
            begin = at - self._column(at)
            dash = begin + holder.column
            if dash <= pair.start and self.text[dash : dash + 1] == "-" and not self.text[begin:dash].strip(" "):
                return dash
            at = begin - 1
        return None

    def _colon(self, pair: Pair) -> int:
        """Return the offset after a member's colon."""
        found = _COLON.match(self.text, pair.end)
        if found is None:
            raise InvalidSyntax("its key and colon are not next to each other")
        return found.end()

    def _end(self, node: Node) -> int:
        """Return the end of a block node's last line; for a flow node, the end of the node itself."""
        last = node
        while last.is_block and last.pairs:
            last = last.pairs[-1].node
        end = last.end
        if last.is_literal:
            end = len(self.text[:end].rstrip(_BLANKS))
        return self._line_end(end) if node.is_block or last.is_literal else end

    def _block(self, lines: list[str], column: int) -> str:
        return "".join(f"{self.newline}{' ' * column}{line}" for line in lines)

    def _inline_block(self, lines: list[str], column: int) -> str:
        return self._block(lines, column)[len(self.newline) + column :]

    def _line_end(self, at: int) -> int:
        found = _LINE_END.search(self.text, at)
        return found.start() if found else len(self.text)

    def _column(self, at: int) -> int:
        return at - max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) - 1


def _lines(value: object, unit: str) -> list[str]:
    if not value or not isinstance(value, dict | list):
        return [flow(value)]
    return members(value, unit) if isinstance(value, dict) else items(value, unit)


def _entry(step: str | int, value: object, unit: str) -> list[str]:
    return items([value], unit) if isinstance(step, int) else member(step, value, unit)


def _box(node: Node) -> SyntaxContainer:
    """Return a flow collection as a bracketed container; its start may be an anchor before the bracket."""
    entries = tuple(SyntaxEntry(pair.key, pair.start, pair.node.start, pair.node.end) for pair in node.pairs)
    return SyntaxContainer(node.start, node.end, entries)


def _step(node: Node) -> int:
    """Return the indentation of the first object nested in another, 0 if there is none."""
    for pair in node.pairs:
        below = pair.node
        if below.is_block and below.kind == "map" and node.kind == "map" and below.column > node.column:
            return below.column - node.column
        if found := _step(below) if below.is_block else 0:
            return found
    return 0


# The C parser where it is available; both emit the same events.
_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Values repeated by aliases are counted each time: a few lines can expand to a billion values.
_MOST_VALUES: Final = 200_000
_NOT_YAML: Final = "it is not YAML ({})"
_MERGE: Final = "<<"
_MEANT: Final = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float"))


class _Yaml:
    title = "YAML"

    def read(self, text: str) -> ParsedText:
        """Parse the text; an empty file is an empty object."""
        builder = _Builder()
        try:
            for event in yaml.parse(text, Loader=_PARSER):
                builder.take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = error.problem or error.context or "syntax error"
            raise InvalidSyntax(_NOT_YAML.format(problem), mark.index if mark else None) from error
        except yaml.YAMLError as error:
            found = yaml.reader.Reader.NON_PRINTABLE.search(text)
            raise InvalidSyntax(
                _NOT_YAML.format("a character that it does not allow"), found and found.start()
            ) from error
        root = builder.root
        if root is None or (root.value is None and root.start == root.end):
            return ParsedText(text, {}, tuple(builder.marks), None)
        return ParsedText(text, root.value, tuple(builder.marks), root)

    def offset(self, reading: ParsedText, where: KeyPath) -> int:
        root: Node | None = reading.tree
        at, node = (root.start if root else 0), root
        for step in where:
            pair = node.child(step) if node else None
            if pair is None:
                return at
            at, node = pair.start, pair.node
        return at

    def put(self, reading: ParsedText, where: KeyPath, value: object) -> Iterator[Sequence[Splice]]:
        yield _Edit(reading.text, reading.tree).put(where, value)

    def drop(self, reading: ParsedText, where: KeyPath) -> Iterator[Sequence[Splice]]:
        yield _Edit(reading.text, reading.tree).drop(where)


YAML: Final = _Yaml()


@dataclass(slots=True)
class _OpenCollection:
    """A collection whose end event has not arrived yet."""

    node: Node
    anchor: str | None
    weight: int = 1
    # The key whose value has not arrived yet.
    key: Node | None = None
    seen: set[str] = field(default_factory=set)


class _Builder:
    """A builder of nodes from the parser's events."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.marks: list[Mark] = []
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise InvalidSyntax("it holds several documents", _start(event)[0])
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(event)
            case yaml.ScalarEvent():
                node = _scalar(event)
                self._name(event.anchor, node, 1)
                self._add(node, 1)
            case yaml.AliasEvent():
                start, column = _start(event)
                if event.anchor not in self._anchors:
                    raise InvalidSyntax("an alias refers to an anchor that is missing or incomplete", start)
                node, weight = self._anchors[event.anchor]
                self._add(Node("alias", start, _end(event), column, node.value), weight)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise TooDeep(_start(event)[0])
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
        value: object = {} if kind == "map" else []
        start, column = _start(event)
        node = Node(kind, start, start, column, value, bool(event.flow_style))
        self._open.append(_OpenCollection(node, event.anchor))
        if event.anchor:
            # Until the collection ends, an alias of it would make it contain itself.
            self._anchors.pop(event.anchor, None)

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        done = self._open.pop()
        node = done.node
        inside = node.pairs[-1].node.end if node.pairs else node.start
        node.end = _end(event) if node.is_flow else inside
        self._name(done.anchor, node, done.weight)
        self._add(node, done.weight)

    def _name(self, anchor: str | None, node: Node, weight: int) -> None:
        if anchor:
            self._anchors[anchor] = (node, weight)

    def _add(self, node: Node, weight: int) -> None:
        if not self._open:
            self.root = node
            return
        above = self._open[-1]
        above.weight += weight
        if above.weight > _MOST_VALUES:
            raise InvalidSyntax("it holds too many values", node.start)
        if above.node.kind == "list":
            above.node.pairs.append(Pair(len(above.node.pairs), node.start, node.start, node))
            above.node.value.append(node.value)
        elif above.key is None:
            above.key = node
        else:
            self._pair(above, above.key, node)
            above.key = None

    def _pair(self, above: _OpenCollection, key: Node, node: Node) -> None:
        name = key.text
        if name is None:
            raise InvalidSyntax("a key is not a string", key.start)
        value = above.node.value
        if name == _MERGE and key.is_plain:
            _merge(value, above.seen, node)
        else:
            if name in above.seen:
                self.marks.append(("duplicate-key", key.start))
            above.seen.add(name)
            value[name] = node.value
        if not above.node.pairs and not above.node.is_flow:
            # The mapping starts at its anchor, which may be on the line above its first key.
            above.node.column = key.column
        above.node.pairs.append(Pair(name, key.start, key.end, node))


def _start(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.index, mark.column) if mark else (0, 0)


def _end(event: yaml.Event) -> int:
    return event.end_mark.index if event.end_mark else 0


def _scalar(event: yaml.ScalarEvent) -> Node:
    # A tag makes a plain scalar a string, except the standard tags of null, bool, int and float.
    is_plain = bool(event.implicit[0]) or (event.tag is not None and event.tag.startswith(_MEANT))
    start, column = _start(event)
    return Node(
        "scalar",
        start,
        _end(event),
        column,
        meaning(event.value) if is_plain else event.value,
        text=event.value,
        is_plain=bool(event.implicit[0]),
        is_literal=event.style in {"|", ">"},
    )


def _merge(value: dict[str, object], seen: set[str], node: Node) -> None:
    """Add the members of a merged (<<) object whose keys are not written here."""
    parts = node.value if isinstance(node.value, list) else [node.value]
    if not all(isinstance(part, dict) for part in parts):
        raise InvalidSyntax("a merged value is not an object", node.start)
    for part in parts:
        for key, item in part.items():
            if key not in seen:
                value.setdefault(key, item)
