"""Build the HTTP authentication of a gateway from its configuration."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from starlette.requests import ClientDisconnect

from truename.auth.inbound.authentication import Authenticators, ProtectedResource, ignore_access, token_store
from truename.auth.outbound.login_pages import LoginPages, PendingLogins
from truename.config.fields import fixed_changes
from truename.errors import ConfigErrors, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from truename.auth.authorization_server.endpoints import AuthorizationEndpoints
    from truename.auth.authorization_server.provider import BrowserIdentification
    from truename.auth.inbound.authentication import Authenticator, OnAccess
    from truename.auth.network.fetch import Fetch
    from truename.config import Config

__all__ = ["HttpAuthentication", "http_authentication"]

_PATH: Final = "/mcp"


class WebPages(Protocol):
    """A group of web pages, as an ASGI application for its own paths."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that it serves; one that ends in ``/*`` stands for all below it."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for one of its paths."""
        ...


@dataclass(frozen=True, kw_only=True)
class HttpAuthentication:
    """The authentication of the gateway's HTTP server; ``pages`` serves sign-in and per-user logins at servers.

    ``page_paths`` are the paths of ``pages``; one that ends in ``/*`` stands for all below it. ``logins`` are the
    pending logins at servers; None if this gateway has no login pages. ``here`` is the gateway's URL; ``recognizer``
    identifies the person at a browser, None without sign-in.
    """

    authenticators: Authenticators
    resource: ProtectedResource
    pages: ASGIApp
    page_paths: tuple[str, ...]
    logins: PendingLogins | None = None
    here: str = ""
    recognizer: BrowserIdentification | None = None

    def prepare_reload(self, before: Config, after: Config) -> Callable[[], None]:
        """Prepare a reload of the tokens.

        Raises `ConfigError`, or a group of them, if fields of `Access` change that are fixed while the gateway runs.
        """
        fixed = [f"access.{key}" for key in fixed_changes(before.settings.access, after.settings.access)]
        errors = ConfigErrors(str(after.path or "settings"))
        for key in fixed:
            errors.add(key, "it cannot change while the gateway runs", "Restart the gateway, or change it back.")
        errors.raise_any()
        settings, store = after.settings, token_store(after)
        return partial(self.authenticators.reload, store, token=settings.token, token_name=settings.access.token_name)


@asynccontextmanager
async def http_authentication(
    config: Config,
    address: str,
    *,
    fetch: Fetch | None = None,
    clock: Callable[[], float] = time.time,
    on_access: OnAccess = ignore_access,
    is_near: bool = False,
) -> AsyncIterator[HttpAuthentication]:
    """Build the authentication of a gateway at this address, ``http://HOST:PORT``, for the duration of the block.

    ``fetch`` replaces the network; ``on_access`` receives access events; ``is_near`` means that only this machine can
    reach the gateway.
    """
    settings, access = config.settings, config.settings.access
    here = access.public_url or address
    issuers = [here] if access.sign_in else []
    issuers += [issuer.issuer for issuer in access.oauth.values()]
    scopes = dict.fromkeys(scope for issuer in access.oauth.values() for scope in issuer.scopes)
    scopes |= dict.fromkeys(access.sign_in.scopes if access.sign_in else ())
    resource = ProtectedResource(
        identifier=here + _PATH, issuers=tuple(issuers), scopes=tuple(scopes), name=settings.server_name
    )
    async with AsyncExitStack() as stack:
        others: list[Authenticator] = []
        pages: AuthorizationEndpoints | None = None
        if access.oauth or access.sign_in:
            # Import the network and the token libraries only for configurations that need them.
            from truename.auth.inbound.issuer_tokens import IssuerAuthenticator  # noqa: PLC0415 - only for who has them
            from truename.auth.network.web import web  # noqa: PLC0415 - imports httpx2, which only issuers need

            net = await stack.enter_async_context(web(settings.allow_addresses)) if fetch is None else fetch
            others += [IssuerAuthenticator(issuer, resource.identifier, net, clock) for issuer in access.oauth.values()]
            if access.sign_in:
                from truename.auth.authorization_server.endpoints import sign_in  # noqa: PLC0415 - only for who has them

                authenticator, pages = stack.enter_context(
                    sign_in(
                        config,
                        access.sign_in,
                        issuer=here,
                        resource=resource.identifier,
                        fetch=net,
                        clock=clock,
                        tell=on_access,
                    )
                )
                others.append(authenticator)
        store = token_store(config)
        # Opened before requests come: creating tables can wait for another process. Damage is logged by each request.
        with suppress(StoreError):
            store.now()
        authenticators = Authenticators(
            store,
            token=settings.token,
            token_name=access.token_name,
            ways=tuple(others),
            clock=clock,
            on_access=on_access,
        )
        stack.callback(authenticators.close)
        logins = _pending_logins(
            config, here, pages, is_near=is_near and access.public_url is None, clock=clock, tell=on_access
        )
        applications: list[WebPages] = [] if pages is None else [pages]
        if logins is not None:
            stack.push_async_callback(logins.close)
            applications.append(LoginPages(logins, settings.server_name))
        yield HttpAuthentication(
            authenticators=authenticators,
            resource=resource,
            pages=partial(_page, applications),
            page_paths=tuple(path for application in applications for path in application.paths),
            logins=logins,
            here=here,
            recognizer=None if pages is None else pages.recognizer,
        )


def _pending_logins(
    config: Config,
    here: str,
    pages: AuthorizationEndpoints | None,
    *,
    is_near: bool,
    clock: Callable[[], float],
    tell: OnAccess,
) -> PendingLogins | None:
    """Return where people log in at servers, if logins are kept."""
    if config.state_location().is_memory:
        return None
    recognizer = None if pages is None else pages.recognizer
    allowed = config.settings.allow_addresses
    return PendingLogins(here, config, recognizer=recognizer, is_near=is_near, allowed=allowed, clock=clock, tell=tell)


async def _page(applications: Sequence[WebPages], scope: Scope, receive: Receive, send: Send) -> None:
    # A client that disconnected during a request needs no response.
    with suppress(ClientDisconnect):
        await next(one for one in applications if _serves(one, scope["path"]))(scope, receive, send)


def _serves(application: WebPages, path: str) -> bool:
    return any(path == one or (one.endswith("/*") and path.startswith(one[:-1])) for one in application.paths)
