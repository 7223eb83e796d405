"""Contexts: read strictly from a header, kept in one spelling, and the same thing as a caller's place."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.errors import ConfigError, InvalidCall
from truename.policy import Caller, Context

PLACES = st.from_regex(r"[a-z0-9][a-z0-9 _.-]{0,20}", fullmatch=True).map(str.strip).filter(bool)


def test_texts_are_kept_in_lower_case_and_letters_of_other_scripts_as_they_are() -> None:
    context = Context(platform="iOS", app="MyApp")

    assert (context.platform, context.app, context.origin) == ("ios", "myapp", "llm")
    # Python's lower() would make a plain k of the Kelvin sign, and somebody else's app of this one.
    assert Context(app="\u212aey").app != "key"


@pytest.mark.parametrize("origin", ["", "model", "LLM ", "ll", "\u0131nternal"])
def test_an_origin_that_is_not_known_is_refused(origin: Any) -> None:
    with pytest.raises(ConfigError, match="origin"):
        Context(origin=origin)
    with pytest.raises(InvalidCall, match=r"caller\.origin"):
        Caller(origin=origin)


@pytest.mark.parametrize("value", [None, 3, ["ios"], b"ios", "i" * 2_000])
def test_what_is_no_short_text_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="platform"):
        Context(platform=value)


READ: list[tuple[str, Context]] = [
    ("platform=ios", Context(platform="ios")),
    ("platform=IOS, app=payments", Context(platform="ios", app="payments")),
    (" app = payments ,\tplatform=ios ", Context(platform="ios", app="payments")),
    ("origin=replay", Context(origin="replay")),
    ("app=a=b", Context(app="a=b")),
]


@pytest.mark.parametrize(("text", "context"), READ)
def test_a_header_is_read(text: str, context: Context) -> None:
    assert Context.parse(text) == context


UNREAD: list[tuple[str, str]] = [
    ("", "not a field"),
    ("ios", "not a field"),
    ("platfrom=ios", "not a field"),
    ("platform=ios,", "not a field"),
    ("platform=ios, platform=android", "twice"),
    ("platform=", "empty"),
    ("platform= ", "empty"),
    ("app=a\nb", "printed"),
    ("origin=root", "not an origin"),
    ("platform=" + "i" * 9_000, "longer"),
]


@pytest.mark.parametrize(("text", "told"), UNREAD)
def test_a_header_that_is_not_understood_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        Context.parse(text)

    assert len(str(caught.value)) < 1_000


@given(PLACES, PLACES, st.sampled_from(["llm", "replay", "internal"]))
def test_what_is_written_is_read_back(platform: str, app: str, origin: Any) -> None:
    context = Context(platform=platform, app=app, origin=origin)

    assert Context.parse(f"platform={platform}, app={app}, origin={origin}") == context
    assert Caller(principal="ada").within(context).context == context


@given(st.text())
def test_no_text_does_anything_else_than_being_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        assert Context.parse(text) == Context.parse(text.upper())
