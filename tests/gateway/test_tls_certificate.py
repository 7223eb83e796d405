"""The certificate for clients: what is wrong with its files is said before anything is started."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.tls import PEM
from truename.config import Config, Settings
from truename.errors import ConfigError
from truename.gateway import reserve
from truename.gateway.http.tls_certificate import ServerCertificate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tls import Authority


def _config(**settings: Any) -> Config:
    texts: dict[str, Any] = {name: str(value) for name, value in settings.items()}
    return Config(settings=Settings(**texts))


def _error(**settings: Any) -> tuple[str, str]:
    """Return the setting that an error names, and the error's text."""
    with pytest.raises(ConfigError) as caught:
        reserve(_config(**settings), "127.0.0.1", 0)
    return caught.value.key, f"{caught.value.problem}. {caught.value.remedy}"


def test_a_file_that_cannot_be_read_is_named_with_the_reason(authority: Authority, tmp_path: Path) -> None:
    pair, gone, large = authority.issue(), tmp_path / "gone", tmp_path / "large"
    large.write_bytes(b"x" * 1_100_000)
    for name, more in (("tls_certificate", {}), ("tls_key", {"tls_certificate": pair.certificate})):
        key, text = _error(**{**more, name: gone})
        assert (key, text.partition(": ")[0]) == (name, f"{gone} cannot be read")
        assert "No such file or directory" in text
        assert "not a regular file" in _error(**{**more, name: tmp_path})[1]
        assert "longer than 1 MiB" in _error(**{**more, name: large})[1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes.")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in _error(tls_certificate=pipe)[1]


def test_files_of_another_form_are_refused(authority: Authority, tmp_path: Path) -> None:
    pair, junk = authority.issue(), tmp_path / "junk"
    for content in (b"", b"junk", b"-----BEGIN CERTIFICATE-----\njunk\n-----END CERTIFICATE-----\n", b"\x30\x82\xff"):
        junk.write_bytes(content)
        key, text = _error(tls_certificate=junk, tls_key=pair.key)
        remedy = "Write it in PEM form, with a line -----BEGIN CERTIFICATE-----."
        assert (key, text) == ("tls_certificate", f"{junk} holds no certificate that can be read. {remedy}")
        key, text = _error(tls_certificate=pair.certificate, tls_key=junk)
        assert key == "tls_key"
        assert text.startswith(f"{junk} holds no private key that can be read. Write it in PEM form")


def test_a_certificate_without_a_key_says_where_a_key_is_named(authority: Authority) -> None:
    key, text = _error(tls_certificate=authority.issue().certificate)
    assert key == "tls_certificate"
    assert text.endswith("holds no private key that can be read. Name the file of the key in tls_key (--tls-key).")


def test_a_key_without_a_certificate_is_refused(authority: Authority) -> None:
    for name in ("tls_key", "tls_key_password"):
        assert _error(**{name: "x"}) == (name, "there is no certificate. Set tls_certificate too.")


@pytest.mark.parametrize("kind", ["the same", "another"])
def test_a_key_of_another_certificate_is_refused(authority: Authority, tmp_path: Path, kind: str) -> None:
    pair, other = authority.issue("one"), authority.issue("other").key
    if kind == "another":
        other = tmp_path / "rsa.key"
        plain = serialization.NoEncryption()
        made = rsa.generate_private_key(65_537, 2_048)
        other.write_bytes(made.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain))
    key, text = _error(tls_certificate=pair.certificate, tls_key=other)
    assert key == "tls_key"
    assert text.startswith(f"the key in {other} does not belong to the certificate in {pair.certificate}. ")


def test_an_encrypted_key_needs_its_password_and_nobody_is_asked_for_it(authority: Authority) -> None:
    pair = authority.issue("sealed", password="right")
    key, text = _error(**pair.settings)
    assert key == "tls_key"
    assert text.endswith(" is encrypted. Set tls_key_password to a reference, as ${NAME} or ${file:PATH}.")
    key, text = _error(**pair.settings, tls_key_password="wrong-word")
    assert key == "tls_key_password"
    assert text == f"the key in {pair.key} cannot be decrypted with it. Correct the password."
    assert ServerCertificate.of(_config(**pair.settings, tls_key_password="right")) is not None


@pytest.mark.parametrize("order", ["key first", "certificate first"])
def test_certificate_and_key_may_be_in_one_file(authority: Authority, tmp_path: Path, order: str) -> None:
    pair, both = authority.issue(), tmp_path / "both.pem"
    parts = [pair.certificate.read_bytes(), authority.file.read_bytes(), pair.key.read_bytes()]
    both.write_bytes(b"".join(parts if order == "certificate first" else reversed(parts[::2])))
    found = ServerCertificate.of(_config(tls_certificate=both))
    assert found is not None
    assert found.path == str(both)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has links for few users.")
def test_a_link_to_a_certificate_is_followed(authority: Authority, tmp_path: Path) -> None:
    pair, link = authority.issue(), tmp_path / "live.pem"
    link.symlink_to(pair.certificate)
    assert ServerCertificate.of(_config(tls_certificate=link, tls_key=pair.key)) is not None


def test_no_message_and_no_value_shows_the_password(authority: Authority) -> None:
    config = _config(**authority.issue("sealed", password="right").settings, tls_key_password="canary-word")
    with pytest.raises(ConfigError) as caught:
        ServerCertificate.of(config)
    assert "canary-word" not in f"{caught.value} {config!r} {caught.value.__cause__}"
