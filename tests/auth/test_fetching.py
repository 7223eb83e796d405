"""Fetching from authorization servers: bounded in size and time, unpacked by nobody, redirected nowhere."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from tests.auth.authority import _Quiet
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.network.web import web
from truename.auth.oauth import endpoint_in, fetch_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.anyio


@contextmanager
def serving(answer: Callable[[Request], Response]) -> Iterator[str]:
    def app(environ: dict[str, Any], start: Any) -> Any:
        return answer(Request(environ))(environ, start)

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


ANSWERS: dict[str, Callable[[Request], Response]] = {
    "too long": lambda _: Response(b"{" + b" " * 1_100_000 + b"}"),
    "endless": lambda _: Response(iter([b" " * 65_536] * 100)),
    "packed": lambda _: Response(gzip.compress(b" " * 10_000_000), headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("what", ANSWERS)
async def test_an_answer_is_bounded(what: str) -> None:
    with serving(ANSWERS[what]) as url:
        async with web() as fetch:
            with pytest.raises(FetchError):
                await fetch(url)


async def test_a_form_is_posted_and_nothing_else_is_sent() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Response:
        request.get_data()
        seen.append(request)
        return Response(request.form["a"] if request.method == "POST" else b"{}", status=201)

    with serving(answer) as url:
        async with web() as fetch:
            assert await fetch(url, form={"a": "b c"}) == FetchedDocument(201, b"b c")
            assert (await fetch(url)).document() == {}
    assert not {"authorization", "cookie"} & {name.lower() for request in seen for name, _ in request.headers}


@pytest.mark.parametrize("body", [b"", b"[]", b"x", b"\xff", b"[" * 100_000, b'"text"'])
async def test_what_is_no_document_is_a_fault(body: bytes) -> None:
    with pytest.raises(FetchError):
        FetchedDocument(200, body).document()


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "file:///etc/passwd",
        "http://me:pw@127.0.0.1/",
        "http:///x",
        "http://127.0.0.1:99999/",
    ],
)
async def test_nobody_leads_it_to_secrets(url: str) -> None:
    async with web() as fetch:
        for near in NetworkZone:
            with pytest.raises(FetchError) as caught:
                await fetch(url, named_by=near)
            assert "pw" not in str(caught.value)


async def test_who_is_far_names_nobody_near() -> None:
    with serving(lambda _: Response(b"{}")) as url:
        async with web() as fetch:
            assert (await fetch(url, named_by=NetworkZone.LOOPBACK)).status == 200
            assert await fetch.network_zone(url) is NetworkZone.LOOPBACK
            for near in (NetworkZone.PRIVATE, NetworkZone.PUBLIC):
                with pytest.raises(FetchError, match="loopback"):
                    await fetch(url, named_by=near)


async def test_what_can_not_be_a_header_is_not_sent() -> None:
    """A provider's access token, say."""
    with serving(lambda _: Response(b"{}")) as url:
        async with web() as fetch:
            for text in ("Bearer \u00e9", "Bearer a\r\nx: y", "Bearer \ud800"):
                with pytest.raises(FetchError, match="cannot be reached"):
                    await fetch(url, headers={"authorization": text})


async def test_nobody_listens() -> None:
    with serving(lambda _: Response(b"{}")) as url:
        pass
    async with web() as fetch:
        with pytest.raises(FetchError, match="cannot be reached"):
            await fetch(url)


async def test_metadata_is_looked_for_in_order_and_believed_of_itself() -> None:
    seen: list[str] = []

    def answer(request: Request) -> Response:
        seen.append(request.path)
        here = request.host_url.rstrip("/")
        if request.path == "/tenant/.well-known/openid-configuration":
            return Response(f'{{"issuer": "{here}/tenant", "jwks_uri": "ftp://x"}}')
        if request.path.startswith("/.well-known/openid"):
            return Response(f'{{"issuer": "{here}/other"}}')
        return Response(status=404)

    with serving(answer) as here:
        async with web() as fetch:
            found = await fetch_metadata(f"{here}/tenant", fetch)
            for issuer in (f"{here}/tenant/", f"{here}/nobody"):
                with pytest.raises(FetchError):
                    await fetch_metadata(issuer, fetch)
    assert seen[:3] == [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ]
    for issuer in (here, "https://idp.example"):
        for url in ("ftp://x", None, 7, "http://x" if issuer != here else "//x"):
            with pytest.raises(FetchError):
                endpoint_in({**found, "jwks_uri": url}, "jwks_uri", issuer)
