"""Several sessions with one server over one connection: each request has an id of its own, each client gets its own.

A program speaks to one client at a time, over its standard input and output. Here gateways share it: the first greets
it, the others get the same greeting; responses, progress and what the server asks go to whom they belong.

Source: MCP 2024-11-05 to 2026-07-28: basic/lifecycle, basic/utilities, client, server/resources, subscriptions/listen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import msgspec

from truename.gateway.protocol.envelopes import ABSENT, Envelope
from truename.gateway.protocol.json_text import read_out
from truename.gateway.protocol.specification import (
    INVALID_REQUEST,
    LOG_LEVELS,
    METHOD_NOT_FOUND,
    SUBSCRIPTION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from truename.gateway.protocol.tasks import TASK_ID, related_to
from truename.gateway.upstream.awaited_response import own_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.gateway.upstream.transport import TransportError

__all__ = ["MultiplexedClient", "Multiplexer", "written"]

# What a gateway asks for itself, and not for one of its clients.
_OWN: Final = frozenset(
    {
        *("initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen"),
        *("resources/subscribe", "resources/unsubscribe", "tools/list", "prompts/list"),
        *("resources/list", "resources/templates/list", "skills/list"),
    }
)
_LISTEN: Final = "subscriptions/listen"
_RESULT: Final = "tasks/result"
_CANCELLED: Final = "notifications/cancelled"
_STAMP: Final = SUBSCRIPTION_META_KEY.encode()
_WHOSE: Final = (
    "The user was not asked: several clients use this connection, so the right one is unknown. "
    'Set isolation = "session" for this server.'
)
_GONE: Final = "The client has disconnected."
_LEFT: Final = "the client has disconnected"

_encode: Final = msgspec.json.Encoder().encode
_envelopes: Final = msgspec.json.Decoder(Envelope)
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOTHING: Final = msgspec.Raw(b"{}")


class MultiplexedClient(Protocol):
    """One session with the server: who is given what belongs to it."""

    def deliver(self, found: Envelope) -> None:
        """Take a message of the server, under the ids that this client gave."""
        ...

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        ...


class _SentRequest(NamedTuple):
    """A request that the server has not answered: whose it is (None: of nobody any more), and the id there."""

    client: MultiplexedClient | None
    id: int
    method: str
    task: str | None = None


def written(found: Envelope) -> bytes:
    """Return a message as one line of JSON without its end.

    >>> written(Envelope(id=1, result=msgspec.Raw(b"{}")))
    b'{"jsonrpc":"2.0","id":1,"result":{}}'
    """
    members: dict[str, Any] = {"jsonrpc": "2.0"}
    if found.id is not None:
        members["id"] = found.id
    if found.method is not None:
        members["method"] = found.method
    members |= {
        name: value
        for name, value in (("params", found.params), ("result", found.result), ("error", found.error))
        if value is not ABSENT
    }
    return _encode(members)


def _made(**members: Any) -> Envelope:
    found = Envelope(jsonrpc="2.0", **members)
    found.text = written(found)
    return found


class Multiplexer:
    """Joins sessions of several clients into one with a server; ``send`` takes what goes to the server, in order."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._clients: dict[MultiplexedClient, None] = {}
        self._last = 0
        self._sent: dict[int, _SentRequest] = {}
        self._numbers: dict[tuple[MultiplexedClient, int], int] = {}
        # Requests of the server, and who was asked.
        self._asked: dict[int | str, MultiplexedClient] = {}
        self._levels: dict[MultiplexedClient, str] = {}
        self._watched: dict[str, dict[MultiplexedClient, None]] = {}
        # Who greets the server now, and the version's kind once that is known. Until then the others wait.
        self._greeter: MultiplexedClient | None = None
        self._era: Literal["", "handshake", "stateless"] = ""
        self._greeting: msgspec.Raw = ABSENT
        # Some servers that were probed refuse the handshake for good: only a new one can be greeted.
        self.is_spoiled = False
        self._waiting: list[tuple[MultiplexedClient, bytes]] = []
        # The only client that has called on somebody's behalf. As over one connection of one gateway, the server may
        # ask on behalf of a call that has ended, so of several the right one is unknown.
        self._user: MultiplexedClient | None = None
        self._is_mixed = False

    @property
    def clients(self) -> tuple[MultiplexedClient, ...]:
        """The clients that have joined."""
        return tuple(self._clients)

    def is_waited_for(self, client: MultiplexedClient) -> bool:
        """Whether a client waits for an answer, other than of a subscription."""
        return any(one.client is client and one.method != _LISTEN for one in self._sent.values())

    def join(self, client: MultiplexedClient) -> None:
        """Have another client."""
        self._clients[client] = None

    def leave(self, client: MultiplexedClient) -> None:
        """Take back what a client waits for, and forget it."""
        self._clients.pop(client, None)
        self._waiting = [one for one in self._waiting if one[0] is not client]
        for number, sent in list(self._sent.items()):
            if sent.client is client:
                self._forget(number)
                if sent.method != "initialize":
                    self._notify(_CANCELLED, {"requestId": number, "reason": _LEFT})
        for id in [id for id, asked in self._asked.items() if asked is client]:
            self._refuse(id, _GONE)
        self._levels.pop(client, None)
        for uri in [uri for uri, watching in self._watched.items() if client in watching]:
            if self._unwatch(client, uri):
                self._ask(None, 0, "resources/unsubscribe", {"uri": uri})
        if self._greeter is client:
            self._greeter = None
            self._go_on()

    # What clients send

    def take(self, client: MultiplexedClient, message: bytes) -> None:
        """Take a message of a client. Raises `ValueError` for what is none."""
        if client not in self._clients:
            return
        if not self._era:
            self._greeter = self._greeter or client
            if self._greeter is not client:
                self._waiting.append((client, message))
                return
        found = _envelopes.decode(message)
        if found.is_response:
            if self._asked.get(found.id) is client:
                del self._asked[found.id]
                self._send(message)
        elif found.is_request:
            self._request(client, found)
        else:
            self._notified(client, found, message)

    def _go_on(self) -> None:
        """Take what waited for the end of the greeting."""
        waiting, self._waiting = self._waiting, []
        for client, message in waiting:
            self.take(client, message)

    def _agreed(self, era: Literal["handshake", "stateless"]) -> None:
        self._era, self._greeter = era, None

    def _request(self, client: MultiplexedClient, found: Envelope) -> None:
        method, id = str(found.method), own_number(found.id)
        if self._era == "handshake" and method == "initialize" and self._greeting is not ABSENT:
            client.deliver(_made(id=id, result=self._greeting))
            return
        if self._era == "handshake" and method == "server/discover":
            # It has settled on its era, and some servers end at such a request.
            client.deliver(_made(id=id, error=_failure(METHOD_NOT_FOUND, "Method not found")))
            return
        is_greeting = method in {"initialize", "server/discover"}
        goes_on = not self._era and not is_greeting
        if goes_on:
            self._agreed("stateless")
        params = _members.decode(found.params) if found.params is not ABSENT else {}
        if not self._is_settled_here(client, id, method, params):
            if method not in _OWN:
                self._is_mixed |= self._user not in {None, client}
                self._user = self._user or client
            self._ask(client, id, method, params)
        if goes_on:
            self._go_on()

    def _is_settled_here(self, client: MultiplexedClient, id: int, method: str, params: dict[str, msgspec.Raw]) -> bool:
        """Have what a client wants count beside what the others want; whether the server need not hear of it."""
        if method == "logging/setLevel" and (level := _text(params, "level")) in LOG_LEVELS:
            self._levels[client] = level
            lowest = min(self._levels.values(), key=LOG_LEVELS.index)
            params["level"] = msgspec.Raw(_encode(lowest))
        elif method == "resources/subscribe" and (uri := _text(params, "uri")):
            self._watched.setdefault(uri, {})[client] = None
        elif method == "resources/unsubscribe" and (uri := _text(params, "uri")) and not self._unwatch(client, uri):
            client.deliver(_made(id=id, result=_NOTHING))
            return True
        return False

    def _unwatch(self, client: MultiplexedClient, uri: str) -> bool:
        """Forget that a client watches a resource; whether nobody does now."""
        watching = self._watched.get(uri, {})
        watching.pop(client, None)
        if not watching:
            self._watched.pop(uri, None)
        return not watching

    def _ask(self, client: MultiplexedClient | None, id: int, method: str, params: Mapping[str, Any]) -> None:
        self._last += 1
        number = self._last
        task = _text(params, TASK_ID) if method == _RESULT else None
        self._sent[number] = _SentRequest(client, id, method, task)
        if client is not None:
            self._numbers[client, id] = number
        if "_meta" in params:
            meta: dict[str, Any] = dict(_members.decode(params["_meta"]))
            if "progressToken" in meta:
                meta["progressToken"] = number
            params = {**params, "_meta": meta}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        self._send(_encode({**message, "params": params} if params else message))

    def _notified(self, client: MultiplexedClient, found: Envelope, message: bytes) -> None:
        if found.method == "notifications/initialized":
            if self._greeter is client:
                self._agreed("handshake")
                self._send(message)
                self._go_on()
        elif found.method == _CANCELLED:
            params = found.arguments() or {}
            number = self._numbers.get((client, own_number(params.get("requestId"))))
            if number is not None:
                self._forget(number)
                self._notify(_CANCELLED, {**params, "requestId": number})
        else:
            self._send(message)

    def _forget(self, number: int) -> _SentRequest | None:
        sent = self._sent.pop(number, None)
        if sent is not None and sent.client is not None:
            self._numbers.pop((sent.client, sent.id), None)
        return sent

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(_encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def _refuse(self, id: int | str, text: str) -> None:
        """Answer a request of the server with an error."""
        self._asked.pop(id, None)
        self._send(written(Envelope(id=id, error=_failure(INVALID_REQUEST, text))))

    # What the server sends

    def receive(self, found: Envelope) -> None:
        """Give a message of the server to whom it belongs."""
        if found.is_response:
            sent = self._forget(own_number(found.id))
            if sent is None or sent.client is None:
                return
            if sent.method == "initialize":
                if found.is_result:
                    self._greeting = found.result
                elif not self._era and found.failure().code == UNSUPPORTED_PROTOCOL_VERSION:
                    self.is_spoiled = True
            sent.client.deliver(msgspec.structs.replace(found, id=sent.id))
        elif found.is_request:
            self._asks(found)
        else:
            self._tells(found)

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        sent = self._forget(number)
        if sent is not None and sent.client is not None:
            sent.client.fail(sent.id, fault)

    def _asks(self, found: Envelope) -> None:
        if found.method == "ping":
            self._send(written(Envelope(id=found.id, result=_NOTHING)))
            return
        client = self._whose(found)
        if client is None:
            self._refuse(found.id, _WHOSE)
            return
        self._asked[found.id] = client
        client.deliver(found)

    def _whose(self, found: Envelope) -> MultiplexedClient | None:
        """Return who is asked; None where that is not certain. About a task it is whoever waits for its result."""
        task = related_to(found.arguments())
        if task is not None:
            waiting = [one.client for one in self._sent.values() if one.task == task and one.client is not None]
            if waiting:
                return waiting[-1]
        return None if self._is_mixed or self._user not in self._clients else self._user

    def _tells(self, found: Envelope) -> None:
        params = found.params if found.params is not ABSENT else _NOTHING
        if found.method == "notifications/progress":
            self._for_request(found, "progressToken")
        elif found.method == _CANCELLED:
            self._cancels(found)
        elif found.method == "notifications/message":
            if self._user in self._clients and not self._is_mixed and self._user is not None:
                self._user.deliver(found)
        elif _STAMP in bytes(params):
            self._for_subscription(found)
        elif found.method == "notifications/resources/updated":
            for client in tuple(self._watched.get(str((found.arguments() or {}).get("uri")), ())):
                client.deliver(found)
        else:
            for client in self.clients:
                client.deliver(found)

    def _for_request(self, found: Envelope, key: str) -> None:
        params = found.arguments() or {}
        sent = self._sent.get(own_number(params.get(key)))
        if sent is not None and sent.client is not None:
            sent.client.deliver(_made(method=found.method, params=_raw({**params, key: sent.id})))

    def _cancels(self, found: Envelope) -> None:
        """Pass on that the server takes a question back, or ends a subscription."""
        id = (found.arguments() or {}).get("requestId")
        sent = self._sent.get(own_number(id))
        if sent is not None and sent.method == _LISTEN:
            self._for_request(found, "requestId")
        elif isinstance(id, int | str) and (asked := self._asked.pop(id, None)) is not None:
            asked.deliver(found)

    def _for_subscription(self, found: Envelope) -> None:
        params = found.arguments() or {}
        meta = params.get("_meta")
        sent = self._sent.get(own_number(meta.get(SUBSCRIPTION_META_KEY))) if isinstance(meta, dict) else None
        if sent is not None and sent.client is not None and isinstance(meta, dict):
            own = {**params, "_meta": {**meta, SUBSCRIPTION_META_KEY: sent.id}}
            sent.client.deliver(_made(method=found.method, params=_raw(own)))


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))


def _failure(code: int, message: str) -> msgspec.Raw:
    return _raw({"code": code, "message": message})


def _text(params: Mapping[str, Any], key: str) -> str:
    """Return a text among undecoded parameters, "" if it is none."""
    value = params.get(key, b'""')
    found = read_out(value) if isinstance(value, msgspec.Raw) else value
    return found if isinstance(found, str) else ""
