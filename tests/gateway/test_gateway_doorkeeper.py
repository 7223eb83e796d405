"""Which requests are let to the door: by the host that they ask, and the page that they come from."""

from __future__ import annotations

import json

import pytest

from truename.config import Access, Settings
from truename.gateway.http.origin_guard import OriginGuard, is_loopback

PUBLIC = "https://tools.example"
GOOD, BAD_REQUEST, MISDIRECTED, FORBIDDEN = None, 400, 421, 403


def refused(doorkeeper: OriginGuard, *headers: tuple[str, str]) -> tuple[int, str] | None:
    scope = {"type": "http", "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers]}
    found = doorkeeper.refusal(scope)
    return None if found is None else (found.status_code, json.loads(bytes(found.body))["error"])


def status(*, loopback: bool, public: str | None, host: str, origin: str | None) -> int | None:
    headers = [("host", host), *([] if origin is None else [("origin", origin)])]
    found = refused(OriginGuard(loopback=loopback, public=public), *headers)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("127.0.0.1:8750", None, GOOD),
        ("localhost", None, GOOD),
        ("LOCALHOST.:1", None, GOOD),
        ("[::1]:8750", None, GOOD),
        ("127.8.8.8", "http://localhost:3000", GOOD),
        ("localhost", "https://127.0.0.1", GOOD),
        ("localhost", "http://[::1]:1", GOOD),
        ("evil.example", None, MISDIRECTED),
        ("localhost.evil.example", None, MISDIRECTED),
        ("0.0.0.0", None, MISDIRECTED),
        ("[::]", None, MISDIRECTED),
        ("", None, MISDIRECTED),
        ("localhost:123456", None, MISDIRECTED),
        ("localhost/x", None, MISDIRECTED),
        ("me@localhost", None, MISDIRECTED),
        ("localhost localhost", None, MISDIRECTED),
        ("localhost", "https://evil.example", FORBIDDEN),
        ("localhost", "http://localhost.evil.example", FORBIDDEN),
        ("localhost", "null", FORBIDDEN),
        ("localhost", "", FORBIDDEN),
        ("localhost", "ftp://localhost", FORBIDDEN),
        ("localhost", "HTTP://localhost", FORBIDDEN),
        ("localhost", "http://localhost/", FORBIDDEN),
        ("localhost", "http://me@localhost", FORBIDDEN),
        ("localhost", "http://localhost:x", FORBIDDEN),
    ],
)
@pytest.mark.parametrize("public", [None, PUBLIC])
def test_on_this_machine_only_its_own_names_are_asked(
    public: str | None, host: str, origin: str | None, expected: int | None
) -> None:
    assert status(loopback=True, public=public, host=host, origin=origin) == expected


@pytest.mark.parametrize(
    ("public", "host", "origin", "expected"),
    [
        (PUBLIC, "tools.example", None, GOOD),
        (PUBLIC, "Tools.Example:443", None, GOOD),
        (PUBLIC, "tools.example", PUBLIC, GOOD),
        (f"{PUBLIC}:443", "tools.example", f"{PUBLIC}:443", GOOD),
        (f"{PUBLIC}:8443", "tools.example:8443", f"{PUBLIC}:8443", GOOD),
        ("http://tools.example", "tools.example:80", None, GOOD),
        (PUBLIC, "tools.example:80", None, MISDIRECTED),
        (PUBLIC, "tools.example:8443", None, MISDIRECTED),
        (f"{PUBLIC}:8443", "tools.example", None, MISDIRECTED),
        (PUBLIC, "x.tools.example", None, MISDIRECTED),
        (PUBLIC, "tools.example.evil.example", None, MISDIRECTED),
        (PUBLIC, "tools.example", "http://tools.example", FORBIDDEN),
        (PUBLIC, "tools.example", f"{PUBLIC}:8443", FORBIDDEN),
        (PUBLIC, "tools.example", "https://evil.example", FORBIDDEN),
        (None, "tools.example", None, MISDIRECTED),
        ("", "tools.example", None, MISDIRECTED),
    ],
)
def test_on_this_machine_the_operator_s_own_name_is_asked_too(
    public: str | None, host: str, origin: str | None, expected: int | None
) -> None:
    assert status(loopback=True, public=public, host=host, origin=origin) == expected


@pytest.mark.parametrize(
    ("public", "host", "origin", "expected"),
    [
        (None, "any.example", None, GOOD),
        (None, "any.example", "https://any.example", GOOD),
        (None, "Any.example:443", "https://ANY.example", GOOD),
        (None, "any.example:80", "http://any.example", GOOD),
        (None, "any.example:8443", "https://any.example:8443", GOOD),
        (PUBLIC, "inner.example", PUBLIC, GOOD),
        (None, "any.example", "https://any.example:8443", FORBIDDEN),
        (None, "any.example:8443", "https://any.example", FORBIDDEN),
        (None, "any.example:80", "https://any.example", FORBIDDEN),
        (None, "any.example", "https://evil.example", FORBIDDEN),
        (None, "any.example", "http://localhost", FORBIDDEN),
        (None, "any.example", "https://any.example:x", FORBIDDEN),
        (None, "any.example:x", None, MISDIRECTED),
        (PUBLIC, "inner.example", "https://Tools.example", FORBIDDEN),
    ],
)
def test_elsewhere_a_page_is_of_the_host_that_it_asks(
    public: str | None, host: str, origin: str | None, expected: int | None
) -> None:
    assert status(loopback=False, public=public, host=host, origin=origin) == expected


def test_a_refusal_says_what_is_wrong() -> None:
    here = OriginGuard(loopback=True)
    host, far = ("host", "localhost"), "https://evil.example"
    twice = (BAD_REQUEST, "Send exactly one Host header and at most one Origin header.")

    assert refused(here, host, ("origin", "http://localhost")) is None
    assert refused(here) == twice
    assert refused(here, host, host) == twice
    assert refused(here, host, ("origin", "http://localhost"), ("origin", "http://localhost")) == twice
    assert refused(here, ("host", "evil.example")) == (MISDIRECTED, "Invalid Host header")
    assert refused(here, host, ("origin", far)) == (FORBIDDEN, "Invalid Origin header")
    assert refused(here, host, ("origin", "http://locälhost")) == (FORBIDDEN, "Invalid Origin header")


def test_the_rules_are_those_of_where_the_gateway_listens() -> None:
    settings = Settings(access=Access(public_url=PUBLIC))

    assert OriginGuard.of(settings, "127.0.0.1") == OriginGuard(loopback=True, public=PUBLIC)
    assert OriginGuard.of(Settings(), "0.0.0.0") == OriginGuard(loopback=False, public=None)


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("[::1]", True), ("::1", True), ("LocalHost", True), ("127.9.9.9", True), ("X127.0.0.1", False), ("", False)],
)
def test_which_hosts_can_only_be_this_machine(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one
