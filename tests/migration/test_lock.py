"""`truename.lock`: what is written, what is read back, and what a broken one says."""

from __future__ import annotations

import json
import math
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.migration.listed import LIST, READ, SEND, bare, facts, told, tool
from truename.conventions import metadata_of
from truename.conventions.declarations import Declaration
from truename.errors import ConfigError
from truename.migration import Lock, diff, is_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.migration.lock import Tools

TOOLS = [tool("fs_read", READ, "path"), tool("fs_list", LIST, "path", "depth?", server="files"), tool("ping")]
DIGEST = f"sha256:{'0' * 64}"
HEAD = "format = 1\nsources = []\n"


def one(fields: str) -> str:
    return f"{HEAD}tools = [\n    {{ {fields} }},\n]\n"


# What is wrong with a lock, its text, and what the error says.
BROKEN = [
    ("a conflict", f"{HEAD}<<<<<<< HEAD\n", "line 3: it has an unresolved merge conflict. Resolve"),
    ("its middle", f"{HEAD}=======\ntools = []\n", "line 3: it has an unresolved merge conflict. Resolve"),
    ("its end", f"{HEAD}tools = [\r\n]\r\n>>>>>>> theirs\r\n", "line 5: it has an unresolved merge conflict. Resolve"),
    ("no TOML", "format = 1\ntools = [{]\n", "line 2: it is not TOML"),
    ("cut off", "format = 1\ntools = [\n", "line 3: it is not TOML"),
    ("another file", "version = 1\n", "it is not a truename.lock: it has no format"),
    ("a truth for a number", "format = true\n", "it is not a truename.lock"),
    ("newer", "format = 2\nnews = 1\n", "it was written by a newer Truename (format 2). Upgrade Truename."),
    ("an unknown key", f"{HEAD}tools = []\nmore = 1\n", "'more' is not a field of a lock"),
    ("no tools", HEAD, "it has no list of tools"),
    ("sources", "format = 1\nsources = 'src'\ntools = []\n", "its sources are not a list of strings"),
    ("protocol", f"{HEAD}protocol = 3\ntools = []\n", "its protocol is not a string"),
    ("a number", f"{HEAD}tools = [\n 3,\n]\n", "a tool has no name"),
    ("no name", one(f'digest = "{DIGEST}"'), "line 4: a tool has no name"),
    ("no digest", one('name = "a"'), "line 4: 'a' has no digest"),
    ("a digest", one('name = "a", digest = "sha256:0"'), "line 4: the digest of 'a' is not a digest"),
    ("a server", one(f'name = "a", server = 1, digest = "{DIGEST}"'), "line 4: the server of 'a' is not a string"),
    ("parameters", one(f'name = "a", parameters = "x", digest = "{DIGEST}"'), "line 4: its parameters are not a list"),
    (
        "a definition",
        one(f'name = "a", digest = "{DIGEST}", definition = "["'),
        "line 4: the definition of 'a' is not valid",
    ),
    ("no text", one(f'name = "a", digest = "{DIGEST}", definition = 3'), "line 4: the definition of 'a' is not valid"),
    (
        "a name",
        one(f'name = "a", digest = "{DIGEST}", definition = \'{{"name": 1}}\''),
        "of 'a' is not valid JSON of a definition",
    ),
    ("a field", one(f'name = "a", color = "x", digest = "{DIGEST}"'), "line 4: 'color' is not a field of a lock"),
    (
        "twice",
        f'{HEAD}tools = [\n{{ name = "a", digest = "{DIGEST}" }},\n{{ name = "a", digest = "{DIGEST}" }},\n]\n',
        "line 5: 'a' is repeated",
    ),
    ("deep", f"format = {'[' * 5_000}", "truename.lock: "),
    ("a long number", f"format = {'1' * 5_000}", "it is nested too deeply, or contains a number that is too long"),
]


def test_a_lock_is_one_line_a_tool_sorted_and_the_same_whatever_the_order() -> None:
    lock = Lock.of(TOOLS, ["src", "lists.json"], "0.3")
    lines = lock.text().splitlines()

    assert lock.text() == Lock.of(TOOLS[::-1], ["lists.json", "src", "src"], "0.3").text()
    assert lines[1:4] == ["format = 1", 'protocol = "0.3"', 'sources = ["lists.json", "src"]']
    assert [line.split('"')[1] for line in lines if line.startswith("    {")] == ["fs_read", "ping", "fs_list"]
    assert 'name = "fs_list", server = "files", parameters = ["depth?", "path"], digest = "sha256:' in lock.text()


def test_a_tool_has_its_definition_in_a_lock_as_json_that_a_reviewer_can_read() -> None:
    said = "It's 天気 with \u200b, \ud800, \U000e0041 and \n."
    (line,) = tomllib.loads(Lock.of([tool("a", said)]).text())["tools"]
    text = Lock.of([tool("a", said)]).text()

    assert json.loads(line["definition"])["description"] == said
    assert "It\\u0027s 天気 with \\u200b, \\ud800, \\udb40\\udc41 and \\n." in text
    assert Lock.parse(text).text() == text


DEEP: dict[str, Any] = {"type": "object"}
for _ in range(1_500):
    DEEP = {"type": "object", "properties": {"a": DEEP}}
UNWRITABLE = [{"default": math.nan}, {"default": b"x"}, {"const": 10**5_000}, DEEP, {1: "x", "a": 1}]


@pytest.mark.parametrize("schema", UNWRITABLE, ids=["nan", "bytes", "a long number", "deep", "a number for a key"])
def test_of_a_definition_that_json_can_not_hold_the_digests_are_kept(schema: dict[str, Any]) -> None:
    strange = Declaration(name="a", definition={"description": LIST, "inputSchema": schema})
    (line,) = tomllib.loads(Lock.of([strange]).text())["tools"]
    again = Lock.parse(Lock.of([strange]).text())

    assert line.keys() == {"name", "parameters", "digest", "shape", "schema"}
    assert len(diff(again.tools, [strange])) == 0
    assert [one.breaking for one in diff(again.tools, [tool("a", LIST)])] == [True]


def test_what_was_written_is_read_back() -> None:
    lock = Lock.of(TOOLS, ["src"], "0.3")
    again = Lock.parse(lock.text())

    assert again.text() == lock.text()
    assert (again.sources, again.protocol, len(again.tools)) == (("src",), "0.3", 3)
    assert len(diff(again.tools, TOOLS)) == 0


def test_a_lock_proves_that_nobody_was_renamed_by_accident() -> None:
    lock = Lock.parse(Lock.of([tool("fs_list", LIST, "path"), tool("ping")]).text())

    assert told(diff(lock.tools, [tool("list_files", LIST, "path"), tool("ping")])) == [
        ("renamed", "fs_list", "list_files")
    ]
    assert told(diff(lock.tools, [tool("fs_list", LIST, "path"), tool("get_tiny_image")])) == [
        ("removed", "ping", ""),
        ("added", "", "get_tiny_image"),
    ]


def test_a_lock_tells_swapped_names() -> None:
    lock = Lock.of([tool("a", LIST), tool("b", READ)])

    assert told(diff(Lock.parse(lock.text()).tools, [tool("a", READ), tool("b", LIST)])) == [
        ("swapped", "a", "b"),
        ("swapped", "b", "a"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "kind", "breaking"),
    [
        (tool("a", LIST, "x"), tool("a", LIST, "x", "y"), "narrowed", True),
        (tool("a", LIST, "x"), tool("a", LIST, "x", "y?"), "widened", False),
        (tool("a", LIST, "x"), tool("a", LIST, "x?"), "widened", False),
        (tool("a", LIST, "x?"), tool("a", LIST, "x"), "narrowed", True),
        (tool("a", LIST, "x"), tool("a", LIST), "narrowed", False),
        (tool("a", LIST, "x?"), tool("a", LIST), "narrowed", False),
        (tool("a", LIST, "x"), tool("a", READ, "x"), "drifted", False),
        (tool("a", LIST, annotations={"readOnlyHint": True}), tool("a", LIST), "drifted", True),
        (tool("a", LIST), tool("a", LIST, outputSchema={"type": "object"}), "narrowed", False),
    ],
)
def test_a_lock_judges_a_change_as_the_definitions_are_judged(
    old: Declaration, new: Declaration, kind: str, breaking: bool
) -> None:
    (change,) = diff(Lock.parse(Lock.of([old]).text()).tools, [new])

    assert (str(change.kind), change.breaking) == (kind, breaking)
    assert judged([old], [new]) == judged(Lock.parse(Lock.of([old]).text()).tools, [new])


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_lock_says_where_and_what_to_do(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Lock.parse(text)

    assert expected in str(caught.value)


def test_a_lock_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.migration.lock.MAX_LOCK", 10)

    with pytest.raises(ConfigError, match="it is larger than 10 characters"):
        Lock.parse(Lock.of(TOOLS).text())


def test_a_file_that_was_begun_as_a_lock_is_known_as_one() -> None:
    text = Lock.of(TOOLS).text()

    assert is_lock(text)
    assert is_lock(f"\ufeff{text}")
    assert is_lock(f"<<<<<<< HEAD\n{text}")
    assert not is_lock("[tool.poetry]\n")
    assert not is_lock("<<<<<<< HEAD\n[tool.poetry]\n")


def test_a_lock_with_a_mark_at_its_beginning_is_read() -> None:
    assert len(Lock.parse(f"\ufeff{Lock.of(TOOLS).text()}").tools) == 3


def test_a_name_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match="no text file can contain this name"):
        Lock.of(bare("a\ud800"))


def test_what_a_reviewer_could_not_see_is_spelled_out() -> None:
    text = Lock.of(bare("a\u202eb\x7f\n\U000e0041", "天気")).text()

    assert '"a\\u202eb\\u007f\\u000a\\U000e0041"' in text
    assert '"天気"' in text
    unseen = "\u3164\u115f\u2800\ufe0f\u034f\U000e0100"
    assert not set(unseen) & set(Lock.of(bare(f"a{unseen}")).text())
    assert "\u202e" not in text


def judged(old: Tools, new: Tools) -> list[tuple[object, ...]]:
    """Return all that a comparison says, but for where the tools were read and the order of their keys."""
    return [
        (
            *(one.kind, one.certainty, one.breaking, one.remedy, one.score, one.reasons),
            *(one.old and one.old.key, one.new and one.new.key, sorted(facts(one.details))),
        )
        for one in diff(old, new)
    ]


SCHEMAS = st.recursive(
    st.sampled_from(
        [True, {}, {"type": "string"}, {"type": ["string", "null"]}, {"enum": ["a", 1, 2.0]}, {"minimum": 3}]
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("xyz'"), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from("xyz"), max_size=2),
            "additionalProperties": st.booleans(),
            "description": st.text(max_size=5),
        },
    ),
    max_leaves=4,
)
DEFINITIONS = st.fixed_dictionaries(
    {"description": st.sampled_from([LIST, READ, SEND, "", "It's 天気\u200b."])},
    optional={
        "title": st.text(max_size=3),
        "inputSchema": SCHEMAS,
        "outputSchema": SCHEMAS,
        "annotations": st.dictionaries(st.sampled_from(["readOnlyHint", "idempotentHint", "title"]), st.booleans()),
        "_meta": st.sampled_from([{}, {"dev.truename/platforms": ["ios"]}, {"dev.truename/app": "shop"}]),
    },
)
TOOLSETS = st.lists(
    st.builds(
        lambda name, server, said: Declaration(name=name, server=server, definition=said, metadata=metadata_of(said)),
        st.sampled_from("abc"),
        st.sampled_from(["", "s"]),
        DEFINITIONS,
    ),
    max_size=4,
)


@given(TOOLSETS, TOOLSETS)
def test_a_comparison_with_a_lock_says_what_one_with_the_tools_says(
    old: Sequence[Declaration], new: Sequence[Declaration]
) -> None:
    was, now = (Lock.parse(Lock.of(tools).text()).tools for tools in (old, new))

    assert judged(was, new) == judged(old, now) == judged(was, now) == judged(old, new)


def test_a_definition_that_is_not_that_of_its_digest_is_refused() -> None:
    text = Lock.of([tool("a", LIST)]).text()

    with pytest.raises(ConfigError, match="line 5: the definition of 'a' does not match its digest"):
        Lock.parse(text.replace("List the files", "Send the files"))


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PINS = st.builds(
    lambda name, server, parameters: Declaration(
        name=name, server=server, definition={"inputSchema": {"properties": dict.fromkeys(parameters, True)}}
    ),
    ANY_TEXT,
    ANY_TEXT,
    st.lists(ANY_TEXT, max_size=3),
)


@given(st.lists(PINS, max_size=5), st.lists(ANY_TEXT, max_size=3), ANY_TEXT)
def test_whatever_is_locked_is_read_back(tools: Sequence[Declaration], sources: Sequence[str], protocol: str) -> None:
    lock = Lock.of(tools, sources, protocol)
    again = Lock.parse(lock.text())

    assert again.text() == lock.text()
    assert len(diff(again.tools, lock.tools)) == 0
    assert [pin.key for pin in again.tools] == [pin.key for pin in lock.tools]
