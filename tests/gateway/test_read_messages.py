"""What a client sends is read as pydantic, which the SDK reads with, reads it; the words of errors differ."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from truename.gateway.protocol.json_text import read_message

SCALARS = [
    *("1", "-0", "0.5", "1e5", "1e999", "-1e999", "9" * 30, "true", "null", '""', '"a"', '"é"', '"\\ud83d\\ude00"'),
    *("NaN", "-Infinity", '"\\ud83d"', "01", "1.", "+1", '"\\x"', '"\t"', ""),
]


@st.composite
def texts(draw: st.DrawFn, levels: int = 4) -> str:
    """Draw a text that is JSON, or nearly."""
    kind = draw(st.sampled_from(["scalar", "array", "object"])) if levels else "scalar"
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    gap, count = draw(st.sampled_from(["", " ", "\n"])), draw(st.integers(0, 3))
    items = [draw(texts(levels - 1)) for _ in range(count)]
    if kind == "array":
        return f"[{gap}{f'{gap},'.join(items)}{gap}]"
    return "{" + ",".join(f'"{key}"{gap}:{item}' for key, item in zip("abc", items, strict=False)) + "}"


@given(text=texts(), behind=st.sampled_from([b"", b"", b" ", b"x", b"\xff"]))
def test_a_text_is_read_as_by_pydantic_or_refused_by_both(text: str, behind: bytes) -> None:
    found: list[Any] = []
    for read in (from_json, read_message):
        with suppress(ValueError):
            found.append(read(text.encode() + behind))
    assert len(found) in {0, 2}
    assert len(set(map(repr, found))) <= 1


@pytest.mark.parametrize("levels", [200, 201, 100_000])
def test_more_than_two_hundred_levels_are_refused(levels: int) -> None:
    text = b"[" * levels + b"]" * levels
    if levels == 200:
        assert read_message(text)
    else:
        with pytest.raises(ValueError, match="more than 200 levels"):
            read_message(text)
