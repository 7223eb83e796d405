"""Logging somebody in at a server: an authorization code with PKCE, which comes back to this machine (RFC 8252)."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute

from truename.access.authorizing import login_request
from truename.access.fetching import FetchFault
from truename.access.granted import revoked
from truename.access.keys import Speaker
from truename.access.registering import way_back
from truename.access.site import site_of
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import Listener, SocketStream

    from truename.access.arrangements import Arrangements
    from truename.access.fetching import Fetch
    from truename.access.granted import Granted
    from truename.config.credentials import Login

__all__ = ["LoggedIn", "logged_in", "logged_out"]

_Waiting = Callable[[str, str], Callable[[], Awaitable[dict[str, str]]]]

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_LONGEST: Final = 16 * 1024
_SECONDS: Final = 300.0
_READING: Final = 10.0
_DONE: Final = "You are logged in. This window can be closed."
_NOT_DONE: Final = "This is not the answer that was waited for."


class LoggedIn(NamedTuple):
    """Somebody's tokens, and how they were had."""

    said: Login
    tokens: Granted


async def logged_in(
    kept: Arrangements,
    fetch: Fetch,
    show: Callable[[str], None],
    *,
    port: int = 0,
    may_move: bool = False,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.time,
) -> LoggedIn:
    """Show where somebody logs in, wait until they have, and return their tokens. Raises `FetchFault`, `StoreError`.

    ``may_move`` takes another issuer than that of the first login (`site_of`). What comes back counts only with the
    state of this very login.
    """
    site = await site_of(kept, fetch, may_move=may_move, clock=clock)
    path = way_back(kept.said, site.said.issuer, _PATH)
    async with _listening(port, _ports_of(kept, site.said.issuer, path)) as (here, waiting):
        asked = await login_request(site, here + path)
        answers = waiting(asked.state, path)
        show(asked.url)
        answer = None
        with anyio.move_on_after(seconds):
            answer = await answers()
    if answer is None:
        message = f"nobody logged in within {seconds:.0f} seconds"
        raise FetchFault(message)
    return LoggedIn(asked.said, await asked.tokens(answer))


def _ports_of(kept: Arrangements, issuer: str, path: str) -> list[int]:
    """Return the ports that the gateway is registered with: not all issuers take another one (RFC 8252 section 7.3)."""
    if kept.said.client_id:
        return []
    parts = [urlsplit(redirect) for redirect in kept.redirects(issuer)]
    return [one.port or 0 for one in parts if (one.hostname, one.path) == (_HOST, path)]


async def logged_out(said: Login, had: Granted, fetch: Fetch, clock: Callable[[], float] = time.time) -> bool:
    """Have the authorization server revoke tokens (RFC 7009); False if it knows no way to. Raises `FetchFault`."""
    return await revoked(said, had, Speaker(said.issuer, fetch, clock))


@asynccontextmanager
async def _listening(port: int, known: list[int]) -> AsyncIterator[tuple[str, _Waiting]]:
    """Listen on this machine alone; yields where, and what waits there for the answer with a state, at a path."""
    put, taken = anyio.create_memory_object_stream[dict[str, str]](1)
    awaited = awaited_at = ""
    fault: Exception | None = None

    def waiting(state: str, path: str) -> Callable[[], Awaitable[dict[str, str]]]:
        nonlocal awaited, awaited_at
        awaited, awaited_at = state, path
        return taken.receive

    async def answer(stream: SocketStream) -> None:
        async with stream:
            # Whoever goes away before the answer is nobody's end.
            with anyio.move_on_after(_READING), suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                found = _parameters(await _head(stream), awaited_at)
                is_right = bool(awaited) and hmac.compare_digest(found.get("state", "").encode(), awaited.encode())
                if is_right:
                    try:
                        put.send_nowait(found)
                    except anyio.WouldBlock:
                        is_right = False
                await stream.send(_page(is_right=is_right))

    listener = await _listener(port, known)
    async with put, taken, listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        own_port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        try:
            yield f"http://{_HOST}:{own_port}", waiting
        except (FetchFault, TruenameError) as error:
            # A group of tasks would wrap it.
            fault = error
        tasks.cancel_scope.cancel()
    if fault is not None:
        raise fault


async def _listener(port: int, known: list[int]) -> Listener[SocketStream]:
    """Return what listens at this port; at any if it is 0, best at one of those that are known."""
    for one in known if not port else ():
        with suppress(OSError):
            return await anyio.create_tcp_listener(local_host=_HOST, local_port=one)
    try:
        return await anyio.create_tcp_listener(local_host=_HOST, local_port=port)
    except OSError as error:
        message = f"port {port} of {_HOST} can't be had ({error.strerror})"
        raise FetchFault(message) from error


async def _head(stream: SocketStream) -> bytes:
    head = b""
    try:
        while b"\r\n\r\n" not in head and len(head) < _LONGEST:
            head += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return b""
    return head


def _parameters(head: bytes, path: str) -> dict[str, str]:
    """Return the parameters of the one request that is meant, to this path; each of them once, or none at all."""
    words = head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != "GET":
        return {}
    try:
        parts = urlsplit(words[1])
        found = parse_qs(parts.query, max_num_fields=20)
    except ValueError:
        return {}
    is_meant = parts.path == path and all(len(values) == 1 for values in found.values())
    return {name: values[0] for name, values in found.items()} if is_meant else {}


def _page(*, is_right: bool) -> bytes:
    text = (_DONE if is_right else _NOT_DONE).encode()
    status = "200 OK" if is_right else "400 Bad Request"
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\n"
    return (
        head.encode() + b"cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n" + text
    )
