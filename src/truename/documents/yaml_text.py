"""YAML as clients keep it: read from the parser's events alone, so that no tag is ever given a meaning.

Plain values are what YAML 1.2 says, which is what the clients' parsers follow: ``yes`` is a text, ``12:30`` too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from truename.documents import yaml_edits
from truename.documents.spans import MAX_DEPTH, Broken, Reading, TooDeep
from truename.documents.yaml_nodes import Node, Pair, meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.documents.spans import Mark, Splice, Where

__all__ = ["YAML"]

# The parser in C where it was built; both tell the same events.
_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Counted with what aliases repeat: a few lines can stand for a billion values.
_MOST_VALUES: Final = 200_000
_NOT_YAML: Final = "it is not YAML ({})"
_MERGE: Final = "<<"
_MEANT: Final = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float"))


class _Language:
    title = "YAML"

    def read(self, text: str) -> Reading:
        """Return the value; a file that says nothing is an object without members."""
        builder = _Builder()
        try:
            for event in yaml.parse(text, Loader=_PARSER):
                builder.take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = error.problem or error.context or "it can't be read"
            raise Broken(_NOT_YAML.format(said), mark.index if mark else None) from error
        except yaml.YAMLError as error:
            found = yaml.reader.Reader.NON_PRINTABLE.search(text)
            raise Broken(_NOT_YAML.format("a character that it does not allow"), found and found.start()) from error
        root = builder.root
        if root is None or (root.value is None and root.start == root.end):
            return Reading(text, {}, tuple(builder.marks), None)
        return Reading(text, root.value, tuple(builder.marks), root)

    def offset(self, reading: Reading, where: Where) -> int:
        return yaml_edits.offset(reading.tree, where)

    def put(self, reading: Reading, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
        return yaml_edits.put(reading.text, reading.tree, where, value)

    def drop(self, reading: Reading, where: Where) -> Iterator[Sequence[Splice]]:
        return yaml_edits.drop(reading.text, reading.tree, where)


YAML: Final = _Language()


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been met yet."""

    node: Node
    anchor: str | None
    weight: int = 1
    # The key that waits for its value.
    key: Node | None = None
    seen: set[str] = field(default_factory=set)


class _Builder:
    """Makes nodes of events."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.marks: list[Mark] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise Broken("it holds several documents", _start(event)[0])
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end(event)
            case yaml.ScalarEvent():
                node = _scalar(event)
                self._name(event.anchor, node, 1)
                self._add(node, 1)
            case yaml.AliasEvent():
                self._repeat(event)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise TooDeep(_start(event)[0])
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
        value: Any = {} if kind == "map" else []
        start, column = _start(event)
        node = Node(kind, start, start, column, value, bool(event.flow_style))
        self._open.append(_Open(node, event.anchor))
        if event.anchor:
            # Until its end is met it can't be repeated: it would hold itself.
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

    def _repeat(self, event: yaml.AliasEvent) -> None:
        start, column = _start(event)
        if event.anchor not in self._anchors:
            raise Broken("an alias leads to nothing that is complete", start)
        node, weight = self._anchors[event.anchor]
        self._add(Node("alias", start, _end(event), column, node.value), weight)

    def _add(self, node: Node, weight: int) -> None:
        if not self._open:
            self.root = node
            return
        above = self._open[-1]
        above.weight += weight
        if above.weight > _MOST_VALUES:
            raise Broken("it holds too many values", node.start)
        if above.node.kind == "list":
            above.node.pairs.append(Pair(len(above.node.pairs), node.start, node.start, node))
            above.node.value.append(node.value)
        elif above.key is None:
            above.key = node
        else:
            self._pair(above, above.key, node)
            above.key = None

    def _pair(self, above: _Open, key: Node, node: Node) -> None:
        name = key.text
        if name is None:
            raise Broken("a key is no text", key.start)
        value = above.node.value
        if name == _MERGE and key.is_plain:
            _merge(value, above.seen, node)
        else:
            if name in above.seen:
                self.marks.append(("duplicate-key", key.start))
            above.seen.add(name)
            value[name] = node.value
        if not above.node.pairs and not above.node.is_flow:
            # It began with its anchor, which may stand on the line above.
            above.node.column = key.column
        above.node.pairs.append(Pair(name, key.start, key.end, node))


def _start(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.index, mark.column) if mark else (0, 0)


def _end(event: yaml.Event) -> int:
    return event.end_mark.index if event.end_mark else 0


def _scalar(event: yaml.ScalarEvent) -> Node:
    # A tag can only make a text of what would be something else; no other is looked at.
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


def _merge(value: dict[str, Any], seen: set[str], node: Node) -> None:
    """Take over what another object has, for keys that are not written here."""
    parts = node.value if isinstance(node.value, list) else [node.value]
    if not all(isinstance(part, dict) for part in parts):
        raise Broken("what is merged is no object", node.start)
    for part in parts:
        for key, item in part.items():
            if key not in seen:
                value.setdefault(key, item)
