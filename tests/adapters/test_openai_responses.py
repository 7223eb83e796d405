"""OpenAI Responses: namespaces, deferred tools, tool search, choices, and answers that are damaged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.model_apis import RESPONSES, accepts_responses_tools, awkward_catalog
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.adapters import openai_responses
from truename.adapters.history import rewrite
from truename.adapters.layout import NamespaceLayout, namespace_of
from truename.errors import DuplicateTool, InvalidCall, InvalidPayload, UnknownTool
from truename.identity import LookupKey

CATALOG = Catalog.of("crm@1/lookup@1", "billing@1/lookup@1", "crm@1/update@1", aliases={})
NAMES = project(CATALOG, "openai-responses")
SPACES = NamespaceLayout.by_server(NAMES)
LOOKUP, BILLING, UPDATE = map(ToolId.parse, ("crm/lookup", "billing/lookup", "crm/update"))
ITEM: dict[str, Any] = {"type": "function_call", "call_id": "c", "name": "crm_lookup", "arguments": "{}"}


def response(*items: Any) -> dict[str, Any]:
    return {"id": "r", "output": list(items)}


@pytest.mark.parametrize(
    "layout",
    [
        RESPONSES.names(awkward_catalog()),
        NamespaceLayout.by_server(RESPONSES.names(awkward_catalog())),
        NamespaceLayout.by_server(RESPONSES.names(awkward_catalog()), defer=True, descriptions={"crm": "Customers"}),
        NamespaceLayout.of(NAMES).deferring([LOOKUP]),
    ],
)
@pytest.mark.parametrize("search", ["server", "client", None])
def test_tools_are_what_the_library_knows(layout: Any, search: Any) -> None:
    tools = openai_responses.tools(layout, search=search)

    accepts_responses_tools(tools)
    names = [(tool.get("name"), inner.get("name")) for tool in tools for inner in tool.get("tools", [{}])]
    assert len(set(names)) == len(names)


def test_tools_of_one_namespace_stand_together_where_the_first_of_them_stood() -> None:
    tools = openai_responses.tools(SPACES)

    assert [(tool["type"], tool["name"], [inner["name"] for inner in tool["tools"]]) for tool in tools] == [
        ("namespace", "crm", ["lookup", "update"]),
        ("namespace", "billing", ["lookup"]),
    ]
    assert all(tool["description"] for tool in tools)


def test_a_deferred_tool_brings_one_tool_search() -> None:
    tools = openai_responses.tools(NamespaceLayout.of(NAMES).deferring([LOOKUP]))

    assert [tool.get("defer_loading") for tool in tools] == [True, None, None, None]
    assert tools[-1] == {"type": "tool_search"}
    assert [tool["type"] for tool in openai_responses.tools(NAMES)] == ["function"] * 3


def test_what_a_client_s_tool_search_finds_is_sent_in_the_shape_of_the_tools() -> None:
    layout = NamespaceLayout.by_server(NAMES, defer=True)

    item = openai_responses.search_result("s", [UPDATE], layout)

    RESPONSES.accepts([item])
    assert [(tool["name"], [inner["name"] for inner in tool["tools"]]) for tool in item["tools"]] == [
        ("crm", ["update"])
    ]


def test_a_server_s_short_names_do_not_depend_on_who_else_is_there() -> None:
    ledger = Ledger.memory()
    before = NamespaceLayout.by_server(
        project(Catalog.of("crm@1/lookup@1", aliases={}), "openai-responses", ledger=ledger)
    )
    after = NamespaceLayout.by_server(project(CATALOG, "openai-responses", ledger=ledger))

    assert before.keys[LOOKUP] == after.keys[LOOKUP] == LookupKey("namespaced", "lookup", "crm")


def test_a_short_name_that_was_shown_is_never_another_tool_s() -> None:
    ledger = Ledger.memory()
    one, two = Catalog.of("crm@1/get_data@1"), Catalog.from_mcp({"crm": ["get-data"]})

    first = NamespaceLayout.by_server(project(one, "openai-responses", ledger=ledger))
    second = NamespaceLayout.by_server(project(two, "openai-responses", ledger=ledger))

    assert set(first.ids).isdisjoint(second.ids)


def test_a_tool_called_like_its_namespace_gets_another_short_name() -> None:
    layout = NamespaceLayout.by_server(project(Catalog.of("search@1/search@1"), "openai-responses"))

    assert [key.kind for key in layout.keys.values()] == ["namespaced"]
    assert next(iter(layout.ids)).name != "search"


@pytest.mark.parametrize("name", ["a" * 47, "a" * 48, "a" * 200])
def test_a_namespace_has_at_most_64_characters_and_stays_unique(name: str) -> None:
    others = {namespace_of(name[:-1]), namespace_of(name + "b"), namespace_of(namespace_of(name))}

    assert len(namespace_of(name)) <= 64
    assert len(name) < 48 or namespace_of(name) not in others


def test_a_layout_that_reads_two_ways_is_refused() -> None:
    keys = {LOOKUP: LookupKey("bare", "crm.lookup"), BILLING: LookupKey("namespaced", "lookup", "crm")}

    with pytest.raises(DuplicateTool) as caught:
        NamespaceLayout(NAMES, keys)

    assert caught.value.code == "ambiguous_qualified_name"


@pytest.mark.parametrize(
    ("layout", "choice", "made"),
    [
        (NAMES, "auto", "auto"),
        (NAMES, "required", "required"),
        (NAMES, "none", "none"),
        (NAMES, "crm_lookup", {"type": "function", "name": "crm_lookup"}),
        (SPACES, "crm.lookup", {"type": "function", "name": "crm.lookup"}),
        (SPACES, BILLING, {"type": "function", "name": "billing.lookup"}),
        (SPACES, "billing_lookup", {"type": "function", "name": "billing.lookup"}),
        (NamespaceLayout.of(NAMES).deferring([LOOKUP]), UPDATE, {"type": "function", "name": "crm_update"}),
    ],
)
def test_a_choice_is_a_mode_or_a_callable_tool(layout: Any, choice: Any, made: Any) -> None:
    assert openai_responses.tool_choice(choice, layout) == made


@pytest.mark.parametrize(
    ("layout", "choice", "problem"),
    [
        (SPACES, "crm", "is a namespace"),
        (SPACES, "update", "is a short name inside a namespace"),
        (NamespaceLayout.of(NAMES).deferring([LOOKUP]), LOOKUP, "is deferred"),
        (NamespaceLayout.of(NAMES).deferring([LOOKUP]), "crm_lookup", "is deferred"),
        (NamespaceLayout.by_server(NAMES, defer=[UPDATE]), "crm.update", "is deferred"),
    ],
)
def test_what_the_api_can_not_choose_is_refused(layout: Any, choice: Any, problem: str) -> None:
    with pytest.raises(InvalidPayload, match=problem) as caught:
        openai_responses.tool_choice(choice, layout)

    assert (caught.value.field, caught.value.code) == ("tool_choice", "invalid_request")


def test_a_choice_of_a_tool_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UnknownTool):
        openai_responses.tool_choice("zzz", SPACES)
    with pytest.raises(KeyError):
        SPACES.deferring(["no@1/tool@1"])


@pytest.mark.parametrize(
    ("layout", "name", "namespace", "id"),
    [
        (SPACES, "lookup", "crm", LOOKUP),
        (SPACES, "lookup", "billing", BILLING),
        (SPACES, "crm_update", None, UPDATE),
        (NAMES, "crm_lookup", None, LOOKUP),
        (NamespaceLayout.of(NAMES).deferring([LOOKUP]), "crm_lookup", "crm_lookup", LOOKUP),
        (NAMES, "crm_lookup", "crm_lookup", LOOKUP),
    ],
)
def test_a_call_is_found_by_name_and_namespace(layout: Any, name: str, namespace: str | None, id: ToolId) -> None:
    item = {**ITEM, "name": name, "namespace": namespace}

    (call,) = openai_responses.calls(response({"type": "reasoning", "id": "x"}, item), layout)

    assert call.id == id
    assert call.key.namespace == (None if namespace == name else namespace)


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("lookup", "nowhere"), ("update", "billing"), ("crm.lookup", None), ("CRM.Lookup", None), ("crm.lookup", "")],
)
def test_the_text_of_a_qualified_name_and_a_wrong_namespace_are_no_calls(name: str, namespace: str | None) -> None:
    layout = NamespaceLayout.by_server(project(Catalog.of("crm@1/lookup@1", "billing@1/lookup@1"), "openai-responses"))

    with pytest.raises(UnknownTool):
        openai_responses.calls(response({**ITEM, "name": name, "namespace": namespace}), layout)


@pytest.mark.parametrize(("name", "namespace"), [("a_b.c", None), ("crm", None), ("crm", "crm")])
def test_a_call_that_lost_its_namespace_is_never_one_of_a_tool_that_was_not_shown_under_the_name(
    name: str, namespace: str | None
) -> None:
    catalog = Catalog.of("a@1/b.c@1", "a_b@1/c@1", "crm@1/crm@1", "lookup@1/crm@1")
    layout = NamespaceLayout.by_server(project(catalog, "openai-responses"))
    item = {**ITEM, "name": name, "namespace": namespace}

    # The flat names alone lead to a@1/b.c and crm@1/crm, which are called "a.b_c" and "crm.crm_crm" here.
    assert resolve(name, layout.names).id in layout.names
    with pytest.raises(UnknownTool):
        openai_responses.calls(response(item), layout)
    past = rewrite([item], "openai_responses", "openai_responses", layout, layout)
    assert [call.id for call in past.calls] == [None]


FAULTS: list[tuple[Any, str]] = [
    (7, "the response"),
    ({}, "output"),
    ({"output": "x"}, "output"),
    (response("x"), "output[0]"),
    (response({"call_id": "c"}), "output[0].type"),
    (response({**ITEM, "call_id": None}), "output[0].call_id"),
    (response({**ITEM, "call_id": 12, "id": "fc_1"}), "output[0].call_id"),
    (response({**ITEM, "name": 3}), "output[0].name"),
    (response({**ITEM, "namespace": 3}), "output[0].namespace"),
    (response({**ITEM, "arguments": None}), "output[0].arguments"),
    (response({**ITEM, "arguments": {}}), "output[0].arguments"),
    (response({**ITEM, "arguments": "{"}), "output[0].arguments"),
    (response({**ITEM, "surprise": 1}), "output[0].surprise"),
    (response({**ITEM, "status": "incomplete"}), "output[0].arguments"),
    (response(ITEM, ITEM), "output[1].call_id"),
]


@pytest.mark.parametrize(("answer", "field"), FAULTS)
def test_a_damaged_answer_is_refused_with_the_field_that_is_wrong(answer: Any, field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        openai_responses.calls(answer, NAMES)

    assert caught.value.field == field


ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "arguments": ""}}
DELTA = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": ITEM}


def test_a_streamed_call_counts_when_it_is_done() -> None:
    other = {"type": "response.function_call_arguments.delta", "output_index": 4, "delta": "ignored"}

    (call,) = openai_responses.calls([ADDED, DELTA, other, DONE, {"type": "response.completed"}], NAMES)

    assert call.id == LOOKUP


@pytest.mark.parametrize(
    ("stream", "field"),
    [
        ([ADDED, DELTA], "events"),
        ([ADDED, {**DELTA, "delta": "{x"}, DONE], "output[0].arguments"),
        ([ADDED, ADDED], "events[1].item"),
        ([ADDED, {**DONE, "item": {**ITEM, "name": "other"}}], "events[1].item.name"),
        ([ADDED, {**DONE, "output_index": "0"}], "events[1].output_index"),
        ([{"output_index": 0}], "events[0].type"),
        ([ADDED, {**DELTA, "delta": 3}], "events[1].delta"),
    ],
)
def test_a_stream_that_is_cut_or_contradicts_itself_is_no_call(stream: list[Any], field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        openai_responses.calls(stream, NAMES)

    assert caught.value.field == field


def test_results_are_texts_or_parts() -> None:
    (call,) = openai_responses.calls(response(ITEM), NAMES)
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    made = [
        openai_responses.result(call, "x"),
        openai_responses.result(call, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], is_error=True),
        openai_responses.result(call, [image, {"type": "text", "text": "b"}], is_error=True),
    ]

    RESPONSES.accepts(made)
    assert made[1]["output"][0]["text"] == made[2]["output"][0]["text"] + "a" == "[tool error] a"
