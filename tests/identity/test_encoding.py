"""Transport encodings: undone once, and refused if anything is left."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import UNHURRIED
from truename.errors import InvalidToolId
from truename.identity import decode, percent_encode, tilde_encode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain_name", "plain_name"),
        ("a~b", "a/b"),
        ("a%7Eb", "a/b"),
        ("a%2Fb%401", "a/b@1"),
        ("%E5%A4%A9%E6%B0%97", "天気"),
        ("get%20data", "get data"),
        ("天気~x", "天気/x"),
    ],
)
def test_an_encoded_name_is_decoded(text: str, expected: str) -> None:
    assert expected == decode(text)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("a%", 1, "'%' is not followed by two hexadecimal digits"),
        ("a%4g", 1, "'%' is not followed by two hexadecimal digits"),
        ("%41%4", 3, "'%' is not followed by two hexadecimal digits"),
        ("a%２５", 1, "'%' is not followed by two hexadecimal digits"),
        ("ab%ED%A0%80", 2, "its escapes are not UTF-8"),
        ("%80", 0, "its escapes are not UTF-8"),
        ("salesforce%2540", 10, "it is encoded twice"),
        ("a%00b", 1, "U+0000 cannot be printed"),
        ("a\x7f", 1, "U+007F cannot be printed"),
        ("a\u202eb", 1, "U+202E cannot be printed"),
        ("\ud800", 0, "U+D800 cannot be printed"),
    ],
)
def test_what_is_wrongly_encoded_is_refused(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidToolId) as caught:
        decode(text)

    assert ("invalid_encoding", position, reason) == (caught.value.code, caught.value.position, caught.value.reason)


@given(st.text().filter(lambda text: text.isprintable() and "~" not in text and "%" not in text))
def test_what_was_percent_encoded_comes_back(text: str) -> None:
    assert text == decode(percent_encode(text))


def test_the_two_encodings_are_those_of_the_transport_table() -> None:
    assert percent_encode("salesforce@1/get_leads@1") == "salesforce%401%2Fget_leads%401"
    assert tilde_encode("salesforce@1/get_leads@1") == "salesforce@1~get_leads@1"


@pytest.mark.parametrize("piece", ["%41", "%2", "~", "\x00", "%25", "%C3"])
def test_ten_megabytes_are_decoded_or_refused_in_linear_time(piece: str) -> None:
    began = time.process_time()

    with contextlib.suppress(InvalidToolId):
        decode(piece * (10_000_000 // len(piece)))

    assert time.process_time() - began < UNHURRIED
