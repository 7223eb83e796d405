"""In which protocol era a server is greeted: with the probe of the stateless era, or with the handshake at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import UNSUPPORTED_PROTOCOL_VERSION

if TYPE_CHECKING:
    from truename.gateway.upstream.session import ServerSession
    from truename.gateway.upstream.transport import Transport
    from truename.gateway.upstream_errors import UpstreamError

__all__ = ["HANDSHAKES", "Handshake", "Negotiation"]

# When the handshake is tried: where the probe fails, before the probe, or as the only way.
Handshake = Literal["last", "first", "only"]
HANDSHAKES: Final[tuple[Handshake, ...]] = get_args(Handshake)


class Negotiation:
    """Agrees on a protocol version with one server, over one connection after the other.

    A server that ends, or refuses, at the first way to greet it is greeted the other way from then on, unless
    ``handshake`` is ``only``. One that has spoken the stateless era here before may have been killed while it was
    greeted: it is greeted so once more, and again after each connection.
    """

    def __init__(self, handshake: Handshake) -> None:
        self.handshake = handshake
        self._probes = handshake == "last"
        self._was_modern = False
        self._has_ended_at_probe = False

    async def agree(self, session: ServerSession, transport: Transport) -> None:
        """Negotiate the version of a new connection. Raises `MCPError`, `TransportError` or `InvalidGreeting`."""
        await session.negotiate(probe=self._probes and not transport.is_old)

    def agreed(self, session: ServerSession) -> None:
        """Greet this server in the same way from now on."""
        self._was_modern |= session.modern
        self._has_ended_at_probe = False
        self._probes = session.modern or (self.handshake == "last" and self._was_modern)

    def changes(self, error: Exception, transport: Transport, refusal: UpstreamError | None) -> bool:
        """Tell whether the server is greeted the other way from now on, since this way ended with ``error``.

        Some older servers end when their first message is not the handshake, or refuse it then.
        """
        is_refused = isinstance(error, MCPError) and error.code == UNSUPPORTED_PROTOCOL_VERSION
        if self.handshake == "last" and self._probes:
            has_ended = transport.closed.is_set()
            is_certain = not self._was_modern or self._has_ended_at_probe
            self._has_ended_at_probe = has_ended
            self._probes = not (is_refused or (has_ended and is_certain))
            return not self._probes
        if self.handshake == "first" and not self._probes:
            is_refused |= refusal is not None and refusal.kind in {"protocol", "refused"}
            self._probes = transport.closed.is_set() or is_refused
            return self._probes
        return False
