"""A collector of OpenTelemetry on this machine: takes what is sent to it by OTLP over HTTP, and reads it."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Collector", "collecting"]


class Collector:
    """What was sent, request by request; ``status`` is what it answers, once ``answers`` is set."""

    def __init__(self) -> None:
        self.address = ""
        self.status = 200
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.news = threading.Condition()
        self.answers = threading.Event()
        self.answers.set()

    def took(self, path: str, headers: dict[str, str], body: bytes) -> None:
        with self.news:
            self.requests.append((path, headers, body))
            self.news.notify_all()

    def wait(self, count: int) -> None:
        """Wait until so many requests came."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.requests) >= count, 15)

    def metrics(self, number: int = -1) -> dict[str, Any]:
        """Return the metrics of a request, by name."""
        read = ExportMetricsServiceRequest.FromString(self.requests[number][2])
        (resource,) = read.resource_metrics
        (scope,) = resource.scope_metrics
        assert scope.scope.name == "truename"
        return {one.name: one for one in scope.metrics}

    def service(self) -> str:
        read = ExportMetricsServiceRequest.FromString(self.requests[-1][2])
        return str(labels(read.resource_metrics[0].resource)["service.name"])


def labels(point: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value for one in point.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if not found.answers.is_set():
                found.took(self.path, {}, body)
                found.answers.wait(60)
                return
            self.send_response(found.status)
            self.send_header("content-length", "0")
            self.end_headers()
            found.took(self.path, {name.lower(): value for name, value in self.headers.items()}, body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()
