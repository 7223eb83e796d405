"""What the shape of the package promises: a light core, files short enough to read, words that mean something."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.shared import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = ROOT / "src" / "truename"
FILES = sorted(SOURCE.rglob("*.py"))
HEAVY = {"mcp", "mcp_types", "rich", "cyclopts", "asyncio", "anyio", "pydantic", "httpx", "starlette", "uvicorn"}
LAYERS = ("errors", "identity", "dialects", "catalog", "ledger", "naming")
# The whole tree of exceptions is one file by design; all others are split by idea.
LONG = {"errors.py": 400}

WHOLE_CORE = """
import json, sys
import truename.errors
from truename import Catalog, Ledger, dialects, project, resolve
names = project(Catalog.of("a/b"), dialects.get("openai"), ledger=Ledger.memory())
resolve("a/b", names)
print(json.dumps(sorted(sys.modules)))
"""
# The package's own __init__ imports all layers, so an empty one stands in for it.
ONE_LAYER = """
import importlib, json, sys, types
package = types.ModuleType("truename")
package.__path__ = [sys.argv[1]]
sys.modules["truename"] = package
importlib.import_module(f"truename.{sys.argv[2]}")
print(json.dumps(sorted(name for name in sys.modules if name.startswith("truename."))))
"""


def modules_after(code: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return [str(name) for name in json.loads(done.stdout)]


def test_the_core_imports_nothing_heavy() -> None:
    loaded = {name.partition(".")[0] for name in modules_after(WHOLE_CORE)}

    assert loaded & HEAVY == set()
    assert {"truename", "rfc8785"} <= loaded


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_of_the_core_is_imported_without_the_layers_above(layer: str) -> None:
    loaded = {name.split(".")[1] for name in modules_after(ONE_LAYER, str(SOURCE), layer)}

    assert loaded <= set(LAYERS[: LAYERS.index(layer) + 1])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONG.get(path.name, 300)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_word_that_says_nothing_is_in_a_name(path: Path) -> None:
    defined = re.findall(r"^\s*(?:def|class|async def) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    words = {word for name in [path.stem, *defined] for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name.lower())}

    assert words & {"manager", "helper", "helpers", "utils", "util", "handler", "process", "data"} == set()


def test_the_core_has_no_async() -> None:
    for layer in LAYERS:
        for path in SOURCE.glob(f"{layer}/*.py" if layer != "errors" else "errors.py"):
            assert not re.search(r"^\s*async |\bawait ", path.read_text("utf-8"), re.MULTILINE), path


def test_patterns_are_matched_in_full_and_never_end_with_a_dollar() -> None:
    for path in FILES:
        assert not re.search(r"re\.compile\(r?f?\"[^\"]*(?<!\\)\$\"", path.read_text("utf-8")), path
