"""One negotiated connection to an upstream server: all its tools, and calls of one of them."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.deadline import Deadline
from truename.gateway.protocol.definitions import SharedSchemas, ToolDefinition, unusable
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.routing_headers import mirrored_arguments, wrong_annotation
from truename.gateway.protocol.schemas import unreadable
from truename.gateway.protocol.specification import METHOD_NOT_FOUND
from truename.gateway.protocol.turns import in_slices
from truename.gateway.protocol.writable import DEEPEST
from truename.gateway.upstream.explained import explained
from truename.gateway.upstream.lists import KINDS, Lists
from truename.gateway.upstream.transport import TransportError
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config import Settings
    from truename.gateway.elicitation.router import Asker
    from truename.gateway.elicitation.semaphore import Permit
    from truename.gateway.protocol.definitions import Definition
    from truename.gateway.protocol.progress import ReportProgress
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.lists import Kind
    from truename.gateway.upstream.session import ServerSession
    from truename.gateway.upstream.transport import Transport

__all__ = ["ServerConnection"]

_MAX_PAGES: Final = 500
_HEALTH_TIMEOUT: Final = 10.0
_UNSURE: Final = "Whether the call took effect is unknown; check before you repeat it."
_SEE: Final = "Start it by hand to see why."
_NOBODY: Final = nullcontext()


class ServerConnection:
    """Requests over one connection. Errors that the server sent stay `MCPError`; all else is `UpstreamError`."""

    def __init__(
        self, key: str, transport: Transport, session: ServerSession, news: RateLimitedLog, limits: Settings
    ) -> None:
        self._log = news
        self._key = key
        self._transport = transport
        self._session = session
        self._max_tools = limits.max_tools
        self._others_timeout = limits.startup_timeout / 5
        self._max_bytes = limits.max_result
        self._header_maps: dict[str, Mapping[tuple[str, ...], str]] = {}

    @property
    def closed(self) -> bool:
        """Whether the connection is known to be gone."""
        return self._transport.closed.is_set()

    @property
    def modern(self) -> bool:
        """Whether the server speaks the stateless era."""
        return self._session.modern

    @property
    def run(self) -> str:
        """The id of the run of the program behind it, as `Transport` has it."""
        return self._transport.run

    async def list_tools(self) -> tuple[Definition, ...]:
        """Return all pages of tools/list, verbatim. Raises `UpstreamError`."""
        try:
            tools = await self._pages("tools/list", "tools")
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and not self._session.offers("tools"):
                return ()
            raise self.protocol_fault(
                f"answers tools/list with error {error.code}: {printable(error.message, 200)}"
            ) from error
        except TransportError as fault:
            raise self.explain(fault, _SEE) from fault
        return await self._usable(tools)

    async def list_all(self, before: Lists) -> tuple[tuple[Definition, ...], Lists]:
        """Return the tools, and what else the server says that it has. Raises `UpstreamError` for the tools.

        What else cannot be listed now stays as it was, and that is told.
        """
        tools = await self.list_tools()
        return tools, Lists(**{name: await self._other(kind, getattr(before, name)) for name, kind in KINDS.items()})

    async def _other(self, kind: Kind, before: tuple[Definition, ...]) -> tuple[Definition, ...]:
        if not self._session.offers(kind.capability):
            return ()
        try:
            # Of the time that a server has to start, tools get the most.
            with anyio.fail_after(self._others_timeout):
                entries = await self._pages(kind.method, kind.field)
        except (MCPError, TransportError, UpstreamError, TimeoutError) as error:
            # Who has resources need not have templates.
            if isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND:
                return ()
            what = self.explain(error, _SEE) if isinstance(error, TransportError) else error
            said = printable(str(what), 200) or "it took too long"
            text = f"server {printable(self._key)!r}: its {kind.words} cannot be listed: {said}"
            self._log.tell(("others", kind.words), text)
            return before
        usable: dict[str, Definition] = {}
        left_out: list[tuple[str, str]] = []
        async for entry in in_slices(entries):
            key = str(entry.get(kind.key))
            if reason := unusable(entry, kind.shape):
                left_out.append((key, reason))
            else:
                usable.setdefault(key, entry)
        if left_out:
            self._report(left_out, kind.words)
        return tuple(usable.values())

    async def _pages(self, method: str, field: str) -> list[Definition]:
        tools: list[Definition] = []
        room = self._max_bytes
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            page = await self._session.send(method, {} if cursor is None else {"cursor": cursor})
            listed = page.get(field)
            if not isinstance(listed, list):
                raise self.protocol_fault(f"answers {method} without a list of {field}")
            tools += (tool for tool in listed if isinstance(tool, dict))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen or len(tools) >= self._max_tools:
                break
            seen.add(cursor)
            # One page is bounded by the transport, and so must all of them be.
            room -= len(json.dumps(listed)) + len(cursor)
            if room < 0:
                raise self._fault("too_large", "lists more than max_result allows", "Raise max_result.")
        if len(tools) > self._max_tools:
            shown = printable(self._key)
            text = f"server {shown!r} lists over {self._max_tools:,} {field}; the rest is omitted"
            self._log.tell(("many", field), text)
        return tools[: self._max_tools]

    async def _usable(self, tools: list[Definition]) -> tuple[Definition, ...]:
        """Leave out what would make clients refuse the whole list, and what they must drop (``x-mcp-header``)."""
        usable, left_out = [], list[tuple[str, str]]()
        header_maps: dict[str, Mapping[tuple[str, ...], str]] = {}
        schemas = SharedSchemas()
        async for tool in in_slices(tools):
            name, schema = tool.get("name"), tool.get("inputSchema")
            if isinstance(name, str):
                refused = unusable(tool, ToolDefinition) or unreadable(schema)
                if reason := refused or (wrong_annotation(schema) if self.modern else None):
                    left_out.append((name, reason))
                    continue
                if self.modern and (found := mirrored_arguments(schema)):
                    header_maps[name] = found
            # A name that is none is reported by the catalogue.
            usable.append(schemas.shared(tool))
        if left_out:
            self._report(left_out)
        self._header_maps = header_maps
        return tuple(usable)

    def _report(self, left_out: list[tuple[str, str]], words: str = "tools") -> None:
        name, reason = left_out[0]
        what = f"{words.removesuffix('s')} is" if len(left_out) == 1 else f"{words} are"
        first = f"{printable(name, 80)!r}, {printable(reason, 200)}"
        text = f"server {printable(self._key)!r}: {len(left_out):,} {what} omitted; the first: {first}"
        self._log.tell(("unusable", words), text, about=frozenset(left_out))

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: float,
        capabilities: Mapping[str, Any],
        on_progress: ReportProgress | None,
        asker: Asker | None = None,
        permit: Permit | None = None,
    ) -> dict[str, Any]:
        """Forward one request and return its result; what the server asks meanwhile, ``asker`` is asked.

        ``permit`` is given back while it asks. Values of ``params`` may be `msgspec.Raw`: they pass as they came, and
        so does the payload of a call's result. Raises `MCPError` as the server sent it, and `UpstreamError` (timeout,
        lost, unreachable, refused, too_large, protocol). It is never sent twice: a tool may have effects.
        """
        session = self._session
        number = session.next_number()
        try:
            with (
                Deadline(timeout) as deadline,
                _NOBODY if asker is None else session.questions.during(number, asker, deadline, permit),
            ):
                return await session.send(
                    method,
                    params,
                    header_map=self._header_maps.get(str(params.get("name"))) if self._header_maps else None,
                    capabilities=capabilities,
                    on_progress=on_progress,
                    number=number,
                    deepest=DEEPEST,
                )
        except TimeoutError as error:
            raise UpstreamError(
                server=self._key,
                kind="timeout",
                problem=f"did not answer within {timeout:g} seconds, so the call was cancelled",
                remedy=_UNSURE,
            ) from error
        except TransportError as fault:
            raise self.explain(fault, _UNSURE) from fault

    async def alive(self) -> bool:
        """Ask for a sign of life. A slow answer counts as one: a server may be busy with a long call."""
        try:
            with anyio.move_on_after(_HEALTH_TIMEOUT):
                await self._ask()
        except TransportError as fault:
            # A program that may not be asked now is not gone.
            return fault.kind in {"unconfirmed", "withheld"}
        return True

    async def answers(self, within: float) -> bool:
        """Tell whether it answers in this time, and be it with an error."""
        try:
            with anyio.fail_after(within):
                await self._ask()
        except (TransportError, TimeoutError):
            return False
        return True

    async def _ask(self) -> None:
        """Ask what every server answers, and be it with an error. Raises `TransportError`."""
        with suppress(MCPError):
            await self._session.send("server/discover" if self.modern else "ping", {})

    def explain_start(self, error: MCPError | TransportError) -> UpstreamError:
        """Say why the server could not be greeted."""
        if isinstance(error, TransportError):
            return self.explain(error, _SEE)
        said = printable(error.message, 200)
        return self.protocol_fault(f"refuses the connection with error {error.code}: {said}")

    def explain(self, fault: TransportError, remedy: str = "Try again later.") -> UpstreamError:
        """Say what went wrong with the connection."""
        if fault.kind == "lost" and not fault.detail and self.closed:
            return self._fault("lost", f"{self._transport.ending()} before it answered", remedy)
        return self._with_output(explained(self._key, fault.kind, fault.detail, remedy))

    def protocol_fault(self, problem: str) -> UpstreamError:
        """Build the error for a server that does not keep to the protocol."""
        return self._fault("protocol", problem, "Report it to the server's authors.")

    def _fault(self, kind: str, problem: str, remedy: str) -> UpstreamError:
        return self._with_output(UpstreamError(server=self._key, kind=kind, problem=problem, remedy=remedy))

    def _with_output(self, error: UpstreamError) -> UpstreamError:
        if error.kind in {"ended", "lost", "protocol"}:
            error.output = self._transport.tail.lines()
        return error
