"""What a view shows of one server's apps: pages with the bridge in front, and links that lead to that server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from truename.gateway.protocol.json_text import read_out
from truename.gateway.views.app_bridge import bridged, is_for, is_page, with_ui_uris
from truename.gateway.views.resources import behind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.gateway.views.tool_search import ToolSearch
    from truename.gateway.views.view import View, ViewSpec

__all__ = ["AppLinks"]

Raw = dict[str, Any]

# Results are bytes, and hardly any has a link: ui:// or the type of a page. JSON may write any letter as an escape.
_HINTS: Final = (b"ui:", b"mcp-app", b"\\u00")


class AppLinks:
    """The pages and links of one server's apps; ``view`` returns what their reader may see, and is asked for pages."""

    def __init__(self, spec: ViewSpec, server: str, view: Callable[[], View], search: ToolSearch) -> None:
        self._is_alone = spec.only is not None
        self._server = server
        self._view = view
        self._search = search

    def _names(self, view: View) -> Mapping[str, str]:
        """Return the names that are shown, by the own ones, of the tools that pages may call."""
        tools = [(view.table.catalog[id], str(tool["name"])) for id, tool in view.by_id.items()]
        own = [(tool, name) for tool, name in tools if tool.origin.server == self._server]
        return {tool.origin.name: name for tool, name in own if is_for("app", tool.definition)}

    def page(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page as it is shown: with the bridge, unless all names are the server's own."""
        view = self._view()
        names, search = self._names(view), self._search.for_pages(view)
        if self._is_alone and search is None and all(own == name for own, name in names.items()):
            return content
        prefixes = None if self._is_alone else (self._shown("ui://"), self._shown(""))
        return bridged(content, names, prefixes, search)

    def result(self, result: Raw) -> Raw:
        """Return a result with its links to pages, and the pages in it, as they are shown; all else as it is.

        Links are those of ``_meta``, of resource links and of embedded resources. What a server writes in texts and in
        structured content is data.
        """
        changed: Raw = {}
        if isinstance(meta := result.get("_meta"), dict):
            changed["_meta"] = self._meta(meta)
        for field in ("content", "messages"):
            if (found := result.get(field)) is not None and _may_link(found):
                read = read_out(found)
                changed[field] = [self._entry(one) for one in read] if isinstance(read, list) else read
        if isinstance(inner := result.get("result"), dict):
            # Of a task that is over.
            changed["result"] = self.result(inner)
        return {**result, **changed} if changed else result

    def _entry(self, entry: Any) -> Any:
        """Return a block of content, or a message of a prompt with one or several of them."""
        if not isinstance(entry, dict):
            return entry
        if "role" not in entry:
            return self._block(entry)
        content = entry.get("content")
        if isinstance(content, list):
            return {**entry, "content": [self._block(one) for one in content]}
        return {**entry, "content": self._block(content)}

    def _block(self, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        changed = dict(block)
        if isinstance(meta := block.get("_meta"), dict):
            changed["_meta"] = self._meta(meta)
        if block.get("type") == "resource_link":
            return self._located(changed)
        resource = block.get("resource")
        if block.get("type") == "resource" and isinstance(resource, dict):
            changed["resource"] = self._located(self.page(resource) if is_page(resource) else resource)
        return changed

    def _located(self, link: Mapping[str, Any]) -> Raw:
        uri = link.get("uri")
        if not isinstance(uri, str) or not uri.startswith("ui://"):
            return dict(link)
        return {**link, "uri": self._shown(uri)}

    def _meta(self, meta: Mapping[str, Any]) -> Mapping[str, Any]:
        return with_ui_uris(meta, self._shown)

    def _shown(self, uri: str) -> str:
        return uri if self._is_alone else behind(self._server, uri)


def _may_link(content: object) -> bool:
    if not isinstance(content, msgspec.Raw):
        return True
    text = bytes(content)
    return any(hint in text for hint in _HINTS)
