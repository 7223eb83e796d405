"""Ops about metadata: who sees a tool, who may run it, what is recorded (seed 003)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import CONVENTION, METADATA_FIELDS
from truename.adapters.toolbox import Toolbox, ToolboxNames
from truename.conventions import catalog_of, declared, tool
from truename.conventions.convention import Convention
from truename.migration.recordings import CallRecorder, read_recording
from truename.policy import Caller, Exposure, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SERVER = "local"


def _declared(given: Mapping[str, Any]) -> Callable[..., None]:
    """Declare a function as the row's tool."""

    def run() -> None: ...

    run.__qualname__ = run.__name__ = given["name"]
    return tool(**{METADATA_FIELDS.get(word, word): value for word, value in given.items()})(run)


def _box(given: Given) -> Toolbox:
    """Return the tools of a row as its session has them, under the names that they were declared with."""
    functions = [_declared(one) for one in given["tools"]]
    listed = {_SERVER: [one.definition for function in functions for one in declared(function)]}
    return Toolbox(
        names=ToolboxNames(dialect="native", style="declared").table(listed),
        policy=Policy(default="allow", exposure=Exposure(convention=_convention(given))),
        caller=Caller(platform=given["platform"], app=given["app"], origin=given.get("origin", "llm")),
    )


def _convention(given: Given) -> Convention:
    """Return the row's convention; what the row calls a platform is one, as it would stand in the team's table."""
    called = [given["platform"], *(word for one in given["tools"] for word in one.get("platforms", ()))]
    platforms = dict.fromkeys([*Convention.of(CONVENTION).platforms, *(word.lower() for word in called if word)])
    apps = {"apps": given["apps"]} if given.get("apps") else {}
    return Convention.of(CONVENTION, platforms=list(platforms), **apps)


@op("filter", needs="platform app tools", takes="apps origin")
def shown(given: Given) -> Facts:
    return {"names": [offer.key.name for offer in _box(given).offered]}


@op("execute", needs="platform app tools call", takes="apps origin")
def executed(given: Given) -> Facts:
    box = _box(given)
    ran: list[str] = []
    with box.running(box.call(given["call"], "call-1", {})):
        ran.append(given["call"])
    return {"ok": bool(ran), "ran": ran}


@op("metadata", needs="tool")
def metadata(given: Given) -> Facts:
    (one,) = declared(_declared(given["tool"]))
    kept = {word: getattr(one.metadata, name) for word, name in METADATA_FIELDS.items()}
    return {"accepted": len(catalog_of(_declared(given["tool"]))) == 1, "name": one.name, **kept}


@op("register", needs="tools")
def register(given: Given) -> Facts:
    return {"names": [entry.origin.name for entry in catalog_of(*map(_declared, given["tools"])).values()]}


@op("shared_impl", needs="names", takes="impl")
def shared_impl(given: Given) -> Facts:
    def shared() -> None: ...

    for name in given["names"]:
        tool(name)(shared)
    ids = list(catalog_of(shared))
    return {"distinct_identities": len(set(ids)) == len(given["names"]) == len(declared(shared)), "ids": ids}


@op("record", needs="tool")
def record(given: Given) -> Facts:
    box = Toolbox(
        names=ToolboxNames().table({_SERVER: [one.definition for one in declared(_declared(given["tool"]))]}),
        policy=Policy(default="allow"),
    )
    call = box.call(box.offered[0].key.name, "call-1", {})
    with TemporaryDirectory() as folder, CallRecorder(Path(folder) / "calls.jsonl") as recorder:
        told = recorder.write(call)
        found = list(read_recording(Path(folder) / "calls.jsonl"))
    return {"recorded": bool(found), "told": told}
