"""The doctor on real catalogues: it reports the clashes that the collection is known to have, and no others.

The collection's description counts names that several server *families* share: 570 exact and 627 folded ones, over
1,067 families. 672 of these may be passed on and are here, in 815 servers; they share 318 and 363. The doctor tells of
servers, and releases and forks of one family are servers of their own, so it tells more: 1,002.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from tests.corpus.collection import catalogues, is_whole
from truename import dialects
from truename.clients.doctor import ClientCase, DoctorReport, ExaminedServer, ServerLists, examine
from truename.identity import fold

pytestmark = [pytest.mark.slow, pytest.mark.corpus]


@cache
def listings() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Every server of the collection under its id, which is unique, with the names that it lists."""
    return tuple((row["id"], tuple(tool["name"] for tool in row["tools"])) for row in catalogues())


@cache
def report() -> DoctorReport:
    lists = ServerLists(ExaminedServer.listing(key, names) for key, names in listings())
    return examine(
        [ClientCase(dialect=dialects.get(name), lists=lists) for name in ("claude-code", "google-adk", "cursor")]
    )


def of_rule(name: str) -> list[tuple[str, ...]]:
    return [one.tools for one in report().findings if one.rule.name == name]


def test_names_that_several_real_servers_have_are_reported_each_once() -> None:
    servers: defaultdict[str, set[str]] = defaultdict(set)
    for key, names in listings():
        for name in names:
            servers[fold(name)].add(key)
    shared_names = {name for name, keys in servers.items() if len(keys) > 1}
    found = [{fold(name) for name in tools} for tools in of_rule("shared_name")]

    assert len(found) == len(shared_names) == (1_002 if is_whole() else len(shared_names))
    assert {name for names in found for name in names} == shared_names
    assert {"search", "list_tables", "list_databases", "read_file"} <= shared_names


def test_the_names_that_families_share_as_the_collection_counts_them_are_among_those_told() -> None:
    exact, folded = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for row in catalogues():
        for tool in row["tools"]:
            exact[tool["name"]].add(row["family"])
            folded[fold(tool["name"])].add(row["family"])
    clashing = {name for name, families in folded.items() if len(families) > 1}
    told = {fold(name) for tools in of_rule("shared_name") for name in tools}

    counted = sum(len(families) > 1 for families in exact.values()), len(clashing)
    assert counted == (318, 363) if is_whole() else all(counted)
    assert clashing <= told


def test_the_one_server_that_lists_a_tool_twice_is_named() -> None:
    assert of_rule("tool_listed_twice") == [("batch_screenshot_urls",)]


def test_what_a_client_without_prefixes_does_to_shared_names_is_counted_right() -> None:
    exact: defaultdict[str, list[str]] = defaultdict(list)
    for key, names in listings():
        for name in dict.fromkeys(names):
            exact[name].append(key)
    clashing = {name: keys for name, keys in exact.items() if len(keys) > 1}
    diagnosis = next(one for one in report().diagnoses if one.case.name == "google-adk")

    assert diagnosis.lost == sum(len(keys) - 1 for keys in clashing.values())
    told = [one for one in diagnosis.findings if one.rule.name == "wrong_tool"]
    assert {one.tools for one in told} == {(name,) for name in clashing}
    assert diagnosis.lost_through == 0


def test_names_with_characters_that_a_client_leaves_out_are_all_told() -> None:
    outside = {name for _, names in listings() for name in names if not set(name) <= set(_CURSOR)}
    dropped = {name for tools in _dropped("cursor") for name in tools}

    assert outside <= dropped
    assert {"长亭 IP 情报查询"} & {name for _, names in listings() for name in names} <= dropped


_CURSOR = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


def _dropped(client: str) -> list[tuple[str, ...]]:
    return [one.tools for one in report().findings if one.client == client and one.rule.name == "tool_dropped"]


def test_the_findings_of_a_whole_collection_are_plain_values() -> None:
    told = [[one.rule.code, one.fact, one.remedy, one.server, *one.tools] for one in report().findings]

    assert json.loads(json.dumps(told)) == told
    assert all(one.fact.endswith((".", "...")) for one in report().findings)


def test_what_is_lost_through_the_gateway_is_what_a_whole_simulation_loses() -> None:
    lists = ServerLists(ExaminedServer.listing(key, names) for key, names in listings())

    for dialect in dialects.table():
        assert lists.lost_through(dialect) == len(lists.behind_gateway(dialect).lost), dialect.name
