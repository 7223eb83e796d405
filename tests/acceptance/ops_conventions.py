"""Ops about conventions: classification, rules, owners (seed 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import CONVENTION
from tests.acceptance.world import NotChecked
from truename.conventions import Convention, Declaration, Metadata, Severity, classify, lint
from truename.conventions.clauses import CLAUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CLAUSES = " ".join(("preset", *CLAUSES))
_TOOL = {"name", "params", "platforms", "platform_params", "app", "owner"}


@op("classify", needs="name", takes=_CLAUSES)
def classify_name(given: Given) -> Facts:
    found = classify(given["name"], _convention(given))
    return {
        "ok": found.ok,
        "category": found.category,
        "platform": found.platform,
        "app": found.app,
        "version": found.version,
        "base": found.base,
    }


@op("lint", needs="name", takes=_CLAUSES)
def lint_name(given: Given) -> Facts:
    return _linted([Declaration(name=given["name"])], _convention(given))


@op("lint_owner", needs="name team owners", takes=_CLAUSES)
def lint_owner(given: Given) -> Facts:
    return _linted([Declaration(name=given["name"])], _convention(given))


@op("lint_apps", needs="apps", takes=_CLAUSES)
def lint_apps(given: Given) -> Facts:
    return _linted([], _convention(given))


@op("lint_set", needs="tools", takes=_CLAUSES)
def lint_set(given: Given) -> Facts:
    return _linted(map(_declaration, given["tools"]), _convention(given))


def _convention(given: Given) -> Convention:
    changes = {clause: given[clause] for clause in _CLAUSES.split() if clause in given}
    return Convention.of(changes.pop("preset", CONVENTION), **changes)


def _declaration(tool: Mapping[str, Any]) -> Declaration:
    """Return the tool; a parameter is ``name:type``, with ``?`` behind where it may be left out."""
    if strange := sorted(tool.keys() - _TOOL):
        raise NotChecked(f"a tool has {', '.join(strange)}, which is not understood")
    parameters = [one.partition(":") for one in tool.get("params", ())]
    schema = {
        "type": "object",
        "properties": {name: {"type": kind.removesuffix("?")} for name, _, kind in parameters},
        "required": [name for name, _, kind in parameters if not kind.endswith("?")],
    }
    return Declaration(
        name=tool["name"],
        definition={"name": tool["name"], "inputSchema": schema} if "params" in tool else {},
        metadata=Metadata(
            platforms=tuple(word.lower() for word in tool.get("platforms", ())),
            app=tool.get("app", ""),
            owner=tool.get("owner", ""),
            parameter_platforms={
                name: tuple(word.lower() for word in platforms)
                for name, platforms in tool.get("platform_params", {}).items()
            },
        ),
    )


def _linted(declarations: Iterable[Declaration], convention: Convention) -> Facts:
    """Return what the linter says: a note is no reason to refuse a name."""
    found = [one for one in lint(declarations, convention).findings if one.rule.severity is not Severity.NOTE]
    return {
        "ok": not found,
        "rules": [one.rule.name for one in found],
        "message": "\n".join(map(str, found)),
    }
