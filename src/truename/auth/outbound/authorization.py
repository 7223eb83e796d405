"""Log a person in at a server: client registration, then an authorization code with PKCE (RFC 8252)."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
from anyio.abc import SocketAttribute

from truename.auth.authorization_server.clients import is_document
from truename.auth.network.addresses import AddressRefused, host_of
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import (
    S256,
    IssuerClient,
    TokenRefused,
    TokenResponse,
    challenge_of,
    endpoint_in,
    granted,
    proven,
    revoked,
)
from truename.auth.outbound.discovery import ClientRegistration, site_of, usable
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from anyio.abc import Listener, SocketStream

    from truename.auth.network.fetch import Fetch, FetchedDocument
    from truename.auth.outbound.discovery import LoginRegistrations, LoginSite
    from truename.config.credentials import Login

__all__ = ["LoggedIn", "LoginRequest", "client_document", "logged_in", "logged_out", "login_request", "way_back"]

_NAME: Final = "Truename"
_GRANTS: Final = ("authorization_code", "refresh_token")
_MAX_REGISTERING_LENGTH: Final = 2_048
# In the order in which they are taken: what need not be kept secret can't be stolen.
_PROOFS: Final = ("none", "client_secret_basic", "client_secret_post")


def way_back(said: Login, issuer: str, address: str) -> str:
    """Return where an issuer's answers come to: below that address, or there, for a client that you set up.

    Each issuer has one of its own, which says whose an answer is (RFC 9700 section 4.4.2): one that has people log in
    at another is sent no code of that other one.
    """
    return address if said.client_id else f"{address}/{hashlib.sha256(issuer.encode()).hexdigest()[:16]}"


def client_document(client_id: str, redirects: tuple[str, ...], name: str = _NAME) -> dict[str, Any]:
    """Return what the gateway says of itself as a client: at its ``client_id`` (SEP-991), or to register (RFC 7591)."""
    return {
        **({"client_id": client_id} if client_id else {}),
        "client_name": name,
        "redirect_uris": list(redirects),
        "grant_types": list(_GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native" if all(urlsplit(one).scheme == "http" for one in redirects) else "web",
    }


async def with_client(site: LoginSite, redirect: str) -> Login:
    """Return the login with the gateway's client at its issuer. Raises `FetchError` and `StoreError`.

    A client that you set up is what it is. One whose id is the address of a document is taken where the issuer reads
    such documents. Else the gateway registers itself, once for each issuer and redirect URI, and again when that
    client is not known there any more.
    """
    said, kept = site.said, site.kept
    if said.client_id and not _registers(said, await site.speaker.metadata()):
        return said
    one = kept.client(said.issuer, redirect)
    if one is None or one.until <= site.clock() or not await _is_known(_as(said, one), redirect, site.speaker):
        one = await _registered(site, redirect)
        kept.keep_client(said.issuer, redirect, one)
    return _as(said, one)


def _registers(said: Login, metadata: Mapping[str, Any]) -> bool:
    """Tell whether the issuer needs a registration instead of the id that there is."""
    is_read = metadata.get("client_id_metadata_document_supported") is True
    is_set_up = bool(said.client_secret) or not is_document(said.client_id)
    return not is_set_up and not is_read and "registration_endpoint" in metadata


def _as(said: Login, one: ClientRegistration) -> Login:
    return replace(said, client_id=one.client_id, client_secret=one.client_secret)


async def _is_known(client: Login, redirect: str, speaker: IssuerClient) -> bool:
    """Ask whether a client is known still, with a code that is none.

    A person would be shown an error there, and nobody would come back (RFC 6749 section 4.1.2.1).
    """
    more, headers = proven(client, await speaker.metadata())
    code, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    try:
        answer = await speaker.ask("token_endpoint", None, {**form, **more}, headers)
        return bool(answer.document().get("error") != "invalid_client")
    except FetchError:
        return True


async def _registered(site: LoginSite, redirect: str) -> ClientRegistration:
    said, metadata = site.said, await site.speaker.metadata()
    if "registration_endpoint" not in metadata:
        message = f"{said.issuer} lets no client register; set up a client there, and say its client_id"
        raise FetchError(message)
    url = await site.speaker.endpoint("registration_endpoint", None)
    ways = metadata.get("token_endpoint_auth_methods_supported")
    ways = ways if isinstance(ways, list) else ["client_secret_basic"]
    asked = {
        **client_document("", (redirect,)),
        "token_endpoint_auth_method": next((way for way in _PROOFS if way in ways), "none"),
        **({"scope": " ".join(said.scopes)} if said.scopes else {}),
    }
    near = await site.fetch.network_zone(said.issuer)
    return _read(await site.fetch(url, named_by=near, document=asked), said.issuer)


def _read(answer: FetchedDocument, issuer: str) -> ClientRegistration:
    said = answer.document()
    id, secret, until = (said.get(name) for name in ("client_id", "client_secret", "client_secret_expires_at"))
    if answer.status not in {200, 201} or not _is_word(id):
        message = f"{issuer} does not register the gateway (HTTP {answer.status})"
        raise FetchError(message)
    if not _is_word(secret) or said.get("token_endpoint_auth_method") == "none":
        return ClientRegistration(client_id=str(id))
    ends = until if isinstance(until, int | float) and not isinstance(until, bool) and until > 0 else math.inf
    return ClientRegistration(client_id=str(id), client_secret=str(secret), until=ends)


def _is_word(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _MAX_REGISTERING_LENGTH and text.isascii() and text.isprintable()


_SAYS_WHOSE: Final = "authorization_response_iss_parameter_supported"


@dataclass(frozen=True, kw_only=True)
class LoginRequest:
    """A login that was begun. Who has its ``state`` and its ``verifier`` could finish it."""

    site: LoginSite
    said: Login
    url: str = field(repr=False)
    redirect: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)

    async def tokens(self, answer: Mapping[str, str]) -> TokenResponse:
        """Return the tokens for an answer with this request's state. Raises `FetchError` and `StoreError`.

        It counts only from the issuer that was asked (RFC 9207).
        """
        said, site = self.said, self.site
        metadata = await site.speaker.metadata()
        code = _code_in(answer, metadata, said.issuer)
        more, headers = proven(said, metadata)
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect}
        form |= {"code_verifier": self.verifier, "resource": said.resource_of(site.kept.address), **more}
        form = {name: value for name, value in form.items() if value}
        try:
            return granted(await site.speaker.ask("token_endpoint", None, form, headers), site.clock())
        except TokenRefused as error:
            if error.error == "invalid_client":
                # The next login is made with another registration.
                site.kept.forget_client(said)
            raise


async def login_request(site: LoginSite, redirect: str) -> LoginRequest:
    """Begin a login whose answer comes to this address. Raises `FetchError` and `StoreError`."""
    metadata = await usable(site.speaker)
    known = site.kept.said
    if known.client_id and not known.issuer and metadata.get(_SAYS_WHOSE) is not True:
        # One client at all of them: nothing else would tell the answer of one from another's (RFC 9700 section 4.4.2).
        message = f"{site.said.issuer} does not say whose its answers are (RFC 9207); if it is right, set it as issuer"
        raise FetchError(message)
    said = await with_client(site, redirect)
    base = _readable(endpoint_in(metadata, "authorization_endpoint", said.issuer))
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    asked = {
        "response_type": "code",
        "client_id": said.client_id,
        "redirect_uri": redirect,
        "scope": " ".join(said.scopes),
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": S256,
        "resource": said.resource_of(site.kept.address),
    }
    url = f"{base}{'&' if '?' in base else '?'}{urlencode({k: v for k, v in asked.items() if v})}"
    return LoginRequest(site=site, said=said, url=url, redirect=redirect, state=state, verifier=verifier)


def _readable(url: str) -> str:
    """Return an address that may be shown to somebody, who is to see where it leads. Raises `FetchError`."""
    try:
        host_of(url)
    except AddressRefused as error:
        raise FetchError(str(error)) from error
    return url


def _code_in(answer: Mapping[str, str], metadata: Mapping[str, Any], issuer: str) -> str:
    sender = answer.get("iss")
    is_told = metadata.get(_SAYS_WHOSE) is True
    if (sender is None and is_told) or (sender is not None and sender != issuer):
        message = "the answer is another issuer's"
        raise FetchError(message)
    if code := answer.get("code"):
        return code
    error = answer.get("error", "")
    shown = f" ({error})" if error.isascii() and error.replace("_", "").isalpha() and len(error) <= 40 else ""
    message = f"the authorization server did not let you in{shown}"
    raise FetchError(message)


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
    tokens: TokenResponse


async def logged_in(
    kept: LoginRegistrations,
    fetch: Fetch,
    show: Callable[[str], None],
    *,
    port: int = 0,
    may_move: bool = False,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.time,
) -> LoggedIn:
    """Show where somebody logs in, wait until they have, and return their tokens. Raises `FetchError`, `StoreError`.

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
        raise FetchError(message)
    return LoggedIn(asked.said, await asked.tokens(answer))


def _ports_of(kept: LoginRegistrations, issuer: str, path: str) -> list[int]:
    """Return the ports that the gateway is registered with: not all issuers take another one (RFC 8252 section 7.3)."""
    if kept.said.client_id:
        return []
    parts = [urlsplit(redirect) for redirect in kept.redirects(issuer)]
    return [one.port or 0 for one in parts if (one.hostname, one.path) == (_HOST, path)]


async def logged_out(said: Login, had: TokenResponse, fetch: Fetch, clock: Callable[[], float] = time.time) -> bool:
    """Have the authorization server revoke tokens (RFC 7009); False if it knows no way to. Raises `FetchError`."""
    return await revoked(said, had, IssuerClient(said.issuer, fetch, clock))


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
        except (FetchError, TruenameError) as error:
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
        raise FetchError(message) from error


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
