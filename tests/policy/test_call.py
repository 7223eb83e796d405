"""From a provider's payload to a call: exactly one tool, an id that is never made up, arguments nobody can change."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import ADA, call, shown, tool
from truename import Catalog, Ledger, project
from truename.errors import AmbiguousName, InvalidCall, RetiredName, TruenameError, UnknownTool
from truename.identity import ToolId, definition_digest
from truename.identity.keys import LookupKey
from truename.policy import Call, Caller, bound_call, call_of

if TYPE_CHECKING:
    from truename.catalog import Tool

NAMES = shown({"docs": [tool("search", readOnlyHint=True), "fetch"], "git": ["search"]})
GOOD: dict[str, Any] = {"type": "function_call", "name": "docs_search", "call_id": "c1", "arguments": '{"q": "x"}'}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_a_call_says_all_that_policy_asks_about() -> None:
    made = call_of({**GOOD, "id": "fc_1", "status": "completed"}, NAMES, ADA)

    assert (str(made.id), made.call_id, made.arguments) == ("docs@1/search@1", "c1", {"q": "x"})
    assert (made.origin.server, made.origin.name, made.wire_name) == ("docs", "search", "docs_search")
    assert made.digest == NAMES.catalog["docs@1/search@1"].digest
    assert (made.key, made.caller) == (LookupKey("bare", "docs_search"), ADA)
    assert made.annotations == {"readOnlyHint": True}
    assert (made.claims, made.offered) == (({"readOnlyHint": True},), None)
    assert (made.copied(), made.copied().annotations) == (made, made.annotations)
    assert made.copied().annotations is not made.annotations


def test_another_call_of_a_tool_differs_in_its_id_and_its_arguments_alone() -> None:
    first, given = call_of(GOOD, NAMES, ADA), {"q": ["y"]}
    other = first.again(call_id="c2", arguments=given)

    assert other == call_of({**GOOD, "call_id": "c2", "arguments": given}, NAMES, ADA)
    assert other.arguments["q"] is not given["q"]
    assert (first.call_id, first.arguments) == ("c1", {"q": "x"})
    assert other.annotations is not first.annotations


@pytest.mark.parametrize(("call_id", "arguments"), [("", {}), ("c" * 20_000, {}), ("c2", None), ("c2", {"a": 1e999})])
def test_another_call_of_a_tool_is_read_as_strictly(call_id: str, arguments: object) -> None:
    with pytest.raises(InvalidCall) as told:
        call_of(GOOD, NAMES, ADA).again(call_id=call_id, arguments=arguments)
    with pytest.raises(InvalidCall) as alike:
        bound_call(name="docs_search", call_id=call_id, arguments=arguments, names=NAMES)

    assert told.value == alike.value


@pytest.mark.parametrize("name", ["docs_search", "docs/search", "docs@1/search@v1", "docs%401~search", "Docs_Search"])
def test_every_name_of_a_tool_makes_the_same_call(name: str) -> None:
    made = call_of({**GOOD, "name": name}, NAMES, ADA)

    assert made.fingerprint == call_of(GOOD, NAMES, ADA).fingerprint


@pytest.mark.parametrize("field", ["call_id", "digest", "wire_name", "shape", "endpoint"])
def test_a_call_that_is_built_by_hand_has_texts_where_texts_belong(field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        replace(call(NAMES, "docs_search"), **{field: 12})  # type: ignore[arg-type]

    assert (caught.value.field, caught.value.problem) == (field, "is of type int, not text")


class Word(str):
    """A text of a library's own kind."""

    __slots__ = ()


@pytest.mark.parametrize("field", ["call_id", "digest", "wire_name", "shape", "endpoint"])
def test_a_text_that_is_built_by_hand_may_be_empty_and_as_long_as_any(field: str) -> None:
    made = call(NAMES, "docs_search")

    for value in ("", "x" * 1_024, Word(""), Word("x")):
        assert getattr(replace(made, **{field: value}), field) == value  # type: ignore[arg-type]
    with pytest.raises(InvalidCall, match=f"{field} has 1,025 characters, more than 1,024"):
        replace(made, **{field: "x" * 1_025})  # type: ignore[arg-type]
    with pytest.raises(InvalidCall, match=f"{field} is missing"):
        replace(made, **{field: None})  # type: ignore[arg-type]


def test_a_definition_that_is_shown_beside_a_newer_one_is_judged_by_both() -> None:
    catalog = Catalog.from_mcp({"docs": [tool("search", readOnlyHint=True)]})
    (old,) = catalog.values()
    offered = tool("search", "rewritten", readOnlyHint=False)
    now = replace(old, offered=offered, presented={"annotations": {"idempotentHint": True}})
    made = call(project(Catalog([now]), "openai"), "docs_search")

    assert made.claims == (
        {"readOnlyHint": True, "idempotentHint": True},
        {"readOnlyHint": False, "idempotentHint": True},
    )
    assert (made.annotations, made.offered) == made.claims
    assert made.digest == definition_digest(offered)
    assert made.shape == definition_digest({key: value for key, value in offered.items() if key != "name"})


def test_who_knows_the_digests_of_a_definition_gives_them() -> None:
    met: list[str] = []

    def known(tool: Tool) -> tuple[str, str]:
        met.append(str(tool.id))
        return "digest of it", "shape of it"

    made = bound_call(name="docs_search", call_id="c1", arguments="{}", names=NAMES, digests=known)

    assert (made.digest, made.shape, met) == ("digest of it", "shape of it", ["docs@1/search@1"])


def test_calls_can_be_told_apart_and_gathered() -> None:
    same, other = call_of(GOOD, NAMES, ADA), call_of({**GOOD, "call_id": "c2"}, NAMES, ADA)

    assert len({call_of(GOOD, NAMES, ADA), same, other}) == 2


def test_a_library_s_own_object_is_a_payload_too() -> None:
    assert call_of(SimpleNamespace(**GOOD), NAMES, ADA) == call_of(GOOD, NAMES, ADA)


def test_every_field_that_the_provider_s_own_library_knows_is_known_here() -> None:
    responses = pytest.importorskip("openai.types.responses")
    items = pytest.importorskip("openai.types.responses.response_output_item")
    texts = {"name": "docs_search", "call_id": "c1", "arguments": "{}", "id": "r1", "server_label": "docs"}
    for kind, word, id in (
        (responses.ResponseFunctionToolCall, "function_call", "c1"),
        (responses.ResponseFunctionToolCallItem, "function_call", "c1"),
        (responses.ParsedResponseFunctionToolCall, "function_call", "c1"),
        (items.McpApprovalRequest, "mcp_approval_request", "r1"),
    ):
        typed = kind.construct(**{key: value for key, value in texts.items() if key in kind.model_fields}, type=word)
        whole = dict.fromkeys(kind.model_fields) | typed.model_dump()
        for payload in (typed, typed.model_dump(), typed.model_dump(by_alias=True), whole):
            assert call_of(payload, NAMES).call_id == id
    misread = responses.ResponseFunctionToolCall.construct(**texts, type="function_call", recipient="evil")
    with pytest.raises(InvalidCall, match="recipient is not a field"):
        call_of(misread, NAMES)


def test_a_hosted_server_s_request_is_identified_by_its_own_id() -> None:
    request = {"type": "mcp_approval_request", "id": "r1", "name": "docs_search", "arguments": "{}"}

    assert call_of({**request, "server_label": "docs"}, NAMES).call_id == "r1"
    with pytest.raises(InvalidCall, match=r"id is missing"):
        call_of({**request, "id": None, "call_id": "c1"}, NAMES)


BAD: list[tuple[dict[Any, Any], str, str]] = [
    ({"name": None}, "name", "is missing"),
    ({"name": ""}, "name", "is empty"),
    ({"name": 7}, "name", "is of type int, not text"),
    ({"name": ["docs_search"]}, "name", "is of type list, not text"),
    ({"namespace": 7}, "namespace", "is of type int, not text"),
    ({"call_id": None}, "call_id", "is missing"),
    ({"call_id": None, "id": "fc_1"}, "call_id", "is missing"),
    ({"call_id": ""}, "call_id", "is empty"),
    ({"call_id": 12}, "call_id", "is of type int, not text"),
    ({"call_id": 0, "id": "fc_1"}, "call_id", "is of type int, not text"),
    ({"call_id": b"c1"}, "call_id", "is of type bytes, not text"),
    ({"call_id": "c" * 1_025}, "call_id", "has 1,025 characters, more than 1,024"),
    ({"namespace": "c" * 1_025}, "namespace", "has 1,025 characters, more than 1,024"),
    ({"arguments": None}, "arguments", "is missing"),
    ({"arguments": "{oops"}, "arguments", "is not JSON (Expecting property name enclosed in double quotes)"),
    ({"arguments": "[1]"}, "arguments", "is of type list, not an object"),
    ({"arguments": 7}, "arguments", "is of type int, not an object"),
    ({"arguments": '{"a": NaN}'}, "arguments", "contains NaN, which is not a JSON number"),
    ({"arguments": '{"a": [1e999]}'}, "arguments.a[0]", "is inf, which is not a JSON number"),
    ({"arguments": '{"a": 1, "a": 2}'}, "arguments.a", "occurs twice"),
    ({"arguments": {"a": {1, 2}}}, "arguments.a", "is of type set, which JSON does not have"),
    ({"arguments": {"a": {1: 2}}}, "arguments.a", "has a key of type int, not text"),
    ({"arguments": '{"a":' * 65 + "1" + "}" * 65}, "arguments", "is nested deeper than 64 levels"),
    ({"arguments": '{"a":' * 99_999}, "arguments", "is nested deeper than 64 levels"),
    ({"arguments": '"' + "a" * (4 * 1024 * 1024) + '"'}, "arguments", "has 4,194,306 characters, more than 4,194,304"),
    ({"recipient": "evil"}, "recipient", "is not a field of a call"),
    ({7: "evil"}, "7", "is not a field of a call"),
]


@pytest.mark.parametrize(("change", "field", "problem"), BAD, ids=[f"{row[1]} {row[2][:20]}" for row in BAD])
def test_a_bad_payload_is_refused_with_its_field(change: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        call_of({**GOOD, **change}, NAMES, ADA)

    assert (caught.value.field, caught.value.problem) == (field, problem)
    assert str(caught.value) == f"Invalid call: {field} {problem}; nothing was run. Correct it and send it again."


def test_what_is_no_payload_at_all_is_refused() -> None:
    for payload, kind in ((None, "NoneType"), ("docs_search", "str"), ([GOOD], "list"), (object(), "object")):
        with pytest.raises(InvalidCall) as caught:
            call_of(payload, NAMES)
        assert (caught.value.field, caught.value.problem) == ("the payload", f"is of type {kind}, not a call")
    extended = SimpleNamespace(**GOOD, model_extra={"recipient": "evil"})
    with pytest.raises(InvalidCall, match="recipient is not a field"):
        call_of(extended, NAMES)


@pytest.mark.parametrize("field", ["principal", "agent", "session", "client", "platform", "app"])
def test_a_caller_is_told_in_texts(field: str) -> None:
    values: list[Any] = [None, 7, "x" * 1_025]
    for value in values:
        with pytest.raises(InvalidCall) as caught:
            Caller(**{field: value})
        assert caught.value.field == f"caller.{field}"


def test_a_caller_calls_on_a_word_that_is_known() -> None:
    with pytest.raises(InvalidCall) as caught:
        Caller(origin="robot")  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.problem) == ("caller.origin", "is none of llm, replay, internal")


@pytest.mark.parametrize(
    ("name", "namespace", "error"),
    [
        ("search", None, AmbiguousName),
        ("nothing", None, UnknownTool),
        ("search", "docs", UnknownTool),
        ("docs.search", None, None),
        ("docs_search", "docs_search", None),
        ("docs_search", "", None),
    ],
)
def test_a_namespace_is_part_of_a_key_and_never_joined_to_a_name(
    name: str, namespace: str | None, error: type[TruenameError] | None
) -> None:
    payload = {**GOOD, "name": name, "namespace": namespace}
    if error is None:
        assert str(call_of(payload, NAMES).id) == "docs@1/search@1"
        return
    with pytest.raises(error):
        call_of(payload, NAMES)


def test_an_adapter_that_shows_namespaces_gives_their_keys() -> None:
    keys = {LookupKey("namespaced", "search", server): NAMES.id_of(f"{server}_search") for server in ("docs", "git")}
    payload = {**GOOD, "name": "search"}

    assert str(call_of({**payload, "namespace": "git"}, NAMES, keys=keys).id) == "git@1/search@1"
    with pytest.raises(UnknownTool) as caught:
        call_of({**payload, "namespace": "evil"}, NAMES, keys=keys)
    assert caught.value.text == "evil.search"
    assert caught.value.trail == ("keys: no tool has this name and namespace",)
    assert caught.value.suggestions == NAMES.suggester.nearest("search")
    # A key of a tool that this reader does not see is no way to call it.
    hidden = {LookupKey("namespaced", "search", "docs"): ToolId.parse("away@1/search@1")}
    with pytest.raises(UnknownTool):
        call_of({**payload, "namespace": "docs"}, NAMES, keys=hidden)
    with pytest.raises(AmbiguousName):
        call_of(payload, NAMES, keys=keys)


def test_a_withdrawn_name_makes_no_call() -> None:
    ledger = Ledger.memory()
    names = shown({"docs": ["search"]}, ledger=ledger)
    ledger.retire("docs_search")

    with pytest.raises(RetiredName):
        call_of(GOOD, names)


def test_an_id_may_be_as_long_as_any_text() -> None:
    assert call_of({**GOOD, "call_id": "c" * 1_024}, NAMES).call_id == "c" * 1_024


def test_no_arguments_may_be_an_empty_text() -> None:
    assert call(NAMES, "docs_search", arguments=" ").arguments == {}


def test_who_changes_the_arguments_has_another_call() -> None:
    original = {"paths": ["/tmp/a"]}
    made = call(NAMES, "docs_search", arguments=original)
    before = made.fingerprint
    original["paths"].append("/etc")

    assert made.fingerprint == before
    made.arguments["paths"].append("/etc")
    assert made.fingerprint != before


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [1, 2]}', '{"b":[1.0,2],"a":1e0}', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": null}', "{}", False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": 12345678901234567890}', '{"a": 12345678901234567891}', False),
        ('{"a": 12345678901234567890, "b": 1}', '{"b": 1, "a": 12345678901234567890}', True),
        (r'{"a": "\ud800"}', r'{"a": "\ud801"}', False),
        ('{"a": "\u00e9"}', '{"a": "e\u0301"}', False),
    ],
)
def test_the_same_call_is_a_matter_of_meaning(one: str, other: str, same: bool) -> None:
    first, second = (call(NAMES, "docs_search", arguments=text) for text in (one, other))

    assert (first.fingerprint == second.fingerprint) is same


@given(st.dictionaries(st.text(), JSON, max_size=3), st.dictionaries(st.text(), JSON, max_size=3))
def test_two_calls_are_the_same_exactly_if_their_arguments_are(one: dict[str, Any], other: dict[str, Any]) -> None:
    names = project(Catalog.of("docs@1/search@1"), "openai")
    first, second = (call(names, "docs/search", arguments=arguments) for arguments in (one, other))

    if _plain(one) == _plain(other):
        assert first.fingerprint == second.fingerprint
    if first.fingerprint == second.fingerprint:
        assert one == other


def _plain(value: Any) -> str:
    return repr(value) if not isinstance(value, dict) else repr({key: _plain(value[key]) for key in sorted(value)})


@given(st.dictionaries(st.sampled_from(["name", "call_id", "namespace", "arguments", "type", "id"]), JSON))
def test_whatever_comes_is_a_call_or_a_typed_error(payload: dict[str, Any]) -> None:
    try:
        made = call_of(payload, NAMES)
    except TruenameError:
        return
    assert isinstance(made, Call)
    assert made.call_id in (payload.get("call_id"), payload.get("id"))


def test_what_is_behind_a_server_is_said_of_its_calls() -> None:
    payload = {"name": "github_search", "call_id": "c1", "arguments": "{}"}
    names = project(Catalog.of("github/search"), "openai")

    assert call_of(payload, names).endpoint == ""
    assert call_of(payload, names, endpoints={"github": "sha256:1", "other": "sha256:2"}).endpoint == "sha256:1"


def test_an_id_that_is_too_long_is_told_where_it_stands() -> None:
    names = project(Catalog.of("github/search"), "openai")
    payload = {"type": "mcp_approval_request", "name": "github_search", "id": "x" * 10_000, "arguments": "{}"}
    with pytest.raises(InvalidCall) as caught:
        call_of(payload, names)

    assert caught.value.field == "id"
