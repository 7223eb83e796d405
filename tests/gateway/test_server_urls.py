"""Addresses of servers: read as httpx2 reads them; redirects and cookies never leave the server."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.http_connections import HttpFailure
from truename.gateway.upstream.addresses import ServerUrl, moved
from truename.gateway.upstream.cookies import LONGEST, MOST, ServerCookies

PARTS = st.text("abcXYZ019-._~!$&'()*+,;=:@%/ ?#[]\\äß\t", max_size=12)
URLS = st.builds(
    lambda scheme, host, port, path: f"{scheme}://{host}{port}{path}",
    st.sampled_from(("http", "https", "HTTP", "ftp")),
    st.sampled_from(("a.example", "A.Example", "127.0.0.1", "[::1]", "bücher.example", "me:word@a.example", "")),
    st.sampled_from(("", ":80", ":443", ":8080", ":0", ":99999", ":")),
    st.one_of(st.just(""), PARTS.map("/{}".format), PARTS.map("?{}".format)),
)


def _by_httpx(text: str) -> tuple[str, str, int, bytes, bytes] | None:
    try:
        url = httpx2.URL(text)
        host = url.raw_host.decode()
    except (httpx2.InvalidURL, ValueError):
        return None
    if url.scheme not in {"http", "https"} or not host:
        return None
    return url.scheme, host, url.port or (443 if url.scheme == "https" else 80), url.raw_path, url.netloc


@given(URLS)
def test_an_address_leads_where_httpx_would_go(text: str) -> None:
    expected = _by_httpx(text)
    try:
        found = ServerUrl.of(text)
    except HttpFailure:
        assert expected is None
        return
    assert (*found.origin, found.target, found.host) == expected


@given(URLS, PARTS | URLS)
def test_a_redirect_never_leaves_the_origin_but_for_tls(text: str, place: str) -> None:
    try:
        url = ServerUrl.of(text)
    except HttpFailure:
        return
    there = moved(url, "POST", 307, place)
    if there is None:
        return
    assert there.origin == url.origin or (url.origin[:1], there.origin) == (("http",), ("https", url.origin.host, 443))
    assert there.user == url.user
    assert there.target.startswith(b"/")


@pytest.mark.parametrize(
    ("verb", "status", "place", "expected"),
    [
        ("POST", 307, "/other", b"/other"),
        ("POST", 308, "other?x", b"/a/other?x"),
        ("POST", 302, "/other", None),
        ("GET", 302, "/other", b"/other"),
        ("POST", 307, "//b.example/x", None),
        ("POST", 307, "https://a.example:444/x", None),
        ("POST", 307, "http://a.example/x", None),
        ("POST", 307, "https://a.example@b.example/x", None),
        ("POST", 307, "https://me:word@a.example/x", None),
        ("POST", 307, "", None),
        ("POST", 200, "/other", None),
    ],
)
def test_where_a_request_is_led(verb: str, status: int, place: str, expected: bytes | None) -> None:
    there = moved(ServerUrl.of("https://a.example/a/mcp"), verb, status, place)
    assert (None if there is None else there.target) == expected


def test_a_bad_cookie_takes_no_other_with_it() -> None:
    cookies = ServerCookies("http://a.example/mcp")
    cookies.keep([b"good=1; Path=/", b"bad=\xc3\xa4; Path=/", b"long=" + b"x" * LONGEST, b"last=2"])
    assert sorted(cookies.header().split(b"; ")) == [b"good=1", b"last=2"]


def test_cookies_are_bounded_and_stay_with_their_server() -> None:
    cookies = ServerCookies("http://a.example/mcp")
    assert cookies.header() == b""
    cookies.keep(b"c%d=x; Path=/" % number for number in range(MOST + 20))
    assert len(cookies.header().split(b"; ")) == MOST
    other = ServerCookies("http://a.example/mcp")
    other.keep([b"a=1; Domain=b.example", b"b=2; Path=/elsewhere", b"c=3; Secure", b"d=4; Max-Age=0"])
    assert other.header() == b""
