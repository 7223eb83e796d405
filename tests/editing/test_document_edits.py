"""What an edit makes of a text, letter by letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from truename.editing import Document
from truename.errors import ConfigError

Where = tuple[str | int, ...]
URL = {"url": "u"}
S, T = ("mcpServers", "x"), ("mcp_servers", "x")

# Format, before, where, after: the value is URL. Taking it out again gives what was there before.
ADDED: list[tuple[str, str, Where, str]] = [
    ("json", "{}", S, '{\n  "mcpServers": {\n    "x": {\n      "url": "u"\n    }\n  }\n}'),
    ("json", "{}\r\n", ("x",), '{\r\n  "x": {\r\n    "url": "u"\r\n  }\r\n}\r\n'),
    ("json", '{"a":{}}', ("a", "x"), '{"a":{"x":{"url":"u"}}}'),
    ("json", '{"a":1}', S, '{"a":1,"mcpServers":{"x":{"url":"u"}}}'),
    ("json", '{ "a": { } }', ("a", "x"), '{ "a": { "x": {"url": "u"} } }'),
    ("json", '{\n\t"a": {}\n}', ("a", "x"), '{\n\t"a": {\n\t\t"x": {\n\t\t\t"url": "u"\n\t\t}\n\t}\n}'),
    ("json", '{\n   "a": 1\n}', ("x",), '{\n   "a": 1,\n   "x": {\n      "url": "u"\n   }\n}'),
    ("json", '{\n  "a": [\n    1\n  ]\n}\n', ("a", 1), '{\n  "a": [\n    1,\n    {\n      "url": "u"\n    }\n  ]\n}\n'),
    ("json", '{"a": [1, 2]}', ("a", 2), '{"a": [1, 2, {"url": "u"}]}'),
    ("json", '\ufeff{"a": 1}', ("x",), '\ufeff{"a": 1, "x": {"url": "u"}}'),
    ("json", "{\n}", ("x",), '{\n  "x": {\n    "url": "u"\n  }\n\n}'),
    ("jsonc", '{"a": 1, // c\n}', ("x",), '{"a": 1, // c\n  "x": {\n    "url": "u"\n  },\n}'),
    ("jsonc", '{\n  "a": 1 // c\n  // d\n}', ("x",), '{\n  "a": 1, // c\n  // d\n  "x": {\n    "url": "u"\n  }\n}'),
    ("jsonc", '{\n  "a": 1, // c\n}', ("x",), '{\n  "a": 1, // c\n  "x": {\n    "url": "u"\n  },\n}'),
    ("jsonc", '{\n  "a": {\n    // none\n  }\n}', ("a", "x"),
     '{\n  "a": {\n    // none\n    "x": {\n      "url": "u"\n    }\n  }\n}'),
    ("jsonc", '{"a": {/* none */}}', ("a", "x"), '{"a": {/* none */ "x": {"url": "u"}}}'),
    ("jsonc", '{"amp.mcpServers": {"b": 1}}', ("amp.mcpServers", "x"),
     '{"amp.mcpServers": {"b": 1, "x": {"url": "u"}}}'),
    ("toml", "", T, '[mcp_servers.x]\nurl = "u"\n'),
    ("toml", "# mine", T, '# mine\n\n[mcp_servers.x]\nurl = "u"'),
    ("toml", 'model = "m"\r\n', T, 'model = "m"\r\n\r\n[mcp_servers.x]\r\nurl = "u"\r\n'),
    ("toml", "[mcp_servers.a]\nb = 1  # c\n# d = 2\n\n[z]\n", T,
     '[mcp_servers.a]\nb = 1  # c\n# d = 2\n\n[mcp_servers.x]\nurl = "u"\n\n[z]\n'),
    ("toml", "mcp_servers = {}\n", T, 'mcp_servers = {x = { url = "u" }}\n'),
    ("toml", "mcp_servers = { a = {b = 1} }\n", T, 'mcp_servers = { a = {b = 1}, x = { url = "u" } }\n'),
    ("toml", "mcp_servers.a.b = 1\nc = 2\n", T, 'mcp_servers.a.b = 1\nc = 2\n\n[mcp_servers.x]\nurl = "u"\n'),
    ("toml", "", ("mcp_servers", 0), '[[mcp_servers]]\nurl = "u"\n'),
    ("toml", "mcp_servers = []\n", ("mcp_servers", 0), 'mcp_servers = [{ url = "u" }]\n'),
    ("toml", "[[mcp_servers]]\na = 1\n\n[z]\n", ("mcp_servers", 1),
     '[[mcp_servers]]\na = 1\n\n[[mcp_servers]]\nurl = "u"\n\n[z]\n'),
    ("toml", "[[s]]\n[s.t]\n[[s]]\n", ("s", 0, "x"), '[[s]]\n[s.t]\n\n[s.x]\nurl = "u"\n[[s]]\n'),
    ("toml", "", ("mcp_servers", "my server"), '[mcp_servers."my server"]\nurl = "u"\n'),
    ("toml", "[m.x.env]\na = 1\n", ("m", "x", "http"), '[m.x.env]\na = 1\n\n[m.x.http]\nurl = "u"\n'),
    ("yaml", "", S, "mcpServers:\n  x:\n    url: u\n"),
    ("yaml", "# mine\n", S, "# mine\nmcpServers:\n  x:\n    url: u\n"),
    ("yaml", "a: 1", S, "a: 1\nmcpServers:\n  x:\n    url: u"),
    ("yaml", "mcpServers: {}\n", S, "mcpServers:\n  x:\n    url: u\n"),
    ("yaml", "mcpServers: {} # none\nb: 1\n", S, "mcpServers: # none\n  x:\n    url: u\nb: 1\n"),
    ("yaml", "mcpServers: {a: {b: 1}}\n", S, "mcpServers: {a: {b: 1}, x: {url: u}}\n"),
    ("yaml", "mcpServers:\n    a: # c\n        b: 1 # d\n\n# tail\nz: 1\n", S,
     "mcpServers:\n    a: # c\n        b: 1 # d\n    x:\n        url: u\n\n# tail\nz: 1\n"),
    ("yaml", "mcpServers:\r\n  - name: a\r\n    b: 1\r\nz: 1\r\n", ("mcpServers", 1),
     "mcpServers:\r\n  - name: a\r\n    b: 1\r\n  - url: u\r\nz: 1\r\n"),
    ("yaml", "mcpServers:\n- name: a\nz: 1", ("mcpServers", 1), "mcpServers:\n- name: a\n- url: u\nz: 1"),
    ("yaml", "mcpServers: []\n", ("mcpServers", 0), "mcpServers:\n  - url: u\n"),
    ("yaml", "a: &q\n  b: 1\nc: *q\n", ("c2", "x"), "a: &q\n  b: 1\nc: *q\nc2:\n  x:\n    url: u\n"),
    ("yaml", "a:\n  b: |\n    lit\n\nz: 1\n", ("a", "x"), "a:\n  b: |\n    lit\n  x:\n    url: u\n\nz: 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "where", "after"), ADDED)
def test_what_is_new_looks_like_what_is_there_and_leaves_no_trace(
    language: str, before: str, where: Where, after: str
) -> None:
    document = Document.parse(before.encode(), Path("f"), language)
    changed = document.with_value(where, URL)
    assert changed.raw.decode() == after
    assert changed.without(document.first_missing(where)).raw.decode() == before


# Format, before, where, value, after.
REPLACED: list[tuple[str, str, Where, Any, str]] = [
    ("json", '{"a": 1, "b": 2}', ("a",), URL, '{"a": {"url": "u"}, "b": 2}'),
    ("json", '{\n  "a": {\n    "b": 1\n  }\n}', ("a",), URL, '{\n  "a": {\n    "url": "u"\n  }\n}'),
    ("json", '{"a": {\n  "b": 1\n}}', ("a",), URL, '{"a": {\n  "url": "u"\n}}'),
    ("json", '{"a":["x","y"]}', ("a", 1), "z", '{"a":["x","z"]}'),
    ("json", '{"a": null}', ("a", "x"), URL, '{"a": {"x": {"url": "u"}}}'),
    ("json", '{"a": 1, "a": 2}', ("a",), 3, '{"a": 1, "a": 3}'),
    ("json", '{"é": "\\u00e9"}', ("x",), "é\ud800", '{"é": "\\u00e9", "x": "\\u00e9\\ud800"}'),
    ("json", "[1]", (), URL, '{\n  "url": "u"\n}'),
    ("jsonc", '// top\n{"a" /* k */ : /* v */ 1 /* w */}', ("a",), 2, '// top\n{"a" /* k */ : /* v */ 2 /* w */}'),
    ("toml", "a = 1 # c\n", ("a",), [1, "x"], 'a = [1, "x"] # c\n'),
    ("toml", "a = { b = 1 }\n", ("a", "b"), True, "a = { b = true }\n"),
    ("toml", "[m.x]\na = 1\n[m.x.env]\nb = 1\n\n# z\n[z]\n", ("m", "x"), URL, '[m.x]\nurl = "u"\n\n# z\n[z]\n'),
    ("toml", "[m.x] # c\na = 1\n", ("m", "x", "b"), [], "[m.x] # c\na = 1\nb = []\n"),
    ("toml", "[m.x]\n", ("top",), 1.5, "top = 1.5\n[m.x]\n"),
    ("toml", "m.x.a = 1\nz = 1\n", ("m", "x", "b"), "\x7f\n", 'm.x.a = 1\nm.x.b = "\\u007f\\n"\nz = 1\n'),
    ("toml", "[m.x.env]\na = 1\n", ("m", "x", "b"), 1, "[m.x.env]\na = 1\n\n[m.x]\nb = 1\n"),
    ("yaml", "a: 1 # c\n", ("a",), "yes", 'a: "yes" # c\n'),
    ("yaml", "a:\n", ("a", "x"), URL, "a:\n  x:\n    url: u\n"),
    ("yaml", "a: null # c\n", ("a", "x"), URL, "a: # c\n  x:\n    url: u\n"),
    ("yaml", "a:\n  b: 1\n  c: 2\nz: 1\n", ("a",), 5, "a: 5\nz: 1\n"),
    ("yaml", "a: # c\n  b: 1\nz: 1\n", ("a",), URL, "a: # c\n  url: u\nz: 1\n"),
    ("yaml", "- 1\n- b: 1\n  c: 2\n- 3\n", (1,), URL, "- 1\n- url: u\n- 3\n"),
    ("yaml", "a: |\n  lit\nz: 1\n", ("a",), "12:30", 'a: "12:30"\nz: 1\n'),
    ("yaml", "a: [x, y]\n", ("a", 0), "-", 'a: ["-", y]\n'),
    ("yaml", "a: 'x'\n", ("a",), "\u2028", 'a: "\\U00002028"\n'),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "where", "value", "after"), REPLACED)
def test_what_is_set_replaces_what_was_there_and_nothing_else(
    language: str, before: str, where: Where, value: Any, after: str
) -> None:
    assert Document.parse(before.encode(), Path("f"), language).with_value(where, value).raw.decode() == after


# Format, before, where, after.
REMOVED: list[tuple[str, str, Where, str]] = [
    ("json", '{"a":1,"b":2}', ("a",), '{"b":2}'),
    ("json", '{"a":1, "b":2, "c":3}', ("b",), '{"a":1, "c":3}'),
    ("json", '{"a":1, "b":2 }', ("b",), '{"a":1 }'),
    ("json", '{\n  "a": 1,\n  "b": 2\n}', ("a",), '{\n  "b": 2\n}'),
    ("json", '{\n  "a": 1\n}', ("a",), "{}"),
    ("jsonc", '{\n  // on a\n  "a": 1, // by a\n  "b": 2, // by b\n}', ("b",),
     '{\n  // on a\n  "a": 1, // by a\n   // by b\n}'),
    ("jsonc", '{\n  // on a\n  "a": 1, // by a\n  "b": 2\n}', ("a",), '{\n  // on a\n   // by a\n  "b": 2\n}'),
    ("jsonc", '{"a": 1, // c\n "b": 2}', ("b",), '{"a": 1 // c\n }'),
    ("jsonc", "[1, 2,]", (1,), "[1,]"),
    ("toml", "[m.a]\nx = 1\n\n# on b\n[m.b]\ny = 1 # by y\n\n[z]\n", ("m", "b"), "[m.a]\nx = 1\n\n# on b\n\n[z]\n"),
    ("toml", "[m.a]\nx = 1\n\n[z]\n", ("m", "a"), "[m]\n\n[z]\n"),
    ("toml", "[m]\n[m.a]\nx = 1\n\n[z]\n", ("m", "a"), "[m]\n\n[z]\n"),
    ("toml", "[[m]]\nx = 1\n", ("m", 0), "m = []\n"),
    ("toml", "[[m]]\nx = 1\n\n[[m]]\nx = 2\n", ("m", 0), "[[m]]\nx = 2\n"),
    ("toml", "[m.a]\nx = 1\ny = 2 # c\n", ("m", "a", "y"), "[m.a]\nx = 1\n"),
    ("toml", "m.a = 1\nz = 1\n", ("m", "a"), "m = {}\nz = 1\n"),
    ("toml", "l = [\n  1, # one\n  2,\n]\n", ("l", 1), "l = [\n  1, # one\n]\n"),
    ("yaml", "a:\n  b: 1\n  c: 2 # d\n# e\nz: 1\n", ("a", "c"), "a:\n  b: 1\n# e\nz: 1\n"),
    ("yaml", "a: # all\n  b: 1\nz: 1\n", ("a", "b"), "a: {} # all\nz: 1\n"),
    ("yaml", "a:\n- x\n- y\n", ("a", 0), "a:\n- y\n"),
    ("yaml", "a:\n- x\nz: 1\n", ("a", 0), "a: []\nz: 1\n"),
    ("yaml", "- name: a\n  b: 1\n- name: c\n", (0, "name"), "- b: 1\n- name: c\n"),
    ("yaml", "- name: a\n", (0, "name"), "- {}\n"),
    ("yaml", "a: 1\n", ("a",), ""),
]  # fmt: skip


@pytest.mark.parametrize(("language", "before", "where", "after"), REMOVED)
def test_what_is_removed_takes_its_line_and_comma_with_it_but_no_comment_of_others(
    language: str, before: str, where: Where, after: str
) -> None:
    assert Document.parse(before.encode(), Path("f"), language).without(where).raw.decode() == after


@pytest.mark.parametrize(
    ("language", "text"), [("json", '{"a": {"b": 1}}'), ("toml", "a = {b = 1}"), ("yaml", "a: {b: 1}")]
)
def test_what_is_so_already_or_not_there_is_no_edit(language: str, text: str) -> None:
    document = Document.parse(text.encode(), Path("f"), language)
    assert document.with_value(("a",), {"b": 1}) is document
    assert document.without(("a", "zz")) is document
    assert document.without(()) is document
    assert document.first_missing(("a", "c", "d")) == ("a", "c")
    assert document.first_missing(("a", "b")) == ("a", "b")


@pytest.mark.parametrize(
    ("language", "text", "where", "word"),
    [
        ("json", '{"a": "x"}', ("a", "b"), "a plain value"),
        ("json", '{"a": [1]}', ("a", "b"), "a list"),
        ("json", '{"a": [1]}', ("a", 3), "a list"),
        ("json", '{"a": {}}', ("a", 0), "an object"),
        ("json", "null", ("a",), "a plain value"),
        ("yaml", "a: &q {b: 1}\nc: *q\n", ("c", "x"), "its parent is an alias"),
        ("yaml", "a: &q {b: 1}\nc: *q\n", ("a", "x"), "without changing another value"),
        ("yaml", "a: {<<: {b: {c: 1}}}\n", ("a", "b", "x"), "merged from another place"),
        ("toml", "a = {b.c = 1}\n", ("a", "b", "x"), "without changing another value"),
    ],
)
def test_what_can_not_be_changed_alone_is_left_alone(language: str, text: str, where: Where, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        Document.parse(text.encode(), Path("f"), language).with_value(where, URL)
    assert caught.value.code == "left_alone"
    assert "Nothing was changed" in caught.value.remedy


@pytest.mark.parametrize("where", [("a", 0), ("a", 1)])
def test_a_list_among_the_tables_of_a_list_is_left_alone(where: Where) -> None:
    with pytest.raises(ConfigError) as caught:
        Document.parse(b"[[a]]\nb = 1\n", Path("f"), "toml").with_value(where, [{"c": 1}])
    assert caught.value.code == "left_alone"


@pytest.mark.parametrize(
    ("language", "text", "where"),
    [
        ("json", '{"a": 1, "a": 2}', ("a",)),
        ("yaml", "a: &q {b: 1}\nc: *q\n", ("c", "b")),
        ("yaml", "a: &q {b: 1}\nc: *q\n", ("a",)),
        ("yaml", "a:\n  <<: {b: 1}\n", ("a", "b")),
    ],
)
def test_what_can_not_be_removed_alone_is_left_alone(language: str, text: str, where: Where) -> None:
    with pytest.raises(ConfigError) as caught:
        Document.parse(text.encode(), Path("f"), language).without(where)
    assert caught.value.code == "left_alone"


@pytest.mark.parametrize("value", [None, {"a": None}, [None]])
def test_toml_can_not_say_null_and_says_so(value: Any) -> None:
    with pytest.raises(ConfigError, match="no way to write null"):
        Document.parse(b"", Path("f"), "toml").with_value(("x",), value)


@pytest.mark.parametrize(
    ("language", "text"),
    [("json", '{\n  "x": 1\n}\n'), ("jsonc", '{\n  "x": 1\n}\n'), ("toml", "x = 1\n"), ("yaml", "x: 1\n")],
)
def test_a_file_that_is_not_there_yet_begins_with_what_is_put_in(language: str, text: str) -> None:
    document = Document.empty(Path("f"), language)
    assert (document.exists, document.value, document.raw) == (False, {}, b"")
    changed = document.with_value(("x",), 1)
    assert changed.raw.decode() == text
    assert not changed.exists


def test_a_key_of_megabytes_or_with_control_characters_is_told_in_short() -> None:
    for key in ("k" * 1_000_000, "\x1b[31m"):
        with pytest.raises(ConfigError) as caught:
            Document.parse(b'{"a": 1}', Path("f"), "json").with_value(("a", key), 1)
        assert len(str(caught.value)) < 600
        assert str(caught.value).isprintable()
