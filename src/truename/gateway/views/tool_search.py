"""Large catalogues: where a client would get more tools than it takes, it gets a few, and three to find the others.

What is listed is a function of the view and of the context: the same for every connection. Any tool can be called by
its exact name whether it is listed or not; `call_tool` is for clients that refuse to, and is unwrapped before anything
is decided, so that there is one way that every call goes.
"""

from __future__ import annotations

import json
import logging
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.cache import LRUCache
from truename.config.tool_search import pinned_tools, why_searched
from truename.errors import InvalidCall, LedgerError, ResolutionError, UnknownTool, excerpt
from truename.gateway.protocol.json_text import read_out
from truename.gateway.views.app_bridge import Search, is_for, opens_app
from truename.gateway.views.discovery import Discovery
from truename.gateway.views.own_tools import (
    ALWAYS_LOAD,
    MOST_DESCRIBED,
    MOST_FOUND,
    definitions,
    held_names,
    known_names,
    meant,
    own_names,
)
from truename.gateway.views.view import View
from truename.gateway.views.wording import among
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.shown import ShownTools
    from truename.gateway.views.own_tools import OwnNames
    from truename.gateway.views.profiled import Limits
    from truename.gateway.views.view import ViewSpec
    from truename.naming import Resolution

    Find = Callable[[str], Resolution]

__all__ = ["ToolSearch"]

_MOST_VIEWS: Final = 200
_MOST_INDEXES: Final = 16
_FOUND: Final = 10
_LONGEST_LINE: Final = 200
# Half of what clients accept in one message: the text and the structure say the same.
_MOST_BYTES: Final = 384 * 1024
_FOR_PROGRAMS: Final = frozenset({"_meta", "openai_name", "canonical_name"})


class _Looked(NamedTuple):
    """A view, what is listed of it without apps and with them, and our names in it: None where there are none."""

    view: View
    listed: View
    with_apps: View
    own: OwnNames | None

    @property
    def is_whole(self) -> bool:
        """Whether nothing has to be searched."""
        return self.with_apps is self.view


class ToolSearch:
    """What is listed of a view, and the answers of the gateway's own tools; ``tool_search`` off is as if without."""

    def __init__(self, registry: ShownTools, news: RateLimitedLog) -> None:
        self._registry = registry
        self._log = news
        self._discoveries: LRUCache[Limits, Discovery] = LRUCache(_MOST_INDEXES)
        self._were_large: LRUCache[ViewSpec, bool] = LRUCache(_MOST_VIEWS)
        self._looked_at: LRUCache[int, _Looked] = LRUCache(_MOST_VIEWS)

    def over(self, shown: ShownTools) -> ToolSearch:
        """Return the same over what is made beside; it remembers together with this what was large."""
        other: ToolSearch = copy(self)
        other._registry = shown
        other._looked_at = self._looked_at.copy()
        return other

    def follow(self, other: ToolSearch) -> None:
        """Have what was decided about views that were made beside."""
        self._looked_at = other._looked_at
        # What was made beside is let go of at once, and not when garbage is collected.
        other._registry = self._registry

    def forget(self) -> None:
        """Forget what was decided so far: the views that it was about are other ones now."""
        self._looked_at.clear()

    def drop(self, view: View) -> None:
        """Forget what was decided about a view that is kept no more, and about its parts."""
        for one in self._looked_at.values():
            if view is one.view or view is one.view.whole:
                self._looked_at.pop(id(one.view))

    def claim(self, view: View) -> None:
        """Have the ledger hold our names in a view that needs them, when it is made: a call must not depend on that.

        What hinders it costs the search alone, and is told.
        """
        if not self._why_searched(view):
            return
        try:
            own_names(view.table)
        except (LedgerError, OSError) as error:
            text = f"the list for {view.spec.dialect} has all tools, since tool search has no names: {error}"
            self._log.tell(("own names", view.spec), text)

    def listed(self, view: View) -> View:
        """Return what is listed of a view, which is limited to a context already, to a client that shows no apps."""
        return self._look(view).listed

    def listed_with_apps(self, view: View) -> View:
        """Return what is listed of such a view to a client that shows apps: all that apps need, and what others get."""
        return self._look(view).with_apps

    def for_pages(self, view: View) -> Search | None:
        """Return through which tool pages call what is not listed; None where all is."""
        looked = self._look(view)
        return None if looked.own is None or looked.is_whole else Search(looked.own.call, looked.with_apps.by_name)

    def _look(self, view: View) -> _Looked:
        found = self._looked_at.get(id(view))
        # The entry holds its view, so its number cannot be another's.
        if found is None:
            found = self._looked_at[id(view)] = self._decided(view)
        return found

    def _decided(self, view: View) -> _Looked:
        offered = view.for_models
        if (why := self._why_searched(offered)) and (own := known_names(view.table)) is not None:
            self._note_large(view.spec, why)
            listed = self._selected(offered, own)
            return _Looked(view, listed, self._with_tools_of_apps(view, listed), own)
        # Where the list was longer a moment ago, clients remember our names; where it never was, others' lists were.
        was = view.spec.unlimited is view.spec or view.spec in self._were_large
        held = held_names(view.table) if was and self._registry.settings.tool_search != "off" else None
        return _Looked(view, offered, view, held)

    def _with_tools_of_apps(self, view: View, listed: View) -> View:
        """Return what is listed of a view with the tools of apps: hosts look names up there, also for a page's call.

        Tools for apps alone cost models nothing, and all of them are in it. Tools that open an app are in it as long as
        the client takes more, and ``max_listed`` at most.
        """
        settings, there = self._registry.settings, dict(listed.described)
        most = min(view.spec.rules.max_tools or settings.max_listed, settings.max_listed)
        more = {id: tool for id, tool in view.described if id not in there and not is_for("model", tool)}
        opening = ((id, tool) for id, tool in view.described if id not in there and id not in more and opens_app(tool))
        more.update(islice(opening, max(0, most - len(there))))
        return View(view.spec, view.table, (*listed.described, *more.items()), view, view.texts)

    def _note_large(self, spec: ViewSpec, why: str) -> None:
        only = "" if spec.only is None else f" of server {excerpt(spec.only)}"
        text = f"the list for {spec.client or spec.dialect}{only} uses tool search and contains few tools: {why}"
        self._log.tell(("searched", spec), text, level=logging.INFO if spec.search else logging.WARNING)
        self._were_large[spec] = True

    def _why_searched(self, view: View) -> str:
        if view.spec.search:
            return "its address asks for it"
        return why_searched(self._registry.settings, view.tools, view.spec.rules.max_tools)

    def _selected(self, view: View, names: OwnNames) -> View:
        own = definitions(names, view.table)
        settings, lineage = self._registry.settings, self._registry.vetting.lineage
        pinned, left_out = pinned_tools(view.described, len(own), settings, view.spec.rules.max_tools, lineage)
        if left_out:
            there, room = len(pinned) + left_out, len(pinned)
            text = f"{there:,} tools fit pinned, and {view.spec.dialect} takes {room:,}: the others are searched"
            self._log.tell(("pinned", view.spec), text)
        described = [(id, _always_loaded(tool)) for id, tool in pinned]
        mine = [(ToolId.parse(tool["canonical_name"]), tool) for tool in own]
        return View(view.spec, view.table, (*described, *mine), view, view.texts)

    def hint(self, view: View) -> str:
        """Return what to add to the text about a wrong name: that tools can be searched, where they can."""
        looked = self._look(view)
        return "" if looked.own is None or looked.is_whole else f" Or find a tool with {looked.own.search}."

    def unwrapped(self, view: View, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the call that is meant: what `call_tool` is to call, as if it had been called itself.

        All else of the request stays: answers to questions, metadata, fields nobody knows. Raises `InvalidCall`.
        """
        own = self._look(view).own
        if own is None or meant(str(params.get("name")), own, view.table) != own.call:
            return params
        arguments = read_out(params.get("arguments"))
        inner = arguments if isinstance(arguments, dict) else {}
        name, given = inner.get("name"), inner.get("arguments")
        if not isinstance(name, str):
            raise InvalidCall(field="name", problem="must be the name of a tool")
        if meant(name, own, view.table) == own.call:
            raise InvalidCall(field="name", problem=f"cannot be {own.call} itself")
        if not isinstance(given, dict | None):
            raise InvalidCall(field="arguments", problem="must be an object")
        plain = {key: value for key, value in params.items() if key != "arguments"}
        return {**plain, "name": name, **({} if given is None else {"arguments": given})}

    async def answer(self, view: View, params: Mapping[str, Any], find: Find) -> dict[str, Any] | None:
        """Return the answer if one of our own tools is called, else None; ``find`` tells the tool that a name means.

        The view is limited to the context: what it does not show is not found, and not described. Raises `InvalidCall`.
        """
        own = self._look(view).own
        name = None if own is None else meant(str(params.get("name")), own, view.table)
        if own is None or name not in own:
            return None
        arguments = read_out(params.get("arguments"))
        given = arguments if isinstance(arguments, dict) else {}
        if name == own.search:
            return await self._search(view.for_models, given, own)
        return self._describe(view.for_models, given, find, own)

    async def _search(self, view: View, arguments: Mapping[str, Any], own: OwnNames) -> dict[str, Any]:
        query, limit = arguments.get("query"), arguments.get("limit")
        limit = _FOUND if limit is None else limit
        if not isinstance(query, str):
            raise InvalidCall(field="query", problem="must be a text")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_FOUND:
            raise InvalidCall(field="limit", problem=f"must be a whole number from 1 to {MOST_FOUND}")
        shown = view.by_id
        limits = view.spec.limits
        ids = await self._discovery(limits).search(self._registry.sight(limits).catalog, query)
        found = [_line(view, id, shown[id]) for id in islice((id for id in ids if id in shown), limit)]
        lines = [f"{one['name']}: {one['description']}".rstrip(": ") for one in found]
        text = "\n".join(lines) or (
            "No tool has these words. Try others: what it does, with what, or the name of the service."
        )
        advice = f"\n\nRead the input schema with {own.describe} before you call one of these." if found else ""
        return _result(text + advice, {"tools": found})

    def _discovery(self, limits: Limits) -> Discovery:
        """Return the index of what these limits leave: the order must not tell how common a word is elsewhere."""
        if (found := self._discoveries.get(limits)) is None:
            found = self._discoveries[limits] = Discovery(self._registry.settings.search_ranking)
        return found

    def _describe(self, view: View, arguments: Mapping[str, Any], find: Find, own: OwnNames) -> dict[str, Any]:
        names = arguments.get("names")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise InvalidCall(field="names", problem="must be a list of names")
        if len(names) > MOST_DESCRIBED:
            raise InvalidCall(field="names", problem=f"has more than {MOST_DESCRIBED} names")
        mine = {str(tool["name"]): tool for tool in definitions(own, view.table)}
        tools: list[Mapping[str, Any]] = []
        problems: list[str] = []
        size = 0
        for name in dict.fromkeys(names):
            try:
                tool = mine.get(meant(name, own, view.table)) or _described(view, name, find)
            except ResolutionError as error:
                problems.append(str(error))
                continue
            length = len(json.dumps(tool))
            if tools and size + length > _MOST_BYTES:
                problems.append(f"{excerpt(name)} is omitted, because the result would be too long. Request it alone.")
            else:
                size += length
                tools.append(tool)
        return _described_result(tools, problems)


def _described(view: View, name: str, find: Find) -> Mapping[str, Any]:
    """Return the descriptor of a tool that is shown. Raises `ResolutionError`, also for one that is not."""
    try:
        id = find(name).id
    except ResolutionError as error:
        raise among(error, view.by_name, frozenset(view.table.values())) from error
    tool = None if id is None else view.by_id.get(id)
    if tool is None:
        raise UnknownTool(text=name)
    return tool


def _described_result(tools: list[Mapping[str, Any]], problems: list[str]) -> dict[str, Any]:
    said = [{key: value for key, value in tool.items() if key not in _FOR_PROGRAMS} for tool in tools]
    text = "\n\n".join([*(json.dumps(one, ensure_ascii=False) for one in said), *problems])
    result = _result(text, {"tools": tools, **({"problems": problems} if problems else {})})
    return result if tools else {**result, "isError": True}


def _result(text: str, structure: Mapping[str, Any]) -> dict[str, Any]:
    # A text of a server may hold half a character, which cannot be sent.
    sound = text.encode("utf-8", "replace").decode()
    return {"content": [{"type": "text", "text": sound}], "structuredContent": structure}


def _line(view: View, id: ToolId, tool: Mapping[str, Any]) -> dict[str, str]:
    """Return what a search tells of a tool: one line; with its own name, where ours had to be shortened."""
    said, named = tool.get("description"), view.table.assigned(id)
    line = " ".join(said[: 4 * _LONGEST_LINE].split()) if isinstance(said, str) else ""
    short = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE].rstrip()}..."
    if named.shortened or named.rung == "digest":
        origin = view.table.catalog[id].origin
        short = f"({excerpt(origin.name)} of {excerpt(origin.server)}) {short}".rstrip()
    return {"name": str(tool["name"]), "description": short}


def _always_loaded(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = tool.get("_meta")
    return {**tool, "_meta": {**(meta if isinstance(meta, dict) else {}), ALWAYS_LOAD: True}}
