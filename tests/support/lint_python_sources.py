"""Test support: python sources, used by tests of several modules."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from truename.conventions import declared

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import ModuleType

Listed = dict[str, list[str]]


def module(path: Path, source: str) -> ModuleType:
    """Import a source, which only a test does."""
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made


def listed(pairs: Iterable[tuple[str, Any]]) -> Listed:
    return {name: sorted(schema.get("required", [])) for name, schema in pairs}


def of_fastmcp(made: ModuleType) -> Listed:
    return listed((one.name, one.parameters) for one in asyncio.run(made.mcp.list_tools()))


def of_sdk(made: ModuleType) -> Listed:
    return listed((one.name, one.input_schema) for one in asyncio.run(made.app.list_tools()))


def of_langchain(made: ModuleType) -> Listed:
    return listed((one.name, one.tool_call_schema.model_json_schema()) for one in made.tools)


def of_ours(made: ModuleType) -> Listed:
    return listed((one.name, one.definition["inputSchema"]) for f in (made.open_app, made.tap) for one in declared(f))
