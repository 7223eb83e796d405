"""The ASGI application of the gateway: its routes, and who is authenticated for which."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
from starlette.responses import JSONResponse

from truename.auth.authentication_setup import http_authentication
from truename.auth.inbound.authentication import Authenticated, asks_for_credentials, ignore_access
from truename.auth.network.listening import bind
from truename.errors import ConfigError
from truename.gateway.background import background
from truename.gateway.calls.draining import Answering
from truename.gateway.calls.logins import with_pending_logins
from truename.gateway.http.authentication import AuthenticationMiddleware, is_stream
from truename.gateway.http.connection_limits import ConnectionLimits
from truename.gateway.http.endpoints import ServedEndpoints
from truename.gateway.http.origin_guard import OriginGuard, is_loopback
from truename.gateway.http.probes import READ, Probes
from truename.gateway.http.replica_listener import joined_replicas
from truename.gateway.http.routes import ALL_BELOW, Route, Routes
from truename.gateway.http.served_tables import check_served_tables
from truename.gateway.http.session_forwarding import KIND, forwarded
from truename.gateway.http.web_server import WebServer
from truename.gateway.protocol.callers import admitted, header_of
from truename.gateway.quota import Share, share_of, whose
from truename.gateway.views.contexts import CONTEXT_HEADER, ContextRefused
from truename.gateway.views.view import UnknownView, profile_in

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterable, Iterator

    from starlette.types import Receive, Scope, Send

    from truename.auth.authentication_setup import HttpAuthentication
    from truename.auth.inbound.authentication import AccessEvent, OnAccess
    from truename.config import Config
    from truename.gateway.endpoint.endpoint import Endpoint
    from truename.gateway.gateway import Gateway
    from truename.gateway.http.tls_termination import TlsTermination
    from truename.gateway.http.workers import WorkerGroup
    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.replicas import Replicas
    from truename.policy.principal import Principal

__all__ = [
    "HttpApp",
    "MoreRoutes",
    "OnAddress",
    "check_listening",
    "limits_of",
    "listening",
    "require_guard",
    "reserve",
    "serve_http",
    "spare_collector",
]

OnAddress = Callable[[str], None]
MoreRoutes = Callable[["HttpAuthentication"], AbstractAsyncContextManager["Iterable[Route]"]]
"""Further routes of a served gateway, by its authentication, with what they need while it is served."""

_HERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked for, not listened on
_CONTEXT: Final = CONTEXT_HEADER.encode()
_SPARE: Final = 64
# More than the system holds ready to be accepted at once, so that a replica's connection lives until its first request.
_STRANGERS: Final = 128
_DESCRIPTORS_BESIDE: Final = 256
_TOO_MANY: Final = "You have as many open connections as principal_share allows. Close one, or try again later."
_LATER: Final = {"retry-after": "1"}
_YOUNG: Final = 10_000
_PROGRAMS: Final = b"shared programs 1"


class HttpApp:
    """The ASGI application: finds the route of a request, has its sender authenticated as the route says, answers it.

    ``more`` are further routes, of other parts of the product; ``workers`` are the processes that serve together with
    this one. Raises `ValueError` for two routes of one path.
    """

    def __init__(
        self,
        gateway: Gateway,
        origin_guard: OriginGuard,
        front: HttpAuthentication,
        limits: ConnectionLimits,
        more: Iterable[Route] = (),
        *,
        workers: WorkerGroup | None = None,
    ) -> None:
        self._workers = workers
        self._gateway = gateway
        self._limits = limits
        self._origin_guard = origin_guard
        self._front = front
        self._authentication = AuthenticationMiddleware(front.authenticators, front.resource)
        self._is_running = False
        self._endpoints = ServedEndpoints(gateway)
        self.routes = Routes((*self._table(), *more))

    def _table(self) -> Iterator[Route]:
        """Yield the gateway's own routes."""
        probes = Probes(self._gateway, self._workers)
        yield Route(path="/healthz", methods=READ, authentication="none", answer=probes.alive)
        yield Route(path="/readyz", methods=READ, authentication="none", answer=probes.ready)
        yield Route(
            path="/metrics", methods=READ, authentication="caller", is_public=probes.is_public, answer=probes.metrics
        )
        for path in self._front.resource.metadata_paths:
            yield Route(path=path, methods=None, authentication="none", answer=self._authentication.metadata)
        for path in self._front.page_paths:
            yield Route(path=path, methods=None, authentication="own", answer=self._front.pages)
        # All other paths: of the views, and those that lead nowhere, which only a caller is told.
        yield Route(path=f"{ALL_BELOW}", methods=None, authentication="caller", answer=self._view)

    def guard(self, config: Config, host: str) -> Callable[[], None]:
        """Return what lets in by another configuration. Raises `ConfigError` as `require_guard` does."""
        require_guard(config, host)
        return self._front.prepare_reload(self._gateway.config, config)

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[None]:
        """Know the sessions of this state, and the replicas that have some of them, while the block lasts."""
        config = self._gateway.config
        async with (
            self._endpoints.recorded() as record,
            joined_replicas(
                config, record, limits_of(config, is_internal=True), partial(self._among, record.derived_key(_PROGRAMS))
            ),
        ):
            if self._gateway.sharing is not None:
                self._gateway.sharing.wait_no_longer()
            yield

    @asynccontextmanager
    async def _among(self, key: bytes, replicas: Replicas) -> AsyncIterator[None]:
        """Share sessions, programs and changes of lists with replicas, while the block lasts."""
        self._endpoints.share_with(replicas)
        replicas.handle(KIND, self._forwarded)
        if self._gateway.metrics is not None:
            self._gateway.metrics.replicas = lambda: replicas.registry.alive
        sharing = self._gateway.sharing
        async with (
            nullcontext() if sharing is None else sharing.among(replicas, key),
            self._gateway.list_changes.among(replicas),
        ):
            yield

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests while the block lasts, within `sharing`; at its end all streams are closed.

        They would stay open else.
        """
        async with self._authentication.watching():
            self._is_running = True
            if self._gateway.metrics is not None:
                self._gateway.metrics.sessions = self._sessions
            try:
                yield
            finally:
                if self._gateway.sharing is not None:
                    # While this process has its lease: the endpoints give it up.
                    await self._gateway.sharing.end()
                self._is_running = False
                await self._endpoints.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        connection = self._limits.connection_of(scope)
        if connection is not None:
            if not await connection.drained():
                # The client went while it had to read the answers before this one.
                return
            send = self._limits.sending(connection, scope, send)
        if (refusal := self._origin_guard.refusal(scope)) is not None:
            await refusal(scope, receive, send)
            return
        route = self.routes.find(scope["path"])
        assert route is not None  # noqa: S101 - one stands for all paths
        if route.needs_caller:
            admission = await self._authentication.admit(scope)
            if isinstance(admission, Authenticated) and not self._limits.identified(
                connection, whose(admission.principal)
            ):
                admission = JSONResponse({"error": _TOO_MANY}, 503, _LATER)
            if not isinstance(admission, Authenticated):
                await admission(scope, receive, send)
                return
        if route.methods is None or scope["method"] in route.methods:
            await route.answer(scope, receive, send)
        else:
            await route.refuse_method(scope, receive, send)

    async def _forwarded(self, request: PeerRequest, reply: PeerReply) -> None:
        """Answer a request that another replica passed on, whose sender is authenticated here as there."""
        if not self._is_running:
            await reply.refuse("it is starting or ending")
            return
        try:
            scope, receive, send = forwarded(request, reply)
        except ValueError as problem:
            await reply.refuse(str(problem))
            return
        route = self.routes.find(scope["path"])
        if route is None or route.answer != self._view:
            await reply.refuse("no session is at this path")
            return
        admission = await self._authentication.admit(scope)
        if not isinstance(admission, Authenticated):
            await admission(scope, receive, send)
            return
        await self._view(scope, receive, send)

    async def _view(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of MCP, at the endpoint of its path."""
        if not self._is_running:
            await JSONResponse({"error": "The gateway is not running."}, 503)(scope, receive, send)
            return
        admission, path = admitted(scope), scope["path"]
        with_pending_logins(scope, self._front.logins)
        said = _context_headers(scope)
        try:
            endpoint = self._gateway.endpoint(path, said, admission.principal)
        except UnknownView as error:
            await JSONResponse({"error": str(error)}, 404)(scope, receive, send)
            return
        except ContextRefused as error:
            await JSONResponse({"error": str(error)}, error.status)(scope, receive, send)
            return
        registry = self._gateway.registry
        with Answering(scope, registry.drain_tracker, registry.settings.server_name):
            leads_here = partial(self._leads, admission.principal, path, endpoint) if is_stream(scope) else None
            who, size = whose(admission.principal), self._endpoints.size_of(scope)
            http = self._endpoints.begin(endpoint, who, size)
            if isinstance(http, str):
                await JSONResponse({"error": http}, 503, _LATER)(scope, receive, send)
                return
            try:
                if admission.is_lasting and leads_here is None:
                    await http.handle(admission.principal, scope, receive, send)
                    return
                with self._authentication.holding(admission, send, leads_here) as held:
                    await http.handle(admission.principal, scope, receive, held.send)
            finally:
                self._endpoints.end(endpoint, who, size)
        if held.cancellation.has_ended_block:
            await self._authentication.end(held, scope, receive, send)

    def _leads(self, principal: Principal, path: str, endpoint: Endpoint) -> bool:
        """Tell whether a path still leads somebody to an endpoint: who is in which profile may be said anew."""
        return self._gateway.registry.profiled.of(principal, profile_in(path)) == endpoint.profiles

    def _sessions(self) -> int:
        return sum(one.open_sessions for one in self._endpoints)


def _context_headers(scope: Scope) -> tuple[str, ...]:
    if header_of(scope, _CONTEXT) is None:
        return ()
    return tuple(value.decode("latin-1") for key, value in scope["headers"] if key == _CONTEXT)


def require_guard(config: Config, host: str) -> None:
    """Raise `ConfigError` for an address that other machines reach while callers need not prove who they are."""
    reached = [name for name in (host, _public_host(config)) if name is not None and not is_loopback(name)]
    if reached and not asks_for_credentials(config):
        raise ConfigError(
            file=str(config.path or "settings"),
            key="token",
            problem=f"{reached[0]} can be reached from other machines, but no authentication is configured",
            remedy="Run `truename token add NAME`, set token or [access], or listen on 127.0.0.1.",
        )
    access = config.settings.access
    if reached and (access.oauth or access.sign_in) and access.public_url is None:
        raise ConfigError(
            file=str(config.path or "settings"),
            key="access.public_url",
            problem="access tokens are issued for the gateway's URL, which is not configured",
            remedy="Set it to https://HOST.",
        )


def _public_host(config: Config) -> str | None:
    url = config.settings.access.public_url
    return None if url is None else urlsplit(url).hostname


def reserve(config: Config, host: str, port: int) -> socket.socket:
    """Take an address before anything is started, so that what is wrong with it is known early.

    Raises `ConfigError` if it cannot be had, or is not a loopback one and no token is set, or for a certificate that
    cannot be used.
    """
    check_listening(config, host)
    return bind(host, port)


def check_listening(config: Config, host: str) -> None:
    """Raise `ConfigError` for what makes it unsafe or impossible to listen at an address, without taking it."""
    require_guard(config, host)
    _tls_of(config)


def _tls_of(config: Config) -> TlsTermination | None:
    """Return what a configuration says of TLS towards clients. Raises `ConfigError`."""
    settings = config.settings
    if settings.tls_certificate is None and settings.tls_key is None and settings.tls_key_password is None:
        return None
    from truename.gateway.http.tls_termination import TlsTermination  # noqa: PLC0415 - reads X.509, for who has TLS

    return TlsTermination.of(config)


@asynccontextmanager
async def listening(
    gateway: Gateway,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    bound: socket.socket | None = None,
    on_access: OnAccess = ignore_access,
    workers: WorkerGroup | None = None,
    more: MoreRoutes | None = None,
) -> AsyncIterator[str]:
    """Serve a running gateway over HTTP while the block lasts; gives the address, as ``http://127.0.0.1:8000``.

    With ``tls_certificate`` in its settings, it serves over TLS alone, at ``https://127.0.0.1:8000``.

    ``bound`` is an address that was reserved before; ``on_access`` is told what happens at the door; ``workers`` are
    the processes that serve together with this one; ``more`` are further routes, with what they need while the gateway
    is served. Raises as `reserve` does.
    """
    settings = gateway.config.settings
    bound = bound or reserve(gateway.config, host, port)
    host, tls = bound.getsockname()[0], _tls_of(gateway.config)
    address = _address(bound, "http" if tls is None else "https")
    with closing(bound):
        await check_served_tables(gateway.config.state_location())
        async with (
            background() as serving,
            http_authentication(
                gateway.config, address, on_access=_noted(gateway, on_access), is_near=is_loopback(host)
            ) as front,
            nullcontext(()) if more is None else more(front) as routes,
        ):
            limits = limits_of(gateway.config)
            app = HttpApp(gateway, OriginGuard.of(settings, host), front, limits, routes, workers=workers)
            counts = None if workers is None else workers.connection_counts()
            server = WebServer(app, limits, tls, counts)
            # Nobody is listened to before requests can be answered.
            async with app.sharing():
                serving.start_soon(server.serve, [bound])
                try:
                    await server.listens.wait()
                    async with app.running(), nullcontext() if workers is None else workers.answering(gateway.metrics):
                        with gateway.guarded(partial(app.guard, host=host)), _certificate_renewed(gateway, tls):
                            yield address
                finally:
                    await server.finish()


@contextmanager
def _certificate_renewed(gateway: Gateway, tls: TlsTermination | None) -> Iterator[None]:
    """Have a renewed certificate be taken over with the configuration, and its end be measured."""
    if tls is None:
        yield
        return
    tls.warn()
    if gateway.metrics is not None:
        gateway.metrics.certificate_expires = tls.expires
    with gateway.guarded(tls.prepare_reload):
        yield


def limits_of(config: Config, *, is_internal: bool = False) -> ConnectionLimits:
    """Return the limits of a listener: how many connections it may have, and how much clients may leave unread.

    One that is internal has no principals: each connection of a replica is for many. Whoever did not prove to be one
    has a small part of them, so that all others are for replicas.
    """
    settings = config.settings
    # A session may have a stream open while it asks. Servers behind the gateway need descriptors too.
    most = min(2 * settings.max_sessions + _SPARE, max(_descriptors() - _DESCRIPTORS_BESIDE, _SPARE))
    if is_internal:
        unread = settings.max_unread
        return ConnectionLimits(
            Share(most, most, most - min(_STRANGERS, most // 2)), Share(unread, unread, 0), shared=True
        )
    shares = share_of(settings, most), share_of(settings, settings.max_unread)
    return ConnectionLimits(*shares, shared=asks_for_credentials(config))


def _descriptors() -> int:
    try:
        import resource  # noqa: PLC0415 - POSIX only
    except ImportError:
        return sys.maxsize
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _noted(gateway: Gateway, on_access: OnAccess) -> OnAccess:
    def told(event: AccessEvent) -> None:
        gateway.audit.entered(event)
        on_access(event)

    return told


async def serve_http(gateway: Gateway, host: str = "127.0.0.1", port: int = 8000, *, on_address: OnAddress) -> None:
    """Serve a running gateway over HTTP until SIGINT or SIGTERM; ``on_address`` is told where.

    What runs then is let end (`Gateway.drain`); a second signal breaks it off. Raises as `listening` does.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with listening(gateway, host, port) as address:
            spare_collector()
            on_address(address)
            await anext(signals)
            async with background() as draining:
                draining.start_soon(_cancel_at_next, signals, draining.cancel_scope)
                await gateway.drain()
            if gateway.unfinished:
                await gateway.break_off()


async def _cancel_at_next(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()


def spare_collector() -> None:
    """Have the collector look at what calls leave behind, and not at all that was there before them each time.

    It is the whole process's: for a program that does nothing but serve.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)


def _address(bound: socket.socket, scheme: str) -> str:
    """Return the address at which a client on this machine reaches it; one that means all interfaces is none."""
    host, port = bound.getsockname()[:2]
    host = _HERE.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
