"""Test support: an authority that issues certificates for the gateway, used by tests of several modules."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import ByteStream

PEM = serialization.Encoding.PEM
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> dict[str, str]:
        return {"tls_certificate": str(self.certificate), "tls_key": str(self.key)}

    @property
    def options(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.certificate), "--tls-key", str(self.key))

    def write(self, other: Pair) -> None:
        """Have these files hold what another pair's hold, as a program that renews them does."""
        for mine, theirs in ((self.key, other.key), (self.certificate, other.certificate)):
            beside = mine.with_suffix(".new")
            beside.write_bytes(theirs.read_bytes())
            beside.replace(mine)


class Authority:
    """A private authority; ``file`` holds its certificate."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.file = folder / "authority.pem"
        now = datetime.now(UTC)
        made = self._builder(self._name, self._key, now - DAY, now + DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
        )

    def issue(
        self,
        name: str = "server",
        *,
        begin: timedelta = -timedelta(hours=1),
        end: timedelta = timedelta(hours=1),
        password: str | None = None,
    ) -> Pair:
        """Issue a certificate for this machine; ``name`` names its files, ``begin`` and ``end`` go from now."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        made = self._builder(subject, key, now + begin, now + end)
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        pair.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(PEM))
        sealing: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            sealing = serialization.BestAvailableEncryption(password.encode())
        pair.key.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, sealing))
        return pair


async def dial(address: str) -> ByteStream:
    """Connect to the address of a gateway, over TLS if it is https."""
    port = int(address.rpartition(":")[2])
    if not address.startswith("https:"):
        return await anyio.connect_tcp("127.0.0.1", port)
    return await anyio.connect_tcp("127.0.0.1", port, ssl_context=trusting(), tls_standard_compatible=False)


def trusting() -> ssl.SSLContext:
    """Return a client's context; it trusts what SSL_CERT_FILE says."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context
