"""What the operator says of tools: read strictly, and never the identity of anything."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import ROOT
from truename import Catalog, Ledger, ToolId, project
from truename.catalog.globs import fits_id, may_meet
from truename.config.trust import Trust
from truename.conventions import Metadata
from truename.errors import ConfigError
from truename.migration import Lock
from truename.policy import Caller, CallRule, Policy
from truename.policy.presentation import LONGEST_DESCRIPTION, LONGEST_TITLE, Presentation
from truename.policy.profiles import Profile
from truename.trust import OfferedTools, PinStore, admit
from truename.trust.quarantine import pin_of

SAFE = {"annotations": {"readOnlyHint": True}}
RISKY = {"annotations": {"readOnlyHint": False}}
TIDY: dict[str, Any] = {
    "name": "tidy",
    "description": "Tidies up.",
    "annotations": {"title": "Tidy", "readOnlyHint": True, "idempotentHint": True},
}


def said(table: dict[str, Any], id: str) -> Any:
    """Return what is said of a tool, as plain values."""
    words = Presentation(table).about(ToolId.parse(id))
    return {name: dict(value) if name == "annotations" else value for name, value in words.items()}


@pytest.mark.parametrize(
    ("table", "key", "problem"),
    [
        (None, "tools", "not a table"),
        ({"tidy": {}}, "tools.'tidy'", "it cannot match any tool"),
        ({3: {}}, "tools.'3'", "it cannot match any tool"),
        ({"disk/tidy": []}, "tools.'disk/tidy'", "not a table of fields"),
        ({"disk/tidy": {"name": "x"}}, "tools.'disk/tidy'.name", "not a field of a tool's presentation"),
        ({"disk/tidy": {"titel": "x"}}, "tools.'disk/tidy'.titel", "not a field of a tool's presentation"),
        ({"disk/tidy": {"title": ""}}, "tools.'disk/tidy'.title", "not a text of 1 to 256"),
        ({"disk/tidy": {"title": 3}}, "tools.'disk/tidy'.title", "not a text"),
        ({"disk/tidy": {"title": "x" * (LONGEST_TITLE + 1)}}, "tools.'disk/tidy'.title", "not a text"),
        ({"disk/tidy": {"title": "a\nb"}}, "tools.'disk/tidy'.title", "more than one line"),
        (
            {"disk/tidy": {"description": "x" * (LONGEST_DESCRIPTION + 1)}},
            "tools.'disk/tidy'.description",
            "not a text",
        ),
        ({"disk/tidy": {"description": "a\u200bb"}}, "tools.'disk/tidy'.description", "U+200B"),
        ({"disk/tidy": {"description": "a\x1b[8mb"}}, "tools.'disk/tidy'.description", "a terminal executes"),
        ({"disk/tidy": {"description": "a\u202eb"}}, "tools.'disk/tidy'.description", "direction of writing"),
        ({"disk/tidy": {"description": "a\udc00b"}}, "tools.'disk/tidy'.description", "U+DC00"),
        ({"disk/tidy": {"annotations": True}}, "tools.'disk/tidy'.annotations", "not a table"),
        ({"disk/tidy": {"annotations": {"readOnly": True}}}, "tools.'disk/tidy'.annotations.readOnly", "not a field"),
        ({"disk/tidy": {"annotations": {"readOnlyHint": 1}}}, "tools.'disk/tidy'.annotations.readOnlyHint", "true nor"),
        ({"disk/tidy": {"annotations": {"title": "\x07"}}}, "tools.'disk/tidy'.annotations.title", "U+0007"),
        ({f"a/b{n}*": {} for n in range(257)}, "tools", "more than 256 globs"),
        ({f"a/b{n}": {} for n in range(10_001)}, "tools", "at most 10,000"),
    ],
)
def test_what_can_not_be_said_is_an_error_with_its_key(table: Any, key: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)) as caught:
        Presentation.read(table)
    assert caught.value.key == key


def test_a_name_is_fixed_elsewhere_and_a_misspelt_field_is_told_the_right_one() -> None:
    with pytest.raises(ConfigError, match="overrides"):
        Presentation({"disk/tidy": {"name": "clean"}})
    with pytest.raises(ConfigError, match="Did you mean 'description'"):
        Presentation({"disk/tidy": {"descripton": "x"}})


def test_what_is_null_is_not_said_and_emoji_may_be() -> None:
    told = {"disk/tidy": {"title": None, "description": "Two\nlines. \U0001f469\u200d\U0001f4bb", "annotations": None}}
    assert said(told, "disk/tidy") == {"description": "Two\nlines. \U0001f469\u200d\U0001f4bb"}


@pytest.mark.parametrize(
    ("table", "id", "found"),
    [
        ({"disk/*": {"title": "Disk"}, "disk/tidy": {"title": "Tidy"}}, "disk/tidy", {"title": "Tidy"}),
        ({"disk/tidy": SAFE, "disk/*": RISKY}, "disk/tidy", SAFE),
        ({"disk/t*": SAFE, "disk/*": RISKY}, "disk/tidy", RISKY),
        ({"disk/t*": SAFE, "disk/*": {"title": "Disk"}}, "disk/tidy", {"title": "Disk", **SAFE}),
        (
            {"disk/*": {"annotations": {"destructiveHint": True}}, "disk/tidy": {"annotations": {"title": "T"}}},
            "disk/tidy",
            {"annotations": {"destructiveHint": True, "title": "T"}},
        ),
        (
            {"disk/t*": {"annotations": {"destructiveHint": False}}, "*": {"annotations": {"destructiveHint": True}}},
            "disk/tidy",
            {"annotations": {"destructiveHint": True}},
        ),
        ({"disk@2/tidy": {"title": "Two"}, "disk@1/tidy": {"title": "One"}}, "disk@2/tidy@3", {"title": "Two"}),
        ({"Disk/TIDY": {"title": "Tidy"}}, "disk/tidy", {"title": "Tidy"}),
        ({"disk/*": {"title": "Disk"}}, "mail/send", {}),
    ],
)
def test_an_id_goes_before_globs_and_of_several_hints_the_strictest_counts(
    table: Any, id: str, found: dict[str, Any]
) -> None:
    assert said(table, id) == found


@pytest.mark.parametrize(
    ("table", "is_refused"),
    [
        ({"disk/*": {"title": "A"}, "*/tidy": {"title": "B"}}, True),
        ({"disk/*": {"title": "A"}, "*/tidy": {"title": "A"}}, False),
        ({"disk/t*": {"title": "A"}, "disk/r*": {"title": "B"}}, False),
        ({"disk/tidy": {"title": "A"}, "disk/tidy@2": {"title": "B"}}, True),
        ({"disk/tidy@1": {"title": "A"}, "disk/tidy@2": {"title": "B"}}, False),
        ({"disk/*": {"description": "A"}, "*": {"description": "B"}}, True),
        ({"disk/*": {"annotations": {"title": "A"}}, "*": {"annotations": {"title": "B"}}}, True),
        ({"disk/*": {"title": "A"}, "disk/tidy": {"title": "B"}}, False),
    ],
)
def test_two_texts_that_one_tool_could_have_are_refused_and_both_are_named(table: Any, is_refused: bool) -> None:
    if not is_refused:
        Presentation(table)
        return
    with pytest.raises(ConfigError, match="could match the same tool with equal precedence") as caught:
        Presentation(table)
    assert all(repr(key) in str(caught.value) for key in table)


def test_not_more_contradictions_are_told_than_anybody_reads() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        Presentation({f"a/{'*' * number}": {"title": str(number)} for number in range(1, 50)})
    assert len(caught.value.exceptions) == 20


def test_what_fits_no_tool_is_idle_unless_servers_are_missing() -> None:
    catalog = Catalog.of("disk/tidy")
    told = Presentation({"disk/*": SAFE, "disk/tydy": SAFE, "mail/*": SAFE})
    assert told.idle(catalog) == ("disk/tydy", "mail/*")
    assert told.partly().idle(catalog) == Presentation().idle(catalog) == ()
    assert told.keys(ToolId.parse("disk/tidy")) == ("disk/*",)


def test_rules_and_profiles_go_by_the_operators_word() -> None:
    catalog = Catalog.from_mcp({"disk": [TIDY, {"name": "look", "annotations": "none"}]})
    rule = CallRule(name="safe", outcome="allow", annotations={"readOnlyHint": True})
    policy = Policy(rules=[rule, CallRule(name="no", outcome="deny", annotations={"readOnlyHint": False})])

    def seen(said: Presentation) -> list[str]:
        tools = said.over(catalog).values()
        return [tool.origin.name for tool in tools if policy.visible(tool, Caller())]

    assert seen(Presentation()) == ["tidy"]
    told = Presentation({"disk/tidy": RISKY, "disk/look": SAFE})
    assert seen(told) == ["look"]
    profile = Profile(annotations={"readOnlyHint": True})
    assert [tool.origin.name for tool in told.over(catalog).values() if profile.shows(tool, Metadata())] == ["look"]


def test_a_title_stands_in_the_place_of_both_and_each_hint_counts_by_itself() -> None:
    catalog = Catalog.from_mcp({"disk": [TIDY]})
    table = {"disk/*": {"title": "Delete", "annotations": {"idempotentHint": False}}}
    tool = Presentation(table).over(catalog)["disk@1/tidy@1"]
    assert tool.shown == {
        "name": "tidy",
        "description": "Tidies up.",
        "title": "Delete",
        "annotations": {"title": "Delete", "readOnlyHint": True, "idempotentHint": False},
    }
    assert tool.definition == TIDY
    assert (tool.repeatable, catalog["disk@1/tidy@1"].repeatable) == (False, None)


def test_ids_that_are_asked_often_are_remembered_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.policy.presentation.MAX_CACHED", 2)
    told = Presentation({"disk/*": SAFE})
    for number in range(5):
        assert told.about(ToolId.parse(f"disk/t{number}")) == SAFE
    assert len(told._known) <= 2


def test_the_page_s_examples_are_so() -> None:
    page = (ROOT / "docs" / "gateway" / "presentation.md").read_text("utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (toml,) = re.findall(r"```toml[^\n]*\n(.*?)```", page, re.DOTALL)
    exec(compile(python, "docs/gateway/presentation.md", "exec"), {})
    assert said(tomllib.loads(toml)["tools"], "tickets/get_ticket")["annotations"]["idempotentHint"] is True


# Laws.

WORDS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.just("Any"),
        "description": st.just("Anything."),
        "annotations": st.dictionaries(st.sampled_from(["readOnlyHint", "idempotentHint"]), st.booleans()),
    },
)
KEYS = st.sampled_from(["*", "disk/*", "*/t*", "disk/tidy", "disk@1/tidy@1", "mail/*", "mail/send", "*@1/*_all"])
LISTS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["tidy", "send", "delete_all", "look"])},
        optional={"annotations": st.just(SAFE["annotations"]), "description": st.text("ab c", max_size=20)},
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda tool: str(tool["name"]),
)


@given(st.dictionaries(KEYS, WORDS), LISTS, LISTS)
def test_whatever_is_said_identities_digests_pins_and_names_stay(
    table: dict[str, Any], disk: list[dict[str, Any]], mail: list[dict[str, Any]]
) -> None:
    plain = Catalog.from_mcp({"disk": disk, "mail": mail})
    told = Presentation(table).over(plain)

    assert list(told) == list(plain)
    assert told.digest == plain.digest
    assert Lock.of(told).text() == Lock.of(plain).text()
    assert [pin_of(tool, tool.digest) for tool in told.values()] == [
        pin_of(tool, tool.digest) for tool in plain.values()
    ]
    names = [project(catalog, "universal", ledger=Ledger.memory()) for catalog in (plain, told)]
    assert dict(names[0]) == dict(names[1])
    with PinStore() as book:
        book.trust(admit(OfferedTools(list(plain.values())), {}, {}, Trust()).pins)
        after = admit(OfferedTools(list(told.values())), book.pins(), {}, Trust())
    assert (after.drifts, after.pins, after.hidden) == ([], [], {})


@given(st.dictionaries(KEYS, WORDS), LISTS)
def test_what_is_shown_is_the_servers_but_for_what_is_said(table: dict[str, Any], disk: list[dict[str, Any]]) -> None:
    for tool in Presentation(table).over(Catalog.from_mcp({"disk": disk})).values():
        notes = tool.presented.get("annotations", {})
        for field, value in tool.shown.items():
            own = tool.presented.get(field, tool.definition.get(field))
            assert value == ({**tool.definition.get(field, {}), **notes} if field == "annotations" else own)


PARTS = st.text("ab*?", min_size=1, max_size=5)
GLOBS = st.builds(lambda one, two, version: f"{one}{version}/{two}", PARTS, PARTS, st.sampled_from(["", "@1", "@*"]))


@given(GLOBS, GLOBS, st.text("ab", min_size=1, max_size=6), st.text("ab", min_size=1, max_size=6), st.integers(1, 2))
def test_globs_that_one_id_fits_can_meet(one: str, other: str, left: str, right: str, version: int) -> None:
    id = ToolId.parse(f"{left}@{version}/{right}@1")
    if fits_id(one, id) and fits_id(other, id):
        assert may_meet(one, other)
        assert may_meet(other, one)


@given(PARTS, PARTS)
def test_globs_that_can_meet_have_a_text_that_fits_both(one: str, other: str) -> None:
    """Every text up to the length of both together is tried: a shorter one exists if any does."""
    assert may_meet(f"x/{one}", f"x/{other}") is (_common(one, other) is not None)


def _common(one: str, other: str) -> str | None:
    """Return a text that fits both globs, found by taking them apart letter by letter."""
    if not one and not other:
        return ""
    ways: list[tuple[str, str, str]] = []
    if one.startswith("*"):
        ways += [("", one[1:], other)]
        ways += [(_letter(other), one, other[1:])] if other and other[0] != "*" else []
    if other.startswith("*"):
        ways += [("", one, other[1:])]
        ways += [(_letter(one), one[1:], other)] if one and one[0] != "*" else []
    if one and other and "*" not in (one[0], other[0]) and (one[0] == other[0] or "?" in (one[0], other[0])):
        ways += [(_letter(one if one[0] != "?" else other), one[1:], other[1:])]
    for letter, left, right in ways:
        if (rest := _common(left, right)) is not None:
            return letter + rest
    return None


def _letter(glob: str) -> str:
    return "a" if glob[0] == "?" else glob[0]
