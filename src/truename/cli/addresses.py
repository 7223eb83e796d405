"""SOURCE as the address of a server: what is one, and the server that it names."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from truename.cli.failure import UsageFault
from truename.config import ServerConfig

__all__ = ["is_address", "server_at"]

_SCHEMES: Final = ("http://", "https://")


def is_address(source: str) -> bool:
    """Tell whether a SOURCE is an address, and no file."""
    return source.lower().startswith(_SCHEMES)


def server_at(address: str) -> ServerConfig:
    """Return the server behind an address; its key is the host. Raises `UsageFault`."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if not host:
        raise UsageFault(fact=f"{address!r} is not an address", advice="Write it as http://HOST:PORT/PATH.")
    return ServerConfig(key=host.replace(".", "-").replace(":", "-"), url=address, type="http")
