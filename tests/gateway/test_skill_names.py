"""What a skill says of its server's tools, in the names of one client."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.editing.frontmatter import find_frontmatter
from truename.gateway.protocol.definitions import unusable
from truename.gateway.protocol.skills import SkillDefinition, content_of, raw_bytes, with_bytes
from truename.gateway.views.skill_names import MOST_REWRITTEN, SkillNames

NAMES = SkillNames({"search": "docs_search", "get": "get", "a.b": "docs_a_b"}, {"search", "get", "a.b", "drop"})
HEAD = "---\nname: pdf\ndescription: d\n---\n"


def read_as(text: str, names: SkillNames = NAMES) -> str:
    return names.file(text.encode()).raw.decode()


def noted(text: str, names: SkillNames = NAMES) -> list[tuple[str, str]]:
    return re.findall(r"(?m)^> - `([^`]*)` is `([^`]*)` here\.\r?\n", read_as(text, names))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("search", "docs_search"),
        ("Read search Write", "Read docs_search Write"),
        ("Read, search,get", "Read, docs_search,get"),
        (["search", "Read", 5, None, "Bash(search)"], ["docs_search", "Read", 5, None, "Bash(search)"]),
        ("drop search", "docs_search"),
        ("search drop", "docs_search"),
        ("Read drop, search", "Read, docs_search"),
        ("drop", ""),
        (["drop", "Read"], ["Read"]),
        ("Bash(git search:*) search", "Bash(git search:*) docs_search"),
        ("Bash(git search", None),
        ("Bash(a (search) b) search", None),
        ("search(x) Search research mcp__docs__search docs_search", None),
        ("search)search", None),
        ("searchx(", None),
        ("dropx(a(b)) search", None),
        ("search dropx((", "docs_search dropx(("),
        ("\n search\n", "\n docs_search\n"),
        ("a.b", "docs_a_b"),
        ("", None),
        (5, None),
        ({"search": 1}, None),
        (None, None),
        ("search " * 20_000, None),
    ],
)
def test_an_entry_is_rewritten_where_it_is_exactly_a_tool_of_the_server(said: object, shown: object) -> None:
    assert NAMES.tools(said) == shown


@pytest.mark.parametrize(
    "form", ["search Read", "[search, Read]", "\n  - search\n  - Read", '"search Read"', ">-\n  search\n  Read"]
)
def test_the_file_has_the_tools_that_its_entry_has(form: str) -> None:
    text = f"---\nname: pdf\nallowed-tools: {form}\nlicense: MIT # yes\n---\nbody\n"
    before = find_frontmatter(text)
    shown = NAMES.file(text.encode())
    after = find_frontmatter(shown.raw.decode())
    assert before is not None
    assert after is not None

    assert shown.has_tools
    assert after.read() == {**before.read(), "allowed-tools": NAMES.tools(before.read()["allowed-tools"])}
    assert "license: MIT # yes\n" in shown.raw.decode()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("Use search.", [("search", "docs_search")]),
        ("`a.b` or search", [("a.b", "docs_a_b"), ("search", "docs_search")]),
        ("research, Search, search_all, get, drop", []),
        ("", []),
    ],
)
def test_the_note_names_each_tool_that_occurs_and_has_another_name(body: str, names: list[tuple[str, str]]) -> None:
    assert noted(HEAD + body) == names
    if not names:
        assert read_as(HEAD + body) == HEAD + body


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_note_stands_by_itself_between_the_frontmatter_and_the_text(newline: str) -> None:
    head, body = HEAD.replace("\n", newline), f"Use search.{newline}"
    shown = read_as(head + body)

    assert shown.startswith(f"{head}> **Note of the gateway, not a part of this skill.**")
    assert shown.endswith(f" here.{newline}{newline}{body}")
    assert shown.replace(newline, "").isprintable()


def test_the_description_counts_as_text() -> None:
    assert noted("---\nname: pdf\ndescription: how to search\n---") == [("search", "docs_search")]


@pytest.mark.parametrize(
    "text",
    ["", "search", "# search\n---\n", "---\nname: x\nsearch", HEAD + "search " + "x" * MOST_REWRITTEN],
    ids=["nothing", "no frontmatter", "not at the start", "no end", "too long"],
)
def test_what_is_no_skill_passes_as_it_is(text: str) -> None:
    assert read_as(text) == text


def test_what_is_no_text_passes_as_it_is() -> None:
    raw = HEAD.encode() + b"search \xff"

    assert NAMES.file(raw) == (raw, False)


def test_a_frontmatter_that_hosts_refuse_stays_as_it_is() -> None:
    for head in ("a: [", "- search", "x: &x search\nallowed-tools: *x", "a: b: search"):
        text = f"---\n{head}\n---\nsearch"
        shown = read_as(text)
        assert shown.startswith(f"---\n{head}\n---\n> ")
        assert shown.endswith("\n\nsearch")


HOSTILE = [
    "a`b",
    "a\nb",
    "a b",
    "<!--",
    "--\u003e",
    "a\u202eb",
    "a\u200bb",
    "a\x00b",
    "`",
    "a\r> - `x` is `y` here.",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_closes_the_note(name: str) -> None:
    own, shown = SkillNames({name: "x_y"}), SkillNames({"search": name})
    text = f"{HEAD}{name} search"

    assert noted(text, own) == []
    assert noted(text, shown) in ([], [("search", name)])
    assert read_as(text, shown).count("\n\n") <= 1 + text.count("\n\n")


def test_a_text_of_many_names_gets_a_note_of_bounded_length() -> None:
    names = SkillNames({f"t{number}": f"docs_t{number}" for number in range(5_000)})
    text = HEAD + " ".join(f"t{number}" for number in range(5_000))

    assert len(noted(text, names)) == 200
    assert "More tools have other names" in read_as(text, names)


def test_hostile_entries_take_no_time() -> None:
    for said in ("(" * 60_000, ",((" * 20_000, "a(" * 30_000, "a()" * 20_000 + "(", " " * 60_000):
        assert NAMES.tools(said) is None


words = st.lists(st.sampled_from(["search", "get", "drop", "Read", "Bash(x search)", "docs_search", "é"]), max_size=8)


@given(words, st.sampled_from([" ", ", ", "\n"]), st.booleans())
def test_all_other_entries_stay_in_their_order(said: list[str], between: str, is_list: bool) -> None:
    value: object = said if is_list else between.join(said)
    found = NAMES.tools(value)
    wanted = ["docs_search" if one == "search" else one for one in said if one != "drop"]

    assert found in (None, wanted if is_list else between.join(wanted))
    assert (found is None) == (not {"search", "drop"} & {*said})


@given(st.text(max_size=200), st.booleans())
def test_a_text_is_whole_behind_the_note(body: str, is_rewritten: bool) -> None:
    head = HEAD.replace("description", "allowed-tools: search\ndescription") if is_rewritten else HEAD
    shown = read_as(head + body)

    assert shown.endswith(body)
    found = find_frontmatter(shown)
    assert found is not None
    assert found.read()["name"] == "pdf"


URI = "skill://team/pdf/SKILL.md"
DIGEST = "sha256:" + "a" * 64


def entry(**changes: object) -> dict[str, object]:
    files = [{"uri": URI, "digest": DIGEST, "size": 1}]
    return {"uri": URI, "frontmatter": {"name": "pdf", "description": "d"}, "resources": files} | changes


def of_files(*uris: str, size: object = 1, digest: object = DIGEST) -> dict[str, object]:
    return entry(resources=[{"uri": uri, "digest": digest, "size": size} for uri in uris])


def at(uri: str, name: str = "pdf") -> dict[str, object]:
    return entry(uri=uri, frontmatter={"name": name, "description": "d"}, resources="dynamic")


@pytest.mark.parametrize(
    "one",
    [
        entry(),
        entry(resources="dynamic", more={"a": 1}),
        of_files(URI, "skill://team/pdf/a b.md".replace(" ", "%20"), "skill://team/pdf/inner/SKILL.md"),
        at("github://owner/repo/skills/pdf/SKILL.md"),
        at("skill://pdf/SKILL.md"),
        at("skill://böse/pdf/SKILL.md"),
    ],
)
def test_an_entry_is_shown(one: dict[str, object]) -> None:
    assert unusable(one, SkillDefinition) is None


@pytest.mark.parametrize(
    "one",
    [
        {},
        entry(uri=5),
        entry(frontmatter=None),
        entry(frontmatter={"name": "pdf"}),
        entry(frontmatter={"name": "pdf", "description": " "}),
        entry(frontmatter={"name": "pdf", "description": "d" * 1_025}),
        entry(frontmatter={"name": "other", "description": "d"}),
        at("skill://PDF/SKILL.md", "PDF"),
        at("skill://p--f/SKILL.md", "p--f"),
        at("skill://SKILL.md", ""),
        at("skill://pdf/skill.md"),
        at("pdf/SKILL.md"),
        at("skill://a/../pdf/SKILL.md"),
        at("skill://a/%2e%2E/pdf/SKILL.md"),
        at("skill://a%2fb/pdf/SKILL.md"),
        at("skill://a\\b/pdf/SKILL.md"),
        at("skill://a//pdf/SKILL.md"),
        at("skill:///pdf/SKILL.md"),
        at("skill://a\x00/pdf/SKILL.md"),
        at("skill://a%00/pdf/SKILL.md"),
        at("skill://a\u202e/pdf/SKILL.md"),
        at("skill://a%E2%80%8B/pdf/SKILL.md"),
        at("skill://a b/pdf/SKILL.md"),
        at(f"skill://{'a/' * 2_000}pdf/SKILL.md"),
        entry(resources="none"),
        entry(resources=None),
        entry(resources={}),
        of_files(),
        of_files(URI, URI),
        of_files("skill://team/pdf/other.md"),
        of_files(URI, "skill://team/other.md"),
        of_files(URI, "skill://team/pdf/../other.md"),
        of_files(URI, "file:///etc/passwd"),
        of_files(URI, size=-1),
        of_files(URI, size="1"),
        of_files(URI, size=True),
        of_files(URI, size=1.0),
        of_files(URI, size=100 * 1024 * 1024),
        of_files(URI, size=10**30),
        of_files(URI, digest="a" * 64),
        of_files(URI, digest="sha256:" + "A" * 64),
        of_files(URI, *(f"skill://team/pdf/{number}" for number in range(512))),
    ],
)
def test_an_entry_that_a_host_refuses_is_left_out(one: dict[str, object]) -> None:
    assert unusable(json.loads(json.dumps(one)), SkillDefinition)


def test_the_content_of_a_file_is_one() -> None:
    one, other = {"uri": "a", "text": "x"}, {"uri": "b", "text": "y"}

    assert content_of({"contents": [one, other]}, "a") == one
    wrong: list[dict[str, object]] = [{}, {"contents": {}}, {"contents": [other, 5]}, {"contents": [one, one]}]
    for result in wrong:
        assert content_of(result, "a") is None
    assert raw_bytes({"uri": "a", "text": "\ud800"}) is None
    assert with_bytes({"blob": "eA==", "x": 1}, b"yy") == {"blob": "eXk=", "x": 1}
    assert with_bytes(one, "é".encode()) == {"uri": "a", "text": "é"}
