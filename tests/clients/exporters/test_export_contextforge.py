"""ContextForge: custom names behind the slug of a gateway, and requests that never make two names equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.exporters.lists import LISTS, exported, real, sought, table
from truename.clients.exporters import GATEWAYS, ExportSource, FormerValues, GatewayApi
from truename.clients.exporters.contextforge import slug
from truename.errors import ConfigError
from truename.identity import fold
from truename.ledger import Ledger
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.clients.exporters import ApiRequest, RestorePlan

GATEWAY_PATH, TOOL_PATH = "/gateways?include_inactive=true&limit=0", "/tools?include_inactive=true&limit=0"


def api() -> GatewayApi:
    found = GATEWAYS["contextforge"].api
    assert found is not None
    return found


class Forge:
    """The tables of a ContextForge: it refuses a name that another tool of the same gateway has."""

    def __init__(self, gateways: Mapping[str, Sequence[str]], separator: str = "-") -> None:
        self.separator = separator
        self.gateways: list[dict[str, Any]] = [{"id": f"g{n}", "name": name} for n, name in enumerate(gateways)]
        self.tools: dict[str, dict[str, Any]] = {}
        for number, (name, own) in enumerate(gateways.items()):
            for at, tool in enumerate(own):
                id = f"t{number}.{at}"
                self.tools[id] = {"id": id, "gatewayId": f"g{number}", "gatewaySlug": slug(name, separator)}
                self.tools[id] |= {"originalName": tool}
                self._name(id, tool)

    def _name(self, id: str, custom: str) -> None:
        row = self.tools[id]
        row |= {"customName": custom, "customNameSlug": slug(custom, self.separator)}
        row["name"] = f"{row['gatewaySlug']}{self.separator}{row['customNameSlug']}"

    def rename(self, id: str, custom: str) -> None:
        self._name(id, custom)

    def answers(self) -> dict[str, object]:
        return {GATEWAY_PATH: self.gateways, TOOL_PATH: [dict(row) for row in self.tools.values()]}

    def take(self, requests: Sequence[ApiRequest]) -> None:
        for one in requests:
            id, custom = one.path.rpartition("/")[2], one.body["custom_name"]
            listed = f"{self.tools[id]['gatewaySlug']}{self.separator}{slug(custom, self.separator)}"
            assert not any(row["name"] == listed for row in self.tools.values() if row["id"] != id), one
            self._name(id, custom)

    def names(self) -> dict[tuple[str, str], str]:
        return {(row["gatewayId"], row["originalName"]): row["name"] for row in self.tools.values()}


def applied(forge: Forge, lists: Mapping[str, Sequence[str]], ledger: Ledger | None = None) -> Any:
    names = table(lists, ledger)
    state = api().state(forge.answers(), sought(names))
    export, _ = GATEWAYS["contextforge"].export(
        ExportSource(names=names, known_as=state.known_as, separator=state.separator)
    )
    plan = api().plan(export, state)
    forge.take(plan.requests)
    return export, plan


def restored(forge: Forge, values: Mapping[str, tuple[str, str]]) -> RestorePlan:
    """Plan to undo an export: by id of the tool, its former name and the one that the export set."""
    former = FormerValues(
        gateway="contextforge",
        values={id: {"custom_name": name} for id, (name, _) in values.items()},
        written={id: {"custom_name": name} for id, (_, name) in values.items()},
    )
    return api().undo(former, api().state(forge.answers(), ()))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("getUser", "getuser"),
        ("GET__user", "get-user"),
        ("_a.b/c_", "a-b-c"),
        ("Don't", "dont"),
        ("Zürich Straße", "zurich-strasse"),
        ("天気", ""),
    ],
)
def test_a_slug_is_as_contextforge_makes_it(text: str, made: str) -> None:
    assert slug(text) == made


@pytest.mark.parametrize("separator", ["-", "--", "_", "."])
def test_what_is_predicted_is_listed_with_each_separator(separator: str) -> None:
    lists = {"desk": ["search", "getTicket", "invoice.get"], "notes-mcp": ["search", "listNotes"]}
    forge = Forge(lists, separator)
    export, plan = applied(forge, lists)

    assert set(forge.names().values()) == {one.listed for one in export.tools}
    assert plan.left == ()


def test_a_listed_name_differs_from_its_claimed_one_in_separators_only() -> None:
    ledger = Ledger.memory()
    names = table(real(), ledger)
    export = exported("contextforge", names)

    assert [one for one in export.tools if ledger.holder(fold(one.listed)) != one.id] == []
    assert [one for one in export.tools if resolve(one.listed, names).id != one.id] == []


def test_a_gateway_under_another_name_gives_the_prefix_that_its_slug_has() -> None:
    lists = {"notes-mcp": ["search", "listNotes"]}
    forge = Forge({"Notes_MCP": lists["notes-mcp"]})
    export, _ = applied(forge, lists)

    assert [one.listed for one in export.tools] == ["notes-mcp-search", "notes-mcp-list-notes"]


def test_a_gateway_without_a_slug_is_not_expressible() -> None:
    export = exported("contextforge", table(LISTS), known_as={"文書": "文書"})

    assert [(one.server, one.tool) for one in export.left] == [("文書", "検索")]


def test_a_gateway_that_is_not_registered_yet_is_proposed_under_the_beginning_of_its_names() -> None:
    lists = {"notes-mcp": ["search", "listNotes"], "desk": ["search"]}
    export = exported("contextforge", table(lists))
    forge = Forge({export.keys[key]: tools for key, tools in lists.items()})
    found, plan = applied(forge, lists)

    assert export.keys == {"notes-mcp": "notes", "desk": "desk"}
    assert [note for note in export.notes if "'notes-mcp'" in note and "'notes'" in note]
    assert list(found.second()) == []
    assert (plan.left, {one.listed for one in found.tools}) == ((), set(forge.names().values()))


def test_a_gateway_whose_slug_begins_no_name_is_told_a_better_name() -> None:
    lists = {"notes-mcp": ["search", "listNotes"], "desk": ["search"]}
    found, _ = applied(Forge(lists), lists)

    assert [one.tool for one in found.second()] == ["search", "listNotes"]
    assert any("'notes-mcp'" in note and "'notes'" in note for note in found.notes)


def test_nothing_is_sent_twice() -> None:
    lists = {"desk": ["getTicket", "search"]}
    forge = Forge(lists)
    _, first = applied(forge, lists)
    _, second = applied(forge, lists)

    assert (len(first.requests), second.requests) == (1, ())


def test_tools_that_swap_names_get_one_in_between() -> None:
    forge = Forge({"desk": ["a", "b", "c"]})
    forge.take(restored(forge, {"t0.0": ("b", "a"), "t0.1": ("c", "b"), "t0.2": ("a", "c")}).requests)

    assert forge.names() == {("g0", "a"): "desk-b", ("g0", "b"): "desk-c", ("g0", "c"): "desk-a"}


def test_undoing_restores_what_was_there() -> None:
    lists = {"desk": ["getTicket", "search"], "notes": ["listNotes"]}
    forge = Forge(lists)
    forge.rename("t0.0", "mine")
    before = forge.names()
    _, plan = applied(forge, lists)
    undone = api().undo(plan.former, api().state(forge.answers(), ()))
    forge.take(undone.requests)

    assert (forge.names(), undone.kept) == (before, ())
    assert [(one.tool, one.former, one.written) for one in plan.replaced] == [("getTicket", "mine", "get_ticket")]


def test_undoing_leaves_a_name_that_was_given_since_or_that_another_tool_has() -> None:
    forge = Forge({"desk": ["a", "b", "c"]})
    values = {"t0.0": ("mine", "a"), "t0.1": ("theirs", "b_set"), "t0.2": ("b", "c"), "gone": ("x", "y")}
    undone = restored(forge, values)
    forge.take(undone.requests)

    assert forge.names() == {("g0", "a"): "desk-mine", ("g0", "b"): "desk-b", ("g0", "c"): "desk-c"}
    assert all(what in str(undone.kept) for what in ("'b' was renamed", "'c' stays 'c'", "'gone' is not"))
    assert len(undone.kept) == 3


def test_two_tools_that_shall_get_one_name_are_not_sent() -> None:
    undone = restored(Forge({"desk": ["a", "b"]}), {"t0.0": ("x", "a"), "t0.1": ("X", "b")})

    assert [one.path for one in undone.requests] == ["/tools/t0.0"]
    assert len(undone.kept) == 1


@pytest.mark.parametrize(
    "stale", [{"old": "get_ticket"}, {"old": "get-ticket"}, {"old": "search", "search": "get_ticket"}]
)
def test_a_tool_outside_of_the_export_keeps_its_name_and_the_exported_one_is_listed(stale: dict[str, str]) -> None:
    forge = Forge({"desk": ["getTicket", "search", "old"]})
    ids = {row["originalName"]: id for id, row in forge.tools.items()}
    for tool in sorted(stale, reverse=True):
        forge.rename(ids[tool], stale[tool])
    _, plan = applied(forge, {"desk": ["getTicket", "search"]})

    assert "getTicket" in [one.tool for one in plan.left]
    assert all("keeps it" in one.reason for one in plan.left)
    assert plan.requests == ()


def test_the_name_in_between_is_one_that_no_tool_has() -> None:
    forge = Forge({"desk": ["a", "b", "c"]})
    swap = {"t0.0": ("b", "a"), "t0.1": ("a", "b")}
    between = restored(forge, swap).requests[0].body["custom_name"]
    forge.rename("t0.2", between)
    forge.take(restored(forge, swap).requests)

    assert forge.names() == {
        ("g0", "a"): "desk-b",
        ("g0", "b"): "desk-a",
        ("g0", "c"): f"desk-{slug(between)}",
    }


def test_an_undo_file_of_two_exports_restores_what_was_before_the_first() -> None:
    lists = {"desk": ["getTicket", "search"]}
    forge = Forge(lists)
    forge.rename("t0.0", "x")
    forge.rename("t0.1", "get_ticket")
    forge.rename("t0.0", "search")
    before = forge.names()
    names = table(lists)
    state = api().state(forge.answers(), sought(names))
    export = exported("contextforge", names, known_as=state.known_as)
    first = api().plan(export, state)
    forge.take(first.requests[:1])
    second = api().plan(export, api().state(forge.answers(), sought(names)))
    forge.take(second.requests)
    undone = api().undo(
        first.former.before(second.former, api().is_passing), api().state(forge.answers(), sought(names))
    )
    forge.take(undone.requests)

    assert (forge.names(), undone.kept) == (before, ())


@pytest.mark.parametrize(
    "changes", [{"gatewayId": {"x": 1}}, {"gatewayId": []}, {"originalName": ["a"]}, {"customName": {"a": 1}}]
)
def test_a_tool_whose_fields_are_no_texts_harms_nothing(changes: dict[str, object]) -> None:
    forge = Forge({"desk": ["getTicket", "other"]})
    forge.tools["t0.1"] |= changes
    _, plan = applied(forge, {"desk": ["getTicket"]})

    assert [one.path for one in plan.requests] == ["/tools/t0.0"]


@pytest.mark.parametrize("id", [None, "", 7, "..", ["a"], {}])
def test_a_tool_without_an_id_is_an_error(id: object) -> None:
    forge = Forge({"desk": ["getTicket"]})
    forge.tools["t0.0"]["id"] = id
    with pytest.raises(ConfigError):
        api().state(forge.answers(), ())


@pytest.mark.parametrize("id", [None, 7, ["a"], {}])
def test_a_gateway_without_an_id_has_no_tools(id: object) -> None:
    forge = Forge({"desk": ["getTicket"]})
    forge.gateways[0]["id"] = id
    _, plan = applied(forge, {"desk": ["getTicket"]})

    assert (plan.requests, [one.tool for one in plan.left]) == ((), ["getTicket"])


def test_missing_gateways_and_tools_are_listed() -> None:
    lists = {"desk": ["search", "new"], "notes": ["list"]}
    export, plan = applied(Forge({"desk": ["search"]}), lists)
    left = export.without(plan.left)

    assert [(one.server, one.tool) for one in plan.left] == [("notes", ""), ("desk", "new")]
    assert [(one.server, one.tool) for one in left.tools] == [("desk", "search")]
    assert left.left == plan.left


def test_an_id_from_an_answer_is_one_segment_of_a_path() -> None:
    forge = Forge({"desk": ["getTicket"]})
    forge.tools = {"t": forge.tools["t0.0"] | {"id": "../../admin?x=1#y"}}
    names = table({"desk": ["getTicket"]})
    state = api().state(forge.answers(), sought(names))
    export, _ = GATEWAYS["contextforge"].export(ExportSource(names=names, known_as=state.known_as))

    assert [one.path for one in api().plan(export, state).requests] == ["/tools/..%2F..%2Fadmin%3Fx%3D1%23y"]


@pytest.mark.parametrize("answer", [None, {}, [3], "x"])
def test_an_answer_that_is_no_list_of_objects_is_an_error(answer: object) -> None:
    with pytest.raises(ConfigError):
        api().state({GATEWAY_PATH: [], TOOL_PATH: answer}, ())
