"""A server in the ``mcpServers`` form that most gateways share, with what each adds to it left in its `Taken`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.config.model import ServerConfig
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.peers.reading import Reading, Taken

__all__ = ["bearer", "read_server"]

_TYPES: Final[Mapping[str, Literal["http", "sse"]]] = {
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "auto": "http",
    "sse": "sse",
}
_LOCAL: Final = frozenset({"", "stdio", "local"})


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"Authorization": token if token.lower().startswith("bearer ") else f"Bearer {token}"}


def read_server(
    key: str,
    taken: Taken,
    reading: Reading,
    *,
    cwd: str = "cwd",
    kind: str = "type",
    seconds: float = 1.0,
    remote: Literal["http", "sse"] = "http",
    headers: Mapping[str, str] = MappingProxyType({}),
    disabled: bool = False,
) -> ServerConfig | None:
    """Return the server, or None with a finding that says why it is none.

    ``seconds`` is the unit of its timeout, ``remote`` what an address without a type is spoken to over.
    """
    named = (taken.text(kind) or taken.text("type") or taken.text("transport") or "").lower()
    url = taken.text("url") or taken.text("httpUrl") or taken.text("serverUrl")
    command, args, env = taken.text("command"), taken.texts("args"), taken.pairs("env")
    directory, sent = taken.text(cwd), taken.pairs("headers")
    timeout = taken.number("timeout")
    off = taken.truth("disabled") is True or taken.truth("enabled") is False or disabled
    if named not in _LOCAL and named not in _TYPES:
        fact = f"Server {excerpt(key)} is of type {excerpt(named)}, which is no MCP transport that is known."
        reading.leave("server", fact, taken.where(kind), server=key)
        return None
    if command is None and url is None:
        reading.leave("server", f"Server {excerpt(key)} has neither a command nor a url.", taken.where(""), server=key)
        return None
    is_remote = url is not None and (command is None or named in _TYPES)
    if command is not None and url is not None:
        other = "command" if is_remote else "url"
        fact = f"Server {excerpt(key)} has both a command and a url; its {other} is left out."
        reading.leave("setting", fact, taken.where(other), server=key)
    return ServerConfig(
        key=key,
        command=None if is_remote else command,
        args=() if is_remote else args,
        env=MappingProxyType({} if is_remote else env),
        cwd=None if is_remote else directory,
        url=url if is_remote else None,
        headers=MappingProxyType({**sent, **headers} if is_remote else {}),
        type=_TYPES.get(named, remote) if is_remote else "stdio",
        timeout=None if timeout is None else timeout * seconds,
        disabled=off,
    )
