"""`truename serve --tls-cert`: what it says, what it reads anew, and how the other commands find it."""

from __future__ import annotations

import json
import signal
import ssl
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.cli.conftest import fake
from tests.support.cli_running import call, serving
from tests.support.tls import Authority
from truename.cli._errors import UsageError
from truename.cli._gateway_names import is_running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")


def write(path: Path, **settings: Any) -> Path:
    path.write_text(json.dumps({"mcpServers": {"w": fake("w", "get")}, "truename": {"state": "memory", **settings}}))
    return path


def shown(url: str) -> str:
    """Return the certificate that a gateway shows."""
    host, port = url.removeprefix("https://").partition("/")[0].split(":")
    return ssl.get_server_certificate((host, int(port)))


def test_a_gateway_over_tls_is_called_found_and_given_a_renewed_certificate(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, pair = write(tmp_path / "mcp.json"), authority.issue()
    with serving(source, "--http", "127.0.0.1:0", *pair.options) as (process, out, err):
        url = out.until("/mcp  ").split()[0]
        assert url.startswith("https://127.0.0.1:")
        assert json.dumps(url) in out.until("mcpServers")
        base = url.removesuffix("/mcp")
        with pytest.raises(UsageError, match="SSL_CERT_FILE"):
            is_running(base)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert is_running(base)
        assert anyio.run(call, url, "get")[0] == ["get"]

        first = shown(url)
        pair.write(authority.issue("renewed"))
        err.until("reloaded: tls_certificate")
        assert shown(url) != first
        second = shown(url)
        pair.key.write_bytes(authority.issue("another").key.read_bytes())
        err.until("The new configuration is not used; the gateway keeps running with the old one.")
        err.until("does not belong to the certificate")
        assert shown(url) == second
        assert anyio.run(call, url, "get")[0] == ["get"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_certificates_are_for_http(run: Run, tmp_path: Path, authority: Authority) -> None:
    source, pair = write(tmp_path / "mcp.json"), authority.issue()
    for options in (pair.options, pair.options[:2], pair.options[2:]):
        done = run("serve", source, *options)
        assert done.status == 2
        assert "--tls-cert and --tls-key are for HTTP" in done.err


def test_what_is_wrong_with_a_certificate_is_said_before_anything_is_started(
    run: Run, tmp_path: Path, authority: Authority
) -> None:
    source, pair = write(tmp_path / "mcp.json", token="t"), authority.issue()
    done = run("serve", source, "--http", "127.0.0.1:0", "--tls-cert", pair.certificate, "--json")
    assert done.status == 2
    assert "holds no private key" in done.err
    done = run("serve", source, "--http", "127.0.0.1:0", "--tls-cert", tmp_path / "gone", "--tls-key", pair.key)
    assert "gone cannot be read: No such file or directory\n" in done.err
    write(source, tls_certificate="server.pem", tls_key="${NOT_SET_ANYWHERE}")
    assert "NOT_SET_ANYWHERE is not set" in run("serve", source, "--http", "127.0.0.1:0").err


def test_an_option_names_a_pair_and_replaces_both_settings(tmp_path: Path, authority: Authority) -> None:
    pair, other = authority.issue(), authority.issue("other")
    both = tmp_path / "both.pem"
    both.write_bytes(other.certificate.read_bytes() + other.key.read_bytes())
    source = write(tmp_path / "mcp.json", **pair.settings)
    with serving(source, "--http", "127.0.0.1:0", "--tls-cert", both) as (_, out, _):
        url = out.until("/mcp  ").split()[0]
        assert shown(url) == other.certificate.read_text()
    with serving(source, "--http", "127.0.0.1:0") as (_, out, _):
        url = out.until("/mcp  ").split()[0]
        assert shown(url) == pair.certificate.read_text()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("https://127.0.0.1:8750", "127.0.0.1:8750")),
        ({"access": {"public_url": "https://tools.example"}}, ("https://tools.example", "tools.example:443")),
    ],
)
def test_a_client_is_connected_to_the_address_that_the_certificate_is_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], expected: tuple[str, str]
) -> None:
    url, start = expected
    monkeypatch.setattr("truename.cli.connect.is_running", lambda _: False)
    monkeypatch.setenv("HOME", str(tmp_path))
    cursor = tmp_path / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    cursor.write_text(json.dumps({"mcpServers": {"w": fake("w", "get")}}))
    source = write(tmp_path / "truename.json", tls_certificate="cert.pem", **settings)
    done = run("connect", "cursor", "--config", source, "--yes", "--json").document
    assert done["gateway"]["url"] == url
    assert done["gateway"]["start"].endswith(f" --http {start}")
    assert url in cursor.read_text()
