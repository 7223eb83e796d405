"""Messages out of bytes: whole lines, whatever the pieces, and nothing that grows without bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.protocol.lines import LineReader, TooLong
from truename.gateway.upstream_errors import Tail, printable


def _read(pieces: list[bytes], limit: int = 1_000_000) -> list[bytes | TooLong]:
    reader = LineReader(limit)
    return [line for piece in pieces for line in reader.feed(piece)]


@given(st.lists(st.binary(max_size=30)), st.integers(1, 7))
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], step: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    stream = b"".join(line + b"\n" for line in lines)
    pieces = [stream[start : start + step] for start in range(0, len(stream), step)]
    assert _read(pieces) == lines == _read([stream])


def test_an_unfinished_line_is_kept_back() -> None:
    assert _read([b"one\ntw"]) == [b"one"]
    assert _read([b"one\ntw", b"o\n"]) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("head", "tail", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":"', b'"}', 7),
        (b'{"id": 7, "jsonrpc": "2.0", "result": "', b'"}', 7),
        (b'{"result":"', b'","jsonrpc":"2.0","id":7}', 7),
        (b'{"result":"', b'","id":7,"jsonrpc":"2.0"}', 7),
        (b'{"result":{"id":7,"x":"', b'"}}', None),
        (b'{"jsonrpc":"2.0","id":"7","result":"', b'"}', None),
        (b"", b"", None),
    ],
)
@pytest.mark.parametrize("step", [100, 5_000, 1_000_000])
def test_a_line_that_is_too_long_is_dropped_and_its_request_is_known(
    head: bytes, tail: bytes, request_id: int | None, step: int
) -> None:
    line = head + b"x" * 50_000 + tail
    stream = line + b"\nnext\n"
    pieces = [stream[start : start + step] for start in range(0, len(stream), step)]
    assert _read(pieces, limit=10_000) == [TooLong(len(line), request_id), b"next"]


def test_a_line_without_end_takes_no_room() -> None:
    reader = LineReader(10_000)
    for _ in range(1_000):
        assert list(reader.feed(b"x" * 10_001)) == []
        assert len(reader._buffer) <= 20_002


def test_the_last_words_are_printable_and_bounded() -> None:
    tail = Tail()
    for number in range(20):
        tail.feed(f"line {number} \x1b[31m\r\n".encode())
    tail.feed(b"x" * 1_000_000)
    tail.feed(b"\xff unfinished")
    lines = tail.lines()
    assert lines[0] == "line 16 \\x1b[31m"
    assert len(lines) == 5
    assert all(line.isprintable() and len(line) <= 303 for line in lines)


@given(st.text(max_size=2_000))
def test_upstream_text_is_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()
    assert len(printable(text)) <= 5_100
