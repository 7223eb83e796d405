"""The certificate that the gateway shows to clients over TLS: read with its key, checked, and warned of."""

from __future__ import annotations

import hashlib
import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509

from truename.errors import config_error, printable
from truename.files.private import open_plain

if TYPE_CHECKING:
    from truename.config import Config
    from truename.errors import ConfigError

__all__ = ["ServerCertificate"]

log: Final = logging.getLogger("truename.gateway")

_CERTIFICATE: Final = "tls_certificate"
_KEY: Final = "tls_key"
_PASSWORD: Final = "tls_key_password"  # noqa: S105 - the name of a setting
_LARGEST: Final = 1024 * 1024
_PROTOCOLS: Final = ("http/1.1",)
# What OpenSSL says of a key that is another one, and of one of another kind.
_MISMATCHES: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
_EXPIRED: Final = "The TLS certificate in %s expired on %s, so clients refuse it. Renew it."
_EARLY: Final = "The TLS certificate in %s is valid from %s on, so clients refuse it. Check the clock of this machine."
_READABLE: Final = "Make it readable for the user that runs the gateway, or name another file."
_IN_PEM: Final = "Write it in PEM form, with a line -----BEGIN %s-----."


@dataclass(frozen=True, kw_only=True)
class ServerCertificate:
    """A certificate with its key, in a context for connections of TLS 1.2 at least, with HTTP/1.1 within.

    ``digest`` is of all that its files hold: it differs if one was renewed.
    """

    path: str
    digest: bytes
    valid_from: datetime
    expires: datetime
    context: ssl.SSLContext

    @classmethod
    def of(cls, config: Config) -> ServerCertificate | None:
        """Read the certificate that a configuration names; None if it names none.

        Raises `ConfigError` for a file that cannot be read or used, with the setting that names it.
        """
        settings, config_file = config.settings, str(config.path or "settings")
        if settings.tls_certificate is None:
            for name, value in ((_KEY, settings.tls_key), (_PASSWORD, settings.tls_key_password)):
                if value is not None:
                    raise config_error(config_file, name, "there is no certificate", f"Set {_CERTIFICATE} too.")
            return None
        files = _PemFiles(config_file, settings.tls_certificate, settings.tls_key)
        certificate, digest = files.certificate()
        return cls(
            path=files.path,
            digest=digest,
            valid_from=certificate.not_valid_before_utc,
            expires=certificate.not_valid_after_utc,
            context=files.context(settings.tls_key_password),
        )

    def warn(self) -> None:
        """Log a warning if the certificate is not valid now."""
        now = datetime.now(UTC)
        for text, time, is_wrong in (
            (_EXPIRED, self.expires, now >= self.expires),
            (_EARLY, self.valid_from, now < self.valid_from),
        ):
            if is_wrong:
                log.warning(text, printable(self.path), f"{time:%Y-%m-%d at %H:%M:%S UTC}")


@dataclass(frozen=True)
class _PemFiles:
    """The files of a certificate and its key, which may be one; ``config_file`` is the one that names them."""

    config_file: str
    path: str
    key_path: str | None

    def certificate(self) -> tuple[x509.Certificate, bytes]:
        """Return the first certificate (the others in the file issued it), and a digest of both files.

        Raises `ConfigError`.
        """
        raw = self._content(_CERTIFICATE, self.path)
        key = b"" if self.key_path is None else self._content(_KEY, self.key_path)
        try:
            first = x509.load_pem_x509_certificates(raw)[0]
        except ValueError:
            problem = f"{printable(self.path)} holds no certificate that can be read"
            raise self._error(_CERTIFICATE, problem, _IN_PEM % "CERTIFICATE") from None
        return first, hashlib.sha256(raw + b"\0" + key).digest()

    def context(self, password: str | None) -> ssl.SSLContext:
        """Return a context with certificate and key. Raises `ConfigError`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(_PROTOCOLS)
        was_asked = False

        def given() -> str:
            # Without this function, OpenSSL would ask on the terminal.
            nonlocal was_asked
            was_asked = True
            return password or ""

        try:
            context.load_cert_chain(self.path, self.key_path, given)
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None)
            raise self._refusal(reason, is_encrypted=was_asked, has_password=bool(password)) from error
        return context

    def _refusal(self, reason: str | None, *, is_encrypted: bool, has_password: bool) -> ConfigError:
        """Return the error for a pair of which the certificate alone can be read."""
        setting, path = (_CERTIFICATE, self.path) if self.key_path is None else (_KEY, self.key_path)
        shown = printable(path)
        if reason in _MISMATCHES:
            problem = f"the key in {shown} does not belong to the certificate in {printable(self.path)}"
            return self._error(setting, problem, "Name the key with which the certificate was requested.")
        if is_encrypted and has_password:
            return self._error(_PASSWORD, f"the key in {shown} cannot be decrypted with it", "Correct the password.")
        if is_encrypted:
            remedy = f"Set {_PASSWORD} to a reference, as ${{NAME}} or ${{file:PATH}}."
            return self._error(setting, f"the key in {shown} is encrypted", remedy)
        if reason is not None:
            problem = f"OpenSSL refuses certificate and key: {reason.replace('_', ' ').lower()}"
            return self._error(_CERTIFICATE, problem, "Request a certificate with another key.")
        remedy = _IN_PEM % "PRIVATE KEY"
        if self.key_path is None:
            remedy = f"Name the file of the key in {_KEY} (--tls-key)."
        return self._error(setting, f"{shown} holds no private key that can be read", remedy)

    def _content(self, setting: str, path: str) -> bytes:
        try:
            # Renewing programs put links to the newest file.
            with open_plain(Path(path).resolve(strict=True)) as file:
                raw = file.read(_LARGEST + 1)
        except (OSError, ValueError) as error:
            problem = f"{printable(path)} cannot be read: {getattr(error, 'strerror', None) or error}"
            raise self._error(setting, problem, _READABLE) from error
        if len(raw) > _LARGEST:
            raise self._error(setting, f"{printable(path)} is longer than 1 MiB", "Name a file of PEM blocks.")
        return raw

    def _error(self, setting: str, problem: str, remedy: str) -> ConfigError:
        return config_error(self.config_file, setting, problem, remedy)
