"""Amazon Bedrock's runtime on loopback, for the real boto3 client: Converse and ConverseStream."""

from __future__ import annotations

import json
import re
import struct
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Self

# The library has no types.
import boto3  # type: ignore[import-untyped]
import botocore.session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["BedrockEndpoint", "accepts_bedrock", "accepts_tool_config"]

_MODEL: Final = botocore.session.get_session().get_service_model("bedrock-runtime")


def accepts_bedrock(messages: Sequence[Any]) -> None:
    """Check messages by botocore's own validator, and by the patterns of its model, which it leaves to the service."""
    _check({"modelId": "m", "messages": list(messages)})


def accepts_tool_config(config: Any) -> None:
    """Check a request's toolConfig in the same way."""
    _check({"modelId": "m", "messages": [], "toolConfig": config})


def _check(request: dict[str, Any]) -> None:
    shape = _MODEL.operation_model("Converse").input_shape
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    _patterns(request, shape)


def _patterns(value: Any, shape: Any) -> None:
    if shape.type_name == "structure" and isinstance(value, dict) and not getattr(shape, "is_document_type", False):
        for name, item in value.items():
            _patterns(item, shape.members[name])
    elif shape.type_name == "list":
        for item in value:
            _patterns(item, shape.member)
    elif isinstance(value, str):
        pattern, longest = shape.metadata.get("pattern"), shape.metadata.get("max")
        assert pattern is None or re.fullmatch(pattern, value), f"{value!r} is not {pattern}"
        assert longest is None or len(value) <= longest


class BedrockEndpoint:
    """Answers with what ``plan`` makes of each request: a list of content blocks, and the reason to stop."""

    def __init__(self, plan: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
        self.plan = plan
        self.bodies: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Bound", (_Endpoint,), {"bench": self}))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @staticmethod
    def ask(url: str, tools: Any, messages: Any, stream: bool) -> Any:
        client = boto3.client(
            "bedrock-runtime",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"max_attempts": 0}, proxies={}),
        )
        try:
            call = client.converse_stream if stream else client.converse
            answer = call(modelId="m", messages=messages, toolConfig={"tools": tools})
            return {"stream": list(answer["stream"])} if stream else answer
        finally:
            client.close()


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bench: BedrockEndpoint

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bench.bodies.append(body)
        blocks = self.bench.plan(body)
        stop = "tool_use" if any("toolUse" in block for block in blocks) else "end_turn"
        if self.path.endswith("converse-stream"):
            made = b"".join(_frame(kind, event) for kind, event in _events(blocks, stop))
            self._send(made, "application/vnd.amazon.eventstream")
            return
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        answer = {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": stop,
            "usage": usage,
            "metrics": {"latencyMs": 1},
        }
        self._send(json.dumps(answer).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _events(blocks: list[dict[str, Any]], stop: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "messageStart", {"role": "assistant"}
    for place, block in enumerate(blocks):
        at = {"contentBlockIndex": place}
        if "toolUse" in block:
            use = block["toolUse"]
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            yield "contentBlockStart", {**at, "start": start}
            text = json.dumps(use["input"])
            for piece in (text[:5], text[5:]):
                yield "contentBlockDelta", {**at, "delta": {"toolUse": {"input": piece}}}
        else:
            yield "contentBlockDelta", {**at, "delta": {"text": block["text"]}}
        yield "contentBlockStop", at
    yield "messageStop", {"stopReason": stop}


def _frame(kind: str, event: dict[str, Any]) -> bytes:
    """Return one message of the event stream encoding: lengths, headers, payload, each with its checksum."""
    named = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for name, value in named.items()
    )
    payload = json.dumps(event).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    start = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return start + struct.pack("!I", zlib.crc32(start))
