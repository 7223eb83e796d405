"""A client that reads its streams by hand, and leaves them when it likes."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2

from tests.gateway.conftest import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOTH = {"accept": "application/json, text/event-stream"}


class Told(NamedTuple):
    """One event: its id, when to come back in milliseconds, its message."""

    id: str | None
    retry: int | None
    message: dict[str, Any] | None


class Stream:
    """The events of one response."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.is_json = response.headers["content-type"] == "application/json"
        self._events = None if self.is_json else httpx2.EventSource(response).__aiter__()
        self.last: str | None = None

    async def next(self) -> Told:
        if self._events is None:
            # An answer that comes first is no stream.
            if self.response.is_closed:
                raise StopAsyncIteration
            return Told(None, None, json.loads(await self.response.aread()))
        event = await anext(self._events)
        self.last = event.id or self.last
        return Told(event.id, event.retry, json.loads(event.data) if event.data else None)

    async def message(self) -> dict[str, Any]:
        while (told := await self.next()).message is None:
            continue
        return told.message

    async def rest(self) -> list[dict[str, Any]]:
        found = []
        while True:
            try:
                found.append(await self.message())
            except StopAsyncIteration:
                return found


class Reader:
    """A session of a handshake version."""

    def __init__(self, http: httpx2.AsyncClient, url: str, version: str) -> None:
        self.http = http
        self.url = url
        self.headers = {**BOTH, "mcp-protocol-version": version}
        self.version = version

    async def open(self, capabilities: dict[str, Any] | None = None) -> None:
        asked = {
            "protocolVersion": self.version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "reader", "version": "1"},
        }
        async with self.post("initialize", asked, id="open") as stream:
            await stream.rest()
            self.headers["mcp-session-id"] = stream.response.headers["mcp-session-id"]
        await self.send({"method": "notifications/initialized"})

    async def send(self, message: dict[str, Any]) -> None:
        answer = await self.http.post(self.url, json={"jsonrpc": "2.0", **message}, headers=self.headers)
        assert answer.status_code == 202

    @asynccontextmanager
    async def post(self, method: str, params: dict[str, Any], id: int | str = 1) -> AsyncIterator[Stream]:
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        async with self.http.stream("POST", self.url, json=body, headers=self.headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    def call(self, name: str, id: int | str = 1, **params: Any) -> Any:
        return self.post("tools/call", {"name": name, "arguments": {}, **params}, id)

    @asynccontextmanager
    async def get(self, last: str | None = None, status: int = 200) -> AsyncIterator[Stream]:
        headers = {**self.headers, **({} if last is None else {"last-event-id": last})}
        async with self.http.stream("GET", self.url, headers=headers) as response:
            assert response.status_code == status
            yield Stream(response)


@asynccontextmanager
async def reader(address: str, version: str = "2025-11-25", **capabilities: Any) -> AsyncIterator[Reader]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        found = Reader(http, f"{address}/mcp", version)
        await found.open(capabilities)
        yield found
