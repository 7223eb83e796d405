"""Build the whole HTTP authentication of a gateway from its configuration."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect

from truename.auth.inbound.authentication import Authenticators, ProtectedResource, ignore_access, token_store
from truename.auth.outbound.login_pages import LoginPages, PendingLogins
from truename.errors import ConfigError
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from truename.auth.inbound.authentication import Authenticator, OnAccess
    from truename.auth.network.fetch import Fetch
    from truename.config import Config

__all__ = ["HttpAuthentication", "front_of"]

_PATH: Final = "/mcp"
# What counts as soon as it is said; for the rest connections and keys are there already.
_LIVE: Final[Mapping[str, Any]] = {"tokens": {}, "token_name": LOCAL.name}


def _nothing(_: str) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class HttpAuthentication:
    """What the gateway's HTTP server needs to authenticate callers; ``pages`` serves sign-in and logins at servers.

    ``logins`` is where people are sent to log in at servers, None where there is no page for that.
    """

    authenticators: Authenticators
    resource: ProtectedResource
    pages: Any = None
    is_page: Callable[[str], bool] = _nothing
    logins: PendingLogins | None = None

    def another(self, before: Config, after: Config) -> Callable[[], None]:
        """Return what has another configuration's tokens count. Raises `ConfigError` if more would change."""
        old, new = (replace(config.settings.access, **_LIVE) for config in (before, after))
        if old != new or before.state_location().path != after.state_location().path:
            problem = "more than tokens and token_name can't change while the gateway runs"
            raise ConfigError(
                file=str(after.path or "settings"),
                key="access",
                problem=problem,
                remedy="Restart the gateway, or change it back.",
            )
        settings, store = after.settings, token_store(after)
        return partial(self.authenticators.reload, store, token=settings.token, token_name=settings.access.token_name)


@asynccontextmanager
async def front_of(
    config: Config,
    address: str,
    *,
    fetch: Fetch | None = None,
    clock: Callable[[], float] = time.time,
    on_access: OnAccess = ignore_access,
    is_near: bool = False,
) -> AsyncIterator[HttpAuthentication]:
    """Build what stands in front of a gateway at this address, ``http://HOST:PORT``, while the block lasts.

    ``fetch`` is the network, if not the real one; ``on_access`` is told what happens at the door; ``is_near`` says that
    the gateway can be reached from this machine alone.
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
        ways: list[Authenticator] = []
        pages: Any = None
        if access.oauth or access.sign_in:
            # The network, and the libraries for tokens, are only for who needs them.
            from truename.auth.inbound.issuer_tokens import IssuerAuthenticator  # noqa: PLC0415 - only for who has them
            from truename.auth.network.fetch import web  # noqa: PLC0415 - only for who has them

            net = await stack.enter_async_context(web(settings.allow_addresses)) if fetch is None else fetch
            ways += [IssuerAuthenticator(issuer, resource.identifier, net, clock) for issuer in access.oauth.values()]
            if access.sign_in:
                from truename.auth.authorization_server.endpoints import sign_in  # noqa: PLC0415 - only for who has them

                way, pages = stack.enter_context(
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
                ways.append(way)
        authenticators = Authenticators(
            token_store(config),
            token=settings.token,
            token_name=access.token_name,
            ways=tuple(ways),
            clock=clock,
            on_access=on_access,
        )
        logins = _pending_logins(
            config, here, pages, is_near=is_near and access.public_url is None, clock=clock, tell=on_access
        )
        rooms = [] if pages is None else [pages]
        if logins is not None:
            stack.push_async_callback(logins.close)
            rooms.append(LoginPages(logins, settings.server_name))
        yield HttpAuthentication(
            authenticators=authenticators,
            resource=resource,
            pages=partial(_page, rooms),
            is_page=partial(_has, rooms),
            logins=logins,
        )


def _pending_logins(
    config: Config, here: str, pages: Any, *, is_near: bool, clock: Callable[[], float], tell: OnAccess
) -> PendingLogins | None:
    """Return where people log in at servers, if logins are kept."""
    if config.state_location().path is None:
        return None
    recognizer = None if pages is None else pages.recognizer
    allowed = config.settings.allow_addresses
    return PendingLogins(here, config, recognizer=recognizer, is_near=is_near, allowed=allowed, clock=clock, tell=tell)


def _has(rooms: Sequence[Any], path: str) -> bool:
    return any(room.has(path) for room in rooms)


async def _page(rooms: Sequence[Any], scope: Scope, receive: Receive, send: Send) -> None:
    # Who went away within a request needs no answer.
    with suppress(ClientDisconnect):
        await next(room for room in rooms if room.has(scope["path"]))(scope, receive, send)
