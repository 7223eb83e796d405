"""Names in texts: descriptions, titles, prompts and errors of a server speak of its tools by the names that are shown.

Never schemas, structured content or what a call gave: those are for programs, or are somebody's data.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.sdk import MCPError
from truename.naming.mentions import MOST_READ, Mentions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.naming import NameTable

__all__ = ["AS_THEY_ARE", "Texts"]

Raw = dict[str, Any]

_TEXTS: Final = ("title", "description")
_SCHEMAS: Final = ("inputSchema", "outputSchema")


class Texts:
    """How the texts of each server are read in one view: a server's mentions are made at first need."""

    def __init__(self, shown: Mapping[str, Sequence[tuple[Tool, str]]]) -> None:
        self._shown: Final = shown
        self._mentions: Final[dict[str, Mentions]] = {}

    @classmethod
    def under(cls, table: NameTable) -> Texts:
        """Return the texts under the names of a table."""
        shown: defaultdict[str, list[tuple[Tool, str]]] = defaultdict(list)
        for id, name in table.items():
            tool = table.catalog[id]
            shown[tool.origin.server].append((tool, name))
        return cls(shown)

    def definition(self, tool: Tool) -> Mapping[str, Any]:
        """Return the definition of a tool or prompt with its title and description as the client reads them."""
        mentions, definition = self._of(tool.origin.server), tool.definition
        changed = _rewritten(definition, mentions)
        notes = definition.get("annotations")
        if isinstance(notes, dict) and (titled := _rewritten(notes, mentions)):
            changed["annotations"] = {**notes, **titled}
        return {**definition, **changed} if changed else definition

    async def error(self, server: str, params: Mapping[str, Any], answering: Awaitable[Raw]) -> Raw:
        """Return the answer to a call: of one that failed the text as the client reads it, any other as it is.

        Raises the server's own `MCPError`, whose message is read likewise. Names that stand in the arguments are the
        user's and left alone; arguments that are too long to be looked through leave all alone.
        """
        try:
            result = await answering
        except MCPError as error:
            raise self._refusal(server, params, error) from error
        if result.get("isError") is not True:
            return result
        return {**result, **_Reader(self._of(server), params).blocks(result, "content")}

    async def prompt(self, server: str, params: Mapping[str, Any], answering: Awaitable[Raw]) -> Raw:
        """Return the answer to prompts/get with the texts of its messages as the client reads them; see `error`."""
        try:
            result = await answering
        except MCPError as error:
            raise self._refusal(server, params, error) from error
        reader = _Reader(self._of(server), params)
        messages = result.get("messages")
        if isinstance(messages, list):
            result = {**result, "messages": [reader.message(one) for one in messages]}
        return {**result, **reader.texts(result, ("description",))}

    def _refusal(self, server: str, params: Mapping[str, Any], error: MCPError) -> MCPError:
        text = _Reader(self._of(server), params).text(error.message)
        return error if text == error.message else MCPError(error.code, text, error.data)

    def _of(self, server: str) -> Mentions:
        if server not in self._mentions:
            shown = self._shown.get(server, ())
            names = {tool.origin.name: name for tool, name in shown}
            others = {name for tool, _ in shown for name in _parameters(tool.definition)}
            self._mentions[server] = Mentions(names, others)
        return self._mentions[server]


AS_THEY_ARE: Final = Texts({})


class _Reader:
    """Reads the texts of one answer, up to `MOST_READ` characters of them."""

    def __init__(self, mentions: Mentions, params: Mapping[str, Any]) -> None:
        said = json.dumps(params.get("arguments"), ensure_ascii=False)
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


def _rewritten(body: Mapping[str, Any], mentions: Mentions) -> Raw:
    """Return the texts of a body that change."""
    said = {field: body[field] for field in _TEXTS if isinstance(body.get(field), str)}
    return {field: read for field, text in said.items() if (read := mentions.rewritten(text)) != text}


def _parameters(definition: Mapping[str, Any]) -> Iterator[str]:
    for field in _SCHEMAS:
        schema = definition.get(field)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict):
            yield from map(str, properties)
