"""Whatever a text looks like, an edit of it says what was wanted and moves nothing else."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.editing.layouts import KEYS, SAYABLE, TEXTS, VALUES, Where, containers, edited_plainly
from truename.editing import Document, is_same_value
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

_BOM = b"\xef\xbb\xbf"
formats = pytest.mark.parametrize("language", TEXTS)


def _parsed(raw: bytes, language: str) -> Document:
    try:
        return Document.parse(raw, Path("f"), language)
    except ConfigError:
        # The dumper of YAML and its parser don't agree about every text.
        assume(False)
        raise


def _news(language: str) -> st.SearchStrategy[Any]:
    return SAYABLE if language == "toml" else VALUES


def _holder(document: Document, data: st.DataObject) -> tuple[Where, Any]:
    found: tuple[Where, Any] = data.draw(st.sampled_from(list(containers(document.value))))
    return found


def _anything(document: Document, data: st.DataObject) -> Where:
    places = [
        (*where, step)
        for where, holder in containers(document.value)
        for step in (holder if isinstance(holder, dict) else range(len(holder)))
    ]
    assume(places)
    return data.draw(st.sampled_from(places))


def _is_within(old: str, new: str) -> bool:
    rest = iter(new)
    return all(letter in rest for letter in old)


@formats
@given(data=st.data())
def test_what_is_added_is_there_and_taken_out_again_leaves_the_very_bytes(language: str, data: st.DataObject) -> None:
    document = _parsed(data.draw(TEXTS[language]), language)
    above, holder = _holder(document, data)
    step = len(holder) if isinstance(holder, list) else data.draw(KEYS.filter(lambda key: key not in holder))
    where, new = (*above, step), data.draw(_news(language))
    # A list that TOML writes as tables has no place for anything else.
    assume(language != "toml" or not isinstance(holder, list) or isinstance(new, dict))
    changed = document.with_value(where, new)
    assert is_same_value(changed.value, edited_plainly(document.value, where, new))
    assert changed.without(where).raw == document.raw
    if language in {"json", "jsonc", "toml"}:
        assert _is_within(document.text, changed.text)


@formats
@given(data=st.data())
def test_what_is_replaced_or_removed_is_that_and_nothing_else(language: str, data: st.DataObject) -> None:
    document = _parsed(data.draw(TEXTS[language]), language)
    where, new = _anything(document, data), data.draw(_news(language))
    for wanted, changed in (
        (edited_plainly(document.value, where, new), _unless_left_alone(language, document.with_value, where, new)),
        (edited_plainly(document.value, where), _unless_left_alone(language, document.without, where)),
    ):
        if changed is not None:
            assert is_same_value(changed.value, wanted)
            assert changed.raw.startswith(_BOM) == document.raw.startswith(_BOM)


def _unless_left_alone(language: str, edit: Callable[..., Document], *arguments: Any) -> Document | None:
    if language in {"json", "jsonc"}:
        return edit(*arguments)
    # Some forms of YAML and TOML share lines or tables with their neighbours.
    with contextlib.suppress(ConfigError):
        return edit(*arguments)
    return None


_GAPS = st.sampled_from(["{}", "{}\n  ", " {} ", "\n  {}\n  "])
_COMMENTS = st.sampled_from(["", "/* {} */", "// {}\n"])


@given(data=st.data(), size=st.integers(1, 4), has_trailing=st.booleans(), brackets=st.sampled_from(["{}", "[]"]))
def test_in_json_no_comment_is_lost_but_those_between_a_key_and_its_value(
    data: st.DataObject, size: int, has_trailing: bool, brackets: str
) -> None:
    def gap(name: str) -> str:
        return data.draw(_GAPS).format(data.draw(_COMMENTS).format(name))

    def entry(n: int) -> str:
        key = f'"k{n}"{gap("own" + str(n))}:' if brackets == "{}" else ""
        return f"{gap('above' + str(n))}{key}{n}{gap('after' + str(n))}"

    trailing = f",{gap('trailing')}" if has_trailing else ""
    text = brackets[0] + ",".join(entry(n) for n in range(size)) + trailing + brackets[1]
    index = data.draw(st.integers(0, size - 1))
    where: Where = (f"k{index}",) if brackets == "{}" else (index,)
    comments = re.findall(r"(?:above|after|own|trailing)\d*", text)
    document = Document.parse(text.encode(), Path("f"), "jsonc")
    left = re.findall(r"(?:above|after|own|trailing)\d*", document.without(where).text)
    assert left == [comment for comment in comments if comment != f"own{index}"]
    assert re.findall(r"(?:above|after|own|trailing)\d*", document.with_value(where, "new").text) == comments


@formats
@given(data=st.data())
def test_every_place_has_a_position_inside_of_the_text(language: str, data: st.DataObject) -> None:
    document = _parsed(data.draw(TEXTS[language]), language)
    where = _anything(document, data)
    line, column = document.position(where)
    lines = document.text.split("\n")
    assert 1 <= line <= len(lines)
    assert 1 <= column <= len(lines[line - 1]) + 1


@formats
@given(raw=st.binary(max_size=60))
def test_any_bytes_are_a_document_or_an_error_that_names_the_file(language: str, raw: bytes) -> None:
    fault = _fault(raw, language)
    assert fault is None or (fault.file and fault.problem and fault.remedy)


def _fault(raw: bytes, language: str) -> ConfigError | None:
    try:
        Document.parse(raw, Path("f"), language)
    except ConfigError as error:
        return error
    return None


@formats
@given(data=st.data())
def test_any_damage_to_a_text_is_read_or_refused_with_a_place(language: str, data: st.DataObject) -> None:
    text = data.draw(TEXTS[language]).decode()
    at = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from(list("\"'{}[],:#/\\\n\x00&*!|=.-")))
    cut = data.draw(st.integers(0, 3))
    fault = _fault((text[:at] + inserted + text[at + cut :]).encode(), language)
    assert fault is None or re.fullmatch(r"(line \d+, column \d+)?", fault.key)
