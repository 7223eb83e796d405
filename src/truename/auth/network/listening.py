"""Take an address to listen on, before anything is started that needs it."""

from __future__ import annotations

import errno
import socket

from truename.errors import ConfigError

__all__ = ["bind"]


def bind(host: str, port: int) -> socket.socket:
    """Take an address without listening on it yet. Raises `ConfigError`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            file="--http",
            key=f"{host}:{port}",
            problem=f"cannot listen on this address: {_reason(error)}",
            remedy="Choose another port or host.",
        ) from error
    return bound


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "the port is in use"
    return getattr(error, "strerror", None) or str(error)
