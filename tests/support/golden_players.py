"""Those who send the requests of a golden run, over HTTP and over standard input, and note what each led to."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from tests.support.golden_gateways import PATIENCE, GatewayPlace
from tests.support.golden_normal_form import LATE, id_of, is_request, normal_message, normal_text
from tests.support.golden_request_tables import FORMS
from tests.support.golden_servers import (
    read_exactly,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.support.golden_requests import Step


__all__ = ["HttpPlayer", "LinePlayer", "Wire"]

Answer = dict[str, Any]


class Wire:
    """One connection of HTTP/1.1, kept open as long as the gateway keeps it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, verb: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        if self._streams is None or self._streams[0].at_eof():
            self.close()
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**26)
        lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if not any(name == "host" for name, _ in headers):
            lines.append(f"host: 127.0.0.1:{self._port}")
        if body or verb == "POST":
            lines.append(f"content-length: {len(body)}")
        self._streams[1].write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def head(self) -> tuple[int, dict[str, str]]:
        assert self._streams is not None
        lines = (await self._streams[0].readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(":", 1) for line in lines[1:] if ":" in line)
        return int(lines[0].split(" ")[1]), {name.lower(): value.strip() for name, value in pairs}

    async def pieces(self, verb: str, status: int, headers: dict[str, str]) -> AsyncIterator[bytes]:
        assert self._streams is not None
        reader = self._streams[0]
        if verb == "HEAD" or status in {204, 304}:
            return
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
        elif "content-length" in headers:
            yield await reader.readexactly(int(headers["content-length"]))
        else:
            while piece := await reader.read(2**16):
                yield piece
        if headers.get("connection") == "close":
            self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest = b""
    async for piece in pieces:
        rest = (rest + piece).replace(b"\r\n", b"\n")
        while b"\n\n" in rest:
            event, rest = rest.split(b"\n\n", 1)
            data = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
            if text := b"\n".join(data).decode():
                yield text


class Player:
    """Sends requests one after the other, and notes what each led to."""

    def __init__(self, place: GatewayPlace, noted: list[dict[str, Any]]) -> None:
        self.place = place
        self.noted = noted
        self.sessions: dict[str, str] = {}
        self.state = "none"
        self.approval = "0" * 16
        self.cancelled = 0

    def filled(self, step: Step) -> tuple[list[tuple[str, str]], bytes]:
        headers = [
            (name, self.sessions.get(value, value) if value.startswith("$") else value) for name, value in step.headers
        ]
        body = step.body.replace(b'"$state"', json.dumps(self.state).encode())
        return headers, body.replace(b"$approval", self.approval.encode())

    def keep(self, text: str) -> None:
        """Keep what later requests send back."""
        if found := re.search(r'"requestState":\s*("(?:[^"\\]|\\.)*")', text):
            self.state = json.loads(found[1])
        if found := re.search(r'"dev\.truename/approval":\s*"([0-9a-f]{16})"', text):
            self.approval = found[1]

    def message(self, text: str, step: Step) -> str:
        self.keep(text)
        try:
            return normal_message(read_exactly(text), step, [*self.sessions.values()])
        except ValueError:
            return normal_text(text)

    def received(self) -> list[str]:
        """Return what the servers got since the last time."""
        found = [*self.noted, *self.place.new_notes()]
        self.noted.clear()
        self.cancelled += sum(one.get("method") == "notifications/cancelled" for one in found)
        found = [one for one in found if one.get("method") not in LATE]
        found.sort(key=lambda one: str(one.get("server")))
        return [normal_text(json.dumps(one, sort_keys=True)) for one in found]


class HttpPlayer(Player):
    def __init__(self, place: GatewayPlace, noted: list[dict[str, Any]], port: int) -> None:
        super().__init__(place, noted)
        self._port = port
        self._main, self._beside = Wire(port), Wire(port)

    async def play(self, step: Step) -> Answer:

        try:
            answer = await asyncio.wait_for(self._answered(step), PATIENCE)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            answer = {"status": type(error).__name__, "messages": []}
            self._main.close()
            self._beside.close()
        if step.is_stream:
            # The gateway has seen that the stream was left before the next request comes.
            self._main.close()
            await asyncio.wait_for(self._quick("GET", "/healthz", [], b""), PATIENCE)
        received = self.received()
        return {**answer, **({"received": received} if received else {})}

    async def _quick(self, verb: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        await self._beside.send(verb, path, headers, body)
        status, told = await self._beside.head()
        async for _ in self._beside.pieces(verb, status, told):
            pass

    async def _answered(self, step: Step) -> Answer:
        headers, body = self.filled(step)
        await self._main.send(step.verb, step.path, headers, body)
        if step.is_cancelled:
            waiting = asyncio.create_task(self._main.head())
            while not waiting.done() and not any("held" in one for one in self.noted):
                await asyncio.sleep(0.002)
            if not waiting.done():
                told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": step.number}}
                await self._quick("POST", step.path, headers, json.dumps(told).encode())
            status, head = await waiting
        else:
            status, head = await self._main.head()
        if step.opens and "mcp-session-id" in head:
            self.sessions[step.opens] = head["mcp-session-id"]
        kind = head.get("content-type", "").split(";")[0]
        answer: Answer = {"status": status, "type": kind, "messages": [], "has_session": "mcp-session-id" in head}
        answer |= {
            name: normal_text(head[name]) for name in ("www-authenticate", "allow", "retry-after") if name in head
        }
        pieces = self._main.pieces(step.verb, status, head)
        if kind != "text/event-stream":
            text = b"".join([piece async for piece in pieces]).decode("utf-8", "replace")
            answer["messages"] += [self.message(text, step)] if text else []
            return answer
        if step.is_stream and step.verb == "GET":
            return answer
        async for text in _events(pieces):
            answer["messages"].append(self.message(text, step))
            if step.is_stream:
                break
            await self._reply(text, step, headers)
        return answer

    async def _reply(self, text: str, step: Step, headers: list[tuple[str, str]]) -> None:
        said = json.loads(text)
        if "method" in said and "id" in said:
            reply = {"jsonrpc": "2.0", "id": said["id"], "result": FORMS[step.form or "decline"]}
            kept = [(name, value) for name, value in headers if not name.startswith(("mcp-method", "mcp-name"))]
            await self._quick("POST", step.path, kept, json.dumps(reply).encode())

    def close(self) -> None:
        self._main.close()
        self._beside.close()


class LinePlayer(Player):
    """Plays over standard input and output: what comes before two more pings are answered belongs to a request."""

    def __init__(self, place: GatewayPlace, noted: list[dict[str, Any]], process: asyncio.subprocess.Process) -> None:
        super().__init__(place, noted)
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    async def play(self, step: Step) -> Answer:
        answer: Answer = {"messages": []}
        own = id_of(step.body) if is_request(step.body) else None
        _, body = self.filled(step)
        self._input.write(body + b"\n")
        try:
            await asyncio.wait_for(self._listen(step, answer, own), PATIENCE)
        except (TimeoutError, ValueError) as error:
            answer["status"] = type(error).__name__
        received = self.received()
        return {**answer, **({"received": received} if received else {})}

    async def _listen(self, step: Step, answer: Answer, awaited: tuple[bool, str] | None) -> None:
        for turn in ("first", "second"):
            mark = f"mark-{step.number}-{turn}"
            self._input.write(f'{{"jsonrpc":"2.0","id":"{mark}","method":"ping"}}\n'.encode())
            is_marked = False
            while not is_marked or awaited is not None:
                line = await self._output.readline()
                if not line:
                    message = "the gateway ended"
                    raise ValueError(message)
                said = json.loads(line)
                if said.get("id") == mark:
                    is_marked = True
                    continue
                if isinstance(said.get("id"), str) and said["id"].startswith("mark-"):
                    continue
                answer["messages"].append(self.message(line.decode(), step))
                if "method" in said and "id" in said:
                    reply = {"jsonrpc": "2.0", "id": said["id"], "result": FORMS[step.form or "decline"]}
                    self._input.write(json.dumps(reply).encode() + b"\n")
                elif "method" not in said and awaited == id_of(line):
                    awaited = None
