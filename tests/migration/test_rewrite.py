"""Rewriting a text: what changes, what is left and told, and what nobody may touch."""

from __future__ import annotations

import pytest

from truename.errors import MigrationError
from truename.migration import Lexicon, ProtocolStatement, rewrite
from truename.migration.rewrite import kind_of

MAP = {
    "fs.list": "fs_list",
    "fs.list_dir": "fs_list_dir",
    "agent.update": "agent_update",
    "winget.install": "winget_install",
    "winget.update": "winget_update",
    "net.dns_flush": "net_dns_flush",
    "search": "find_pages",
    "read_page": "get_page",
    "openTab": "open_tab",
}


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('"fs.list"', '"fs_list"'),
        ("'fs.list'", "'fs_list'"),
        ("`fs.list`", "`fs_list`"),
        ("``fs.list``", "``fs_list``"),
        ('"""fs.list"""', '"""fs_list"""'),
        ('r#"fs.list"#', 'r#"fs_list"#'),
        ('{"fs.list":1,"x":["fs.list","fs.list_dir"]}', '{"fs_list":1,"x":["fs_list","fs_list_dir"]}'),
        ('"{\\"tool\\": \\"fs.list\\"}"', '"{\\"tool\\": \\"fs_list\\"}"'),
        ("| `fs.list` | lists |\r\n", "| `fs_list` | lists |\r\n"),
        ('match t { "fs.list" | "search" => 1 }', 'match t { "fs_list" | "find_pages" => 1 }'),
        ("see the `search` and 'read_page' tools", "see the `find_pages` and 'get_page' tools"),
        ('\ufeff"fs.list"\n\n', '\ufeff"fs_list"\n\n'),
        ("it's the `fs.list` that's", "it's the `fs_list` that's"),
    ],
)
def test_quoted_and_back_ticked_names_change(text: str, after: str) -> None:
    assert rewrite(text, MAP).text == after
    assert rewrite(after, MAP).edits == ()


@pytest.mark.parametrize(
    "text",
    [
        '"kenny-agent.updater.exe"',
        '"my-fs.list"',
        '"fs.listing"',
        '"xfs.list"',
        "research the search results, searching",
        're.search("x")',
        '"fs-list"',
        '"FS.LIST"',
        "`fs.listé`",
        "",
    ],
)
def test_false_friends_are_neither_changed_nor_told(text: str) -> None:
    done = rewrite(text, MAP)

    assert (done.text, done.edits, done.leftovers) == (text, (), ())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("fs.list(path)", [("fs.list", "code")]),
        ("`fs.list(path)`", [("fs.list", "code")]),
        ("def search(query):", [("search", "code")]),
        ("def read_page(url):", [("read_page", "code")]),
        ("the fs.list tool", [("fs.list", "bare")]),
        ('"uses fs.list."', [("fs.list", "bare")]),
        ("\"fs.list'", [("fs.list", "bare")]),
        ('\\"fs.list"', [("fs.list", "bare")]),
        ("kenny.fs.list", [("fs.list", "part")]),
        ("docs/fs.list.md", [("fs.list", "part")]),
        ("fs.list/", [("fs.list", "part")]),
        ("`winget.install|uninstall|update`", [("winget.install|uninstall|update", "several")]),
        ("winget.list|install|update", [("winget.list|install|update", "several")]),
        ("winget.{list, install}", [("winget.{list, install}", "several")]),
        ("winget.list|uninstall", []),
        ("`fs.*`", [("fs.*", "several")]),
        ("net.dns_*", [("net.dns_*", "several")]),
        ("`fs.list|`", [("fs.list", "bare")]),
        ("fs.list|\u00e9", [("fs.list|\u00e9", "several")]),
        ("openTab|other", [("openTab", "several")]),
        ("the openTab tool", [("openTab", "bare")]),
    ],
)
def test_what_is_not_certain_is_left_and_told(text: str, left: list[tuple[str, str]]) -> None:
    done = rewrite(text, MAP)

    assert (done.text, done.edits) == (text, ())
    assert [(one.name, one.reason) for one in done.leftovers] == left


@pytest.mark.parametrize("text", [r"grep 'fs\.list' x", r'"^fs\\.list$"', r're.compile(r"fs\.list\b")'])
def test_patterns_of_a_search_are_told(text: str) -> None:
    done = rewrite(text, MAP)

    assert done.edits == ()
    assert [left.reason for left in done.leftovers] == ["pattern"]


@pytest.mark.parametrize(
    ("old", "new"), [("fs.list", "fs.list.all"), ("list", "fs.list"), ("fs.list", "my/fs.list"), ("fs", "fs-2.fs")]
)
def test_a_new_name_with_the_old_one_in_it_is_no_leftover(old: str, new: str) -> None:
    done = rewrite(f'"{old}" {old}(', {old: new})

    assert done.text == f'"{new}" {old}('
    assert rewrite(f'"{new}" `{new}` {new}( {new}', {old: new}).leftovers == ()


def test_places_are_told_by_line_and_column() -> None:
    done = rewrite('a\r\n  "fs.list" and fs.list\n\tfs.* ', MAP)

    assert [(edit.line, edit.column, edit.old, edit.new) for edit in done.edits] == [(2, 4, "fs.list", "fs_list")]
    assert [(left.line, left.column, left.text) for left in done.leftovers] == [
        (2, 17, '"fs.list" and fs.list'),
        (3, 2, "fs.*"),
    ]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("read_page:\n  url: x\n", "get_page:\n  url: x\n"),
        ("tools:\n  - search\n  - read_page # why\n", "tools:\n  - find_pages\n  - get_page # why\n"),
        ("tool: fs.list\n", "tool: fs_list\n"),
        ('"a b": fs.list\r\n', '"a b": fs_list\r\n'),
        ("- name: fs.list", "- name: fs_list"),
        ("- - fs.list", "- - fs_list"),
        ("allow: [search, fs.list, x]\n", "allow: [find_pages, fs_list, x]\n"),
        ("- [search]\n", "- [find_pages]\n"),
    ],
)
def test_in_yaml_keys_and_plain_values_change_too(text: str, after: str) -> None:
    assert rewrite(text, MAP, "yaml").text == after
    assert rewrite(text, MAP).text == text


@pytest.mark.parametrize(
    "text",
    [
        "description: |\n  - fs.list\n  fs.list: x\n",
        "a:\n  b: >-\n    - fs.list\n",
        "- |2+\n   fs.list: x\n",
        "text: use a, fs.list, or b\n",
        "text: uses fs.list\n",
        "fs.list:x\n",
        "{fs.list}\n",
        "x: [a, # fs.list, b]\n",
        "[search] x: y\n",
    ],
)
def test_in_yaml_texts_stay(text: str) -> None:
    assert rewrite(text, {"fs.list": "fs_list"}, "yaml").text == text


def test_after_a_yaml_text_keys_change_again() -> None:
    text = "a: |\n  fs.list: x\n\n  more\nfs.list: y\nb: >\n  fs.list: z\n"

    assert rewrite(text, MAP, "yaml").text == "a: |\n  fs.list: x\n\n  more\nfs_list: y\nb: >\n  fs.list: z\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("read_page = 1\n", "get_page = 1\n"),
        ("  read_page=1\n", "  get_page=1\n"),
        ("[read_page]\n", "[get_page]\n"),
        ("[[ read_page ]]\n", "[[ get_page ]]\n"),
        ('"fs.list" = 1\n', '"fs_list" = 1\n'),
        ("fs.list = 1\n", "fs.list = 1\n"),
        ("[read_page\n", "[read_page\n"),
        ("[tools.read_page]\n", "[tools.read_page]\n"),
        ('a = """\nread_page = 1\n"""\n', 'a = """\nread_page = 1\n"""\n'),
        ("a = read_page\n", "a = read_page\n"),
    ],
)
def test_in_toml_only_bare_keys_change(text: str, after: str) -> None:
    assert rewrite(text, MAP, "toml").text == after


@pytest.mark.parametrize(("kind", "text"), [("yaml", "fs.list: x"), ("toml", "read_page = 1")])
def test_a_name_that_needs_quotes_is_not_put_where_there_are_none(kind: str, text: str) -> None:
    renames = {"fs.list": "1:list", "read_page": "get.page"}

    done = rewrite(text, renames, kind)

    assert done.text == text
    assert [left.reason for left in done.leftovers] == ["unsafe"]


def test_words_that_yaml_reads_as_values_are_not_put_there() -> None:
    assert rewrite("- fs.list\n", {"fs.list": "Yes"}, "yaml").edits == ()


@pytest.mark.parametrize(
    ("old", "new", "text", "after"),
    [
        ("天気", "weather", '{"name": "\\u5929\\u6c17"}', '{"name": "weather"}'),
        ("天気", "weather", '"天気"', '"weather"'),
        ("fs/list", "fs_list", '"fs\\/list" "fs/list"', '"fs_list" "fs_list"'),
    ],
)
def test_names_are_found_as_json_may_write_them(old: str, new: str, text: str, after: str) -> None:
    assert rewrite(text, {old: new}).text == after


@pytest.mark.parametrize("name", ["", " ", 'a"b', "a`b", "a\\b", "a\nb", "a\u202eb", "x" * 9_000])
def test_a_name_that_can_not_be_found_is_refused(name: str) -> None:
    for renames in ({name: "fine"}, {"fine": name}):
        with pytest.raises(MigrationError, match="cannot be written as a name in files"):
            Lexicon.of(renames)


@pytest.mark.parametrize("name", ["a b", "a*", "a|b", "a{b}", "a,b", "a#b"])
def test_a_new_name_that_would_mean_more_than_itself_is_refused(name: str) -> None:
    assert rewrite(f'"{name}"', {name: "fine"}).text == '"fine"'
    with pytest.raises(MigrationError, match="cannot be written as a name in files"):
        Lexicon.of({"fine": name})


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('PROTOCOL_VERSION = "0.2"', 'PROTOCOL_VERSION = "0.3"'),
        ('pub const PROTOCOL_VERSION: &str = "0.2";', 'pub const PROTOCOL_VERSION: &str = "0.3";'),
        ('pub const PROTOCOL_VERSION: &\'static str = "0.2";', 'pub const PROTOCOL_VERSION: &\'static str = "0.3";'),
        ("export const PROTOCOL_VERSION: string = '0.2'", "export const PROTOCOL_VERSION: string = '0.3'"),
        ('{"protocol_version": "0.2"}', '{"protocol_version": "0.3"}'),
        ("protocol_version: 0.2\n", "protocol_version: 0.3\n"),
        ('PROTOCOL_VERSION = "0.20"', 'PROTOCOL_VERSION = "0.20"'),
        ('PROTOCOL_VERSION = "0.2.1"', 'PROTOCOL_VERSION = "0.2.1"'),
        ('OLD_PROTOCOL_VERSION = "0.2"', 'OLD_PROTOCOL_VERSION = "0.2"'),
        ('VERSION = "0.2"', 'VERSION = "0.2"'),
    ],
)
def test_the_protocol_version_is_counted_up_where_it_is_stated(text: str, after: str) -> None:
    step = ProtocolStatement.after("0.2")

    assert rewrite(text, MAP, protocol=step).text == after
    assert rewrite(after, MAP, protocol=step).text == after


def test_a_pattern_of_ones_own_says_how_the_version_is_stated() -> None:
    step = ProtocolStatement.after("1.4", pattern='CONTRACT =  "v: {version}"')

    assert rewrite('CONTRACT = "v: 1.4"; x = "1.4"', MAP, protocol=step).text == 'CONTRACT = "v: 2.0"; x = "1.4"'


@pytest.mark.parametrize("pattern", ["", "VERSION", "{version}", "a{version}{version}", "x" * 300 + "{version}"])
def test_a_pattern_without_a_place_for_the_version_is_refused(pattern: str) -> None:
    with pytest.raises(MigrationError, match="is not a pattern of a protocol version"):
        ProtocolStatement.after("0.2", pattern=pattern)


@pytest.mark.parametrize(
    ("file", "kind"), [("a.yaml", "yaml"), ("a.YML", "yaml"), ("pyproject.toml", "toml"), ("a.json", ""), ("yaml", "")]
)
def test_the_kind_of_a_file_is_in_its_name(file: str, kind: str) -> None:
    assert kind_of(file) == kind


def test_more_than_anybody_reads_is_cut_and_told() -> None:
    done = rewrite("fs.list " * 12_000, MAP)

    assert len(done.leftovers) == 10_001
    assert done.leftovers[-1].reason == "more"


def test_what_changes_does_not_hide_what_is_left() -> None:
    done = rewrite('"fs.list" ' * 12_000 + "fs.list()", MAP)

    assert [left.reason for left in done.leftovers] == ["code"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('"mcp__kenny__fs.list"', ["mcp__kenny__fs.list"]),
        ("allow mcp_kenny_fs.list, mcp__x-y__fs_list;", ["mcp_kenny_fs.list", "mcp__x-y__fs_list"]),
        ("mcp__kenny__fs.lister mcp__kenny__fs_ls xmcp__kenny__fs.list kenny__fs.list", []),
    ],
)
def test_what_a_client_shows_of_an_unnamed_server_is_left_over(text: str, left: list[str]) -> None:
    done = rewrite(text, {"fs.list": "fs_ls"})

    assert done.text == text
    assert [(one.name, one.reason) for one in done.leftovers] == [(name, "shown") for name in left]
