"""Responses of servers, cut at any place: what is read does not depend on the cuts, and is what h11 reads."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truename.gateway.http_connections import Connections, HttpFailure, HttpOrigin, _Connection, fields_of

pytestmark = pytest.mark.slow

ORIGIN = HttpOrigin("http", "x", 80)
HEADS = (
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 404 Not Found\r\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 204 No Content\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\n",
    b"nonsense\r\n",
)
FIELDS = (
    b"content-length: 2\r\n",
    b"content-length: 3\r\n",
    b"Content-Length: 2\r\n",
    b"content-length: +2\r\n",
    b"content-length: 2, 2\r\n",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"connection: close\r\n",
    b"x: y\r\n",
    b"x : y\r\n",
    b" folded\r\n",
    b"set-cookie: a=b\r\n",
)
BODIES = (
    b"",
    b"ok",
    b"ok!",
    b"2\r\nok\r\n0\r\n\r\n",
    b"2;x=y\r\nok\r\n0\r\nx: y\r\n\r\n",
    b"2\r\nok",
    b"+2\r\nok\r\n0\r\n\r\n",
)
RESPONSES = st.builds(
    lambda head, fields, body, more: head + b"".join(fields) + b"\r\n" + body + more,
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(FIELDS), max_size=3),
    st.sampled_from(BODIES),
    st.sampled_from((b"", b"", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")),
)


async def _exchange(connection: _Connection) -> None:
    connection.write(b"")
    while not connection.has_head:
        await connection.more(0.05, "ended")


async def _read(pieces: list[bytes], *, ends: bool) -> tuple[Any, ...]:
    """Return status, body, and whether the connection can bear another request; the name of the error for others."""
    connection = _Connection(ORIGIN)
    connection.connection_made(Mock(get_extra_info=Mock(return_value=None)))
    sending = asyncio.ensure_future(_exchange(connection))
    await asyncio.sleep(0)
    for piece in pieces:
        connection.data_received(piece)
    if ends:
        connection.connection_lost(None)
    try:
        await sending
        status, body = connection.status, b""
        while (chunk := await connection.chunk(0.05)) is not None:
            body += chunk
    except HttpFailure:
        return ("an error",)
    return status, body, connection.begun_anew()


@settings(max_examples=300, deadline=None)
@given(RESPONSES, st.lists(st.integers(0, 200), max_size=4), st.booleans())
def test_what_is_read_does_not_depend_on_the_pieces(response: bytes, cuts: list[int], ends: bool) -> None:
    places = sorted({0, len(response), *(cut for cut in cuts if cut < len(response))})
    pieces = [response[start:end] for start, end in pairwise(places)]
    whole = asyncio.run(_read([response], ends=ends))
    assert asyncio.run(_read(pieces, ends=ends)) == whole


def _by_h11(response: bytes) -> tuple[int, bytes] | None:
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    reader.send(h11.EndOfMessage())
    status, body = 0, b""
    try:
        reader.receive_data(response)
        reader.receive_data(b"")
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.ConnectionClosed) or event is h11.NEED_DATA or event is h11.PAUSED:
                return None
    except h11.RemoteProtocolError:
        return None
    return status, body


@settings(max_examples=500, deadline=None)
@given(RESPONSES)
def test_who_is_served_reads_what_h11_reads_or_nothing(response: bytes) -> None:
    found, expected = asyncio.run(_read([response], ends=True)), _by_h11(response)
    if found != ("an error",) and expected is not None:
        assert found[:2] == expected


@settings(max_examples=200, deadline=None)
@given(RESPONSES)
def test_a_connection_on_which_more_came_is_not_used_again(response: bytes) -> None:
    found = asyncio.run(_read([response + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"], ends=False))
    assert found == ("an error",) or not found[2]


@pytest.mark.parametrize("target", [b"", b"/ HTTP/1.1\r\nx: y", b"/\n", b"/\xff"])
def test_a_target_that_is_none_is_not_sent(target: bytes) -> None:
    with pytest.raises(HttpFailure, match="The address of the request is not valid"):
        asyncio.run(Connections().send(b"POST", ORIGIN, target, b"", b""))


@pytest.mark.parametrize("pair", [(b"x", b"a\r\nb: c"), (b"x\r\nb", b"c"), (b"x y", b"z"), (b"", b"z"), (b"x", b"\0")])
def test_a_header_that_is_none_is_not_sent(pair: tuple[bytes, bytes]) -> None:
    with pytest.raises(HttpFailure, match="A header of the request is not valid"):
        fields_of([pair])
