"""Truename between the client and the awkward servers: a real `truename serve`, started for one trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from urllib.request import Request, urlopen

from lab.drivers.stage import Entry, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.scenarios import Mode

__all__ = ["KEY", "entries", "listed", "serving"]

# Short, as `truename connect` proposes: clients put it in front of every name.
KEY: Final = "tn"
_HEADERS: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_VERSION: Final = "2025-11-25"


@contextmanager
def serving(servers: Sequence[Entry], folder: Path, port: int) -> Iterator[str]:
    """Run the gateway in front of these servers, with a ledger in the folder; yields its address, ending in /mcp."""
    config = {"mcpServers": {entry.key: _entry(entry) for entry in servers}}
    path = write_json(folder / "mcp.json", config)
    command = [sys.executable, "-m", "truename", "serve", str(path)]
    command += ["--http", f"127.0.0.1:{port}", "--json", "--ledger", str(folder / "names.ledger")]
    with (folder / "gateway.log").open("wb") as log:
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=dict(os.environ) | {"HOME": str(folder)}
        )
        try:
            yield str(_introduced(started, folder)["url"])
        finally:
            started.terminate()
            started.wait(10)


def _entry(entry: Entry) -> dict[str, Any]:
    return {"url": entry.url} if entry.url else {"command": entry.command, "args": list(entry.args)}


def _introduced(started: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    """Return what the gateway says of itself. Raises `RuntimeError` with what it says if it does not serve."""
    lines: list[str] = []
    for line in started.stdout or ():
        lines.append(line)
        if line.rstrip() == "}":
            break
    try:
        found: dict[str, Any] = json.loads("".join(lines))
    except ValueError:
        found = {}
    if "url" not in found:
        log = (folder / "gateway.log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"The gateway did not start: {found or log.strip()[-400:]}")
    return found


def entries(url: str, servers: Sequence[Entry], mode: Mode) -> tuple[Entry, ...]:
    """Return what the client is given: one entry for all servers, or one for each under the key that it had."""
    if mode == "through":
        return (Entry(key=KEY, url=url),)
    return tuple(Entry(key=entry.key, url=f"{url}/only/{quote(entry.key, safe='')}") for entry in servers)


def listed(url: str) -> list[dict[str, Any]]:
    """Return what tools/list says at this address."""
    session = _post(url, "initialize", _hello(), {})[1]
    headers = {"Mcp-Protocol-Version": _VERSION} | ({"Mcp-Session-Id": session} if session else {})
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = _post(url, "tools/list", {"cursor": cursor} if cursor else {}, headers)[0]["result"]
        tools += page["tools"]
        cursor = page.get("nextCursor")
        if not cursor:
            return tools


def _hello() -> dict[str, Any]:
    about = {"name": "truename-lab", "version": "1"}
    return {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": about}


def _post(url: str, method: str, params: dict[str, Any], headers: dict[str, str]) -> tuple[dict[str, Any], str | None]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with urlopen(Request(url, body, _HEADERS | headers), timeout=30) as answer:
        text, session = answer.read().decode(), answer.headers.get("Mcp-Session-Id")
    if answer.headers.get_content_type() == "text/event-stream":
        lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        text = next(line for line in lines if '"id"' in line)
    found: dict[str, Any] = json.loads(text)
    return found, session
