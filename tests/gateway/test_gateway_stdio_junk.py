"""Lines of a client that are no messages: whoever waits for an answer gets one, and the next call is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.fuzz import house
from tests.fuzz.pipe import pipe

if TYPE_CHECKING:
    from collections.abc import Iterator

JUNK: list[tuple[bytes, Any]] = [
    (b'{"jsonrpc": "2.0", "id": 7, "METHOD": "tools/list"}', 7),
    (b'{"jsonrpc": "2.0", "id": "a", "method": 5}', "a"),
    (b'{"jsonrpc": "1.0", "id": 8, "method": "ping"}', 8),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": []}', 9),
    (b'{"jsonrpc": "2.0", "id": 10, "method": "ping", "params": ' + b"[" * 5_000, 10),
    (b'{"jsonrpc": "2.0", "id": 11, "method": "pi', 11),
    (b'{"jsonrpc": "2.0", "id": "\xed\xa0\x80x", "method": "ping"}', None),
    (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None),
    (b'{"jsonrpc": "2.0", "id": 12, "result": 5}', None),
    (b'{"jsonrpc": "2.0", "method": 5}', None),
    (b"\xff\xfe", None),
    (b"[]", None),
    (b"null", None),
]


@pytest.fixture(scope="module", autouse=True)
def _ends() -> Iterator[None]:
    yield
    house.close()


@pytest.mark.parametrize(("line", "id"), JUNK)
def test_what_is_no_message_is_answered_if_somebody_waits(line: bytes, id: Any) -> None:
    answers = pipe(house.here()).said([line])
    assert [answer["id"] for answer in answers] == ([] if id is None else [id])
    assert all(answer["error"]["code"] == -32600 for answer in answers)
