"""Real servers that rename a fifth of their tools: what is certain is right, and nothing leads to another server."""

from __future__ import annotations

import json
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.renamed_tools import RENAMED, at_random, described, renamed, servers, untouched, widened
from tests.gateway.staged import SPEC, Staged
from tests.shared import data
from truename import Catalog, Ledger
from truename.config import ServerConfig, Settings
from truename.config.trust import Trust
from truename.gateway.registry import Registry
from truename.migration.lock import pins_of
from truename.policy import Context, read_policy
from truename.trust.rename_matching import propose_renames

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from truename import ToolId
    from truename.catalog import Tool
    from truename.migration.lock import Pin

pytestmark = [pytest.mark.slow, pytest.mark.corpus]
MOST = 60


class Fleet:
    """A gateway over many staged servers."""

    def __init__(self, **settings: Any) -> None:
        given = Settings(**settings)
        self.servers = [Staged(ServerConfig(key=f"server{number}", command="true"), given) for number in range(MOST)]
        pool: dict[str, Any] = {server.key: server for server in self.servers}
        self.registry = Registry(pool, Ledger.memory(), given)

    def lists(self, lists: Sequence[Sequence[dict[str, Any]]]) -> None:
        for server, tools in zip(self.servers, lists, strict=False):
            server.takes(tuple(tools), server.lists)
        self.registry.stale = True
        self.registry.rebuild()

    def shown(self) -> list[Tool]:
        """Return the tools that are listed."""
        view = self.registry.view(SPEC)
        names = self.registry.access.limited(view, Context()).by_name
        return [view.table.catalog[id] for id, name in view.table.items() if name in names]


@pytest.mark.parametrize("edit", [untouched, described, widened])
@pytest.mark.parametrize(("new_name", "least"), RENAMED.values(), ids=RENAMED.keys())
def test_certain_proposals_are_right_and_none_leads_to_another_server(
    new_name: Callable[[str], str], least: float, edit: Callable[[dict[str, Any]], None]
) -> None:
    before = servers()[:MOST]
    made = [renamed(tools, new_name, edit) for tools in before]
    fleet = Fleet()
    fleet.lists(before)
    fleet.lists([tools for tools, _ in made])
    book = fleet.registry.renames.book
    former = {one.id: one for several in book.departed.values() for one in several}
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for one in book.proposals:
        assert one.old is not None
        assert former[one.old].server == one.server
        found.setdefault(one.server, []).append((former[one.old].name, one.name, one.is_certain))

    true = right = certain = 0
    for number, (_, truth) in enumerate(made):
        proposed = found.get(f"server{number}", [])
        sure = {(old, new) for old, new, is_certain in proposed if is_certain}
        assert sure <= truth
        true, certain = true + len(truth), certain + len(sure)
        right += len({(old, new) for old, new, _ in proposed} & truth)
    assert right / true >= least - 0.02
    assert certain / true >= (0.88 if edit is untouched else 0.0)


def test_what_a_setting_accepts_is_right_and_what_has_a_sibling_with_its_definition_is_not_accepted() -> None:
    before = servers()[:MOST]
    made = [renamed(tools, lambda name: f"acme_{name}", untouched) for tools in before]
    fleet = Fleet(trust=Trust(auto_accept=True))
    fleet.lists(before)
    fleet.lists([tools for tools, _ in made])
    book = fleet.registry.renames.book
    former = {one.id: one.name for several in book.departed.values() for one in several}
    truth = {(f"server{number}", *pair) for number, (_, pairs) in enumerate(made) for pair in pairs}
    accepted = {(one.server, former[one.old], one.name) for one in book.accepted if one.old is not None}
    assert accepted <= truth
    assert len(accepted) / len(truth) >= 0.88


def test_a_denied_tool_that_is_renamed_at_random_is_never_callable_without_a_word() -> None:
    before = servers()[:MOST]
    made = [
        renamed(tools, at_random, edit)
        for tools, edit in zip(before, cycle([untouched, described, widened]), strict=False)
    ]
    denied = [f"server{number}/*" for number in range(MOST)]
    rule = {"outcome": "deny", "upstream": sorted({old for _, truth in made for old, _ in truth}), "tools": denied}
    fleet = Fleet(policy=read_policy({"rules": [rule]}), trust=Trust(auto_accept=True))
    fleet.lists(before)
    old = {(f"server{number}", name) for number, (_, truth) in enumerate(made) for name, _ in truth}
    assert old.isdisjoint((tool.origin.server, tool.origin.name) for tool in fleet.shown())
    fleet.lists([tools for tools, _ in made])
    shown = {(tool.origin.server, tool.origin.name) for tool in fleet.shown()}
    new = {(f"server{number}", name) for number, (_, truth) in enumerate(made) for _, name in truth}
    assert new
    assert shown.isdisjoint(new)


def test_opposite_tools_with_one_definition_are_never_certain() -> None:
    pairs = [("start", "stop"), ("enable", "disable"), ("lock", "unlock"), ("open", "close"), ("show", "hide")]
    for tools in servers()[:MOST]:
        definition = dict(tools[0], description="Change the state of one machine in the cluster, by its name.")
        for one, other in pairs:
            several = ((one, other), (one,), (other,), (one, "zulu"), ("zulu", other))
            sides = [
                _pins([*tools[1:], *({**definition, "name": f"{verb}_it"} for verb in verbs)]) for verbs in several
            ]
            opposite = {f"{one}-{other}", f"{other}-{one}"}
            for before, now in product(sides, sides):
                found = propose_renames(before, now, before.keys() - now.keys(), now.keys() - before.keys())
                sure = {f"{each.old.tool}-{each.new.tool}" for each in found if each.is_certain}
                assert sure.isdisjoint({pair.replace("-", "_it-") + "_it" for pair in opposite})


def test_renames_that_are_known_of_real_servers_are_proposed_and_none_by_names_alone_is_certain() -> None:
    for release in json.loads(data("corpus", "drift.json").read_text("utf-8")):
        before, now = (_pins([{"name": name} for name in release[side]]) for side in ("gone", "new"))
        found = propose_renames(before, now, before.keys() - now.keys(), now.keys() - before.keys())
        assert not [one for one in found if one.is_certain]


def test_no_opposite_of_a_known_rename_is_certain_with_its_definition() -> None:
    releases = json.loads(data("corpus", "drift.json").read_text("utf-8"))
    for release in releases:
        for number, name in enumerate(release["gone"]):
            said = f"Do what number {number} of this release is for, whatever that may be."
            for one, other in (("mount", "unmount"), ("lock", "unlock"), ("deposit", "withdraw")):
                old, new = (_pins([{"name": f"{verb}_{name}", "description": said}]) for verb in (one, other))
                assert [each.is_certain for each in propose_renames(old, new, old.keys(), new.keys())] == [False]


def _pins(tools: Sequence[dict[str, Any]]) -> dict[ToolId, Pin]:
    catalog = Catalog.from_mcp({"s": tools})
    pins = {pin.name: pin for pin in pins_of(catalog)}
    return {id: pins[tool.origin.name] for id, tool in catalog.items()}
