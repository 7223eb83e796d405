"""Characters: which are reported, which are not, and how they are told."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.text_examples import declared
from truename.conventions.characters import LOOKS_LIKE, masked_words, skeleton, unmasked
from truename.conventions.convention import Convention
from truename.conventions.rules.characters import CHECKS
from truename.conventions.rules.check import LintContext


def found(name: str = "go", text: str = "Goes.", **more: Any) -> list[tuple[str, str]]:
    material = LintContext((declared(name, text, **more),), Convention())
    return [(one.rule.code, one.fact) for check in CHECKS for one in check.find(material)]


def codes(name: str = "go", text: str = "Goes.", **more: Any) -> list[str]:
    return [code for code, _ in found(name, text, **more)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\u200bb", "TN150"),
        ("a\u200c", "TN150"),
        ("a\u200db", "TN150"),
        ("a\u2060b", "TN150"),
        ("in the \ufeffmiddle", "TN150"),
        ("\u00ad-", "TN150"),
        ("\u3164", "TN150"),
        ("\u2800", "TN150"),
        ("\ue123", "TN150"),
        ("\U000e0041\U000e0042", "TN150"),
        ("\U000f0000", "TN150"),
        ("x\ufe0f", "TN150"),
        ("☀\ufe0f\ufe0e\ufe01", "TN150"),
        ("☀\ufe0f\ufe0f", "TN150"),
        ("☀\u200dx", "TN150"),
        ("\ud800", "TN150"),
        ("left \u202eright", "TN151"),
        ("שלום \u202e", "TN151"),
        ("left \u200eright", "TN151"),
        ("שלום \u2067 without an end", "TN151"),
        ("\x00", "TN153"),
        ("\x1b[31mred", "TN153"),
        ("a\x08b", "TN153"),
        ("\x85", "TN153"),
        ("\x7f", "TN153"),
    ],
)
def test_a_character_that_hides_something_is_reported(text: str, code: str) -> None:
    assert codes(text=text) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "plain, with tabs\tand\r\nlines",
        "\ufeffa mark at the beginning",
        "hy\u00adphen",
        "👨\u200d👩\u200d👧 ❤️ 1\ufe0f\u20e3 ☀\ufe0f 👍🏽",
        "葛\U000e0100城",
        "می\u200cخواهم",
        "क्\u200dष",
        "ภาษา\u200bไทย",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "שלום (world)\u200f",
        "قيمة \u2067x\u2069",
        "naïve café – “quoted” … 東京 мир",
    ],
)
def test_writing_as_people_do_is_not_reported(text: str) -> None:
    assert codes(text=text) == []


@pytest.mark.parametrize(
    "name", ["sеnd_mail", "ореn", "ѕсоре_rеаd", "gеt-user", "ｓend", "𝐬𝐞𝐧𝐝", "ᴄopy", "раypal", "listΑll"]
)
def test_a_name_that_reads_as_latin_and_is_not_is_reported(name: str) -> None:
    assert codes(name=name) == ["TN152"]
    assert codes(inputSchema={"properties": {name: {}}}) == ["TN152"]
    assert unmasked(name).isascii()


@pytest.mark.parametrize(
    "name",
    ["поиск", "поиск_с_фильтром", "größe", "天気", "café_menu", "αβγ", "naïve", "δ_max", "日本語_search", "йод_о"],
)
def test_a_name_of_another_script_is_not_reported(name: str) -> None:
    assert codes(name=name) == []


def test_the_place_and_the_character_are_told_and_the_number_of_more() -> None:
    schema = {"properties": {"city": {"description": "The city.\u200b\u200b\u200b"}}}

    where = "The inputSchema.properties.city.description of 'go'"

    assert found(inputSchema=schema) == [
        ("TN150", f"{where} has U+200B (zero width space), which is invisible, and 2 more.")
    ]
    assert found(name="a\u200bb")[0][1].startswith(r"The name 'a\u200bb' has U+200B")
    assert found(name="sеnd")[0][1] == "'sеnd' looks like 'send', but has U+0435 (cyrillic small letter ie)."


@pytest.mark.parametrize("short", ["\x1b[2J", "a\x08", "a\u200b"])
def test_a_character_in_a_short_value_or_name_is_reported(short: str) -> None:
    code = codes(text=short)

    assert len(code) == 1
    assert codes(inputSchema={"properties": {"mode": {"enum": ["plain", short]}}}) == code
    assert codes(inputSchema={"properties": {short: {}}}) == code
    assert codes(inputSchema={"$defs": {short: {}}}) == code


def test_every_letter_of_the_table_is_of_another_script_and_stands_for_one_ascii_letter() -> None:
    for letter, plain in LOOKS_LIKE.items():
        assert not letter.isascii()
        assert unicodedata.category(letter)[0] in "LN", letter
        assert plain.isascii()
        assert plain == plain.lower()
        assert masked_words(letter) == (letter,), letter


def test_names_that_look_the_same_have_one_skeleton() -> None:
    assert skeleton("pay_bill") == skeleton("pay_bi11") == skeleton("рау_bill") == skeleton("PAY_BILL")
    assert skeleton("modern") == skeleton("modem")
    assert skeleton("get_data") != skeleton("get_date")


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz_0123456789", max_size=40))
def test_an_ascii_text_has_nothing_to_report(text: str) -> None:
    assert codes(name=text or "x", text=text) == []


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_looked_at_without_an_error_and_told_in_printable_words(name: str, text: str) -> None:
    for _, fact in found(name=name, text=text):
        assert fact.isprintable()
