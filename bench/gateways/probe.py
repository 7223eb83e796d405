"""How long a gateway takes from its start to the first answer, and until it shows all tools."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from bench.gateways.cases import HANDSHAKE
from bench.gateways.load import message_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.gateways.processes import Process

__all__ = ["NotReady", "Probe"]

_FIRST_ANSWER_SECONDS: Final = 120.0
_READY_SECONDS: Final = 180.0
_INFO: Final = {"name": "bench", "version": "1"}


class NotReady(Exception):
    """A gateway does not answer, or not with all tools."""


@dataclass
class Probe:
    """A client that asks until it is answered."""

    base_url: str
    path: str
    headers: Mapping[str, str]
    trusted: str
    process: Process
    _session: dict[str, str] = field(default_factory=dict)

    def first_answer(self) -> None:
        """Ask `initialize` until it is answered. Raises `NotReady`."""
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _INFO}
        until, said = time.monotonic() + _FIRST_ANSWER_SECONDS, "nothing listens"
        while time.monotonic() < until:
            if not self.process.is_running():
                raise NotReady(f"it ended: {self.process.last_words()}")
            try:
                status, body = self._ask("initialize", params)
            except (OSError, http.client.HTTPException):
                time.sleep(0.005)
                continue
            if status == 200 and b'"result"' in body:
                self._ask("notifications/initialized", None)
                return
            said = f"{status} {body[:200].decode('utf-8', 'replace')}"
            time.sleep(0.05)
        raise NotReady(f"no answer to initialize in {_FIRST_ANSWER_SECONDS:g} seconds: {said}")

    def all_tools(self, expected: int) -> None:
        """Ask `tools/list` until so many tools are there. Raises `NotReady`."""
        until, shown = time.monotonic() + _READY_SECONDS, 0
        while time.monotonic() < until:
            try:
                shown = self._count()
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
                time.sleep(0.05)
                self._session.clear()
                self.first_answer()
                continue
            if shown == expected:
                return
            time.sleep(0.05)
        raise NotReady(f"it shows {shown} of {expected} tools after {_READY_SECONDS:g} seconds")

    def _count(self) -> int:
        cursor, shown = None, 0
        while True:
            _, body = self._ask("tools/list", {} if cursor is None else {"cursor": cursor})
            result = json.loads(message_in(body))["result"]
            shown += len(result["tools"])
            if (cursor := result.get("nextCursor")) is None:
                return shown

    def _ask(self, method: str, params: dict[str, Any] | None) -> tuple[int, bytes]:
        url = urlsplit(self.base_url)
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=self.trusted)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                "localhost", url.port, timeout=60, context=context
            )
        else:
            connection = http.client.HTTPConnection("127.0.0.1", url.port or 0, timeout=60)
        message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"id": 1, "params": params})
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **({} if method == "initialize" else {"mcp-protocol-version": HANDSHAKE}),
            **self._session,
            **self.headers,
        }
        try:
            connection.request("POST", self.path, json.dumps(message), headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if session := response.getheader("mcp-session-id"):
            self._session["mcp-session-id"] = session
        return response.status, body
