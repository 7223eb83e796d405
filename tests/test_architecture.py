"""What the shape of the package promises: a light core, and layers that are imported downwards only."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.shared import ROOT

SOURCE = ROOT / "src" / "truename"
FILES = sorted(SOURCE.rglob("*.py"))
HEAVY = {"mcp", "mcp_types", "rich", "cyclopts", "asyncio", "anyio", "pydantic", "httpx", "starlette", "uvicorn"}
LAYERS = ("errors", "files", "identity", "dialects", "catalog", "ledger", "naming")

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


def test_the_core_has_no_async() -> None:
    for layer in LAYERS:
        for path in SOURCE.glob(f"{layer}/*.py" if layer != "errors" else "errors.py"):
            assert not re.search(r"^\s*async |\bawait ", path.read_text("utf-8"), re.MULTILINE), path


def test_patterns_are_matched_in_full_and_never_end_with_a_dollar() -> None:
    for path in FILES:
        assert not re.search(r"re\.compile\(r?f?\"[^\"]*(?<!\\)\$\"", path.read_text("utf-8")), path
