"""The layers of one tool and one call: each computed in one place, none taken for another."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_source import offences, offences_in
from truename.identity import (
    LookupKey,
    ToolNames,
    approval_keys,
    call_id,
    call_key,
    call_trace_name,
    displayed_id,
    is_reserved,
    lookup_key,
    normalized,
    qualified_name,
    required_key,
    restored,
)

NOT_NAMES: list[Any] = [None, "", 0, 12, True, b"x", ["x"], {"x": 1}]
DEFERRED = ToolNames(name="x", defer_loading=True)


@pytest.mark.parametrize(
    ("tool", "key", "approvals"),
    [
        (ToolNames(name="x"), ("bare", "x"), ("x",)),
        (ToolNames(name="x", namespace="n"), ("namespaced", "n", "x"), ("n.x",)),
        (ToolNames(name="x", namespace="n", defer_loading=True), ("namespaced", "n", "x"), ("n.x",)),
        (DEFERRED, ("deferred_top_level", "x"), ("deferred_top_level:x",)),
        (ToolNames(name="x", namespace="", defer_loading=True), ("deferred_top_level", "x"), ("deferred_top_level:x",)),
        (ToolNames(name="检索"), ("bare", "检索"), ("检索",)),
        (ToolNames(name=" "), ("bare", " "), (" ",)),
    ],
)
def test_a_tool_has_one_lookup_key_and_the_approval_key_that_goes_with_it(
    tool: ToolNames, key: tuple[str, ...], approvals: tuple[str, ...]
) -> None:
    assert tool.lookup_key is not None
    assert tool.lookup_key.tagged == key
    assert tool.approval_keys() == approvals
    assert call_key({"name": tool.name, "namespace": tool.lookup_key.call_namespace}) == tool.lookup_key


def test_a_tool_without_a_name_has_no_identity() -> None:
    nameless = ToolNames(name="", namespace="n", defer_loading=True)

    assert (nameless.lookup_key, nameless.qualified_name, nameless.trace_name) == (None, None, None)
    assert nameless.approval_keys() == ()
    assert not nameless.is_deferred_top_level
    with pytest.raises(ValueError, match="needs a name"):
        required_key("")


@pytest.mark.parametrize("value", NOT_NAMES)
def test_nothing_but_a_string_that_is_not_empty_counts_as_a_name(value: Any) -> None:
    assert lookup_key(value, "n") is None
    assert lookup_key("x", value) == LookupKey("bare", "x")
    assert qualified_name(value, "n") is None
    assert call_trace_name(value) is None
    assert approval_keys(value) == ()
    assert not is_reserved(value, value)


@pytest.mark.parametrize("value", NOT_NAMES)
def test_a_call_id_is_never_made_up_nor_taken_from_the_item(value: Any) -> None:
    assert call_id({"type": "function_call", "call_id": value, "id": "fc_1"}) is None
    assert call_id(SimpleNamespace(type="function_call", call_id=value, id="fc_1")) is None
    assert call_id({"type": "mcp_approval_request", "id": value, "call_id": "c1"}) is None


@pytest.mark.parametrize(
    ("payload", "id", "shown"),
    [
        ({"call_id": "toolu_01A-Z/+= x"}, "toolu_01A-Z/+= x", "toolu_01A-Z/+= x"),
        ({"call_id": "c", "id": "i"}, "c", "c"),
        ({"type": "mcp_approval_request", "id": "r"}, "r", "r"),
        ({"call_id": "", "id": "i"}, None, "i"),
        ({"id": "i"}, None, "i"),
        ({"call_id": 12, "id": "i"}, None, None),
        ({}, None, None),
    ],
)
def test_the_id_of_a_call_is_its_own_and_the_one_that_is_shown_may_be_the_items(
    payload: dict[str, Any], id: str | None, shown: str | None
) -> None:
    assert (call_id(payload), displayed_id(payload)) == (id, shown)


def test_the_explicit_trace_name_goes_before_the_public_one() -> None:
    assert ToolNames(name="lookup", namespace="crm", label="CRM lookup").trace_name == "CRM lookup"
    assert ToolNames(name="lookup", namespace="crm").trace_name == "lookup"


def test_a_trace_does_not_show_the_namespace_that_only_stands_for_deferred_loading() -> None:
    assert (call_trace_name("x", "x"), call_trace_name("x", "n"), call_trace_name("x")) == ("x", "n.x", "x")


def test_the_exact_approval_key_is_last_but_for_the_form_of_older_records() -> None:
    deferred = LookupKey("deferred_top_level", "x")

    assert approval_keys("x", "x", bare_alias=True) == ("x", "deferred_top_level:x")
    assert approval_keys("x", "x", bare_alias=True, legacy=True) == ("x", "deferred_top_level:x", "x.x")
    assert approval_keys("x", key=deferred, legacy=True) == ("deferred_top_level:x", "x")
    assert approval_keys("", key=deferred, legacy=True) == ("deferred_top_level:x", "x")
    assert approval_keys("x", "n", bare_alias=True, legacy=True) == ("n.x",)
    assert approval_keys("y", "m", key=LookupKey("namespaced", "x", "n")) == ("n.x",)


def test_only_the_synthetic_namespace_is_taken_from_what_the_tool_sees() -> None:
    call = {"name": "x", "namespace": "x", "call_id": "c", "arguments": "{}"}
    given = dict(call)

    assert normalized(DEFERRED, call) == {"name": "x", "call_id": "c", "arguments": "{}"}
    assert call == given
    for tool, payload in [
        (ToolNames(name="x", namespace="n"), {"name": "x", "namespace": "n"}),
        (ToolNames(name="x"), {"name": "x", "namespace": "x"}),
        (DEFERRED, {"name": "y", "namespace": "y"}),
        (DEFERRED, {"name": "x"}),
    ]:
        assert normalized(tool, payload) == payload


def test_a_recorded_call_gets_its_lost_namespace_back_and_keeps_one_that_it_has() -> None:
    deferred, spaced = LookupKey("deferred_top_level", "x"), LookupKey("namespaced", "x", "n")

    assert restored({"name": "x"}, deferred) == {"name": "x", "namespace": "x"}
    assert restored({"name": "x", "namespace": None}, spaced) == {"name": "x", "namespace": "n"}
    assert restored({"name": "x", "namespace": "m"}, spaced) == {"name": "x", "namespace": "m"}
    assert restored({"name": "y"}, spaced) == {"name": "y"}
    assert restored({"name": "x"}, LookupKey("bare", "x")) == {"name": "x"}
    assert restored({"name": "x"}, None) == {"name": "x"}


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        "bare",
        {"kind": "bare"},
        {"kind": "bare", "name": ""},
        {"kind": "bare", "name": 3},
        {"kind": "nope", "name": "x"},
        {"kind": 1, "name": "x"},
        {"kind": "namespaced", "name": "x"},
        {"kind": "namespaced", "name": "x", "namespace": ""},
    ],
)
def test_what_is_no_stored_key_is_none(stored: Any) -> None:
    assert LookupKey.parse(stored) is None


NAMES = st.text(alphabet="ab.:_ 检", min_size=1, max_size=5)
KEYS = st.one_of(
    st.builds(required_key, NAMES),
    st.builds(lambda name: required_key(name, deferred=True), NAMES),
    st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: required_key(*pair)),
)


@given(KEYS)
def test_a_key_comes_back_from_how_it_is_stored_and_from_a_call_of_its_tool(key: LookupKey) -> None:
    assert LookupKey.parse(key.plain()) == key
    assert lookup_key(key.name, key.call_namespace) == key
    assert approval_keys("", key=key)[-1:] == approval_keys(key.name, key.call_namespace)[-1:]


@given(KEYS, KEYS)
def test_two_keys_are_two_also_where_their_texts_are_one(one: LookupKey, other: LookupKey) -> None:
    assert (one == other) == (one.tagged == other.tagged) == (one.plain() == other.plain())


def naive_approval_key(name: str, namespace: str | None, deferred: bool) -> str:
    """The way of the reference: a text that is joined."""
    return f"deferred_top_level:{name}" if deferred else f"{namespace}.{name}" if namespace else name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ToolNames(name="n.x"), ToolNames(name="x", namespace="n")),
        (ToolNames(name="b.c", namespace="a"), ToolNames(name="c", namespace="a.b")),
        (DEFERRED, ToolNames(name="deferred_top_level:x")),
    ],
)
def test_keys_that_a_joined_text_would_merge_stay_apart(one: ToolNames, other: ToolNames) -> None:
    assert len({naive_approval_key(tool.name, tool.namespace, tool.defer_loading) for tool in (one, other)}) == 1
    assert len({one.lookup_key, other.lookup_key}) == 2


def test_no_other_module_computes_an_identifier() -> None:
    assert offences() == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('f"{namespace}.{name}"', "joins a namespace and a name"),
        ('f"{tool.namespace}.{tool.name}"', "joins a namespace and a name"),
        ('x = namespace + "." + name', "joins a namespace and a name"),
        ('x = ".".join((call["namespace"], call["name"]))', "joins a namespace and a name"),
        ('x = "{}.{}".format(tool.namespace, tool.name)', "joins a namespace and a name"),
        ('x = "%s.%s" % (namespace, name)', "joins a namespace and a name"),
        ('x = LookupKey("bare", name)', "builds a lookup key"),
        ('x = ("namespaced", namespace, name)', "builds a lookup key"),
        ('x = {"kind": "bare", "name": name}', "builds a lookup key"),
        ('x = f"deferred_top_level:{name}"', "writes an approval key"),
        ('x = payload["call_id"]', "reads a call id"),
        ('x = payload.get("call_id")', "reads a call id"),
        ('x = getattr(item, "call_id", None)', "reads a call id"),
        ('match payload:\n    case {"call_id": str() as id}: x = id', "reads a call id"),
    ],
)
def test_the_check_sees_an_identifier_that_is_computed_elsewhere(source: str, what: str) -> None:
    assert [found.partition(" ")[2] for found in offences_in(source)] == [what]


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring: f"{namespace}.{name}" and deferred_top_level:x."""',
        'x = f"{suite}.{tool}"',
        'x = {"call_id": id}\npayload["call_id"] = id',
        'x = key.kind == "bare"',
        'x = (("bare", "namespaced"), "kind")',
    ],
)
def test_the_check_leaves_alone_what_computes_no_identifier(source: str) -> None:
    assert offences_in(source) == []


@pytest.mark.parametrize("key", [LookupKey("bare", "x"), LookupKey("namespaced", "x", "n")])
def test_a_lookup_key_is_copied_shown_and_read_as_the_tuple_that_it_is(key: LookupKey) -> None:
    assert pickle.loads(pickle.dumps(key)) == copy.copy(key) == key
    assert eval(repr(key), {"LookupKey": LookupKey}) == key
    assert LookupKey.of(tuple(key)) == LookupKey.of(key) == key
    assert LookupKey.of(("bare",)) is None
