"""TLS towards clients: the certificate that is shown now, a transport for each connection, and what fails in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.gateway.http.tls_certificate import ServerCertificate
from truename.gateway.http.tls_transport import NO_DATA, TlsTransport
from truename.gateway.rate_limited_log import RateLimitedLog

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Self

    from truename.config import Config

__all__ = ["TlsTermination"]

_ALERT: Final = "ALERT_"
_UNTRUSTED: Final = (
    "it does not trust the certificate. Have it trust the authority, and write all intermediate certificates into "
    "tls_certificate."
)
# By OpenSSL's reason; that of an alert from the client, as the RFCs name it.
_REASONS: Final = {
    "HTTP_REQUEST": "it speaks plain HTTP. Have it use https://.",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS of version 1.2 or later. Upgrade it.",
    "UNKNOWN_CA": _UNTRUSTED,
    "BAD_CERTIFICATE": _UNTRUSTED,
    "CERTIFICATE_UNKNOWN": _UNTRUSTED,
    NO_DATA: "it sends records without data. The connection was closed.",
    "CERTIFICATE_EXPIRED": "it says that the certificate expired. Renew it, or check the clocks.",
}


class TlsTermination:
    """TLS for the connections of one HTTP server. ``certificate`` is the one that new connections are shown."""

    def __init__(self, certificate: ServerCertificate) -> None:
        self._certificate = certificate
        # Whoever can connect can fail, as often as they like.
        self._log = RateLimitedLog()

    @classmethod
    def of(cls, config: Config) -> Self | None:
        """Return what a configuration asks for, None if it asks for no TLS. Raises `ConfigError`."""
        certificate = ServerCertificate.of(config)
        return None if certificate is None else cls(certificate)

    def warn(self) -> None:
        """Log a warning if the certificate is not valid now."""
        self._certificate.warn()

    def expires(self) -> float:
        """Return the Unix time at which the certificate expires."""
        return self._certificate.expires.timestamp()

    def over(self, protocol: asyncio.Protocol) -> TlsTransport:
        """Return a protocol for TCP that gives another one what comes over TLS."""
        return TlsTransport(self._certificate.context, protocol, self._report)

    def prepare_reload(self, config: Config) -> Callable[[], tuple[str, ...]]:
        """Read the certificate again, and return a function that takes it over and names the settings that changed.

        Connections that are open keep the former one. Raises `ConfigError`.
        """
        renewed = ServerCertificate.of(config)
        # The settings that name the files are fixed while the gateway runs.
        assert renewed is not None  # noqa: S101

        def take() -> tuple[str, ...]:
            if renewed.digest == self._certificate.digest:
                return ()
            self._certificate = renewed
            renewed.warn()
            return ("tls_certificate",)

        return take

    def _report(self, address: str, reason: str) -> None:
        said = _REASONS.get(reason.partition(_ALERT)[2] or reason)
        if said is None:
            said = f"{reason.replace('_', ' ').lower()}."
        self._log.tell(reason, f"A TLS connection of the client at {address} failed: {said}")
