"""Our side of a connection to a server: JSON-RPC, the protocol version, and what belongs to one connection.

A request passes through it as bytes: of a result no more is read than its envelope, unless more is asked for.

Source: MCP 2024-11-05 to 2026-07-28: basic/lifecycle, basic/transports, basic/utilities, client, server/discover,
subscriptions/listen.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import msgspec

from truename.gateway.background import background
from truename.gateway.deadline import Deadline
from truename.gateway.elicitation.input_requests import QUESTIONS
from truename.gateway.elicitation.router import ServerRequest
from truename.gateway.protocol.app_capability import with_apps
from truename.gateway.protocol.envelopes import (
    ABSENT,
    content_of,
    may_have_own_meta,
    result_of_call,
)
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import RepeatedKeyError, depth_of, read_strictly
from truename.gateway.protocol.own_meta import without_own_meta
from truename.gateway.protocol.routing_headers import routing_lines
from truename.gateway.protocol.skills import SKILLS_CAPABILITIES, SKILLS_EXTENSION, declared_skills
from truename.gateway.protocol.specification import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    METHOD_HEADER,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
    TASKS_EXTENSION,
    TASKS_VERSION,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_HEADER,
    is_modern,
)
from truename.gateway.protocol.tracing import server_span
from truename.gateway.upstream.awaited_response import AwaitedResponse, own_number
from truename.gateway.upstream.subscriptions import LISTS, Subscriptions
from truename.gateway.upstream.transport import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from truename.gateway.elicitation.router import ElicitationRouter
    from truename.gateway.protocol.envelopes import Envelope
    from truename.gateway.protocol.progress import ReportProgress
    from truename.gateway.upstream.transport import Transport

__all__ = ["MOST_AT_ONCE", "InvalidGreeting", "Notification", "ServerSession"]

log: Final = logging.getLogger("truename.gateway")

# What one server says unasked and is not dealt with yet: progress, log messages, changes, questions.
MOST_AT_ONCE: Final = 1_000
_DISCOVER_SECONDS: Final = 10.0
# What belongs to one connection and is written anew for the next one.
_CONNECTION_META: Final = frozenset(
    {
        *(PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY),
        *("progressToken", "progress_token"),
    }
)
_UNCANCELLED: Final = frozenset({"initialize", "server/discover"})
# Who is told of a call before it is answered is told in order.
_IN_ORDER: Final = frozenset({"notifications/progress", "notifications/message"})

_encode: Final = msgspec.json.Encoder().encode


class InvalidGreeting(ValueError):
    """A server answered the handshake with something that is no answer to it."""


class Notification(NamedTuple):
    """What a server tells unasked, as it sent it; ``call`` is the call in whose stream it came, if that is known."""

    method: str
    params: Mapping[str, Any]
    call: int | None = None


class ServerSession:
    """A session with one server. `negotiate` comes first; then `send` sends requests until the connection ends."""

    def __init__(
        self,
        transport: Transport,
        identity: Mapping[str, Any],
        on_message: Callable[[Notification], Awaitable[None]],
        questions: ElicitationRouter,
        tasks: TaskGroup,
    ) -> None:
        self.questions = questions
        # Who measures is given the method and what is waited for, and gives that back.
        self.timed: Callable[[str, Awaitable[dict[str, Any]]], Awaitable[dict[str, Any]]] | None = None
        self.dropped = 0
        self.version = ""
        self.modern = False
        self.capabilities: Mapping[str, Any] = {}
        self.instructions = ""
        self._transport = transport
        self._identity = identity
        self._written_identity = msgspec.Raw(_encode(dict(identity)))
        self._on_message = on_message
        self._tasks = tasks
        self._last = 0
        self._lines = b""
        self._unfinished = 0
        self._is_lost = False
        self._pending: dict[int, AwaitedResponse] = {}
        self._answering: dict[int | str, tuple[anyio.CancelScope, object]] = {}
        self.subscriptions = Subscriptions(self.next_number, self._subscribe, self.offers)

    @classmethod
    @asynccontextmanager
    async def over(
        cls,
        transport: Transport,
        identity: Mapping[str, Any],
        on_message: Callable[[Notification], Awaitable[None]],
        questions: ElicitationRouter,
    ) -> AsyncIterator[ServerSession]:
        """Run a session over a transport until the block ends (in one task, as anyio demands)."""
        async with background() as tasks:
            session = cls(transport, identity, on_message, questions, tasks)
            transport.begin(session)
            tasks.start_soon(session._until_closed)
            try:
                yield session
            finally:
                session._lose()

    async def _until_closed(self) -> None:
        await self._transport.closed.wait()
        self._lose()

    def _lose(self) -> None:
        self._is_lost = True
        for pending in tuple(self._pending.values()):
            pending.lose()

    @property
    def is_lost(self) -> bool:
        """Whether no answer can come any more."""
        return self._is_lost

    # Negotiation

    async def negotiate(self, *, probe: bool) -> None:
        """Agree on a protocol: the newest, or without the probe the handshake at once.

        Whoever does not answer the probe as a server of the stateless era would is greeted with the handshake. Raises
        `MCPError`, `TransportError` and `InvalidGreeting`.
        """
        version = MODERN_VERSIONS[-1]
        for attempt in range(2 if probe else 0):
            try:
                if await self._discover(version):
                    return
            except MCPError as error:
                refused, common = _refused(error)
                if common and attempt == 0:
                    version = common
                    continue
                if refused is not None and not any(one in HANDSHAKE_VERSIONS for one in refused):
                    raise
            except TransportError:
                # Many servers of earlier versions refuse what is no handshake in a way of their own.
                pass
            try:
                await self._initialize()
            except MCPError as error:
                # The probe came in too late, but the server has settled on its era by it.
                _, common = _refused(error)
                if not common or attempt > 0:
                    raise
                version = common
            else:
                return
        await self._initialize()

    async def _discover(self, version: str) -> bool:
        """Ask what the server speaks; False if that is nothing of the stateless era."""
        meta = {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: self._identity,
            CLIENT_CAPABILITIES_META_KEY: self._declares,
        }
        lines = _line(VERSION_HEADER, version) + _line(METHOD_HEADER, "server/discover")
        number = self.next_number()
        try:
            with Deadline(_DISCOVER_SECONDS):
                found = content_of(await self._exchange(number, "server/discover", {"_meta": meta}, lines, None))
        except TimeoutError as error:
            raise MCPError(REQUEST_TIMEOUT, "Request 'server/discover' timed out") from error
        spoken = found.get("supportedVersions")
        if not isinstance(spoken, list) or not _are_texts(spoken) or not isinstance(found.get("capabilities"), dict):
            return False
        common = [one for one in MODERN_VERSIONS if one in spoken]
        if not common:
            return False
        self._agree(common[-1], found)
        return True

    async def _initialize(self) -> None:
        """Greet the server (basic/lifecycle)."""
        params = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": self._declares,
            "clientInfo": self._identity,
        }
        number = self.next_number()
        found = content_of(await self._exchange(number, "initialize", params, b"", None))
        version, server = found.get("protocolVersion"), found.get("serverInfo")
        if not isinstance(version, str) or not isinstance(found.get("capabilities"), dict):
            what = "protocolVersion is no text" if not isinstance(version, str) else "capabilities is no object"
            raise InvalidGreeting(what)
        if not isinstance(server, dict) or not all(isinstance(server.get(key), str) for key in ("name", "version")):
            what = "serverInfo has no name and version"
            raise InvalidGreeting(what)
        if version not in HANDSHAKE_VERSIONS:
            what = f"Unsupported protocol version from the server: {version}"
            raise InvalidGreeting(what)
        self._agree(version, found)
        await self._transport.greeted(_notification("notifications/initialized", {}), self._lines)

    def _agree(self, version: str, found: Mapping[str, Any]) -> None:
        self.version, self.modern = version, is_modern(version)
        self.capabilities = found["capabilities"]
        instructions = found.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else ""
        self._lines = _line(VERSION_HEADER, version)

    @property
    def _declares(self) -> Mapping[str, Any]:
        """What the gateway declares for itself on every connection, since all have to list the same."""
        return _with_extensions(self.questions.declares)

    def offers(self, capability: str) -> bool:
        """Whether the server says that it has this: ``tools``, ``prompts``, ``resources``... or an extension.

        Of skills it says it in `SKILLS_CAPABILITIES`.
        """
        if capability in SKILLS_CAPABILITIES:
            return capability in declared_skills(self.capabilities)
        extensions = self.capabilities.get("extensions")
        found = extensions if "/" in capability and isinstance(extensions, dict) else self.capabilities
        return isinstance(found.get(capability), dict)

    @property
    def tasks(self) -> Mapping[str, Any] | None:
        """What the server says of tasks, in the way of its era; None if it has none."""
        if self.modern:
            extensions = self.capabilities.get("extensions")
            found = extensions.get(TASKS_EXTENSION) if isinstance(extensions, dict) else None
        else:
            found = self.capabilities.get("tasks") if self.version == TASKS_VERSION else None
        return found if isinstance(found, dict) else None

    @property
    def announces_changes(self) -> bool:
        """Whether the server says that it tells when one of its lists changes."""
        offered = (self.capabilities.get(kind) for kind in LISTS)
        return any(isinstance(one, dict) and one.get("listChanged") is True for one in offered)

    # Requests

    def next_number(self) -> int:
        """Return the id for a request that is sent next, for who has to know it before (``number`` of `send`)."""
        self._last += 1
        return self._last

    def send(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        header_map: Mapping[tuple[str, ...], str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        on_progress: ReportProgress | None = None,
        number: int | None = None,
        deepest: int | None = None,
    ) -> Awaitable[dict[str, Any]]:
        """Send one request as it is, but for what belongs to the connection, and await its result.

        Raises `MCPError` and `TransportError`.

        ``capabilities`` are those of the client on whose behalf it is sent, None for what the gateway itself asks;
        ``header_map`` says which arguments are mirrored in HTTP headers. Values of ``params`` may be `msgspec.Raw`, and
        the `PAYLOAD` of a call's result is.
        A result of more than ``deepest`` levels is a fault.
        """
        own = self.next_number() if number is None else number
        sent = self._sent(
            own,
            method,
            params,
            header_map=header_map,
            capabilities=capabilities,
            on_progress=on_progress,
            deepest=deepest,
        )
        return sent if self.timed is None else self.timed(method, sent)

    async def _sent(
        self,
        number: int,
        method: str,
        params: Mapping[str, Any],
        *,
        header_map: Mapping[tuple[str, ...], str] | None,
        capabilities: Mapping[str, Any] | None,
        on_progress: ReportProgress | None,
        deepest: int | None,
    ) -> dict[str, Any]:
        body = dict(params)
        given = body.pop("_meta", None)
        meta = {key: one for key, one in _decoded(given).items() if key not in _CONNECTION_META} if given else {}
        if on_progress is not None:
            meta["progressToken"] = number
        lines = self._lines
        if self.modern:
            meta[PROTOCOL_VERSION_META_KEY] = self.version
            meta[CLIENT_INFO_META_KEY] = self._written_identity
            meta[CLIENT_CAPABILITIES_META_KEY] = _with_extensions({}) if capabilities is None else dict(capabilities)
            if self._transport.has_headers:
                arguments = body.get("arguments")
                if header_map and isinstance(arguments, msgspec.Raw):
                    # What a header repeats is what is sent: nobody may read another value of the same name.
                    body["arguments"] = read_strictly(arguments)
                lines += routing_lines(method, body, header_map or {})
        if meta:
            body["_meta"] = meta
        if (span := server_span(method, number, body)) is None:
            found = await self._exchange(number, method, body, lines, on_progress)
        else:
            found = await span.around(self._exchange(number, method, span.told_in(body), lines, on_progress))
        # Brackets come in pairs.
        if deepest is not None and len(found.text) > 2 * deepest and depth_of(found.result, deepest) > deepest:
            raise TransportError("too_deep")
        if method == "tools/call":
            try:
                return result_of_call(found)
            except RepeatedKeyError as error:
                raise TransportError("protocol", f"a result in which {error}") from error
        content = content_of(found)
        # What a server says of its tools there is read, before it is left out of what clients are shown.
        return without_own_meta(content) if method != "tools/list" and may_have_own_meta(found) else content

    async def _exchange(
        self, number: int, method: str, params: Mapping[str, Any], lines: bytes, on_progress: ReportProgress | None
    ) -> Envelope:
        """Send a request and wait for its response. Raises `MCPError` and `TransportError`."""
        message = _request(number, method, params)
        if self._is_lost:
            raise TransportError("lost")
        pending = self._pending[number] = AwaitedResponse(on_progress)
        try:
            if method == "initialize":
                found = await self._transport.greet(number, message)
            else:
                found = await self._transport.request(number, message, lines)
            if found is None:
                found = await pending.wait()
        except asyncio.CancelledError:
            if method not in _UNCANCELLED:
                self._take_back(number)
            raise
        finally:
            del self._pending[number]
        if found.error is ABSENT:
            return found
        error = found.failure()
        raise MCPError(error.code, error.message, without_own_meta(error.data))

    def _take_back(self, number: int) -> None:
        """Tell the server that nobody waits for this any more (basic/utilities/cancellation)."""
        if self._is_lost or (self.modern and self._transport.ends_calls_by_closing):
            return
        params = {"requestId": number, "reason": "caller cancelled"}
        self._tasks.start_soon(self._notify, "notifications/cancelled", params)

    async def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._transport.notify(_notification(method, params), self._lines)

    async def _subscribe(self, number: int, wanted: Mapping[str, Any]) -> None:
        await self.send("subscriptions/listen", {"notifications": wanted}, capabilities=self._declares, number=number)

    # What the server sends

    def receive(self, found: Envelope) -> None:
        """Take a message that came on no request's own stream, in the order of their coming."""
        if found.is_response:
            self._resolve(found.id, found)
        elif not self._is_lost:
            self._hear(found, None)

    async def take(self, found: Envelope, call: int) -> None:
        """Take what came on a request's own stream before its response."""
        if found.is_response:
            self._resolve(found.id, found)
        elif found.method in _IN_ORDER and not found.is_request:
            notification = Notification(found.method, found.arguments() or {}, call)
            await self._progressed(notification, self._pending.get(call))
            await self._told(notification)
        else:
            self._hear(found, call)

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        self._resolve(number, fault)

    def _resolve(self, number: object, outcome: Envelope | TransportError) -> None:
        pending = self._pending.get(own_number(number))
        if pending is not None:
            pending.resolve(outcome)

    def _hear(self, found: Envelope, call: int | None) -> None:
        """Deal with a request or a notification in a task of its own, unless too many are being dealt with."""
        if not found.is_request and self._settled_at_once(found):
            return
        if self._unfinished >= MOST_AT_ONCE:
            self.dropped += 1
            return
        self._unfinished += 1
        if found.is_request:
            self._tasks.start_soon(self._answer, found, call)
            return
        notification = Notification(found.method, found.arguments() or {}, call)
        waiting = self._about(notification)
        for pending in waiting:
            pending.hold()
        self._tasks.start_soon(self._deal, notification, waiting)

    def _settled_at_once(self, found: Envelope) -> bool:
        """Deal with what must not be overtaken: the end of a request of the server, the course of a subscription."""
        if found.method == "notifications/cancelled":
            self._withdraw(found.arguments() or {})
            return True
        return self.subscriptions.take(found)

    def _withdraw(self, params: Mapping[str, Any]) -> None:
        id = params.get("requestId")
        if not isinstance(id, str | int):
            return
        if not self.subscriptions.end(id) and (answering := self._answering.get(id)) is not None:
            answering[0].cancel()

    def _about(self, notification: Notification) -> tuple[AwaitedResponse, ...]:
        """Return who waits for the answers that must not overtake a notification.

        A log message does not say which call it is about: it is relayed only if all calls are of one session.
        """
        if notification.method == "notifications/message":
            return tuple(self._pending.values())
        pending = self._progressing(notification)
        return () if pending is None else (pending,)

    def _progressing(self, notification: Notification) -> AwaitedResponse | None:
        if notification.method != "notifications/progress":
            return None
        return self._pending.get(own_number(notification.params.get("progressToken")))

    async def _deal(self, notification: Notification, waiting: tuple[AwaitedResponse, ...]) -> None:
        try:
            await self._progressed(notification, self._progressing(notification))
            await self._told(notification)
        finally:
            self._unfinished -= 1
            for pending in waiting:
                pending.let_go()

    async def _progressed(self, notification: Notification, pending: AwaitedResponse | None) -> None:
        if notification.method != "notifications/progress" or pending is None or pending.report_progress is None:
            return
        params = notification.params
        done, message = _number(params.get("progress")), params.get("message")
        if own_number(params.get("progressToken")) not in self._pending or done is None:
            return
        try:
            await pending.report_progress(
                done, _number(params.get("total")), message if isinstance(message, str) else None
            )
        except Exception:
            log.exception("the progress of a request could not be told")

    async def _told(self, notification: Notification) -> None:
        try:
            await self._on_message(notification)
        except Exception:
            log.exception("a notification %r could not be dealt with", notification.method)

    async def _answer(self, found: Envelope, call: int | None) -> None:
        """Answer a request of the server, unless it takes it back meanwhile."""
        id, mark = found.id, object()
        try:
            with anyio.CancelScope() as scope:
                self._answering[id] = scope, mark
                try:
                    answer = {"result": await self._answered(found, call)}
                except MCPError as error:
                    answer = {"error": _failure(error)}
                except Exception as error:
                    log.exception("a request of a server could not be answered")
                    answer = {"error": _failure(MCPError(INTERNAL_ERROR, str(error)))}
                self._forget(id, mark)
                await self._transport.notify(_response(id, answer), self._lines)
        finally:
            self._forget(id, mark)
            self._unfinished -= 1

    def _forget(self, id: int | str, mark: object) -> None:
        # A server may give one id to a second request before the first is answered.
        if (entry := self._answering.get(id)) is not None and entry[1] is mark:
            del self._answering[id]

    async def _answered(self, found: Envelope, call: int | None) -> Mapping[str, Any]:
        params = found.arguments()
        if found.method in QUESTIONS:
            return await self.questions.relay(ServerRequest(found.method, params, call, self._reporting(params)))
        if found.method == "ping" and not self.modern:
            return {}
        raise MCPError(METHOD_NOT_FOUND, "Method not found", found.method)

    def _reporting(self, params: Mapping[str, Any] | None) -> ReportProgress:
        meta = (params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None

        async def report(progress: float, total: float | None = None, message: str | None = None) -> None:
            if token is None:
                return
            said = {"progressToken": token, "progress": progress, "total": total, "message": message}
            await self._notify("notifications/progress", {key: one for key, one in said.items() if one is not None})

        return report


def _request(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    if params:
        message["params"] = params
    return _encode(message)


def _notification(method: str, params: Mapping[str, Any]) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})


def _response(id: int | str, answer: Mapping[str, Any]) -> bytes:
    try:
        return _encode({"jsonrpc": "2.0", "id": id, **answer})
    except (ValueError, TypeError, RecursionError):
        # A client may answer with half of a character.
        error = _failure(MCPError(INTERNAL_ERROR, "The answer cannot be serialised as JSON."))
        return _encode({"jsonrpc": "2.0", "id": id, "error": error})


def _failure(error: MCPError) -> dict[str, Any]:
    found = {"code": error.code, "message": error.message}
    return found if error.data is None else {**found, "data": error.data}


def _refused(error: MCPError) -> tuple[list[str] | None, str | None]:
    """Return which versions a server speaks that refuses ours, and the newest of them that we speak too."""
    data = error.data if error.code == UNSUPPORTED_PROTOCOL_VERSION else None
    spoken = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(spoken, list) or not _are_texts(spoken):
        return None, None
    common = [one for one in MODERN_VERSIONS if one in spoken]
    return spoken, common[-1] if common else None


def _with_extensions(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities that declare apps and skills too, which the gateway passes."""
    found = with_apps(capabilities)
    return {**found, "extensions": {SKILLS_EXTENSION: {}, **found["extensions"]}}


def _line(name: str, value: str) -> bytes:
    return f"{name}: {value}\r\n".encode("ascii")


def _decoded(value: object) -> dict[str, Any]:
    found = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
    return found if isinstance(found, dict) else {}


def _are_texts(value: list[Any]) -> bool:
    return all(isinstance(one, str) for one in value)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
