"""The grammar of canonical identities, as tables: what is an id, and where and why the rest is none."""

from __future__ import annotations

import time

import pytest

from tests.shared import UNHURRIED
from truename import ToolId, ToolRef
from truename.errors import InvalidToolId
from truename.identity import LATEST, MAX_ID_LENGTH, lower_ascii
from truename.identity.tool_id import is_name, is_suite

LONGEST = "a" * 250


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("salesforce@1/get_leads@1", "salesforce@1/get_leads@1"),
        ("salesforce/get_leads", "salesforce@1/get_leads@1"),
        ("salesforce@2/get_leads", "salesforce@2/get_leads@1"),
        ("salesforce/get_leads@3", "salesforce@1/get_leads@3"),
        ("salesforce@v1/get_leads@v1", "salesforce@1/get_leads@1"),
        ("Salesforce@V1/GET_LEADS@1", "salesforce@1/get_leads@1"),
        ("data-grout/prism.refract", "data-grout@1/prism.refract@1"),
        ("a/b.c.d@10", "a@1/b.c.d@10"),
        ("salesforce@1~get_leads@1", "salesforce@1/get_leads@1"),
        ("salesforce%401%2Fget_leads%401", "salesforce@1/get_leads@1"),
        ("salesforce%401%2fget_leads", "salesforce@1/get_leads@1"),
        ("salesforce%401~get_leads%401", "salesforce@1/get_leads@1"),
        ("salesforce%401%7Eget_leads", "salesforce@1/get_leads@1"),
        ("1/2", "1@1/2@1"),
        ("_a/__b-", "_a@1/__b-@1"),
        ("a/b@999999999999999999", "a@1/b@999999999999999999"),
        (f"{LONGEST}@1/{LONGEST}@1234567", f"{LONGEST}@1/{LONGEST}@1234567"),
    ],
)
def test_every_accepted_spelling_means_one_id(text: str, expected: str) -> None:
    parsed = ToolId.parse(text)

    assert expected == str(parsed)


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("", "invalid_tool_id", 0),
        ("x", "invalid_tool_id", 1),
        ("salesforce@1", "invalid_tool_id", 12),
        ("/x", "invalid_tool_id", 0),
        ("a/", "invalid_tool_id", 2),
        ("a/.b", "invalid_tool_id", 2),
        ("a/b.", "invalid_tool_id", 2),
        ("a/b..c", "invalid_tool_id", 2),
        ("a.b/c", "invalid_tool_id", 0),
        ("a/b/c", "invalid_tool_id", 3),
        ("a/b~c", "invalid_tool_id", 3),
        ("___/x", "invalid_tool_id", 0),
        ("a/-_-", "invalid_tool_id", 2),
        (" a/b", "invalid_tool_id", 0),
        ("a/b ", "invalid_tool_id", 2),
        ("a b/c", "invalid_tool_id", 0),
        ("a/b:c", "invalid_tool_id", 2),
        ("@1/b", "invalid_tool_id", 0),
        ("a@0/b", "invalid_version", 2),
        ("a@01/b", "invalid_version", 2),
        ("a@/b", "invalid_version", 2),
        ("a@1@1/b", "invalid_version", 2),
        ("a@-1/b", "invalid_version", 2),
        ("a@1.2/b", "invalid_version", 2),
        ("a@beta/b", "invalid_version", 2),
        ("a@vv1/b", "invalid_version", 2),
        ("a@1 /b", "invalid_version", 2),
        ("a/b@0", "invalid_version", 4),
        ("a/b@1_0", "invalid_version", 4),
        ("a/b@+1", "invalid_version", 4),
        ("a/b@1000000000000000000", "invalid_version", 4),
        ("a/b@latest", "invalid_version", 4),
        ("latest/x@latest", "invalid_version", 9),
        ("a@latest/b", "invalid_version", 2),
        ("a/b\n", "invalid_encoding", 3),
        ("a/b@1\n", "invalid_encoding", 5),
        ("a\x00/b", "invalid_encoding", 1),
        ("a/b\u202e", "invalid_encoding", 3),
        ("a/\u200bb", "invalid_encoding", 2),
        ("a/b%0A", "invalid_encoding", 3),
        ("a/b%", "invalid_encoding", 3),
        ("a/b%4", "invalid_encoding", 3),
        ("a/b%zz", "invalid_encoding", 3),
        ("a%2540/b", "invalid_encoding", 1),
        ("salesforce%252Fget", "invalid_encoding", 10),
        ("a/b%ff", "invalid_encoding", 3),
        ("a/b%C0%AF", "invalid_encoding", 3),
    ],
)
def test_what_is_no_id_is_refused_with_its_position(text: str, code: str, position: int) -> None:
    with pytest.raises(InvalidToolId) as caught:
        ToolId.parse(text)

    assert (code, position) == (caught.value.code, caught.value.position)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "text",
    [
        "\u212aey/x",  # the Kelvin sign lower-cases to an innocent "k"
        "a/\u0130d",  # a capital I with a dot
        "sale\u017fforce/x",  # the long s
        "a@\u0661/b",  # an Arabic digit one
        "a@\u00b9/b",  # a superscript one
        "a@\uff11/b",  # a full-width one
        "\u0430/b",  # a Cyrillic a
        "a\uff0fb",  # a full-width slash
        "a\u2044b",  # a fraction slash
        "caf\u00e9/x",
        "cafe\u0301/x",
    ],
)
def test_look_alikes_of_other_scripts_are_no_ids(text: str) -> None:
    with pytest.raises(InvalidToolId):
        ToolId.parse(text)


@pytest.mark.parametrize("length", [MAX_ID_LENGTH, MAX_ID_LENGTH + 1])
def test_an_id_has_at_most_512_characters(length: int) -> None:
    text = "a@1/" + "b" * (length - 6) + "@1"

    if length > MAX_ID_LENGTH:
        with pytest.raises(InvalidToolId, match="longer than 512 characters"):
            ToolId.parse(text)
    else:
        assert text == str(ToolId.parse(text))


def test_versions_that_are_filled_in_count_for_the_length() -> None:
    with pytest.raises(InvalidToolId, match="longer than 512 characters"):
        ToolId.parse("a/" + "b" * (MAX_ID_LENGTH - 2))


@pytest.mark.parametrize("piece", ["a", "_", "-_", "%41", "%", "~", "@1", ".", "\u212a", "\x00", "a/"])
def test_ten_megabytes_are_refused_at_once_with_a_short_message(piece: str) -> None:
    text = piece * (10_000_000 // len(piece))
    began = time.process_time()

    with pytest.raises(InvalidToolId) as caught:
        ToolId.parse(text)

    assert time.process_time() - began < UNHURRIED
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("piece", ["_", "-", "_-", "_.", "a.", "a_"])
def test_the_patterns_never_backtrack(piece: str) -> None:
    text = piece * 200_000 + "!"
    began = time.process_time()

    assert not is_name(text)
    assert not is_suite(text)

    assert time.process_time() - began < UNHURRIED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("salesforce/get_leads", ToolRef("salesforce", None, None, "get_leads", None)),
        ("Salesforce@V2/GET_LEADS@LATEST", ToolRef("salesforce", 2, None, "get_leads", LATEST)),
        ("a@latest~b.c.d", ToolRef("a", LATEST, "b.c", "d", None)),
        ("a@12/b.c@v3", ToolRef("a", 12, "b", "c", 3)),
    ],
)
def test_a_reference_keeps_what_was_left_open(text: str, expected: ToolRef) -> None:
    assert expected == ToolRef.parse(text)


@pytest.mark.parametrize("text", ["a/b", "a@2/b", "a/b@latest", "a@latest/b.c@3"])
def test_a_reference_is_written_as_it_is_read(text: str) -> None:
    assert text == str(ToolRef.parse(text))


def test_only_ascii_capitals_are_folded() -> None:
    assert lower_ascii("GET_LEADS \u212a \u0130") == "get_leads \u212a \u0130"
