"""Metadata, contexts and recordings: what a server, a header or a file may hold, and what must hold of it."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import mutated_bytes, text, value
from truename import Catalog, NameTable, project
from truename.conventions import metadata_of
from truename.conventions.metadata import FIELDS
from truename.migration import BrokenLine, CallRecorder, read_recording, rehearse
from truename.policy import Caller, Context, Exposure, Policy, bound_call, read_metadata

if TYPE_CHECKING:
    from random import Random

__all__ = ["TARGETS"]

_WORDS: Final[tuple[Any, ...]] = (
    "ios",
    "IOS",
    "android",
    "",
    True,
    False,
    None,
    ["ios"],
    ["IOS", "android"],
    [],
    {"a": ["ios"]},
)
_KEYS: Final = (*FIELDS, *(f"dev.truename/{name}" for name in FIELDS), "truename", "isForLlm", "trailblaze/isForLlm")


def _said(chance: Random) -> Any:
    if chance.random() < 0.2:
        return value(chance)
    keys = [chance.choice((chance.choice(_KEYS), text(chance))) for _ in range(chance.randrange(6))]
    return {key: chance.choice((chance.choice(_WORDS), value(chance))) for key in keys}


def metadata(chance: Random) -> None:
    definition = {"name": "tap", "_meta": _said(chance), "annotations": _said(chance)}
    if chance.random() < 0.5 and isinstance(definition["_meta"], dict):
        definition["_meta"]["truename"] = _said(chance)
    (tool,) = Catalog.from_mcp({"phone": [definition]}).values()
    exposure = Exposure(required=())
    for context in (Context(), Context(platform="ios"), Context(origin="replay")):
        refusal = exposure.refusal(tool, context)
        reason = "" if refusal is None else refusal.reason
        must((reason + "x").isprintable() and len(reason) < 10_000, "a reason is short and printable")
    must(metadata_of(definition) == metadata_of({**definition}), "the same definition says the same")
    read_metadata({chance.choice(("phone/*", "*", text(chance))): _said(chance)})


def contexts(chance: Random) -> None:
    parts = (f"{chance.choice(('platform', 'app', 'origin', text(chance)))}={text(chance)}" for _ in range(2))
    found = Context.parse(chance.choice((text(chance), ", ".join(parts))))
    must(Context(platform=found.platform, app=found.app, origin=found.origin) == found, "it is what it says")


@cache
def _names() -> NameTable:
    return project(Catalog.from_mcp({"phone": ["tap", "swipe"]}), "openai")


@cache
def _recording() -> bytes:
    with tempfile.TemporaryDirectory() as folder, CallRecorder(Path(folder, "calls.jsonl")) as recorder:
        for name in ("phone_tap", "phone_swipe"):
            caller = Caller(platform="ios")
            recorder.write(bound_call(name=name, call_id=name, arguments={"x": 1}, names=_names(), caller=caller))
        return Path(folder, "calls.jsonl").read_bytes()


def recordings(chance: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "calls.jsonl")
        path.write_bytes(mutated_bytes(chance, _recording()))
        before = list(read_recording(path))
        list(rehearse(before, _names(), policy=Policy(exposure=Exposure(required=()))))
        with CallRecorder(path) as recorder:
            recorder.write(bound_call(name="phone_tap", call_id="c", arguments={}, names=_names()))
        last = list(read_recording(path))[-1]
        must(not isinstance(last, BrokenLine), "what is written after a damage is read again")


TARGETS: Final = (metadata, contexts, recordings)
