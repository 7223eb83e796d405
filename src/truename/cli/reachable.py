"""A gateway at a URL: whether it answers, and which names it shows."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from truename.cli.failure import UsageFault
from truename.clients.gateway_address import UpcomingNames, alone_path
from truename.config import Config, ServerConfig, Settings
from truename.config.model import MEMORY
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.catalog import Tool

__all__ = ["answers", "ask_names", "checked_url"]

_PATIENCE: Final = 2.0
_ENOUGH: Final = 1024
_STARTING: Final = 10.0


class _Stay(HTTPRedirectHandler):
    """Follows nobody elsewhere."""

    def redirect_request(self, *_: object) -> None:
        """Return nothing: a redirect is an answer like another."""


def checked_url(url: str) -> str:
    """Return the gateway's own address, without a path. Raises `UsageFault`."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1) and parts.username is None
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise UsageFault(
            fact=f"--url: {excerpt(url)} is not the address of a gateway", advice="Write it as http://127.0.0.1:8750."
        )
    return url.rstrip("/").removesuffix("/mcp")


def answers(url: str) -> bool:
    """Tell whether a gateway answers at this address, within two seconds and whatever proxies are set."""
    opener = build_opener(ProxyHandler({}), _Stay())
    try:
        with opener.open(Request(f"{url}/healthz"), timeout=_PATIENCE) as answer:  # noqa: S310 - checked_url saw it
            found = json.loads(answer.read(_ENOUGH))
    except (URLError, OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("status") == "ok"


def ask_names(url: str, servers: Iterable[str], token: str | None, *, dialect: str) -> UpcomingNames:
    """Ask the gateway which names it shows, for each server that it has; nothing for what it does not answer.

    A server's own names are not told, so those at its own address stand for them; ``dialect`` is the client's.
    """
    paths = {key: alone_path(key, dialect) for key in servers}
    main = "/mcp" + "/" * max((len(key) for key in paths), default=0)
    tools = _listed(url, {**paths, main: "/mcp"}, token)
    shared = {_canonical(tool): tool.origin.name for tool in tools if tool.origin.server == main}
    alone: defaultdict[str, dict[str, str]] = defaultdict(dict)
    together: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for tool in tools:
        server, name = tool.origin.server, tool.origin.name
        if server == main:
            continue
        alone[server][name] = name
        if (shown := shared.get(_canonical(tool))) is not None:
            together[server][name] = shown
    return UpcomingNames(dict(alone), dict(together))


def _canonical(tool: Tool) -> str:
    return str(tool.definition.get("canonical_name"))


def _listed(url: str, paths: Mapping[str, str], token: str | None) -> tuple[Tool, ...]:
    try:
        import anyio  # noqa: PLC0415 - the gateway's half of the package is optional

        from truename.gateway import fetch_catalog  # noqa: PLC0415 - as above
    except ModuleNotFoundError:
        return ()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    servers = tuple(
        ServerConfig(key=key, url=f"{url}{path}", type="http", headers=headers) for key, path in paths.items()
    )
    settings = Settings(ledger=MEMORY, startup_timeout=_STARTING)
    return tuple(anyio.run(fetch_catalog, Config(servers=servers, settings=settings)).values())
