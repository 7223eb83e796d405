"""What all connections to servers of one gateway have in common, however often they are made anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from truename.auth.network.addresses import HostResolver
from truename.gateway.protocol.operations import Operations
from truename.gateway.upstream.credentials import Credentials
from truename.gateway.upstream.showing import Showing
from truename.gateway.upstream.web import Bearing, sender_to
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from typing import Self

    from truename.auth.outbound.tokens import TokenCaller
    from truename.config import Config, ServerConfig
    from truename.gateway.http_connections import Sender
    from truename.gateway.upstream.sharing.program_sharing import ProgramSharing

__all__ = ["Outside"]


@dataclass(frozen=True, kw_only=True)
class Outside:
    """``resolver`` knows where servers were found first, which no later connection may forget.

    ``credentials`` are what they are shown, and ``principal`` is whose connections these are: the operator's, unless
    they are a user's own: then ``caller`` is how they were let in. ``operations`` knows who is told how long requests
    took. ``sharing`` has the programs that other processes of the gateway share; None where there are no others.
    """

    resolver: HostResolver = field(default_factory=HostResolver)
    credentials: Credentials = field(default_factory=Credentials)
    operations: Operations = field(default_factory=Operations)
    principal: str = LOCAL.key
    caller: TokenCaller | None = None
    sharing: ProgramSharing | None = None

    @classmethod
    def of(cls, config: Config, sharing: ProgramSharing | None = None) -> Self:
        """Return what a configuration asks for."""
        allowed = config.settings.allow_addresses
        return cls(resolver=HostResolver(allowed), credentials=Credentials(allowed, config), sharing=sharing)

    def sender(self, server: ServerConfig) -> Sender:
        """Return how a server over HTTP is reached, and shown what it is to be shown."""
        own = sender_to(server.url or "", self.resolver)
        credential = self.credentials.of(server, self.principal, self.caller)
        if credential is not None:
            own = Bearing(own, Showing(credential, server.key, self.principal, self.credentials.shown))
        if not server.allow_redirects:
            return own
        from truename.gateway.upstream.redirecting import followed  # noqa: PLC0415 - only for who allows them

        return followed(own, server, self.resolver.named_by(urlsplit(server.url or "").hostname or ""))
