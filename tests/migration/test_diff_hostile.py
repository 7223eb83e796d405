"""What is certain stays right, whatever definitions say: copied, boilerplate, or bound to something else."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from tests.migration.listed import LIST, READ, told, tool
from truename import Catalog
from truename.conventions import Metadata, catalog_of
from truename.conventions import tool as declare
from truename.conventions.declarations import Declaration
from truename.migration import Certainty, Lock, diff, renames_table

if TYPE_CHECKING:
    from collections.abc import Callable

# What generators and people write where there is no description.
BOILERPLATE = [
    "No description available.",
    "No description provided",
    "TODO: document this function",
    "This tool has no documentation yet.",
    "MCP tool (auto generated)",
    "Run the tool with the given ...",
    "a b a b a b",
    "_ - . ! ? _",
    "\u200b \u200b\u200b \u2800 \u3164",
]


@pytest.mark.parametrize("text", BOILERPLATE)
def test_a_description_that_nobody_wrote_proves_nothing(text: str) -> None:
    assert diff([tool("get_user", text, "id")], [tool("delete_user", text, "id")]).renames(Certainty.CERTAIN) == ()


def test_another_server_may_have_copied_the_definition() -> None:
    old = [tool("pay", LIST, server="bank"), tool("k", READ, server="other")]
    new = [tool("k", READ, server="bank"), tool("send", LIST, server="other")]
    changes = diff(old, new)

    assert changes.renames(Certainty.CERTAIN) == ()
    assert {(kind, one) for kind, one, _ in told(changes)} == {("renamed?", "pay"), ("moved?", "k")}
    assert all(one.breaking for one in changes)
    assert '# "pay" = "send"  # a guess' in renames_table(changes)


def test_tools_that_were_exchanged_between_servers_are_told_and_not_for_certain() -> None:
    old = [tool("a", LIST, server="one"), tool("b", READ, server="two")]
    new = [tool("a", READ, server="one"), tool("b", LIST, server="two")]

    assert {kind for kind, _, _ in told(diff(old, new))} == {"swapped?"}


def _bound(name: str, platform: str) -> Declaration:
    definition = tool(name, LIST).definition
    return Declaration(name=name, definition=definition, metadata=Metadata(platforms=(platform,)))


def _listed(name: str, platform: str) -> Catalog:
    one = {"name": name, "description": LIST, "_meta": {"dev.truename/platforms": [platform]}}
    return Catalog.from_mcp({"s": [one]})


def _function(name: str, platform: str) -> Catalog:
    def run() -> None: ...

    return catalog_of(declare(name, platforms=[platform], description=LIST)(run))


@pytest.mark.parametrize("of", [_bound, _listed, _function])
def test_one_implementation_for_two_platforms_is_two_tools(of: Callable[[str, str], Declaration | Catalog]) -> None:
    ios, android, other = of("app_ios_open", "ios"), of("app_android_open", "android"), of("app_ios_start", "ios")
    for old, new in product((ios, other), (android,)):
        assert _certain(old, new) == []
    assert _certain(ios, other) == [("app_ios_open", "app_ios_start")]


def _certain(old: Declaration | Catalog, new: Declaration | Catalog) -> list[tuple[str, str]]:
    one, other = ([each] if isinstance(each, Declaration) else each for each in (old, new))
    found = []
    for before in (one, Lock.parse(Lock.of(one).text()).tools):
        certain = diff(before, other).renames(Certainty.CERTAIN)
        found.append([(change.old.name, change.new.name) for change in certain if change.old and change.new])
    assert found[0] == found[1]
    return found[0]
