"""Logging somebody in at a server: an authorization code with PKCE, which comes back to this machine (RFC 8252)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
from anyio.abc import SocketAttribute

from truename.access.addresses import AddressRefused, host_of
from truename.access.fetching import FetchFault
from truename.access.granted import Granted, granted, proven
from truename.access.keys import Speaker
from truename.access.metadata import endpoint_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import SocketStream

    from truename.access.fetching import Fetch
    from truename.config.credentials import Login

__all__ = ["logged_in", "logged_out"]

_PATH: Final = "/callback"
_LONGEST: Final = 16 * 1024
_SECONDS: Final = 300.0
_READING: Final = 10.0
_DONE: Final = "You are logged in. This window can be closed."
_NOT_DONE: Final = "This is not the answer that was waited for."


async def logged_in(
    said: Login,
    address: str,
    fetch: Fetch,
    show: Callable[[str], None],
    *,
    port: int = 0,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.time,
) -> Granted:
    """Show where somebody logs in, wait until they have, and return their tokens. Raises `FetchFault`.

    What comes back counts only with the state of this very login, and from the issuer that was asked (RFC 9207).
    """
    speaker = Speaker(said.issuer, fetch, clock)
    metadata = await speaker.metadata()
    if "S256" not in (metadata.get("code_challenge_methods_supported") or ()):
        message = f"{said.issuer} does not say that it takes PKCE (S256), without which codes can be stolen"
        raise FetchFault(message)
    base = _readable(endpoint_in(metadata, "authorization_endpoint", said.issuer))
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    async with _waiting(state, port) as (redirect, answers):
        asked = {
            "response_type": "code",
            "client_id": said.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(said.scopes),
            "state": state,
            "code_challenge": urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("="),
            "code_challenge_method": "S256",
            "resource": said.resource_of(address),
        }
        show(f"{base}{'&' if '?' in base else '?'}{urlencode({k: v for k, v in asked.items() if v})}")
        answer = None
        with anyio.move_on_after(seconds):
            answer = await answers()
    if answer is None:
        message = f"nobody logged in within {seconds:.0f} seconds"
        raise FetchFault(message)
    code = _code_in(answer, metadata, said.issuer)
    more, headers = proven(said, metadata)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    form |= {"resource": said.resource_of(address), **more}
    form = {name: value for name, value in form.items() if value}
    return granted(await speaker.ask("token_endpoint", None, form, headers), clock())


async def logged_out(said: Login, had: Granted, fetch: Fetch, clock: Callable[[], float] = time.time) -> bool:
    """Have the authorization server revoke tokens (RFC 7009); False if it knows no way to. Raises `FetchFault`."""
    speaker = Speaker(said.issuer, fetch, clock)
    metadata = await speaker.metadata()
    if "revocation_endpoint" not in metadata:
        return False
    more, headers = proven(said, metadata)
    for token in filter(None, (had.refresh, had.token)):
        answer = await speaker.ask("revocation_endpoint", None, {"token": token, **more}, headers)
        if answer.status != 200:
            message = f"the authorization server does not revoke it (HTTP {answer.status})"
            raise FetchFault(message)
    return True


def _readable(url: str) -> str:
    """Return an address that may be shown to somebody, who is to see where it leads. Raises `FetchFault`."""
    try:
        host_of(url)
    except AddressRefused as error:
        raise FetchFault(str(error)) from error
    return url


def _code_in(answer: Mapping[str, str], metadata: Mapping[str, Any], issuer: str) -> str:
    sender = answer.get("iss")
    is_told = metadata.get("authorization_response_iss_parameter_supported") is True
    if (sender is None and is_told) or (sender is not None and sender != issuer):
        message = "the answer is another issuer's"
        raise FetchFault(message)
    if code := answer.get("code"):
        return code
    error = answer.get("error", "")
    shown = f" ({error})" if error.isascii() and error.replace("_", "").isalpha() and len(error) <= 40 else ""
    message = f"the authorization server did not let you in{shown}"
    raise FetchFault(message)


@asynccontextmanager
async def _waiting(state: str, port: int) -> AsyncIterator[tuple[str, Callable[[], Any]]]:
    """Listen on this machine alone; yields where to be sent back to, and what waits for the one right answer."""
    put, taken = anyio.create_memory_object_stream[dict[str, str]](1)

    async def answer(stream: SocketStream) -> None:
        async with stream:
            # Whoever goes away before the answer is nobody's end.
            with anyio.move_on_after(_READING), suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                found = _parameters(await _head(stream))
                is_right = hmac.compare_digest(found.get("state", "").encode(), state.encode())
                if is_right:
                    try:
                        put.send_nowait(found)
                    except anyio.WouldBlock:
                        is_right = False
                await stream.send(_page(is_right=is_right))

    try:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    except OSError as error:
        message = f"port {port} of 127.0.0.1 can't be had ({error.strerror})"
        raise FetchFault(message) from error
    async with put, taken, listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        own_port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        yield f"http://127.0.0.1:{own_port}{_PATH}", taken.receive
        tasks.cancel_scope.cancel()


async def _head(stream: SocketStream) -> bytes:
    head = b""
    try:
        while b"\r\n\r\n" not in head and len(head) < _LONGEST:
            head += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return b""
    return head


def _parameters(head: bytes) -> dict[str, str]:
    """Return the parameters of the one request that is meant; each of them once, or none at all."""
    words = head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != "GET":
        return {}
    try:
        parts = urlsplit(words[1])
        found = parse_qs(parts.query, max_num_fields=20)
    except ValueError:
        return {}
    is_meant = parts.path == _PATH and all(len(values) == 1 for values in found.values())
    return {name: values[0] for name, values in found.items()} if is_meant else {}


def _page(*, is_right: bool) -> bytes:
    text = (_DONE if is_right else _NOT_DONE).encode()
    status = "200 OK" if is_right else "400 Bad Request"
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\n"
    return (
        head.encode() + b"cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n" + text
    )
