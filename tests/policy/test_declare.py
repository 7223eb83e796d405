"""`@tool`: declarations where the functions are, which stay what they are."""

from __future__ import annotations

import sys
from enum import Enum
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.conventions import Metadata, catalog_of, declared, metadata_of, tool
from truename.conventions.declarations import input_schema
from truename.errors import ConfigError, DuplicateTool, InvalidName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nowhere import Unknown  # type: ignore[import-not-found]


class Tree: ...


def plain() -> None:
    """Do something."""


def named(name: str, **said: Any) -> Callable[..., None]:
    def run() -> None: ...

    return tool(name, **said)(run)


def test_the_function_is_the_same_as_before() -> None:
    def add(one: int, other: int = 2) -> int:
        """Add two numbers."""
        return one + other

    assert tool("sum")(add) is add
    assert add(1) == 3
    (one,) = declared(add)
    assert one.name == "sum"
    assert one.definition["description"] == "Add two numbers."
    assert one.definition["inputSchema"] == {
        "type": "object",
        "properties": {"one": {"type": "integer"}, "other": {"type": "integer"}},
        "required": ["one"],
    }
    assert one.location is not None
    assert (one.location.file, one.location.key.endswith(".add")) == (__file__, True)


def test_without_a_name_it_has_the_function_s() -> None:
    def scroll() -> None: ...

    assert [one.name for one in declared(tool()(scroll))] == ["scroll"]
    assert declared(plain) == ()
    assert declared(len) == ()


def test_several_names_share_one_implementation_each_with_its_metadata() -> None:
    @tool("myapp_ios_open", platforms=["IOS"], app="MyApp", owner="app team", is_recordable=False)
    @tool("myapp_android_open", platforms=("ANDROID",), description="Another text", is_for_llm=False)
    def open_app(permissions: list[str]) -> str:
        """Open the app."""
        return ",".join(permissions)

    ios, android = declared(open_app)
    assert ios.metadata == Metadata(platforms=("ios",), app="myapp", owner="app team", is_recordable=False)
    assert (android.metadata.is_for_llm, android.description) == (False, "Another text")
    for one in (ios, android):
        assert metadata_of(one.definition) == one.metadata
    catalog = catalog_of(open_app)
    assert [str(id) for id in catalog] == ["local@1/myapp_ios_open@1", "local@1/myapp_android_open@1"]


def test_a_decorator_above_keeps_the_declaration() -> None:
    def loud(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapped

    function = loud(named("tap"))
    assert [one.name for one in declared(function)] == ["tap"]
    assert len(catalog_of(function)) == 1


DOUBLES: list[tuple[str, str]] = [("tap", "tap"), ("scrollUp", "scrollup"), ("a_b", "a-b"), ("fs.list", "fs_list")]


@pytest.mark.parametrize(("one", "other"), DOUBLES)
def test_two_tools_with_one_name_are_an_error_that_names_both_owners(one: str, other: str) -> None:
    with pytest.raises(DuplicateTool) as caught:
        catalog_of(named(one, owner="core"), named(other, owner="payments"))

    assert "core (" in str(caught.value)
    assert "payments (" in str(caught.value)
    assert caught.value.name == other


def test_owners_that_nobody_said_are_told_by_their_functions() -> None:
    with pytest.raises(DuplicateTool, match=r"named.<locals>.run and .*named.<locals>.run"):
        catalog_of(named("tap"), named("tap"))


def test_a_function_that_is_given_twice_is_one_tool() -> None:
    tap = named("tap")

    assert len(catalog_of(tap, tap)) == 1


def test_all_functions_of_a_module_are_taken() -> None:
    module = ModuleType("tools")
    vars(module).update(tap=named("tap"), again=named("swipe"), other=plain, number=3)

    assert [tool.origin.name for tool in catalog_of(module, server="phone").values()] == ["tap", "swipe"]
    assert next(iter(catalog_of(module, server="phone"))).integration == "phone"


def test_names_that_no_catalogue_takes_are_refused_together() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        catalog_of(named("a\x1b"), named("b\u202e"))

    assert len(caught.value.exceptions) == 2
    assert isinstance(caught.value.exceptions[0], InvalidName)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": 7}, "name"),
    ({"platforms": "ios"}, "platforms"),
    ({"platforms": [3]}, "platforms"),
    ({"is_for_llm": "no"}, "is_for_llm"),
    ({"is_recordable": None, "app": ["x"]}, "app"),
    ({"owner": "\x1b"}, "owner"),
    ({"description": 7}, "description"),
    ({"parameter_platforms": {"card": "ios"}}, "parameter_platforms"),
]


@pytest.mark.parametrize(("said", "field"), WRONG)
def test_a_declaration_that_is_not_understood_is_refused_where_it_is_written(said: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        tool(**said)(plain)

    assert declared(plain) == ()


@pytest.mark.parametrize("thing", [len, type, dict.fromkeys, Tree, 7])
def test_what_can_not_be_declared_is_refused(thing: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be declared"):
        tool("thing")(thing)


def test_a_catalogue_is_made_of_functions_and_modules() -> None:
    with pytest.raises(ConfigError, match="neither a function nor a module"):
        catalog_of("tap")  # type: ignore[arg-type]


T = TypeVar("T")


class Colour(Enum):
    RED = "red"


class Context: ...


def every(  # type: ignore[no-untyped-def]  # noqa: PLR0917 - one of each kind
    text: str,
    whole: int,
    part: float,
    flag: bool,
    items: list[str],
    pair: tuple[int, str],
    row: tuple[int, ...],
    table: dict[str, int],
    sequence: Sequence[bool],
    mapping: Mapping[str, Any],
    choice: Literal["a", 1],
    colour: Colour,
    anything: Any,
    untyped,
    generic: T,
    ctx: Context,
    maybe: str | None = None,
    *rest: int,
    nested: list[list[int]] | bool = False,
    **more: Any,
) -> None: ...


SCHEMAS: dict[str, Any] = {
    "text": {"type": "string"},
    "whole": {"type": "integer"},
    "part": {"type": "number"},
    "flag": {"type": "boolean"},
    "items": {"type": "array", "items": {"type": "string"}},
    "pair": {"type": "array"},
    "row": {"type": "array", "items": {"type": "integer"}},
    "table": {"type": "object"},
    "choice": {"enum": ["a", 1]},
    "colour": {"enum": ["red"]},
    "anything": {},
    "untyped": {},
    "generic": {},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "nested": {
        "anyOf": [
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            {"type": "boolean"},
        ]
    },
}


def test_the_schema_says_what_the_annotations_say(monkeypatch: pytest.MonkeyPatch) -> None:
    from collections.abc import Mapping, Sequence  # noqa: PLC0415 - resolved only where annotations are read

    monkeypatch.setitem(vars(sys.modules[__name__]), "Sequence", Sequence)
    monkeypatch.setitem(vars(sys.modules[__name__]), "Mapping", Mapping)
    schema = input_schema(every)

    expected = SCHEMAS | {
        "sequence": {"type": "array", "items": {"type": "boolean"}},
        "mapping": {"type": "object"},
    }
    assert schema["properties"] == expected
    assert schema["required"] == [name for name in schema["properties"] if name not in {"maybe", "nested"}]


def test_a_type_that_only_a_type_checker_knows_may_be_anything() -> None:
    def run(what: Unknown, number: int) -> None: ...

    assert input_schema(run)["properties"] == {"what": {}, "number": {"type": "integer"}}


def test_methods_and_callables_have_no_self() -> None:
    class Tools:
        def tap(self, x: int) -> None: ...

        def __call__(self, y: int) -> None: ...

    assert list(input_schema(Tools.tap)["properties"]) == ["x"]
    assert list(input_schema(Tools().tap)["properties"]) == ["x"]
    assert list(declared(tool("called")(Tools()))[0].parameters) == ["y"]


@given(
    st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()) and text.isprintable()),
    st.lists(st.sampled_from(["IOS", "android", "web"]), max_size=3),
    st.booleans(),
)
def test_what_was_declared_is_what_a_catalogue_and_its_metadata_say(
    name: str, platforms: list[str], is_for_llm: bool
) -> None:
    function = named(name, platforms=platforms, is_for_llm=is_for_llm)
    (one,) = catalog_of(function).values()

    assert one.origin.name == name
    assert metadata_of(one.definition) == declared(function)[0].metadata
