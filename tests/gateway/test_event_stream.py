"""Events out of bytes: the same however they are cut, as the SDK's reader has them, and bounded."""

from __future__ import annotations

from itertools import pairwise

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.protocol.event_stream import EventReader, SentEvent
from truename.gateway.protocol.lines import TooLong

PIECES = st.sampled_from(
    [
        b"data:",
        b"data: ",
        b"data",
        b"id: ",
        b"id:7",
        b"event: ",
        b"retry: ",
        b"50",
        b":",
        b" ",
        b"a",
        "ü".encode(),
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
    ]
)
STREAMS = st.lists(PIECES, max_size=40).map(b"".join)


def read(stream: bytes, cuts: list[int], limit: int = 1_000) -> list[SentEvent | TooLong]:
    reader = EventReader(limit)
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(places)]
    return [event for chunk in chunks for event in reader.feed(chunk)]


@given(STREAMS, st.lists(st.integers(0, 200), max_size=8))
def test_it_is_the_same_however_it_is_cut(stream: bytes, cuts: list[int]) -> None:
    assert read(stream, cuts) == read(stream, [])


# httpx2 takes a carriage return at the very end for the blank line that would end the event.
@given(STREAMS.filter(lambda stream: not stream.endswith(b"\r")))
def test_texts_are_those_that_the_sdk_reads(stream: bytes) -> None:
    response = httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, content=stream, request=httpx2.Request("GET", "http://x")
    )
    theirs = [event.data for event in httpx2.EventSource(response)]
    ours = [event.text for event in read(stream, []) if isinstance(event, SentEvent) and event.text is not None]
    assert [text.decode() for text in ours if text] == [text for text in theirs if text]


EVENTS = st.builds(
    SentEvent,
    kind=st.sampled_from([b"message", b"endpoint"]),
    text=st.none() | st.sampled_from([b"", b"a", b"a\nb", b" a", b"\n"]),
    id=st.none() | st.just(b"7"),
    retry=st.none() | st.integers(0, 10**8),
)


@given(st.lists(EVENTS.filter(lambda event: event != SentEvent()), max_size=5))
def test_what_is_written_is_read(events: list[SentEvent]) -> None:
    assert read(b"".join(event.written() for event in events), []) == events


@pytest.mark.parametrize(
    ("stream", "id"),
    [
        (b'data: {"jsonrpc":"2.0","id":5,"result":{"x":"%b"}}', 5),
        (b'data:{"result":{"x":"%b"},"jsonrpc":"2.0","id":6}', 6),
        (b"data: %b", None),
        (b"%b", None),
    ],
)
def test_an_event_that_is_too_long_is_dropped_and_the_next_is_read(stream: bytes, id: int | None) -> None:
    found = read(stream % (b"x" * 5_000) + b"\n\ndata: next\n\n", list(range(0, 5_000, 100)), limit=1_000)
    assert isinstance(found[0], TooLong)
    assert found[0].request_id == id
    assert found[1:] == [SentEvent(text=b"next")]


def test_many_short_lines_are_too_long_together() -> None:
    found = read(b"data: 0123456789\n" * 1_000 + b"\ndata: next\n\n", [], limit=1_000)
    assert isinstance(found[0], TooLong)
    assert found[1:] == [SentEvent(text=b"next")]
