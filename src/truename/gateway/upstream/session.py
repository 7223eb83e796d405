"""Our session with one server: the versions are negotiated, requests are sent, what the server asks and tells is taken.

Source: MCP 2025-11-25, basic/lifecycle and basic/utilities; MCP 2026-07-28, server/discover and subscriptions/listen.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from truename.gateway.background import background
from truename.gateway.mcp.messages import encode, error, notification, response
from truename.gateway.protocol.own_meta import without_own_meta
from truename.gateway.protocol.routing_headers import VERSION_HEADER, routing_headers
from truename.gateway.protocol.sdk import TASKS_EXTENSION, TASKS_VERSION, MCPError, is_modern
from truename.gateway.protocol.tracing import server_span
from truename.gateway.questions.elicitation import ServerRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from anyio.abc import TaskGroup
    from typing_extensions import TypeIs

    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.protocol.sdk import OnProgress
    from truename.gateway.questions.elicitation import ElicitationRouter
    from truename.gateway.upstream.transport import RequestTransport

    Message = dict[str, Any]
    Raw = dict[str, Any]
    OnNotification = Callable[[str, Mapping[str, Any]], Awaitable[None]]

__all__ = ["MOST_AT_ONCE", "ServerSession"]

log: Final = logging.getLogger("truename.gateway")

# What one server sends unasked and is not dealt with yet: progress, log messages, changes, questions.
MOST_AT_ONCE: Final = 1_000
# How long the end of the handshake may take to be taken.
_TAKEN: Final = 15.0
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
_LISTED: Final = ("tools", "prompts", "resources")
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
# What a server tells of a call comes before the call's answer.
_BEFORE_ANSWERS: Final = frozenset({"notifications/progress", "notifications/message"})
# What belongs to one connection and is written anew for the next one.
_OF_CONNECTION: Final = frozenset(
    {
        PROTOCOL_VERSION_META_KEY,
        CLIENT_INFO_META_KEY,
        CLIENT_CAPABILITIES_META_KEY,
        "progressToken",
        "progress_token",
    }
)


class _Pending:
    """A request that waits for its answer, which waits for what the server told of the call before it."""

    __slots__ = ("_held", "_untold", "answer", "on_progress")

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self._untold = 0
        self._held: Message | None = None

    def settle(self, message: Message) -> None:
        """Take the answer."""
        if self._untold:
            self._held = message
        elif not self.answer.done():
            self.answer.set_result(message)

    def begin_telling(self) -> None:
        self._untold += 1

    def end_telling(self) -> None:
        self._untold -= 1
        if not self._untold and self._held is not None:
            self.settle(self._held)

    def release(self, message: Message) -> None:
        """Take the answer at once: the connection is gone."""
        self._untold = 0
        self.settle(message)


class ServerSession:
    """A session over one transport. Results and definitions pass as the server sent them.

    ``on_notification`` gets what the server tells beside the progress of calls: the method and the parameters.
    """

    def __init__(
        self,
        transport: RequestTransport,
        identity: Mapping[str, Any],
        on_notification: OnNotification,
        questions: ElicitationRouter,
        tasks: TaskGroup,
    ) -> None:
        self.questions = questions
        # Who measures is given the method and what is waited for, and gives that back.
        self.timed: Callable[[str, Awaitable[Raw]], Awaitable[Raw]] | None = None
        self.version = ""
        self.instructions = ""
        self.dropped = 0
        self._capabilities: Mapping[str, Any] = {}
        self._transport = transport
        self._identity = identity
        self._on_notification = on_notification
        self._tasks = tasks
        self._numbers = count(1)
        self._pending: dict[RequestId, _Pending] = {}
        self._answering: dict[RequestId, anyio.CancelScope] = {}
        self._subscriptions: dict[str, Callable[[str, Mapping[str, Any]], Awaitable[None]]] = {}
        self._unfinished = 0
        self.is_lost = False

    @classmethod
    @asynccontextmanager
    async def over(
        cls,
        transport: RequestTransport,
        identity: Mapping[str, Any],
        on_notification: OnNotification,
        questions: ElicitationRouter,
    ) -> AsyncIterator[ServerSession]:
        """Run a session over a transport until the block ends."""
        async with background() as tasks:
            session = cls(transport, identity, on_notification, questions, tasks)
            transport.begin(session)
            try:
                yield session
            finally:
                session.lost()

    # Negotiation

    async def negotiate(self, *, probe: bool) -> None:
        """Agree on a protocol version: by the probe of the stateless versions, or by the handshake at once.

        Whatever does not show that the server speaks a stateless version leads to the handshake. Raises `MCPError`, and
        `ValueError` for a result that is none.
        """
        version = LATEST_MODERN_VERSION
        for attempt in range(2) if probe else ():
            try:
                found = await self._discover(version)
            except MCPError as problem:
                mutual, supported = _versions_in(problem)
                if mutual and attempt == 0:
                    version = mutual
                    continue
                if supported is not None and not set(supported) & set(HANDSHAKE_PROTOCOL_VERSIONS):
                    raise
                found = None
            if found is not None and self._adopt_discovered(found):
                return
            try:
                await self._initialize()
            except MCPError as problem:
                # A probe that came late may have settled that the server speaks a stateless version.
                mutual, _ = _versions_in(problem)
                if not mutual or attempt:
                    raise
                version = mutual
            else:
                return
        await self._initialize()

    async def _discover(self, version: str) -> Raw:
        params = {"_meta": self._stamp(version, self.questions.declares)}
        headers = {VERSION_HEADER: version, **routing_headers("server/discover", params, {})}
        return await self._sent("server/discover", params, number=self.next_number(), headers=headers)

    def _adopt_discovered(self, found: Raw) -> bool:
        supported, capabilities = found.get("supportedVersions"), found.get("capabilities")
        if not isinstance(supported, list) or not isinstance(capabilities, dict):
            return False
        mutual = [version for version in MODERN_PROTOCOL_VERSIONS if version in supported]
        if mutual:
            self._adopt(mutual[-1], found)
        return bool(mutual)

    async def _initialize(self) -> None:
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": dict(self.questions.declares),
            "clientInfo": self._identity,
        }
        found = await self._sent("initialize", params, number=self.next_number(), headers={})
        version = found.get("protocolVersion")
        if not isinstance(version, str):
            message = "protocolVersion: Input should be a valid string"
            raise ValueError(message)  # noqa: TRY004 - as for every other part of it
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            message = f"Unsupported protocol version from the server: {version}"
            raise ValueError(message)
        if problem := _wrong_result(found):
            raise ValueError(problem)
        self._adopt(version, found)
        with anyio.move_on_after(_TAKEN):
            await self._notify("notifications/initialized", None)

    def _adopt(self, version: str, found: Raw) -> None:
        self.version = version
        self._capabilities = found["capabilities"]
        instructions = found.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else ""

    @property
    def modern(self) -> bool:
        """Whether the server speaks a stateless version."""
        return is_modern(self.version)

    def offers(self, capability: str) -> bool:
        """Whether the server says that it has this (``tools``, ``prompts``, ``resources``, ``completions``...)."""
        return self._capabilities.get(capability) is not None

    @property
    def tasks(self) -> Mapping[str, Any] | None:
        """What the server says of tasks, in the way of its version; None if it has none."""
        if self.modern:
            said = _object(self._capabilities.get("extensions")).get(TASKS_EXTENSION)
        else:
            said = self._capabilities.get("tasks") if self.version == TASKS_VERSION else None
        return said if isinstance(said, dict) else None

    @property
    def announces_changes(self) -> bool:
        """Whether the server says that it tells when one of its lists changes."""
        return any(_object(self._capabilities.get(kind)).get("listChanged") for kind in _LISTED)

    # Requests to the server

    def next_number(self) -> int:
        """Return the id for a request that is sent next, for who has to know it before (``number`` of `send`)."""
        return next(self._numbers)

    async def send(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        header_map: Mapping[tuple[str, ...], str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        number: int | None = None,
    ) -> Raw:
        """Send one request as it is, but for what belongs to the connection. Raises `MCPError`.

        ``capabilities`` are those of the client on whose behalf it is sent; ``header_map`` says which arguments are
        mirrored in HTTP headers.
        """
        body = dict(params)
        meta = {key: value for key, value in (body.pop("_meta", None) or {}).items() if key not in _OF_CONNECTION}
        headers = {VERSION_HEADER: self.version}
        if self.modern:
            meta |= self._stamp(self.version, capabilities or {})
            headers |= routing_headers(method, body, header_map or {})
        if number is None:
            number = self.next_number()
        if on_progress is not None:
            meta["progressToken"] = number
        if meta:
            body["_meta"] = meta
        sent = self._sent(method, body, number=number, headers=headers, on_progress=on_progress)
        try:
            result = await (sent if self.timed is None else self.timed(method, sent))
        except MCPError as problem:
            if without_own_meta(problem.data) is problem.data:
                raise
            raise MCPError(problem.code, problem.message, without_own_meta(problem.data)) from problem
        # What a server says of its tools there is read, before it is left out of what clients are shown.
        return result if method == "tools/list" else without_own_meta(result)

    def _stamp(self, version: str, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request of a stateless version says of its sender."""
        return {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: self._identity,
            CLIENT_CAPABILITIES_META_KEY: dict(capabilities),
        }

    async def _sent(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        number: RequestId,
        headers: Mapping[str, str],
        on_progress: OnProgress | None = None,
    ) -> Raw:
        """Send a request and return its result. Raises `MCPError`: the server's, or CONNECTION_CLOSED."""
        message: Message = {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}
        span = server_span(message)
        if span is not None:
            message = span.message
        try:
            answer = await self._answer(message, number, headers, on_progress)
            if span is not None:
                span.answered(answer)
        finally:
            if span is not None:
                span.end()
        if (problem := answer.get("error")) is not None:
            raise MCPError(problem["code"], problem["message"], problem.get("data"))
        result: Raw = answer["result"]
        return result

    async def _answer(
        self, message: Message, number: RequestId, headers: Mapping[str, str], on_progress: OnProgress | None
    ) -> Message:
        if self.is_lost:
            return _closed()
        pending = self._pending[number] = _Pending(on_progress)
        try:
            found = await self._transport.request(number, msgspec.json.encode(message), headers, self._take)
            return await pending.answer if found is None else found
        except _GONE:
            self.is_lost = True
            return _closed()
        except anyio.get_cancelled_exc_class():
            # Nobody waits for an answer any more (basic/utilities/cancellation).
            reason = {"requestId": number, "reason": "caller cancelled"}
            self._begin(self._notify("notifications/cancelled", reason))
            raise
        finally:
            del self._pending[number]

    async def _notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self._post(notification(method, params))

    async def _post(self, message: Message) -> None:
        """Send a message that is not answered; nothing is raised where the server is gone."""
        headers = {VERSION_HEADER: self.version} if self.version else {}
        with suppress(*_GONE):
            await self._transport.post(encode(message), headers)

    # What the server sends

    async def hear(self, message: Message) -> None:
        """Take a message that came outside of a request's own stream, in the order of their coming."""
        method = message.get("method")
        if method is None:
            if (pending := self._waiting(message.get("id"))) is not None:
                pending.settle(message)
        elif self._unfinished >= MOST_AT_ONCE:
            self.dropped += 1
        elif "id" in message:
            self._begin(self._answer_server(message))
        elif method == "notifications/cancelled":
            self._cancelled((message.get("params") or {}).get("requestId"))
        else:
            self._begin_telling(method, message.get("params") or {})

    async def _take(self, message: Message) -> None:
        """Take what came on a request's own stream: what is told of a call comes before its answer, one by one."""
        method = message.get("method")
        if method in _BEFORE_ANSWERS and "id" not in message:
            await self._tell(method, message.get("params") or {})
        else:
            await self.hear(message)

    def _begin_telling(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell something in a task of its own; answers that must not overtake it wait."""
        held = self._held_by(method, params)
        for pending in held:
            pending.begin_telling()

        async def telling() -> None:
            try:
                await self._tell(method, params)
            finally:
                for pending in held:
                    pending.end_telling()

        self._begin(telling())

    def _held_by(self, method: str, params: Mapping[str, Any]) -> Iterable[_Pending]:
        """Return the requests whose answers must not overtake a notification.

        A log message does not say which call it is about: it is relayed only if all calls are of one session.
        """
        if method == "notifications/message":
            return list(self._pending.values())
        pending = self._waiting(params.get("progressToken")) if method == "notifications/progress" else None
        return [] if pending is None else [pending]

    async def _tell(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/progress":
            await self._progressed(params)
            return
        subscription = _object(params.get("_meta")).get(_SUBSCRIPTION_KEY)
        listener = self._subscriptions.get(subscription) if isinstance(subscription, str) else None
        try:
            await (self._on_notification(method, params) if listener is None else listener(method, params))
        except Exception:
            log.debug("a notification of a server", exc_info=True)

    async def _progressed(self, params: Mapping[str, Any]) -> None:
        pending = self._waiting(params.get("progressToken"))
        progress, total, message = (params.get(name) for name in ("progress", "total", "message"))
        if pending is None or pending.on_progress is None or not _is_number(progress):
            return
        known = total if _is_number(total) else None
        try:
            await pending.on_progress(progress, known, message if isinstance(message, str) else None)
        except Exception:
            log.debug("the progress of a call", exc_info=True)

    def _waiting(self, id: object) -> _Pending | None:
        """Return the request of an id; some servers give a number back as a text."""
        if isinstance(id, str) and id not in self._pending and id.isascii() and id.isdigit():
            id = int(id[:20])
        return self._pending.get(id) if isinstance(id, int | str) and not isinstance(id, bool) else None

    async def _answer_server(self, message: Message) -> None:
        """Answer a request of the server."""
        id, method, params = message["id"], message["method"], message.get("params")
        scope = self._answering[id] = anyio.CancelScope()
        answer: Message | None = None
        try:
            with scope:
                answer = await self._answer_to(ServerRequest(id, self._report(params)), method, params)
        finally:
            if self._answering.get(id) is scope:
                del self._answering[id]
        # A request that its sender cancelled is not answered.
        if answer is not None:
            await self._post(answer)

    async def _answer_to(self, asked: ServerRequest, method: str, params: Mapping[str, Any] | None) -> Message:
        if method == "ping":
            return response(asked.id, {})
        relay = self.questions.relayed.get(method)
        if relay is None:
            return error(asked.id, METHOD_NOT_FOUND, "Method not found", method)
        try:
            return response(asked.id, await relay(asked, method, params))
        except MCPError as problem:
            return error(asked.id, problem.code, problem.message, problem.data)
        except Exception:
            log.exception("a request of a server failed")
            return error(asked.id, INTERNAL_ERROR, "Internal error")

    def _report(self, params: Mapping[str, Any] | None) -> OnProgress:
        """Return what tells a server how far its request has got, if it wants to know."""
        token = _object((params or {}).get("_meta")).get("progressToken")

        async def report(progress: float, total: float | None = None, message: str | None = None) -> None:
            if token is None:
                return
            said = {"progressToken": token, "progress": progress, "total": total, "message": message}
            await self._notify("notifications/progress", {key: one for key, one in said.items() if one is not None})

        return report

    def _cancelled(self, id: object) -> None:
        scope = self._answering.get(id) if isinstance(id, int | str) else None
        if scope is not None:
            scope.cancel()

    def _begin(self, work: Any) -> None:
        self._unfinished += 1

        async def counted() -> None:
            try:
                await work
            finally:
                self._unfinished -= 1

        self._tasks.start_soon(counted)

    def lost(self) -> None:
        """Answer all that waits with CONNECTION_CLOSED: the connection is gone."""
        self.is_lost = True
        for pending in list(self._pending.values()):
            pending.release(_closed())

    # Subscriptions (2026-07-28)

    async def listen(self, on_event: Callable[[], None]) -> None:
        """Follow the changes of the lists until the server's stream ends.

        ``on_event`` is called when the stream is open, and at every change.
        """

        async def heard(_: str, __: Mapping[str, Any]) -> None:
            on_event()

        wanted = {f"{kind}ListChanged": True for kind in _LISTED if self.offers(kind)}
        await self._listen(wanted, heard)

    async def listen_to(
        self, uris: tuple[str, ...], on_open: Callable[[], None], on_update: Callable[[str], Awaitable[None]]
    ) -> None:
        """Follow the changes of single resources until the server's stream ends."""

        async def heard(method: str, params: Mapping[str, Any]) -> None:
            if method == _ACKNOWLEDGED:
                on_open()
            elif method == "notifications/resources/updated" and isinstance(params.get("uri"), str):
                await on_update(params["uri"])

        await self._listen({"resourceSubscriptions": list(uris)}, heard)

    async def _listen(
        self, wanted: Mapping[str, Any], heard: Callable[[str, Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        number = f"listen-{self.next_number()}"
        self._subscriptions[number] = heard
        params = {"notifications": wanted, "_meta": self._stamp(self.version, self.questions.declares)}
        headers = {VERSION_HEADER: self.version, **routing_headers("subscriptions/listen", params, {})}
        try:
            await self._sent("subscriptions/listen", params, number=number, headers=headers)
        except MCPError:
            return
        finally:
            del self._subscriptions[number]


def _closed() -> Message:
    return {"error": {"code": CONNECTION_CLOSED, "message": "Connection closed"}}


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object; for any other value an empty one."""
    return value if isinstance(value, dict) else {}


def _is_number(value: object) -> TypeIs[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _versions_in(problem: MCPError) -> tuple[str | None, list[str] | None]:
    """Return the version to try next, and all that a server names in its refusal of a version."""
    data = problem.data
    found = data.get("supported") if isinstance(data, dict) and problem.code == UNSUPPORTED_PROTOCOL_VERSION else None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return None, None
    return next((one for one in reversed(MODERN_PROTOCOL_VERSIONS) if one in found), None), found


def _wrong_result(found: Raw) -> str | None:
    """Return what is wrong with the result of a handshake, None if it is one."""
    if not isinstance(found.get("capabilities"), dict):
        return "capabilities: Input should be a valid dictionary"
    server = found.get("serverInfo")
    if not isinstance(server, dict):
        return "serverInfo: Input should be a valid dictionary"
    wrong = next((name for name in ("name", "version") if not isinstance(server.get(name), str)), None)
    return None if wrong is None else f"serverInfo.{wrong}: Input should be a valid string"
