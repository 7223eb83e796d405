"""The census counts what stands in a tree, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.census import Census, count, figures, main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TREE = {
    "__init__.py": '''
"""A package."""

from truename.first import shown

__all__ = [
    "shown",
]
''',
    "first.py": """
import json
from typing import Any

from truename import third

__all__ = ["shown"]

class Shown:  # noqa: D101
    def _once(self) -> None:
        self._twice()

    def _twice(self) -> None:
        self._twice()

    def run(self) -> None:
        from os import path  # a deferred one
        self._once()
        "# noqa is no comment here"

def shown(value: Any) -> Any:
    return _helper(value)

def _helper(value):  # type: ignore[no-untyped-def]
    return third.use(json.dumps(value))

def _unused() -> None:
    pass
""",
    "third.py": """
def use(value: object) -> object:
    def _inner() -> None:
        pass
    return value

class Shown:
    # Those of other modules do not count for the one in `first`.
    def _twice(self) -> None:
        self._helper()
        self._helper()
""",
    "gateway/__init__.py": "",
    "gateway/hub.py": """
from .. import third
from .other import Registry as Other

class Registry:
    def _closed(self) -> None:
        Other()._closed()
""",
    "gateway/other.py": """
class Registry:  # pragma: no cover
    pass
""",
}


def written(folder: Path) -> Path:
    for name, text in TREE.items():
        path = folder / "src" / "truename" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
    return folder


def short(census: Census) -> dict[str, int]:
    return dict(figures(census))


def test_the_figures_are_those_of_the_tree_without_the_gateway(tmp_path: Path) -> None:
    found = count(written(tmp_path))

    assert short(found) == {
        "files": 3,
        "lines": 7 + 27 + 10,
        "lines of imports and __all__": 4 + 5,
        # `third` is imported by `first` and by the gateway.
        "modules with exactly one importer": 1,
        "of these under 110 lines": 1,
        "private functions called once": 2,
        "class names used twice": 1,
        "deferred imports": 1,
        "uses of Any": 2,
        "suppressions": 2,
    }
    assert found.modules_with_one_importer == {"truename.first": "truename"}
    assert [one.split()[1] for one in found.functions_called_once] == ["_helper", "_once"]


def test_the_gateway_is_counted_where_it_is_asked_for(tmp_path: Path) -> None:
    found = count(written(tmp_path), gateway=True)

    assert (found.files, found.classes_twice, found.suppressions) == (6, 2, 3)
    assert found.modules_with_one_importer["truename.gateway.other"] == "truename.gateway.hub"
    assert any("_closed" in one for one in found.functions_called_once)


def test_it_prints_a_line_for_each_figure_or_all_of_it_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = written(tmp_path)
    assert main([], tree) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["--all", "--json"], tree) == 0
    document = json.loads(capsys.readouterr().out)

    assert (len(lines), lines[0]) == (10, "      3  files")
    assert document["files"] == 6
    assert document["one_importer"] == len(document["modules_with_one_importer"])
