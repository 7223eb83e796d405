"""Skills of all servers at one endpoint: listed, got and read, with the tools in them called as this client calls them.

A skill's URIs lead to its server whatever others have, so behind that server's key. What a client reads of a skill, and
the digest that its entry has of that, are one function of the server's bytes and of the names that this client sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from truename.cache import LRUCache
from truename.errors import TruenameError, excerpt
from truename.gateway.calls.forward import forward
from truename.gateway.endpoint.skill_lists import SkillListCache, SkillListKey
from truename.gateway.mcp.methods import not_found
from truename.gateway.protocol.definitions import ResourceDefinition, unusable
from truename.gateway.protocol.digesting import off_loop
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.pages import Pages, WrittenItem
from truename.gateway.protocol.skills import (
    SKILLS_DIRECTORIES,
    SKILLS_EXTENSION,
    SkillDefinition,
    content_of,
    digest_of,
    is_skill_file,
    raw_bytes,
    with_bytes,
)
from truename.gateway.protocol.specification import INVALID_PARAMS
from truename.gateway.protocol.turns import go_on, in_slices
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.upstream_errors import UpstreamError, printable
from truename.gateway.views.resources import behind, is_behind
from truename.gateway.views.skill_names import AS_SERVED, MOST_REWRITTEN, with_allowed_tools

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from truename.gateway.mcp.requests import Request
    from truename.gateway.protocol.definitions import Definition
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.resources import ResourceView
    from truename.gateway.views.skill_names import RewrittenSkill, SkillNames
    from truename.gateway.views.view import ViewSpec
    from truename.policy import Context

    Read = Callable[[str], Awaitable[Mapping[str, Any]]]
    Place = Callable[[Request, str], tuple[Upstream, str]]

__all__ = ["Skills"]

Raw = dict[str, Any]

_FIELDS: Final = ("ttlMs", "cacheScope")
# How long a list waits for the files of a server whose digests it has to have, and how many it reads at a time.
READ_TIMEOUT: Final = 10.0
_READERS: Final = 4
# Nothing announces that skills changed, so who lists them has old lists read anew.
MAX_AGE: Final = 60.0
_DOUBTED: Final = 1.0
_MOST_LISTED: Final = 32 * 1024 * 1024
# Bytes of a file that is rewritten at once; a frontmatter takes a second for each 100 KB.
_QUICK: Final = 2_048


class _ShownFile(NamedTuple):
    """What is shown of a file: the size of the server's own bytes, and what a client reads instead of them."""

    own_size: int
    digest: str
    size: int
    has_tools: bool


# By digest, which the bytes were seen to have: 16 MB at most. By the names, and the server's digest.
_ORIGINALS: Final[LRUCache[str, bytes]] = LRUCache(64)
_SHOWN: Final[LRUCache[tuple[str, str], _ShownFile]] = LRUCache(20_000)
# Of all addresses: there may be one for each client and profile.
_LISTED: Final = SkillListCache(_MOST_LISTED)


class _Unreadable(Exception):
    """A file that an entry has to be shown with cannot be read."""


@dataclass(frozen=True)
class _Reader:
    """How entries of one server are shown: under these names and URIs, with files that ``read`` reads.

    ``doubts`` are files of which another look may find something else.
    """

    upstream: Upstream
    names: SkillNames
    uri: Callable[[str], str]
    read: Read
    doubts: list[str]

    async def shown(self, entry: Definition) -> Definition:
        """Return an entry as it is shown. Raises `_Unreadable`, and what ``read`` raises."""
        own, files = entry["uri"], entry["resources"]
        changed: dict[str, _ShownFile] = {}
        has_tools = False
        if files == "dynamic":
            if self.names.tools(entry["frontmatter"].get("allowed-tools")) is not None:
                self.doubts.append(own)
                has_tools = (await _rewritten(self.names, await self._raw(own))).has_tools
            return self._entry(entry, files, has_tools=has_tools)
        if self.names.changes:
            for file in files:
                uri = file["uri"]
                if is_skill_file(uri) and (found := await self._file(uri, file["digest"], file["size"])):
                    changed[uri] = found
            has_tools = own in changed and changed[own].has_tools
        return self._entry(entry, [self._listed(file, changed.get(file["uri"])) for file in files], has_tools=has_tools)

    def _entry(self, entry: Definition, files: object, *, has_tools: bool) -> Raw:
        said = entry["frontmatter"]
        said = with_allowed_tools(said, self.names) if has_tools else said
        return {**entry, "uri": self.uri(entry["uri"]), "frontmatter": said, "resources": files}

    def _listed(self, file: Mapping[str, Any], shown: _ShownFile | None) -> Raw:
        read = {} if shown is None else {"digest": shown.digest, "size": shown.size}
        return {**file, "uri": self.uri(file["uri"]), **read}

    async def _file(self, uri: str, digest: str, size: int) -> _ShownFile | None:
        """Return what is shown of a file; None where it is not what its entry says, so whoever reads it refuses it."""
        if size > MOST_REWRITTEN:
            return None
        key = self.names.key, digest
        if (known := _SHOWN.get(key)) is None:
            raw = _ORIGINALS.get(digest)
            if raw is None:
                raw = await self._raw(uri)
                # A size that lies would have files of any size remembered.
                if len(raw) != size or digest_of(raw) != digest:
                    self.upstream.look_again(_DOUBTED)
                    self.doubts.append(uri)
                    return None
                _ORIGINALS[digest] = raw
            read, has_tools = await _rewritten(self.names, raw)
            known = _SHOWN[key] = _ShownFile(len(raw), digest_of(read), len(read), has_tools)
        return known if known.own_size == size else None

    async def _raw(self, uri: str) -> bytes:
        raw = raw_bytes(content_of(await self.read(uri), uri))
        if raw is None:
            raise _Unreadable(uri)
        return raw


class Skills:
    """Answers to the methods of the extension at one endpoint; ``place`` tells where a URI leads."""

    def __init__(
        self,
        registry: Registry,
        spec_of: Callable[[Request], ViewSpec],
        context_of: Callable[[Request], Context],
        place: Place,
    ) -> None:
        self._registry = registry
        self._spec_of = spec_of
        self._context_of = context_of
        self._place = place
        self._log = RateLimitedLog()
        self.answers: Final[Mapping[str, Callable[[Request, ResourceView], Awaitable[Raw]]]] = {
            "skills/list": self._list,
            "skills/get": self._get,
            "resources/directory/read": self._directory,
        }

    def offers(self, request: Request) -> bool:
        """Tell whether a request is of this extension, and a server that is shown has it."""
        wanted = SKILLS_DIRECTORIES if request.method.startswith("resources/") else SKILLS_EXTENSION
        if request.method not in self.answers:
            return False
        spec = self._spec_of(request)
        shown = self._registry.resources_in(spec).servers
        return any(one.offers(wanted) for key, one in self._registry.servers_in(spec).items() if key in shown)

    async def answer(self, request: Request) -> Raw:
        """Return the result of a request. Raises `MCPError`, `UpstreamError` and `TruenameError`."""
        if not self.offers(request):
            raise not_found(request.method)
        self._registry.catch_up()
        return await self.answers[request.method](request, self._registry.resources_in(self._spec_of(request)))

    def _names(self, request: Request, upstream: Upstream) -> SkillNames:
        """Return the names of a server's tools for whoever asks."""
        if not self._registry.settings.names_in_texts:
            return AS_SERVED
        try:
            view = self._registry.view(self._spec_of(request))
        except ExceptionGroup as group:
            # Names that this view's style cannot have: one example says it.
            if isinstance(first := group.exceptions[0], TruenameError):
                raise first from group
            raise
        shown = self._registry.access.limited(view, self._context_of(request)).for_models
        return shown.skill_names(upstream.key, upstream.tools or ())

    async def read(self, request: Request, upstream: Upstream, own: str, result: Raw) -> Raw:
        """Return what was read of a server, as this client reads it if it is the file of a skill."""
        if not is_skill_file(own) or not upstream.offers(SKILLS_EXTENSION):
            return result
        names = self._names(request, upstream)
        if self._registry.settings.names_in_texts:
            # Another client reads something else, and so does this one when the names change.
            result = {field: value for field, value in result.items() if field not in _FIELDS}
        content = content_of(result, own)
        raw = raw_bytes(content)
        if content is None or raw is None or not names.changes:
            return result
        shown = with_bytes(content, (await _rewritten(names, raw)).raw)
        return {**result, "contents": [shown if one is content else one for one in result["contents"]]}

    # Lists

    async def _list(self, request: Request, view: ResourceView) -> Raw:
        # Names that this view cannot have are refused before a task group would hide why.
        having = [
            (upstream, self._names(request, upstream), lists.skills)
            for key, lists in self._registry.resources.lists.items()
            if key in view.servers
            and (upstream := self._registry.pool.get(key)) is not None
            and upstream.offers(SKILLS_EXTENSION)
        ]
        found: list[list[Definition]] = [[] for _ in having]
        async with anyio.create_task_group() as tasks:
            for (upstream, names, skills), into in zip(having, found, strict=True):
                upstream.look_again(MAX_AGE)
                tasks.start_soon(self._list_of, request, upstream, names, skills, into)
        entries = [entry for of_one in found for entry in of_one]
        return Pages(entries).page("skills", (request.params or {}).get("cursor"))

    async def _list_of(
        self,
        request: Request,
        upstream: Upstream,
        names: SkillNames,
        skills: tuple[Definition, ...],
        into: list[Definition],
    ) -> None:
        """Add a server's skills; those that cannot be shown with what is read of them are left out, and told."""
        is_alone = self._spec_of(request).only is not None
        key = SkillListKey(upstream.key, names.key, is_alone)
        if (known := _LISTED.get(key, skills)) is not None:
            into += known
            return
        uri = _as_it_is if is_alone else _behind(upstream.key)
        reader = _Reader(upstream, names, uri, _gateway_read(upstream), [])
        shown: dict[int, WrittenItem] = {}
        waiting = iter(enumerate(skills))
        problems: list[str] = []

        async def work(waiting: Iterator[tuple[int, Definition]]) -> None:
            async for place, entry in in_slices(waiting):
                try:
                    shown[place] = WrittenItem(await reader.shown(entry)).written()
                except (MCPError, UpstreamError) as error:
                    problems.append(str(error))
                except _Unreadable:
                    problems.append("its file has no content")

        with anyio.move_on_after(READ_TIMEOUT) as reading:
            async with anyio.create_task_group() as tasks:
                for _ in range(_READERS):
                    tasks.start_soon(work, waiting)
        entries = [shown[place] for place in sorted(shown)]
        into += entries
        if missing := len(skills) - len(shown):
            why = printable(problems[0], 200) if problems else "it took too long"
            what = "1 skill is" if missing == 1 else f"{missing:,} skills are"
            text = f"server {printable(upstream.key)!r}: {what} omitted, whose files cannot be read; the first: {why}"
            self._log.tell((upstream.key, "skills"), text)
        has_timed_out = reading.cancelled_caught
        if has_timed_out or not (missing or reader.doubts):
            _LISTED.put(key, skills, entries, has_timed_out=has_timed_out)

    # One skill

    def _led(self, request: Request, view: ResourceView, capability: str, problem: str) -> tuple[str, Upstream, str]:
        """Return the URI that is asked for, its server and the server's own URI. Raises `MCPError`."""
        uri = str((request.params or {}).get("uri"))
        problem = f"{problem} {excerpt(uri)}. List the skills: their addresses lead to their servers."
        try:
            upstream, own = self._place(request, uri)
        except MCPError as error:
            text = error.message if view.places(uri) else problem
            raise MCPError(INVALID_PARAMS, text, {"uri": uri}) from error
        if not upstream.offers(capability):
            raise MCPError(INVALID_PARAMS, problem, {"uri": uri})
        return uri, upstream, own

    async def _get(self, request: Request, view: ResourceView) -> Raw:
        uri, upstream, own = self._led(request, view, SKILLS_EXTENSION, "No skill is served at")
        asked = {**(request.params or {}), "uri": own}
        answering = forward(request, upstream, request.method, asked)
        entry = (await self._registry.vetting.answers.over(upstream.key, answering)).get("skill")
        if not isinstance(entry, dict) or unusable(entry, SkillDefinition) or entry["uri"] != own:
            reason = unusable(entry, SkillDefinition) if isinstance(entry, dict) else None
            problem = f"answers skills/get with an entry that is not one of this skill: {reason or 'another URI'}"
            raise _wrong(upstream, printable(problem, 300))
        if entry not in self._registry.resources.lists[upstream.key].skills:
            upstream.look_again(_DOUBTED)
        shown_uri = self._form(request, view, uri, upstream.key, entry)

        async def read(of: str) -> Raw:
            return await forward(request, upstream, "resources/read", {"uri": of})

        reader = _Reader(upstream, self._names(request, upstream), shown_uri, read, [])
        try:
            return {"skill": await reader.shown(entry)}
        except _Unreadable as error:
            raise _wrong(upstream, f"gives no content of the skill's file {excerpt(str(error))}") from error

    def _form(
        self, request: Request, view: ResourceView, uri: str, server: str, entry: Definition
    ) -> Callable[[str], str]:
        """Return how an entry's URIs are shown: in the form in which it was asked for, if all lead to its server."""
        if is_behind(uri):
            return _behind(server)
        files = entry["resources"]
        if self._spec_of(request).only is None and not all(
            self._leads(request, view, one["uri"], server) for one in (files if isinstance(files, list) else ())
        ):
            text = "Files of this skill cannot be told from those of other servers. Get the skill at {}."
            raise MCPError(INVALID_PARAMS, text.format(behind(server, uri)), {"uri": uri})
        return _as_it_is

    def _leads(self, request: Request, view: ResourceView, uri: str, server: str) -> bool:
        try:
            upstream, own = self._place(request, uri)
        except MCPError:
            return False
        return (upstream.key, own) == (server, uri) and server in view.servers

    async def _directory(self, request: Request, view: ResourceView) -> Raw:
        uri, upstream, own = self._led(request, view, SKILLS_DIRECTORIES, "No directory can be read at")
        asked = {**(request.params or {}), "uri": own}
        answering = forward(request, upstream, request.method, asked)
        result = await self._registry.vetting.answers.over(upstream.key, answering)
        listed = result.get("resources")
        if not isinstance(listed, list):
            raise _wrong(upstream, f"answers {request.method} without a list of resources")
        is_alone, names = self._spec_of(request).only is not None, self._names(request, upstream)

        def shown(child: Raw) -> Raw:
            is_plain = not is_behind(uri) and (is_alone or self._leads(request, view, child["uri"], upstream.key))
            found = {**child, "uri": child["uri"] if is_plain else behind(upstream.key, child["uri"])}
            if names.changes and is_skill_file(child["uri"]):
                # What a client reads is longer.
                found.pop("size", None)
            return found

        children = [shown(one) for one in listed if isinstance(one, dict) and not unusable(one, ResourceDefinition)]
        return {**result, "resources": children}


async def _rewritten(names: SkillNames, raw: bytes) -> RewrittenSkill:
    """Return a file as it reads under these names; a large one is rewritten beside the loop."""
    return names.file(raw) if len(raw) <= _QUICK else await off_loop(partial(_rewrite, names), raw, queue="skills")


def _rewrite(names: SkillNames, raw: bytes) -> RewrittenSkill:
    # Its turn may come when nobody waits any more.
    go_on()
    return names.file(raw)


def _gateway_read(upstream: Upstream) -> Read:
    """Return what reads a file of a server for the gateway itself: nobody is asked anything for a list."""

    async def read(uri: str) -> Raw:
        with upstream.running:
            await upstream.awake()
            return await upstream.request("resources/read", {"uri": uri}, capabilities={}, on_progress=None)

    return read


def _behind(server: str) -> Callable[[str], str]:
    return lambda uri: behind(server, uri)


def _as_it_is(uri: str) -> str:
    return uri


def _wrong(upstream: Upstream, problem: str) -> UpstreamError:
    remedy = "Report it to the server's authors."
    return UpstreamError(server=upstream.key, kind="protocol", problem=problem, remedy=remedy)
