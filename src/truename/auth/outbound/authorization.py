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
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
from anyio.abc import SocketAttribute

from truename.auth.in_thread import in_thread
from truename.auth.network.addresses import AddressRefused, host_of
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import (
    S256,
    IssuerClient,
    TokenRefused,
    TokenResponse,
    challenge_of,
    client_authentication,
    endpoint_in,
    is_document,
    parse_token_response,
    revoke_tokens,
)
from truename.auth.outbound.discovery import ClientRegistration, find_login_site, login_metadata
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from anyio.abc import Listener, SocketStream

    from truename.auth.network.fetch import Fetch, FetchedDocument
    from truename.auth.outbound.discovery import LoginRegistrations, LoginSite
    from truename.config.credentials import Login

__all__ = ["LoggedIn", "LoginRequest", "client_document", "log_in", "log_out", "redirect_uri_for", "start_login"]

_NAME: Final = "Truename"
_GRANTS: Final = ("authorization_code", "refresh_token")
_MAX_REGISTERING_LENGTH: Final = 2_048
# In order of preference: a client without a secret has none that can be stolen.
_PROOFS: Final = ("none", "client_secret_basic", "client_secret_post")


def redirect_uri_for(said: Login, issuer: str, address: str) -> str:
    """Return the redirect URI for an issuer: below the address, or the address itself for a preregistered client.

    Each issuer has its own redirect URI, which identifies the sender of a response (RFC 9700 section 4.4.2): an issuer
    that redirects people to another one does not receive the codes of that one.
    """
    return address if said.client_id else f"{address}/{hashlib.sha256(issuer.encode()).hexdigest()[:16]}"


def client_document(client_id: str, redirects: tuple[str, ...], name: str = _NAME) -> dict[str, object]:
    """Return the gateway's client metadata, for its ``client_id`` URL (SEP-991) or for registration (RFC 7591)."""
    return {
        **({"client_id": client_id} if client_id else {}),
        "client_name": name,
        "redirect_uris": list(redirects),
        "grant_types": list(_GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native" if all(urlsplit(one).scheme == "http" for one in redirects) else "web",
    }


async def with_registered_client(site: LoginSite, redirect: str) -> Login:
    """Return the login with the gateway's client at its issuer. Raises `FetchError` and `StoreError`.

    A preregistered client is used unchanged. A client id that is a URL is used if the issuer reads such documents.
    Otherwise the gateway registers itself once for each issuer and redirect URI, and again when the issuer no longer
    knows the client.
    """
    said, kept = site.said, site.kept
    if said.client_id and not _registers(said, await site.issuer_client.metadata()):
        return said
    one = await in_thread(partial(kept.client, said.issuer, redirect))
    if one is None or one.until <= site.clock() or not await _is_known(_as(said, one), redirect, site.issuer_client):
        one = await _registered(site, redirect)
        await in_thread(partial(kept.keep_client, said.issuer, redirect, one))
    return _as(said, one)


def _registers(said: Login, metadata: Mapping[str, object]) -> bool:
    """Return whether the issuer needs a registration, because it does not accept the client id."""
    is_read = metadata.get("client_id_metadata_document_supported") is True
    is_set_up = bool(said.client_secret) or not is_document(said.client_id)
    return not is_set_up and not is_read and "registration_endpoint" in metadata


def _as(said: Login, one: ClientRegistration) -> Login:
    return replace(said, client_id=one.client_id, client_secret=one.client_secret)


async def _is_known(client: Login, redirect: str, issuer_client: IssuerClient) -> bool:
    """Ask the issuer whether it still knows a client, by sending an invalid code.

    Without this check, the issuer would show a person an error, and never redirect them back (RFC 6749 section
    4.1.2.1).
    """
    more, headers = client_authentication(client, await issuer_client.metadata())
    code, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    try:
        answer = await issuer_client.ask("token_endpoint", None, {**form, **more}, headers)
        return bool(answer.document().get("error") != "invalid_client")
    except FetchError:
        return True


async def _registered(site: LoginSite, redirect: str) -> ClientRegistration:
    said, metadata = site.said, await site.issuer_client.metadata()
    if "registration_endpoint" not in metadata:
        message = f"{said.issuer} does not register clients; create a client there, and set client_id"
        raise FetchError(message)
    url = await site.issuer_client.endpoint("registration_endpoint", None)
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
        message = f"{issuer} refuses to register the gateway (HTTP {answer.status})"
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
    """A login that was started. Anybody who has its ``state`` and ``verifier`` could complete it."""

    site: LoginSite
    said: Login
    url: str = field(repr=False)
    redirect: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)

    async def tokens(self, answer: Mapping[str, str]) -> TokenResponse:
        """Exchange the code of a response with this request's state for tokens. Raises `FetchError` and `StoreError`.

        The response must come from the issuer of the request (RFC 9207).
        """
        said, site = self.said, self.site
        metadata = await site.issuer_client.metadata()
        code = _code_in(answer, metadata, said.issuer)
        more, headers = client_authentication(said, metadata)
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect}
        form |= {"code_verifier": self.verifier, "resource": said.resource_of(site.kept.address), **more}
        form = {name: value for name, value in form.items() if value}
        try:
            return parse_token_response(
                await site.issuer_client.ask("token_endpoint", None, form, headers), site.clock()
            )
        except TokenRefused as error:
            if error.error == "invalid_client":
                # The next login registers the gateway again.
                await in_thread(partial(site.kept.forget_client, said))
            raise


async def start_login(site: LoginSite, redirect: str) -> LoginRequest:
    """Start a login with this redirect URI. Raises `FetchError` and `StoreError`."""
    metadata = await login_metadata(site.issuer_client)
    known = site.kept.said
    if known.client_id and not known.issuer and metadata.get(_SAYS_WHOSE) is not True:
        # One client id is used at every issuer, so nothing else would distinguish their responses (RFC 9700 section
        # 4.4.2).
        message = (
            f"{site.said.issuer} does not identify itself in responses (RFC 9207); if you trust it, set it as issuer"
        )
        raise FetchError(message)
    said = await with_registered_client(site, redirect)
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
    """Return a URL that may be shown to a person, who can see where it leads. Raises `FetchError`."""
    try:
        host_of(url)
    except AddressRefused as error:
        raise FetchError(str(error)) from error
    return url


def _code_in(answer: Mapping[str, str], metadata: Mapping[str, object], issuer: str) -> str:
    sender = answer.get("iss")
    is_told = metadata.get(_SAYS_WHOSE) is True
    if (sender is None and is_told) or (sender is not None and sender != issuer):
        message = "the response comes from another issuer"
        raise FetchError(message)
    if code := answer.get("code"):
        return code
    error = answer.get("error", "")
    shown = f" ({error})" if error.isascii() and error.replace("_", "").isalpha() and len(error) <= 40 else ""
    message = f"the authorization server refused the login{shown}"
    raise FetchError(message)


_Waiting = Callable[[str, str], Callable[[], Awaitable[dict[str, str]]]]

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_LONGEST: Final = 16 * 1024
_SECONDS: Final = 300.0
_READING: Final = 10.0
_DONE: Final = "You are logged in. This window can be closed."
_NOT_DONE: Final = "This is not the expected response."


class LoggedIn(NamedTuple):
    """The tokens of a person, and the login that obtained them."""

    said: Login
    tokens: TokenResponse


async def log_in(
    kept: LoginRegistrations,
    fetch: Fetch,
    show: Callable[[str], None],
    *,
    port: int = 0,
    may_move: bool = False,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.time,
) -> LoggedIn:
    """Show the URL of a login, wait for its response, and return the tokens. Raises `FetchError` and `StoreError`.

    ``may_move`` accepts another issuer than that of the first login (`find_login_site`). A response must have the state
    of this login.
    """
    site = await find_login_site(kept, fetch, may_move=may_move, clock=clock)
    path = redirect_uri_for(kept.said, site.said.issuer, _PATH)
    async with _listening(port, _ports_of(kept, site.said.issuer, path)) as (here, waiting):
        asked = await start_login(site, here + path)
        answers = waiting(asked.state, path)
        show(asked.url)
        answer = None
        with anyio.move_on_after(seconds):
            answer = await answers()
    if answer is None:
        message = f"no login within {seconds:.0f} seconds"
        raise FetchError(message)
    return LoggedIn(asked.said, await asked.tokens(answer))


def _ports_of(kept: LoginRegistrations, issuer: str, path: str) -> list[int]:
    """Return the ports with which the gateway is registered: some issuers accept no other (RFC 8252 section 7.3)."""
    if kept.said.client_id:
        return []
    parts = [urlsplit(redirect) for redirect in kept.redirects(issuer)]
    return [one.port or 0 for one in parts if (one.hostname, one.path) == (_HOST, path)]


async def log_out(said: Login, had: TokenResponse, fetch: Fetch, clock: Callable[[], float] = time.time) -> bool:
    """Revoke tokens (RFC 7009); return False if the server has no revocation endpoint. Raises `FetchError`."""
    return await revoke_tokens(said, had, IssuerClient(said.issuer, fetch, clock))


@asynccontextmanager
async def _listening(port: int, known: list[int]) -> AsyncIterator[tuple[str, _Waiting]]:
    """Listen on the loopback interface; yield the URL, and a function that waits for a response by state and path."""
    put, taken = anyio.create_memory_object_stream[dict[str, str]](1)
    awaited = awaited_at = ""
    fault: Exception | None = None

    def waiting(state: str, path: str) -> Callable[[], Awaitable[dict[str, str]]]:
        nonlocal awaited, awaited_at
        awaited, awaited_at = state, path
        return taken.receive

    async def answer(stream: SocketStream) -> None:
        async with stream:
            # A client that disconnects early ends nothing.
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
            # The task group would wrap it in an exception group.
            fault = error
        tasks.cancel_scope.cancel()
    if fault is not None:
        raise fault


async def _listener(port: int, known: list[int]) -> Listener[SocketStream]:
    """Listen on a port; if it is 0, on one of the known ports, else on any."""
    for one in known if not port else ():
        with suppress(OSError):
            return await anyio.create_tcp_listener(local_host=_HOST, local_port=one)
    try:
        return await anyio.create_tcp_listener(local_host=_HOST, local_port=port)
    except OSError as error:
        message = f"cannot listen on {_HOST}:{port} ({error.strerror})"
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
    """Return the query parameters of a GET request to this path; none if one is repeated."""
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
