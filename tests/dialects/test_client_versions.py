"""The rules of a client by its version: which run speaks for a version, and what is said where none does."""

from __future__ import annotations

import json
import re
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.older import FORMER, changed_table
from tests.shared import ROOT
from truename import Catalog, Ledger, ToolId, dialects, project, resolve
from truename.dialects import ClientRun, ClientVersion
from truename.dialects.client_versions import speaks_for
from truename.errors import UnknownDialect

if TYPE_CHECKING:
    from collections.abc import Iterator

# The order of Semantic Versioning 2.0.0, section 11, and versions of real clients.
ASCENDING: Final = (
    "0.0.0-dev-202609231200", "0", "0.1.2504172351", "0.2.0", "0.10.0", "0.50.0-alpha.3", "0.50", "0.50.1",
    "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
    "1.0.0", "1.0.0.1", "2.0.0a1", "2.0.0rc1", "2.0.0", "10", "2026.9.30",
)  # fmt: skip
ROW: Final = "opencode"


@pytest.mark.parametrize(("older", "newer"), list(pairwise(ASCENDING)))
def test_versions_are_ordered_as_semantic_versioning_says(older: str, newer: str) -> None:
    assert ClientVersion.parse(older) < ClientVersion.parse(newer)
    assert ClientVersion.parse(newer) > ClientVersion.parse(older)
    assert ClientVersion.parse(older) != ClientVersion.parse(newer)


@pytest.mark.parametrize("same", ["0.50", "v0.50", "0.50.0", "V0.50.0.0", "0.050", "0.50.0+build.7"])
def test_equal_versions_are_one(same: str) -> None:
    assert ClientVersion.parse(same) == ClientVersion.parse("0.50.0")
    assert hash(ClientVersion.parse(same)) == hash(ClientVersion.parse("0.50.0"))
    assert ClientVersion.parse(same) != same


NO_VERSIONS: Final = (
    "", "x", ".1", "1.", "1..2", "1.2-", "1.2-a..b", "1.2 ", "1.2\n", "١.٢", "1.2+", "^1.2", ">=1", "1.x",
    "1.2-ä", "../1", "1/2", "9" * 65,
)  # fmt: skip


@pytest.mark.parametrize("text", NO_VERSIONS)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="dotted numbers"):
        ClientVersion.parse(text)
    with pytest.raises(UnknownDialect):
        dialects.get(f"codex@@{text}")


numbers = st.lists(st.integers(0, 10**9), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
words = st.one_of(st.integers(0, 99).map(str), st.from_regex(r"[0-9A-Za-z-]{1,5}", fullmatch=True))
pres = st.lists(words, min_size=1, max_size=3).map(".".join)
texts = st.one_of(numbers, st.builds("{}-{}".format, numbers, pres))


@given(st.lists(texts.filter(lambda text: len(text) <= 64), min_size=3, max_size=3))
def test_the_order_is_total(several: list[str]) -> None:
    one, two, three = map(ClientVersion.parse, several)

    assert (one < two) + (one == two) + (two < one) == 1
    assert not (one < two < three) or one < three
    assert (one == two) == (hash(one) == hash(two)) or one != two


@given(st.dictionaries(numbers, st.integers(0, 3), min_size=1, max_size=6), numbers)
def test_the_nearest_older_run_speaks_and_is_certain_only_between_two_that_agree(
    rules: dict[str, int], asked: str
) -> None:
    known = sorted(rules, key=ClientVersion.parse)
    version = ClientVersion.parse(asked)

    run, number, seen = speaks_for(version, [(ClientRun(one, "2026-11-27"), rules[one]) for one in known])

    assert number == rules[run.version]
    older = [one for one in known if ClientVersion.parse(one) <= version]
    assert run.version == (older[-1] if older else known[0])
    if any(ClientVersion.parse(one) == version for one in known):
        assert seen
    if version > ClientVersion.parse(known[-1]) or version < ClientVersion.parse(known[0]):
        assert not seen


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table in which opencode had two other conventions before."""
    with changed_table(monkeypatch, versions=FORMER):
        yield


UNRUN: Final = "opencode {} was not run; the rules are those of {}, run on 2026-11-{}."


@pytest.mark.usefixtures("older")
@pytest.mark.parametrize(
    ("asked", "name", "shown", "unrun"),
    [
        ("0.1.0", "opencode@0.1.0", "x", ""),
        ("v0.1", "opencode@0.1.0", "x", ""),
        ("0.1.7", "opencode@0.1.0", "x", ""),
        ("0.2.0", "opencode@0.1.0", "x", ""),
        ("0.0.9", "opencode@0.1.0", "x", UNRUN.format("0.0.9", "0.1.0", "01")),
        ("0.3", "opencode@0.1.0", "x", UNRUN.format("0.3", "0.2.0", "02")),
        ("0.5.0-rc.1", "opencode@0.1.0", "x", UNRUN.format("0.5.0-rc.1", "0.2.0", "02")),
        ("0.9", "opencode@0.5.0", "mcp__lab__x", ""),
        ("1.0", "opencode@0.5.0", "mcp__lab__x", UNRUN.format("1.0", "0.9.0", "04")),
        ("1.18.33", "opencode", "lab_x", ""),
        ("1.18.34", "opencode", "lab_x", UNRUN.format("1.18.34", "1.18.33", "23")),
        ("latest", "opencode", "lab_x", ""),
        (" LATEST ", "opencode", "lab_x", ""),
    ],
)
def test_a_version_gets_the_rules_that_were_seen_with_it_or_is_said_not_to_be_run(
    asked: str, name: str, shown: str, unrun: str
) -> None:
    found = dialects.get(f"Open Code@{asked}")

    assert (found.name, found.shown("lab", "x"), found.unrun) == (name, shown, unrun)
    assert found.client == ROW
    assert found.confidence == ("read" if unrun else "run")


@pytest.mark.usefixtures("older")
def test_a_row_is_its_newest_rules_and_the_older_ones_are_listed_before() -> None:
    assert [one.name for one in dialects.versions("open-code")] == ["opencode@0.1.0", "opencode@0.5.0", "opencode"]
    assert dialects.versions("opencode@0.1.0") == dialects.versions("opencode")
    assert dialects.get("opencode").shown("lab", "x") == "lab_x"
    older = {*dialects.names(older=True)} - {*dialects.names()}
    assert {"opencode@0.1.0", "opencode@0.5.0"} == {name for name in older if name.startswith("opencode")}


def test_a_client_of_which_no_version_was_run_says_so() -> None:
    cursor = dialects.get("cursor@1.2")

    assert cursor.unrun == "Cursor 1.2 was not run, nor was any other version; its rules were read."
    assert (cursor.name, cursor.shown("lab", "x")) == ("cursor", dialects.get("cursor").shown("lab", "x"))


@pytest.mark.parametrize(
    "text", ["openai@1", "universal@1", "native@2", "mcp-2025-11-25@1", "codex@", "codex@1@2", "codex@ ", "codex@x"]
)
def test_only_clients_and_frameworks_have_versions(text: str) -> None:
    with pytest.raises(UnknownDialect, match="is not a version of") as caught:
        dialects.get(text)

    assert caught.value.version == text.partition("@")[2]


def test_a_long_text_is_refused_shortly() -> None:
    with pytest.raises(UnknownDialect) as caught:
        dialects.get("codex@" + "1." * 1_000_000)
    assert len(str(caught.value)) < 300


@pytest.mark.usefixtures("older")
def test_a_new_row_of_a_version_renames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog.from_mcp({"git": [{"name": f"tool_{'very_' * n}long"} for n in range(1, 8)], "hg": ["push"]})
    with closing(Ledger.memory()) as ledger:
        before = {name: dict(project(catalog, name, ledger=ledger)) for name in dialects.names()}
        tight = [{"key": "0.0.1", "runs": {"0.0.1": "2026-11-05"}, "max_length": 25, "unknown": []}, *FORMER]
        with changed_table(monkeypatch, versions=tight):
            assert dialects.get("universal").max_length == 14
            after = {name: dict(project(catalog, name, ledger=ledger)) for name in dialects.names()}

    assert after == before


@pytest.mark.usefixtures("older")
def test_a_name_shown_to_one_version_never_means_another_tool_to_the_next() -> None:
    catalog = Catalog.from_mcp({"a": ["b__c", "search"], "a__b": ["c", "search"]})
    with closing(Ledger.memory()) as ledger:
        shown = {
            (name, wire): id
            for name in ("opencode@0.1.0", "opencode@0.5.0", "opencode", "universal")
            for id, wire in project(catalog, name, ledger=ledger).items()
        }
        meaning: dict[str, set[object]] = {}
        for (_, wire), id in shown.items():
            meaning.setdefault(wire, set()).add(id)

        assert all(len(ids) == 1 for ids in meaning.values())
        table = project(catalog, "opencode", ledger=ledger)
        for (_, wire), id in shown.items():
            assert resolve(wire, table).id == id


@pytest.mark.usefixtures("older")
def test_the_prefix_that_an_older_version_adds_leads_to_the_tool_too(monkeypatch: pytest.MonkeyPatch) -> None:
    strange = [{"key": "0.1.0", "runs": {"0.1.0": "2026-11-01"}, "join": "zz~{server}~{tool}"}]
    with changed_table(monkeypatch, versions=strange):
        table = project(Catalog.of("git/push"), "opencode")

        assert str(resolve("zz~truename~git_push", table).id) == "git@1/push@1"


@pytest.mark.usefixtures("older")
def test_an_override_for_a_client_holds_for_its_newest_rules_by_any_version() -> None:
    catalog = Catalog.of("git/push")
    shove: dict[ToolId | str, str] = {"git/push": "shove"}
    fixed = {"opencode": shove}
    id = "git@1/push@1"

    assert project(catalog, "opencode@1.18.40", overrides=fixed)[id] == "shove"
    assert project(catalog, "opencode@0.1.0", overrides=fixed)[id] == "git_push"
    assert project(catalog, "opencode@0.2.0", overrides={"opencode@0.1.3": shove})[id] == "shove"


def test_the_table_says_of_each_older_convention_when_it_was_run() -> None:
    for row in json.loads((ROOT / "src/truename/dialects/table.json").read_text("utf-8"))["rows"]:
        for run, day in row.get("runs", {}).items():
            assert ClientVersion.parse(run)
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", day)
        for former in row.get("versions", ()):
            assert former["key"] in former["runs"], row["name"]
            assert former["lab"], row["name"]
            for run, day in former["runs"].items():
                assert ClientVersion.parse(run)
                assert re.fullmatch(r"20\d\d-\d\d-\d\d", day)


@pytest.mark.parametrize("name", [row.name for row in dialects.table() if len(dialects.versions(row.name)) > 1])
def test_conventions_follow_each_other_without_overlap_and_differ(name: str) -> None:
    several = dialects.versions(name)
    for one, two in pairwise(several):
        assert ClientVersion.parse(one.runs[-1].version) < ClientVersion.parse(two.runs[0].version)
        assert (one.mangling, one.chars, one.max_length) != (two.mangling, two.chars, two.max_length)
    for one in several:
        assert dialects.get(one.name).name == one.name
        for run in one.runs:
            found = dialects.get(f"{name}@{run.version}")
            assert (found.name, found.version, found.date, found.unrun) == (one.name, *run, "")


def test_no_name_of_a_dialect_has_the_sign_of_a_version() -> None:
    names = [name for row in dialects.table() for name in (row.name, row.title, *row.aliases)]

    assert not [name for name in names if "@" in name[1:]]
    assert [name for name in names if name.startswith("@")] == ["@langchain/mcp-adapters"]
    assert dialects.get("@langchain/mcp-adapters@99").release == "99"
