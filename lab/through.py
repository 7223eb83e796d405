"""Truename between the client and the awkward servers: a real `truename serve`, started for one trial."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lab.drivers.stage import Entry, write_json
from lab.scenarios import PINNED
from truename.clients.gateway_address import alone_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.scenarios import Mode

__all__ = ["KEY", "entries", "introduced", "serving"]

# Short, as `truename connect` proposes: clients put it in front of every name.
KEY: Final = "tn"


@contextmanager
def serving(servers: Sequence[Entry], folder: Path, port: int, search: str = "off") -> Iterator[str]:
    """Run the gateway in front of these servers, with a ledger in the folder; yields its address, ending in /mcp.

    It listens at this port if it is free. Raises `RuntimeError` if it does not start.
    """
    settings = {"tool_search": search, "pinned": [f"*/*{PINNED}*"]}
    config = {"mcpServers": {entry.key: _entry(entry) for entry in servers}, "truename": settings}
    path = write_json(folder / "mcp.json", config)
    command = [sys.executable, "-m", "truename", "serve", str(path)]
    command += ["--http", f"127.0.0.1:{_free(port)}", "--json", "--state", str(folder / "names.ledger")]
    env = dict(os.environ) | {"HOME": str(folder)}
    with (
        (folder / "gateway.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as started,
    ):
        try:
            yield str(introduced(started, folder)["url"])
        finally:
            started.terminate()


def _free(port: int) -> int:
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


def _entry(entry: Entry) -> dict[str, Any]:
    return {"url": entry.url} if entry.url else {"command": entry.command, "args": list(entry.args)}


def introduced(started: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
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


def entries(url: str, servers: Sequence[Entry], mode: Mode, dialect: str) -> tuple[Entry, ...]:
    """Return what `truename connect` writes: one entry for all servers, or one for each under the key that it had."""
    if mode == "through":
        return (Entry(key=KEY, url=url),)
    gateway = url.removesuffix("/mcp")
    return tuple(Entry(key=entry.key, url=gateway + alone_path(entry.key, dialect)) for entry in servers)
