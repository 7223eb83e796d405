"""Names in texts: descriptions, titles, prompts and errors of a server speak of its tools by the names that are shown.

Never schemas, structured content or what a call gave: those are for programs, or are somebody's data.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from truename.catalog.tool import overlaid
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import read_out, whole
from truename.gateway.protocol.pages import WrittenItem
from truename.gateway.views.operators import by_text, told
from truename.naming.mentions import MOST_READ, TextMentions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.identity import ToolId
    from truename.naming import NameTable

    Described = tuple[tuple[ToolId, Mapping[str, Any]], ...]

__all__ = ["AS_THEY_ARE", "ServerTexts", "beyond"]

Raw = dict[str, Any]

_TEXTS: Final = ("title", "description")
# Characters in all descriptions of one server's tools that are looked through, each list's in its order: reading takes
# 0.2 microseconds for one, and nobody else may wait for a server that goes on and on.
MAX_OF_SERVER: Final = 1024 * 1024
_READ: Final = (*_TEXTS, "annotations")
_SCHEMAS: Final = ("inputSchema", "outputSchema")


class ServerTexts:
    """How the texts of each server are read in one view: a server's mentions are made at first need.

    ``hidden`` are tools that the reader must not hear of: where a text mentions one, the server's own word stays.
    """

    def __init__(
        self, shown: Mapping[str, Sequence[tuple[Tool, str]]], hidden: frozenset[ToolId] = frozenset()
    ) -> None:
        self._shown: Final = shown
        self._hidden: Final = hidden
        self._mentions: Final[dict[str, tuple[TextMentions, frozenset[ToolId]]]] = {}
        self._ids: Mapping[str, str] | None = None

    @classmethod
    def under(cls, table: NameTable) -> ServerTexts:
        """Return the texts under the names of a table."""
        shown: defaultdict[str, list[tuple[Tool, str]]] = defaultdict(list)
        for id, name in table.items():
            tool = table.catalog[id]
            shown[tool.origin.server].append((tool, name))
        return cls(shown)

    def changed(self, table: NameTable, servers: Collection[str]) -> ServerTexts:
        """Return the texts under the names of a table that differs in what these servers have."""
        shown = dict(self._shown)
        for server in servers:
            tools = [(tool, str(table[tool.id])) for tool in table.catalog.of_server(server)]
            if tools:
                shown[server] = sorted(tools, key=lambda one: table.position(one[0].id))
            else:
                shown.pop(server, None)
        other = ServerTexts(shown)
        other._mentions.update((key, one) for key, one in self._mentions.items() if key not in servers)
        return other

    def without(self, hidden: frozenset[ToolId]) -> ServerTexts:
        """Return the texts for a reader who must not hear of these tools."""
        return ServerTexts(self._shown, hidden) if self._shown else self

    def definition(self, tool: Tool) -> Mapping[str, Any]:
        """Return the definition of a tool as it is shown, with its title and description as the client reads them.

        What a server's other tools say before counts: beyond a million characters the rest is left as it is.
        """
        is_beyond = tool.id in self._made(tool.origin.server)[1]
        return self._presented(tool, tool.definition if is_beyond else self._said(tool))

    def read(self, tool: Tool) -> Mapping[str, Any]:
        """Return the definition of a tool or prompt likewise, whatever others say."""
        return self._presented(tool, self._said(tool))

    def _presented(self, tool: Tool, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a definition with the operator's words in it, which may mention any tool by its id."""
        if not tool.presented:
            return said
        if self._ids is None:
            shown = (one for tools in self._shown.values() for one in tools)
            self._ids = by_text({tool.id: name for tool, name in shown if tool.id not in self._hidden})
        return overlaid(said, told(tool.presented, self._ids, self._of(tool.origin.server).rewritten))

    def _said(self, tool: Tool) -> Mapping[str, Any]:
        mentions, definition = self._of(tool.origin.server), tool.definition
        changed = _rewritten(definition, mentions)
        notes = definition.get("annotations")
        if isinstance(notes, dict) and (titled := _rewritten(notes, mentions)):
            changed["annotations"] = {**notes, **titled}
        return {**definition, **changed} if changed else definition

    def plain(self, server: str, text: str) -> str:
        """Return a text of a server that is about no single tool, as the client reads it."""
        return self._of(server).rewritten(text)

    def outcome(self, server: str, params: Mapping[str, Any], outcome: Raw | Exception) -> Raw | Exception:
        """Return the outcome of a call: of one that failed the text as the client reads it, any other as it is.

        The message of the server's own `MCPError` is read likewise. Names that stand in the arguments are the user's
        and left alone; arguments that are too long to be looked through leave all alone.
        """
        if isinstance(outcome, MCPError):
            return self._refusal(server, params, outcome)
        if isinstance(outcome, Exception) or outcome.get("isError") is not True:
            return outcome
        read = whole(outcome)
        return {**read, **_AnswerReader(self._of(server), params).blocks(read, "content")}

    async def prompt(self, server: str, params: Mapping[str, Any], answering: Awaitable[Raw]) -> Raw:
        """Return the answer to prompts/get with the texts of its messages as the client reads them; see `outcome`."""
        try:
            result = await answering
        except MCPError as error:
            raise self._refusal(server, params, error) from error
        reader = _AnswerReader(self._of(server), params)
        messages = result.get("messages")
        if isinstance(messages, list):
            result = {**result, "messages": [reader.message(one) for one in messages]}
        return {**result, **reader.texts(result, ("description",))}

    def _refusal(self, server: str, params: Mapping[str, Any], error: MCPError) -> MCPError:
        text = _AnswerReader(self._of(server), params).text(error.message)
        return error if text == error.message else MCPError(error.code, text, error.data)

    def retold(self, described: Described, table: NameTable, before: ServerTexts) -> Described:
        """Return descriptors that were read as ``before`` as they are read here; those that are equal are the same."""
        touched = {table.catalog[id].origin.server for id in self._hidden}
        if not touched:
            return described
        return tuple(
            (id, self._retold(shown, tool, before) if tool.presented or tool.origin.server in touched else shown)
            for id, shown in described
            for tool in (table.catalog[id],)
        )

    def _retold(self, shown: Mapping[str, Any], tool: Tool, before: ServerTexts) -> Mapping[str, Any]:
        old, new = before.definition(tool), self.definition(tool)
        changed = {field: new[field] for field in _READ if field in new and new[field] != old.get(field)}
        if "description" in changed:
            # In front of it may stand that the tool was renamed.
            changed["description"] = shown["description"].removesuffix(old["description"]) + new["description"]
        return WrittenItem({**shown, **changed}) if changed else shown

    def _of(self, server: str) -> TextMentions:
        return self._made(server)[0]

    def _made(self, server: str) -> tuple[TextMentions, frozenset[ToolId]]:
        if server not in self._mentions:
            shown = self._shown.get(server, ())
            names = {tool.origin.name: name for tool, name in shown if tool.id not in self._hidden}
            others = {name for tool, _ in shown for name in _parameters(tool.definition)}
            self._mentions[server] = TextMentions(names, others), beyond(tool for tool, _ in shown)
        return self._mentions[server]


def beyond(tools: Iterable[Tool]) -> frozenset[ToolId]:
    """Return the tools (or prompts) whose texts are not looked through: what that server says before them is long."""
    left: defaultdict[str, int] = defaultdict(lambda: MAX_OF_SERVER)
    found: set[ToolId] = set()
    for tool in tools:
        server, size = tool.origin.server, _size(tool.definition)
        if size > left[server]:
            found.add(tool.id)
        else:
            left[server] -= size
    return frozenset(found)


def _size(definition: Mapping[str, Any]) -> int:
    notes = definition.get("annotations")
    bodies = (definition, notes) if isinstance(notes, dict) else (definition,)
    said = (body.get(field) for body in bodies for field in _TEXTS)
    return sum(min(len(text), MOST_READ) for text in said if isinstance(text, str))


AS_THEY_ARE: Final = ServerTexts({})


class _AnswerReader:
    """Reads the texts of one answer, up to `MOST_READ` characters of them."""

    def __init__(self, mentions: TextMentions, params: Mapping[str, Any]) -> None:
        said = json.dumps(read_out(params.get("arguments")), ensure_ascii=False)
        self._mentions = mentions
        self._spared = mentions.named(said)
        self._left = MOST_READ if len(said) <= MOST_READ else 0

    def text(self, text: str) -> str:
        if self._left <= 0:
            return text
        read = self._mentions.rewritten(text, self._spared)
        self._left -= len(text)
        return read

    def texts(self, body: Mapping[str, Any], fields: Sequence[str]) -> Raw:
        return {field: self.text(body[field]) for field in fields if isinstance(body.get(field), str)}

    def block(self, block: Any) -> Any:
        if not isinstance(block, dict) or block.get("type") != "text":
            return block
        return {**block, **self.texts(block, ("text",))}

    def blocks(self, body: Mapping[str, Any], field: str) -> Raw:
        blocks = body.get(field)
        return {field: [self.block(one) for one in blocks]} if isinstance(blocks, list) else {}

    def message(self, message: Any) -> Any:
        if not isinstance(message, dict):
            return message
        content = message.get("content")
        if isinstance(content, list):
            return {**message, **self.blocks(message, "content")}
        return {**message, "content": self.block(content)} if isinstance(content, dict) else message


def _rewritten(body: Mapping[str, Any], mentions: TextMentions) -> Raw:
    """Return the texts of a body that change."""
    said = {field: body[field] for field in _TEXTS if isinstance(body.get(field), str)}
    return {field: read for field, text in said.items() if (read := mentions.rewritten(text)) != text}


def _parameters(definition: Mapping[str, Any]) -> Iterator[str]:
    for field in _SCHEMAS:
        schema = definition.get(field)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict):
            yield from map(str, properties)
