"""The schema that annotations tell: what is simple is read, and of the rest nothing is claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename.lint import read_declared

if TYPE_CHECKING:
    from pathlib import Path


def schema(path: Path, parameters: str, before: str = "") -> Any:
    path.write_text(f"{before}\n@m.tool\ndef f({parameters}): ...\n", "utf-8")
    (one,) = read_declared([path]).declarations
    return one.definition["inputSchema"]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("list", {"type": "array"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("List[str]", {"type": "array", "items": {"type": "string"}}),
        ("Sequence[str]", {"type": "array", "items": {"type": "string"}}),
        ("set[str]", {"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
        ("dict[str, int]", {"type": "object"}),
        ("typing.Dict[str, int]", {"type": "object"}),
        ("Optional[int]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("int | str | None", {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        ("Union[int, str]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Literal['a', 1, -2, True]", {"enum": ["a", 1, -2, True]}),
        ("Literal[A]", {}),
        ("Annotated[int, 'how many']", {"type": "integer", "description": "how many"}),
        ("Annotated[int, Field(description='how many', ge=1)]", {"type": "integer", "description": "how many"}),
        ("Annotated[int, Field(ge=1)]", {"type": "integer"}),
        ("Something", {}),
        ("Something[int]", {}),
        ("'str'", {}),
        ("list[" * 20 + "int" + "]" * 20, None),
        ("f()", {}),
    ],
)
def test_an_annotation_is_read_as_far_as_it_is_simple(tmp_path: Path, annotation: str, expected: Any) -> None:
    found = schema(tmp_path / "a.py", f"x: {annotation}")
    assert found["required"] == ["x"]
    assert expected is None or found["properties"] == {"x": expected}


@pytest.mark.parametrize(
    ("parameters", "required", "names"),
    [
        ("a, b=1, *, c, d=2", ["a", "c"], ["a", "b", "c", "d"]),
        ("a, /, b", ["a", "b"], ["a", "b"]),
        ("ctx: Context, a", ["a"], ["a"]),
        ("a, ctx: Context | None = None", ["a"], ["a"]),
        ("a, ctx: Optional['Context'] = None", ["a"], ["a"]),
        ("a, state: Annotated[dict, InjectedState]", ["a"], ["a"]),
        ("a, db=Depends(connect)", ["a"], ["a"]),
        ("a=Field(description='x'), b=Field(default=1), c=Field(default_factory=list)", ["a"], ["a", "b", "c"]),
        ("a=Field(...), b=made()", ["a"], ["a", "b"]),
        ("*rest, **more", None, []),
    ],
)
def test_what_has_to_be_given(tmp_path: Path, parameters: str, required: Any, names: list[str]) -> None:
    found = schema(tmp_path / "a.py", parameters)
    assert found.get("required") == required
    assert list(found["properties"]) == names


def test_defaults_that_are_plain_values_are_kept(tmp_path: Path) -> None:
    found = schema(tmp_path / "a.py", "a=1, b=None, c=[1, 'x'], d={'k': {'n': -1}}, e=x, f={1: 2}, g=[x]")
    kept = {name: one["default"] for name, one in found["properties"].items() if "default" in one}
    assert kept == {"a": 1, "b": None, "c": [1, "x"], "d": {"k": {"n": -1}}}


def test_a_method_has_no_self_and_a_static_one_all_of_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "class C:\n    @m.tool\n    def a(self, x): ...\n    @m.tool\n    @staticmethod\n    def b(x, y): ...\n",
        "utf-8",
    )
    found = {one.name: list(one.parameters) for one in read_declared([path]).declarations}
    assert found == {"a": ["x"], "b": ["x", "y"]}


def test_a_docstring_is_the_description_unless_one_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        'D = "constant"\n@m.tool\ndef a():\n    """One.\n\n    Two.\n    """\n'
        '@m.tool(description=D)\ndef b():\n    """No."""\n@m.tool(description=made())\ndef c():\n    """No."""\n',
        "utf-8",
    )
    found = {one.name: one.description for one in read_declared([path]).declarations}
    assert found == {"a": "One.\n\nTwo.", "b": "constant", "c": ""}
