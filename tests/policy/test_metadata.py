"""Metadata: what authors say in their definitions, what operators say in a configuration, and who counts."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Catalog, Tool
from truename.conventions import Metadata, metadata_of
from truename.conventions.metadata import FIELDS, MetadataPatch, patch_in, read_fields, strictest, written_metadata
from truename.errors import ConfigError
from truename.policy import Context, Exposure, read_metadata

IOS = ("ios",)


def defined(meta: Any = None, annotations: Any = None) -> dict[str, Any]:
    return {"name": "tap", "_meta": meta, "annotations": annotations}


SAID: list[tuple[dict[str, Any], dict[str, Any], Metadata]] = [
    ({}, {}, Metadata()),
    ({"dev.truename/is_for_llm": False}, {}, Metadata(is_for_llm=False)),
    ({"dev.truename/platforms": ["IOS", "ios"]}, {}, Metadata(platforms=IOS)),
    ({"truename": {"app": "Pay", "owner": "A 1", "family": "f"}}, {}, Metadata(app="pay", owner="A 1", family="f")),
    ({"trailblaze/isForLlm": False}, {}, Metadata(is_for_llm=False)),
    ({"trailblaze/isRecordable": False}, {}, Metadata(is_recordable=False)),
    ({"trailblaze/supportedPlatforms": ["IOS", "ANDROID"]}, {}, Metadata(platforms=("ios", "android"))),
    ({}, {"isForLlm": False, "platforms": ["IOS"]}, Metadata(is_for_llm=False, platforms=IOS)),
    ({}, {"truename": {"is_recordable": False}}, Metadata(is_recordable=False)),
    ({"isForLlm": False, "platforms": ["ios"]}, {}, Metadata()),
    ({"trailblaze/toolset": "x", "dev.truename/openai_name": "tap"}, {}, Metadata()),
    ({"dev.truename/platforms": None, "trailblaze/supportedPlatforms": []}, {}, Metadata()),
    # Where two places differ, the stricter counts.
    ({"dev.truename/is_for_llm": True, "trailblaze/isForLlm": False}, {}, Metadata(is_for_llm=False)),
    ({"dev.truename/platforms": ["ios", "web"]}, {"platforms": ["web", "android"]}, Metadata(platforms=("web",))),
]  # fmt: skip


@pytest.mark.parametrize(("meta", "annotations", "metadata"), SAID)
def test_what_an_author_says_is_read_from_each_place(meta: Any, annotations: Any, metadata: Metadata) -> None:
    definition = defined(meta, annotations)

    assert metadata_of(definition) == metadata
    assert patch_in(definition).errors == {}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"dev.truename/is_for_llm": "no"}, "is_for_llm"),
    ({"dev.truename/is_for_llm": 0}, "is_for_llm"),
    ({"dev.truename/platforms": "ios"}, "platforms"),
    ({"dev.truename/platforms": {"ios": True}}, "platforms"),
    ({"dev.truename/platforms": [["ios"]]}, "platforms"),
    ({"dev.truename/platforms": [""]}, "platforms"),
    ({"dev.truename/platforms": ["i\u043es"]}, "platforms"),
    ({"dev.truename/platforms": ["ios"] * 10_000}, "platforms"),
    ({"dev.truename/platforms": ["i" * 10_000_000]}, "platforms"),
    ({"dev.truename/app": ["pay"]}, "app"),
    ({"dev.truename/app": "pay\u202e"}, "app"),
    ({"truename": "hidden"}, "app"),
    ({"truename": {str(number): 1 for number in range(10_000)}}, "platforms"),
    ({"dev.truename/platforms": ["ios"], "trailblaze/supportedPlatforms": ["android"]}, "platforms"),
    ({"dev.truename/app": "pay", "truename": {"app": "shop"}}, "app"),
]


@pytest.mark.parametrize(("meta", "field"), WRONG)
def test_what_can_not_be_read_hides_the_tool_from_everybody(meta: Any, field: str) -> None:
    definition = defined(meta)
    (tool,) = Catalog.from_mcp({"s": [definition]}).values()
    exposure = Exposure(required=())

    assert metadata_of(definition).is_for_llm is False
    assert field in exposure.errors(tool)
    for context in (Context(), Context(platform="ios", app="pay"), Context(origin="internal")):
        refusal = exposure.refusal(tool, context)
        assert refusal is not None
        assert (refusal.rule, refusal.reason.isprintable(), len(refusal.reason) < 1_000) == ("metadata", True, True)


@pytest.mark.parametrize("field", ["owner", "family", "parameter_platforms"])
@pytest.mark.parametrize("value", [7, ["x"], "\u202e", "x" * 10_000, {"p": "ios"}, {"\n": ["ios"]}])
def test_what_limits_nobody_hides_nothing_when_it_can_not_be_read(field: str, value: Any) -> None:
    definition = defined({f"dev.truename/{field}": value})

    assert metadata_of(definition) == Metadata()
    assert set(patch_in(definition).errors) == {field}


def test_a_tool_whose_author_can_not_say_whether_it_is_recordable_is_not_recorded() -> None:
    found = metadata_of(defined({"trailblaze/isRecordable": "false"}))

    assert (found.is_recordable, found.is_for_llm) == (False, True)


def test_a_misspelt_field_in_a_table_of_ours_is_told_and_hides_nothing() -> None:
    said = patch_in(defined({"truename": {"is_for_lm": False, "\x1b[2J": 1}}))

    assert said.metadata == Metadata()
    assert set(said.errors) == {"is_for_lm", "\\x1b[2J"}


PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text(), max_size=3),
    st.dictionaries(st.text(), st.lists(st.text(), max_size=2), max_size=2),
)  # fmt: skip
KEYS = st.sampled_from(
    [*FIELDS, *(f"dev.truename/{name}" for name in FIELDS), "truename", "isForLlm", "platforms", "trailblaze/isForLlm"]
)


@given(PLAIN | st.dictionaries(KEYS, PLAIN | st.dictionaries(KEYS, PLAIN)), PLAIN | st.dictionaries(KEYS, PLAIN))
def test_whatever_a_server_sends_is_read_without_a_crash(meta: Any, annotations: Any) -> None:
    metadata_of(defined(meta, annotations))


WORDS = st.from_regex(r"[a-z][a-z0-9]{0,4}", fullmatch=True)
METADATA = st.builds(
    Metadata,
    is_for_llm=st.booleans(),
    is_recordable=st.booleans(),
    platforms=st.lists(WORDS, max_size=3, unique=True).map(tuple),
    app=st.just("") | WORDS,
    owner=st.just("") | WORDS,
    family=st.just("") | WORDS,
    parameter_platforms=st.dictionaries(WORDS, st.lists(WORDS, max_size=2, unique=True).map(tuple), max_size=2),
)


@given(METADATA)
def test_what_is_written_into_meta_is_read_back(metadata: Metadata) -> None:
    assert metadata_of(defined(written_metadata(metadata))) == metadata


@given(st.lists(METADATA, max_size=4))
def test_the_strictest_word_never_shows_more_than_any_one(metadata: list[Metadata]) -> None:
    words = [patch_in(defined(written_metadata(one))) for one in metadata]
    found, catalog = strictest(words), Catalog.from_mcp({"s": ["x"]})
    (tool,) = catalog.values()

    for context in (Context(), Context(platform="a"), Context(app="b", origin="replay")):
        if _visible(found, tool, context):
            assert all(_visible(word, tool, context) for word in words)


def _visible(said: MetadataPatch, tool: Tool, context: Context) -> bool:
    if said.doubt:
        return False
    return Exposure(metadata={"s/x": said.values}).visible(tool, context)


TOML = """
[metadata."phone/ios_*"]
platforms = ["IOS"]

[metadata."phone/ios_old"]
is_for_llm = false
parameter_platforms = { card = ["IOS"] }
"""


def test_the_operator_s_word_is_read_as_it_is_written() -> None:
    read = read_metadata(tomllib.loads(TOML)["metadata"])

    assert read["phone/ios_*"] == {"platforms": IOS}
    assert read["phone/ios_old"] == {"is_for_llm": False, "parameter_platforms": {"card": IOS}}
    assert read_metadata(read) == read


BAD: list[tuple[Any, str]] = [
    (None, "not a table"),
    ([], "not a table"),
    ({"tap": {}}, "no '/'"),
    ({7: {}}, "not a text"),
    ({"s/tap": True}, "not a table of fields"),
    ({"s/tap": {"is_for_lm": True}}, "Did you mean 'is_for_llm'"),
    ({"s/tap": {"is_for_llm": "true"}}, "neither true nor false"),
    ({"s/tap": {"platforms": "ios"}}, "not a list"),
    ({"s/tap": {7: 1}}, "not a field"),
]


@pytest.mark.parametrize(("table", "told"), BAD)
def test_an_operator_s_word_that_is_not_understood_is_refused_with_its_key(table: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        read_metadata(table, "truename.toml")

    assert caught.value.file == "truename.toml"
    assert caught.value.key.startswith("metadata")
    assert str(caught.value).isprintable()


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        Exposure(metadata={"tap": {"owner": 1}, "s/tap": {"is_for_llm": 1, "surprise": 2}})

    assert len(caught.value.exceptions) == 4


def test_an_unknown_field_never_becomes_a_value() -> None:
    assert read_fields({"is_for_llm": None, "x": 1}).values == {}
