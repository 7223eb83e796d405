"""The golden run: 10,000 requests through real gateways, and what each led to, in a form that can be compared.

Only what users have is used: `truename serve` as a process, HTTP, standard input and output, `truename audit verify`,
and the ledger for names that moved. So a gateway of another revision can be run too. The record is one's of before:
``python -m tests.support.golden_run --src EARLIER/src``.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import os
import re
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.support.golden_requests import FORMS, GATEWAYS, PATHS, TOKENS, Step, Survey, steps
from tests.support.golden_servers import (
    KEYS,
    OVER_STDIO,
    STATELESS,
    HttpServers,
    Members,
    Number,
    read_exactly,
    written,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

__all__ = ["RECORD", "Golden", "drawn", "played", "read_record"]

RECORD: Final = Path("tests/data/golden_run.jsonl.gz")
_SEED: Final = 20_261_126
_PATIENCE: Final = 20.0
_ROOT: Final = Path(__file__).parents[2]
Answer = dict[str, Any]

_SERVERS: Final = {
    "guarded": ("alpha", "beta", "gamma", "delta", "drift", "sf"),
    "plain": ("alpha", "beta", "gamma", "delta", "awkward", "faulty"),
    "piped": ("alpha", "beta", "gamma", "awkward"),
}
_SETTINGS: Final = {
    "guarded": """
protocol = "0.3"
pinned = ["alpha/echo", "beta/get_data"]
aliases = { beta = "bt" }

[policy]
default = "allow"
[[policy.rules]]
name = "no deleting"
outcome = "deny"
tools = ["*/delete_*", "beta/danger"]
reason = "a person does it by hand"
[[policy.rules]]
name = "look first"
outcome = "ask"
tools = ["alpha/create_lead", "*/send_*", "sf/*"]
reason = "it cannot be undone"
[[policy.rules]]
outcome = "deny"
tools = ["beta/files.write"]
principals = ["bob"]
[[policy.rules]]
name = "not on phones"
outcome = "deny"
tools = ["delta/*"]
platforms = ["ios"]
[[policy.rules]]
name = "no upstream log"
outcome = "deny"
upstream = ["log"]
clients = ["cursor"]
[[policy.rules]]
name = "destructive"
outcome = "ask"
annotations = { destructiveHint = true, readOnlyHint = false }
servers = ["beta"]

[profiles.support]
servers = ["*"]
except = ["drift/grown"]
groups = ["support"]
[profiles.reading]
tools = ["alpha/*", "beta/files.*", "beta/search", "beta/get_data", "sf/*"]
except = ["alpha/boom"]
prompts = ["alpha"]
groups = ["reading"]
[profiles.guest]
tools = ["gamma/*"]
default = true

[context]
app = "payments"
[contexts.iphone]
platform = "ios"
[contexts.nightly]
platform = "android"
origin = "replay"
[metadata."gamma/press_back"]
platforms = ["android"]
[metadata."alpha/internal"]
is_for_llm = false
[tools."beta/files.read"]
title = "Read a file"
description = "Reads one file. Use alpha/search first."
[overrides.cursor]
"alpha/search" = "find_it"

[trust]
drift = "quarantine"
results = "warn"
[trust.servers.alpha]
results = "block"

[audit]
path = "audit"
arguments = "redacted"
hide = ["patient*"]
""",
    # Nothing here depends on arguments: they pass as they came.
    "plain": "",
    "piped": """
recording = "calls.jsonl"
[policy]
[[policy.rules]]
name = "no deleting"
outcome = "deny"
tools = ["*/delete_*"]
[[policy.rules]]
name = "look first"
outcome = "ask"
tools = ["alpha/create_lead", "*/send_*"]
[metadata."*/search"]
is_recordable = true
[audit]
path = "audit"
arguments = "digest"
required = true
""",
}
_GROUPS: Final = {"ann": ["support"], "bob": ["reading"], "eve": []}
# What an operator did with names before: run in a process of the gateway's own revision.
_MOVED: Final = """
import sys
from contextlib import closing
from pathlib import Path
from truename.ledger import open_ledger
with closing(open_ledger(Path(sys.argv[1]))) as ledger:
    ledger.redirect("alpha_former", "alpha_report")
    ledger.redirect("old_search", "alpha@1/search@1", until="2126-01-01")
    ledger.redirect("alpha/old_report", "alpha/report")
    ledger.retire("alpha_log", "alpha_echo")
    ledger.break_name("alpha.broken", "alpha_report", protocol="0.3")
"""


# --- the normal form -------------------------------------------------------------------------------------------------

_CHANGING: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "<key>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.:+Z-]*"), "<time>"),
    (re.compile(r"00-[0-9a-f]{32}-[^\"]{16}-0[01]"), "<trace>"),
)
_RECORDED: Final = frozenset({"arguments", "context", "id", "name", "result", "server", "tool"})
_DROPPED: Final = frozenset(
    {"hash", "previous", "number", "at", "seconds", "serial", "session", "trace", "files", "version"}
)


# When servers hear of these is a race.
_LATE: Final = frozenset({"notifications/cancelled", "resources/unsubscribe"})


def _normal_text(text: str) -> str:
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text


def _normal_message(message: Any, step: Step, ids: Sequence[str]) -> str:
    """Write one message without what differs from run to run."""
    own = _id_of(step.body)

    def changed(value: Any, key: str | None = None) -> Any:
        if isinstance(value, Members):
            # The order of keys means nothing; of a key that stands twice it stays.
            return Members(
                sorted(([name, changed(one, name)] for name, one in value), key=lambda member: str(member[0]))
            )
        if isinstance(value, list):
            return [changed(one) for one in value]
        if key == "id" and (isinstance(value, Number), str(value)) == own:
            return "<id>"
        if key in {"requestState", "elicitationId"} and isinstance(value, str):
            return f"<{key}>"
        if isinstance(value, Number) and key in {"progressToken", "requestId"}:
            return value if str(value) != str(step.number) else "<number>"
        return value

    def question(tree: Any) -> Any:
        if isinstance(tree, Members) and {"method", "id"} <= {name for name, _ in tree}:
            return Members([name, "<question>" if name == "id" else one] for name, one in tree)
        return tree

    text = written(question(changed(message)))
    for id in ids:
        text = text.replace(id, "<session>")
    return _normal_text(text)


def _is_request(body: bytes) -> bool:
    """Tell whether a line is a request without any fault, which is answered under its id."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0" or said.keys() & {"result", "error"}:
        return False
    has_id = isinstance(said.get("id"), int | str) and not isinstance(said["id"], bool)
    # Half of a character is none.
    return (
        has_id
        and str(said["id"]).isprintable()
        and isinstance(said.get("method"), str)
        and isinstance(said.get("params"), dict | None)
    )


def _id_of(body: bytes) -> tuple[bool, str] | None:
    with suppress(ValueError, TypeError, RecursionError):
        id = dict(read_exactly(body)).get("id")
        if isinstance(id, str):
            return isinstance(id, Number), str(id)
    return None


# --- gateways --------------------------------------------------------------------------------------------------------


class _Place:
    """A folder with the configuration, the state and the audit log of one gateway, and where its servers note."""

    def __init__(self, gateway: str, folder: Path, src: Path, port: int) -> None:
        self.folder = folder
        self.config = folder / "truename.toml"
        self.notes = {key: folder / f"{key}.notes" for key in OVER_STDIO}
        paths = os.pathsep.join((str(src), str(_ROOT)))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRUENAME", "OTEL", "PYTEST"))}
        home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}
        self.env = {**kept, **home, "PYTHONPATH": paths}
        self.config.write_text("\n".join(self._written(gateway, port)), encoding="utf-8")
        for notes in self.notes.values():
            notes.touch()
        self._read = dict.fromkeys(OVER_STDIO, 0)

    def _written(self, gateway: str, port: int) -> Iterator[str]:
        yield 'server_name = "tn"\nstate = "state.db"\nreload = "off"\nbreaker_failures = 1000000\ndrain_timeout = 1'
        yield _SETTINGS[gateway]
        for who, token in TOKENS.items() if gateway == "guarded" else ():
            digest = hashlib.sha256(token.encode()).hexdigest()
            yield f'[access.tokens.{who}]\nhash = "tn1:{token.split("_")[1]}:{digest}"'
            yield f"groups = {json.dumps(_GROUPS[who])}"
        for key in KEYS:
            if key not in _SERVERS[gateway]:
                continue
            yield f"[mcpServers.{key}]"
            if key in OVER_STDIO:
                program = [str(_ROOT / "tests/support/golden_servers.py"), key, str(self.notes[key])]
                yield f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(program)}"
            else:
                yield f'url = "http://127.0.0.1:{port}/{key}"'
            if key == "sf":
                yield 'integration = "salesforce"\nversion = 2\nversions = { create_lead = 3 }'

    def new_notes(self) -> Iterator[dict[str, Any]]:
        """Give what the servers behind pipes noted since the last time."""
        for key, path in self.notes.items():
            if path.stat().st_size > self._read[key]:
                with path.open("rb") as file:
                    file.seek(self._read[key])
                    text = file.read()
                self._read[key] += len(text)
                yield from map(json.loads, text.decode().split("\n")[:-1])

    async def run(self, *arguments: str) -> str:
        """Run a command to its end. Raises `RuntimeError` if it fails."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            cwd=self.folder,
            env=self.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            message = f"{arguments} ended with {process.returncode}: {out.decode()} {err.decode()}"
            raise RuntimeError(message)
        return out.decode()

    @asynccontextmanager
    async def served(self, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
        with (self.folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "truename", "serve", str(self.config), *options),
                cwd=self.folder,
                env=self.env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=2**26,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                assert process.stdin is not None
                process.stdin.close()
                with suppress(ProcessLookupError):
                    process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), _PATIENCE)
                except TimeoutError:
                    process.kill()
                    await process.wait()

    @asynccontextmanager
    async def over_http(self) -> AsyncIterator[int]:
        async with self.served("--http", "127.0.0.1:0", "--json") as process:
            assert process.stdout is not None
            said = b""
            while True:
                line = await asyncio.wait_for(process.stdout.readline(), 60)
                said += line
                with suppress(ValueError):
                    json.loads(said)
                    break
                if not line:
                    raise RuntimeError((self.folder / "log").read_text(encoding="utf-8"))
            found = re.search(rb"127\.0\.0\.1:(\d+)", said)
            assert found is not None
            yield int(found[1])

    def audit(self) -> list[dict[str, Any]]:
        """Return the records of calls and decisions, in their order."""
        files = sorted((self.folder / "audit").glob("*.jsonl"))
        records = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
        return sorted(records, key=lambda one: int(one["number"]))


# --- HTTP ------------------------------------------------------------------------------------------------------------


class _Wire:
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


class _Player:
    """Sends requests one after the other, and notes what each led to."""

    def __init__(self, place: _Place, noted: list[dict[str, Any]]) -> None:
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
            return _normal_message(read_exactly(text), step, [*self.sessions.values()])
        except ValueError:
            return _normal_text(text)

    def received(self) -> list[str]:
        """Return what the servers got since the last time."""
        found = [*self.noted, *self.place.new_notes()]
        self.noted.clear()
        self.cancelled += sum(one.get("method") == "notifications/cancelled" for one in found)
        found = [one for one in found if one.get("method") not in _LATE]
        found.sort(key=lambda one: str(one.get("server")))
        return [_normal_text(json.dumps(one, sort_keys=True)) for one in found]


class _HttpPlayer(_Player):
    def __init__(self, place: _Place, noted: list[dict[str, Any]], port: int) -> None:
        super().__init__(place, noted)
        self._port = port
        self._main, self._beside = _Wire(port), _Wire(port)

    async def play(self, step: Step) -> Answer:

        try:
            answer = await asyncio.wait_for(self._answered(step), _PATIENCE)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            answer = {"status": type(error).__name__, "messages": []}
            self._main.close()
            self._beside.close()
        if step.is_stream:
            # The gateway has seen that the stream was left before the next request comes.
            self._main.close()
            await asyncio.wait_for(self._quick("GET", "/healthz", [], b""), _PATIENCE)
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
            name: _normal_text(head[name]) for name in ("www-authenticate", "allow", "retry-after") if name in head
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


class _LinePlayer(_Player):
    """Plays over standard input and output: what comes before two more pings are answered belongs to a request."""

    def __init__(self, place: _Place, noted: list[dict[str, Any]], process: asyncio.subprocess.Process) -> None:
        super().__init__(place, noted)
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    async def play(self, step: Step) -> Answer:
        answer: Answer = {"messages": []}
        own = _id_of(step.body) if _is_request(step.body) else None
        _, body = self.filled(step)
        self._input.write(body + b"\n")
        try:
            await asyncio.wait_for(self._listen(step, answer, own), _PATIENCE)
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
                elif "method" not in said and awaited == _id_of(line):
                    awaited = None


# --- the whole run ---------------------------------------------------------------------------------------------------


def drawn(gateway: str, survey: Survey, share: float = 1.0) -> list[Step]:
    """Return the requests for one gateway, or the first of them."""
    random = Random(f"{_SEED} {gateway}")
    return list(islice(steps(gateway, random, survey), int(GATEWAYS[gateway] * share)))


async def played(gateway: str, requests: Sequence[Step], src: Path, folder: Path) -> list[Answer]:
    """Play requests through a gateway; the last answer is what the audit log and other files say at the end."""
    noted: list[dict[str, Any]] = []
    async with HttpServers(noted.append) as servers:
        place = _Place(gateway, folder, src, servers.port)
        if gateway == "guarded":
            async with place.over_http() as port:
                await _listed(port, "/mcp", gateway)
            await place.run("-c", _MOVED, str(folder / "state.db"))
            servers.change()
            noted.clear()
        if gateway == "piped":
            async with place.served("--for", "claude-code") as process:
                player: _LinePlayer | _HttpPlayer = _LinePlayer(place, noted, process)
                answers = [await player.play(step) for step in requests]
        else:
            async with place.over_http() as port:
                player = _HttpPlayer(place, noted, port)
                answers = [await player.play(step) for step in requests]
                player.close()
        # What came late.
        player.received()
        verify = ("-m", "truename", "audit", "verify", str(place.config), "--json")
        broken = json.loads(await place.run(*verify))["broken"] if place.audit() else []
    left = _attribute(place.audit(), requests, answers)
    recording = folder / "calls.jsonl"
    lines = recording.read_text(encoding="utf-8").split("\n")[:-1] if recording.exists() else []
    for line in lines:
        said = {key: one for key, one in json.loads(line).items() if key in _RECORDED}
        number = int(re.sub(r"\D", "", json.loads(line)["call_id"]))
        answers[number].setdefault("recorded", []).append(_normal_text(json.dumps(said, sort_keys=True)))
    return [*answers, {"broken": broken, "cancelled": player.cancelled, "audit": left}]


def _attribute(records: Sequence[dict[str, Any]], requests: Sequence[Step], answers: Sequence[Answer]) -> list[str]:
    """Put each record at the request that it is about: by the id of its call, else where the next one goes.

    Returns those at the end, after which no call is recorded.
    """
    place, waiting = 0, list[str]()
    numbers = {str(step.number): index for index, step in enumerate(requests)}
    for record in records:
        if record["kind"] in {"segment", "start", "stop", "state"}:
            continue
        found = numbers.get(re.sub(r"\D", "", str(record.get("call", ""))))
        kept = {key: one for key, one in record.items() if key not in _DROPPED}
        kept |= {"call": "<id>"} if found is not None else {}
        waiting.append(_normal_text(json.dumps(kept, sort_keys=True)))
        if found is not None and found >= place:
            place = found
            answers[place].setdefault("audit", []).extend(waiting)
            waiting = []
    return waiting


async def _listed(port: int, path: str, gateway: str) -> list[str]:
    wire, found = _Wire(port), dict[str, None]()
    meta = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode()
    for who in TOKENS if gateway == "guarded" else (None,):
        headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        headers += [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/list")]
        headers += [("authorization", f"Bearer {TOKENS[who]}")] if who else []
        await wire.send("POST", path, headers, body)
        status, told = await wire.head()
        text = b"".join([piece async for piece in wire.pieces("POST", status, told)])
        tools = json.loads(text).get("result", {}).get("tools", ()) if status == 200 else ()
        found |= dict.fromkeys(tool["name"] for tool in tools)
    wire.close()
    return list(found)


@dataclass(frozen=True)
class Golden:
    """A record: what requests were made of, and the answers, by gateway."""

    surveys: dict[str, Survey]
    digests: dict[str, str]
    answers: dict[str, list[Answer]]


def digest_of(requests: Sequence[Step]) -> str:
    """Return a digest of requests, which tells whether they are still the recorded ones."""
    return hashlib.sha256(repr([asdict(step) for step in requests]).encode()).hexdigest()


def read_record(path: Path = RECORD) -> Golden:
    """Read the record."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        head = json.loads(file.readline())
        table = [json.loads(line) for line in file]
    surveys = {
        gateway: Survey(
            {path: tuple(names) for path, names in one["listed"].items()}, tuple(one["sent"]), tuple(one["handshakes"])
        )
        for gateway, one in head["surveys"].items()
    }
    answers = {gateway: [table[index] for index in places] for gateway, places in head["answers"].items()}
    return Golden(surveys, head["digests"], answers)


def write_record(golden: Golden, path: Path = RECORD) -> int:
    """Write a record, each distinct answer once. Returns how many there are."""
    table: dict[str, int] = {}
    places = {
        gateway: [
            table.setdefault(json.dumps(answer, sort_keys=True, ensure_ascii=False), len(table)) for answer in answers
        ]
        for gateway, answers in golden.answers.items()
    }
    surveys = {gateway: asdict(survey) for gateway, survey in golden.surveys.items()}
    head = {"surveys": surveys, "digests": golden.digests, "answers": places}
    text = "\n".join((json.dumps(head, ensure_ascii=False), *table)) + "\n"
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return len(table)


def _seen_in_the_lab() -> tuple[list[str], list[dict[str, Any]]]:
    names, handshakes = dict[str, None](), dict[str, dict[str, Any]]()
    for file in sorted((_ROOT / "lab/results").glob("*.json")):
        for trial in json.loads(file.read_text(encoding="utf-8"))["trials"]:
            if (said := trial.get("handshake")) and "client_info" in said:
                kept = {key: said[key] for key in ("client_info", "protocol", "capabilities") if key in said}
                handshakes.setdefault(json.dumps(kept), kept)
            if trial["mode"] != "bare" and trial["scenario"] in {"awkward", "duplicates", "clashes-2"}:
                names |= dict.fromkeys(tool["shown"] for tool in trial.get("tools", ()) if "shown" in tool)
    kept_names = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:500]
    return kept_names, list(handshakes.values())


async def _surveyed(src: Path, folder: Path) -> dict[str, Survey]:
    sent, handshakes = _seen_in_the_lab()
    found = {}
    for gateway in ("guarded", "plain"):
        (folder / gateway).mkdir()
        async with (
            HttpServers(lambda _: None) as servers,
            _Place(gateway, folder / gateway, src, servers.port).over_http() as port,
        ):
            listed = {path: tuple(await _listed(port, path, gateway)) for path in dict.fromkeys(PATHS[gateway])}
        found[gateway] = Survey(listed, tuple(sent), tuple(handshakes))
    return {**found, "piped": found["plain"]}


async def _recorded_run(src: Path, share: float, surveys: dict[str, Survey] | None = None) -> Golden:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        surveys = surveys or await _surveyed(src, folder)
        digests, answers = {}, {}
        for gateway in GATEWAYS:
            requests = drawn(gateway, surveys[gateway], share)
            digests[gateway] = digest_of(requests)
            (folder / f"run-{gateway}").mkdir()
            answers[gateway] = await played(gateway, requests, src, folder / f"run-{gateway}")
    return Golden(surveys, digests, answers)


def main() -> None:
    """Make a record by the gateway of a source tree."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.golden_run", description=main.__doc__)
    parser.add_argument("--src", type=Path, default=_ROOT / "src", help="the source tree of the gateway that is run")
    parser.add_argument("--to", type=Path, default=RECORD)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--as", dest="like", type=Path, help="a record whose requests are taken")
    options = parser.parse_args()
    surveys = read_record(options.like).surveys if options.like else None
    golden = asyncio.run(_recorded_run(options.src.resolve(), options.share, surveys))
    distinct = write_record(golden, options.to)
    sys.stdout.write(
        f"{sum(map(len, golden.answers.values()))} answers, {distinct} distinct, {options.to.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main()
