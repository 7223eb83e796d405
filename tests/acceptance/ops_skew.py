"""Ops about peers of another version, before and after a rename (seed 002)."""

from __future__ import annotations

from functools import partial

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import BEFORE_RENAME, GATES, MIGRATIONS
from tests.acceptance.world import NotChecked
from truename import Catalog, Ledger, NameTable, project, resolve
from truename.errors import PolicyError, ResolutionError
from truename.migration.protocol_versions import compare_peers, resolve_between
from truename.policy import Approvals, CallRule, Policy, bound_call

_SERVER = "kenny"


def _declared(names: list[str], ledger: Ledger | None = None) -> NameTable:
    return project(Catalog.from_mcp({_SERVER: names}), "native", style="declared", ledger=ledger)


@op("migrate_call", needs="migration map input")
def migrate_call(given: Given) -> Facts:
    enter = MIGRATIONS.get(given["migration"])
    if enter is None:
        raise NotChecked(f"no migration is called {given['migration']!r}")
    ledger = Ledger.memory()
    _declared(list(given["map"]), ledger)
    new = _declared(list(given["map"].values()))
    for old, name in given["map"].items():
        enter(ledger, old, new.id_of(name))
    found = resolve(given["input"], _declared(list(given["map"].values()), ledger))
    return {"id": str(found.id), "step": found.step}


@op("gate", needs="map input|call denied|blocked|mutating|needs_approval")
def gate(given: Given) -> Facts:
    """An old name reaches its tool by a redirect; the gates know the tool by its new name only."""
    ledger = Ledger.memory()
    _declared(list(given["map"]), ledger)
    new = _declared(list(given["map"].values()))
    for old, name in given["map"].items():
        ledger.redirect(old, new.id_of(name))
    rules = tuple(
        CallRule(name=word, outcome=outcome, tools=tuple(f"{_SERVER}/{name}" for name in given[word]))
        for word, outcome in GATES.items()
        if given.get(word)
    )
    policy = Policy(rules=rules, default="allow", approvals=Approvals())
    names = _declared(list(given["map"].values()), ledger)
    call = bound_call(name=given.get("input", given.get("call")), call_id="call-1", arguments={}, names=names)
    reached = {"tool": call.origin.name, "id": str(call.id)}
    try:
        with policy.running(call) as decision:
            return {**reached, "allowed": True, "gated": False, "rule": decision.rule}
    except PolicyError as error:
        return {**reached, "allowed": False, "gated": True, "error": error.code}


@op("skew", needs="server agent call")
def skewed(given: Given) -> Facts:
    """A peer of each version answers the call; one of before the rename answers to the name of before it."""
    old = given["call"].replace(*BEFORE_RENAME, 1)
    before, after = _declared([old]), _declared([given["call"]])
    between = partial(resolve_between, server=given["agent"], peer=given["server"])
    # What is refused for any other reason than the name says nothing of the rename.
    try:
        between(old, before)
        resolve_between(given["call"], after, server=given["server"], peer=given["agent"])
    except ResolutionError as error:
        return {"refused": error.text}
    found = between(given["call"], before)
    return {"id": str(found.id), "step": found.step}


@op("skew_report", needs="server agent")
def skew_report(given: Given) -> Facts:
    found = compare_peers(server=given["server"], peer=given["agent"])
    return {"compatible": found.compatible, "same": found.same, "said": str(found)}
