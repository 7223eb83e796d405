"""Calls over HTTP, written by hand: cheap, kept alive, in either era, and every answer is looked at."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Literal, Self

__all__ = ["ERAS", "Era", "Load", "Wrong"]

Era = Literal["2025-11-25", "2026-07-28"]
ERAS: Final[tuple[Era, ...]] = ("2025-11-25", "2026-07-28")
_OWN: Final = re.compile(r"tool_\d{5}")
_META: Final = "io.modelcontextprotocol/"
_LIMIT: Final = 64 * 1024 * 1024
_PATIENCE: Final = 120.0


class Wrong(Exception):
    """An answer is not the one to what was asked."""


@dataclass
class _Connection:
    """One connection of a client, and its session in the handshake eras."""

    port: int
    path: str
    era: Era
    session: str = ""
    numbers: count[int] = field(default_factory=lambda: count(1))
    _writer: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Open the connection, also anew: servers close those on which nothing was asked for seconds."""
        self.close()
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=_LIMIT)

    async def open(self) -> Self:
        await self.connect()
        if self.era == "2025-11-25":
            info = {"name": "load", "version": "1"}
            await self.ask("initialize", {"protocolVersion": self.era, "capabilities": {}, "clientInfo": info})
            await self._exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
        return self

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask and return the result; raise `Wrong` for anything else."""
        number, headers = next(self.numbers), {}
        if self.era == "2026-07-28":
            info = {"name": "load", "version": "1"}
            meta = {f"{_META}protocolVersion": self.era, f"{_META}clientInfo": info, f"{_META}clientCapabilities": {}}
            params = {**params, "_meta": meta}
            headers = {"mcp-method": method} | ({"mcp-name": params["name"]} if "name" in params else {})
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        answer = json.loads(await self._exchange(message, headers))
        if answer.get("id") != number or "result" not in answer:
            raise Wrong(f"{method} {number}: {str(answer)[:300]}")
        found: dict[str, Any] = answer["result"]
        return found

    async def call(self, name: str) -> None:
        """Call a tool; raise `Wrong` unless it answers itself, and with what was sent now."""
        text = f"{self.era} {next(self.numbers)} {id(self)}"
        result = await self.ask("tools/call", {"name": name, "arguments": {"text": text}})
        own = _OWN.search(name)
        said = [part.get("text") for part in result.get("content", ())]
        if result.get("isError") or own is None or said != [f"{own[0]}:{text}"]:
            raise Wrong(f"{name} was sent {text!r}: {str(result)[:300]}")

    async def end(self) -> None:
        """End the session, if there is one, and the connection."""
        if self.session:
            await self._exchange({}, {}, verb="DELETE")
            self.session = ""
        self.close()

    async def _exchange(self, message: dict[str, Any], headers: dict[str, str], verb: str = "POST") -> bytes:
        body = json.dumps(message).encode() if message else b""
        given = {
            "host": f"127.0.0.1:{self.port}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "content-length": str(len(body)),
            **({"mcp-protocol-version": self.era} if message.get("method") != "initialize" else {}),
            **({"mcp-session-id": self.session} if self.session else {}),
            **headers,
        }
        head = f"{verb} {self.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items())
        assert self._writer is not None
        self._writer.write(head.encode() + b"\r\n" + body)
        return await asyncio.wait_for(self._response(), _PATIENCE)

    async def _response(self) -> bytes:
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        chunked = headers.get("transfer-encoding") == "chunked"
        body = await self._chunks() if chunked else await self._reader.readexactly(int(headers["content-length"]))
        if not first.startswith("HTTP/1.1 2"):
            raise Wrong(f"{first}: {body[:300].decode('utf-8', 'replace')}")
        self.session = headers.get("mcp-session-id", self.session)
        return _last_event(body) if headers.get("content-type", "").startswith("text/event-stream") else body

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(parts)


def _last_event(body: bytes) -> bytes:
    events = [line[5:].strip() for line in body.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data:")]
    return [event for event in events if event][-1]


class Load:
    """Clients of one era, each on a connection of its own, that call tools one after the other."""

    def __init__(self, port: int, path: str, era: Era, clients: int) -> None:
        self._made = [_Connection(port, path, era) for _ in range(clients)]
        self.names: list[str] = []

    async def open(self, most: int = 50) -> Self:
        """Connect, and take names from all over the list."""
        for one in self._made:
            await one.open()
        names, cursor = [], None
        while True:
            page = await self._made[0].ask("tools/list", {} if cursor is None else {"cursor": cursor})
            names += [tool["name"] for tool in page["tools"]]
            if (cursor := page.get("nextCursor")) is None:
                break
        self.names = names[:: max(1, len(names) // most)]
        return self

    async def end(self) -> None:
        """End the sessions and the connections."""
        for one in self._made:
            await one.connect()
            await one.end()

    async def run(self, calls: int, seconds: float) -> int:
        """Make so many calls, or fewer if the time is over before; return how many. Raises `Wrong`."""
        for one in self._made:
            await one.connect()
        done, until = 0, time.monotonic() + seconds

        async def one_client(connection: _Connection, start: int) -> None:
            nonlocal done
            while done < calls and (time.monotonic() < until or not done):
                done += 1
                start += 1
                await connection.call(self.names[start % len(self.names)])

        await asyncio.gather(*(one_client(one, 7 * number) for number, one in enumerate(self._made)))
        return done
