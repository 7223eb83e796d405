"""Ops about peers of another version, before and after a rename (seed 002)."""

from __future__ import annotations

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import BEFORE_RENAME, MIGRATIONS
from tests.acceptance.world import NotChecked
from truename import Catalog, Ledger, NameTable, project, resolve
from truename.migration.skew import resolve_between, skew

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


@op("skew", needs="server agent call")
def skewed(given: Given) -> Facts:
    agent = _declared([given["call"].replace(*BEFORE_RENAME, 1)])
    found = resolve_between(given["call"], agent, server=given["agent"], peer=given["server"])
    return {"id": str(found.id), "step": found.step}


@op("skew_report", needs="server agent")
def skew_report(given: Given) -> Facts:
    found = skew(server=given["server"], peer=given["agent"])
    return {"compatible": found.compatible, "same": found.same, "said": str(found)}
