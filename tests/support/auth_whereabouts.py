"""Test support: whereabouts, used by tests of several modules."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import anyio
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import ByteStream


def certificate_of(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for a name; return its file, and how a server has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, private)
    return certificate, context


@asynccontextmanager
async def listening_safely(context: ssl.SSLContext) -> AsyncIterator[tuple[int, list[str | None]]]:
    asked_for: list[str | None] = []
    context.sni_callback = lambda _, name, __: asked_for.append(name)

    async def answer(stream: ByteStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while await stream.receive():
                    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as plain,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(TLSListener(plain, context, standard_compatible=False).serve, answer)
        yield plain.extra(SocketAttribute.local_port), asked_for
        tasks.cancel_scope.cancel()
