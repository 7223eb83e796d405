"""All real catalogues at once, in every dialect and style: total, legal, one-to-one, order-free, and back again."""

from __future__ import annotations

import json
import os
import random
import re
from collections import defaultdict
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import PARTS
from tests.corpus.collection import catalogues, is_whole
from tests.shared import ROOT
from truename import Catalog, dialects, project, resolve
from truename.errors import DuplicateTool, InvalidName, NoLegalName
from truename.identity import fold

if TYPE_CHECKING:
    from truename import NameTable
    from truename.dialects import Dialect

pytestmark = [pytest.mark.slow, pytest.mark.corpus]

# What tells a dialect's name from another's but has no part in how names are made, checked, shown or simulated.
_ONLY_SAID = {"name", "kind", "title", "aliases", "max_tools", "case_sensitive", "client_info", "user_agents"}
_ONLY_SAID |= {"source", "date", "version", "confidence", "notes"}


def effect(dialect: Dialect) -> tuple[object, ...]:
    """Return all fields that have an effect on names; dialects that agree in them share one run."""
    return tuple(getattr(dialect, field.name) for field in fields(dialect) if field.name not in _ONLY_SAID)


def _groups() -> list[tuple[Dialect, int]]:
    groups: defaultdict[object, list[Dialect]] = defaultdict(list)
    for dialect in dialects.table():
        groups[effect(dialect)].append(dialect)
    return [(members[0], len(members) - 1) for members in groups.values()]


def _chosen() -> list[tuple[Dialect, int]]:
    """All groups (`make corpus`), or those that the documents speak of and every eighth of the others."""
    named = [one for one in ALL if one[0].name in NAMED]
    others = [one for one in ALL if one[0].name not in NAMED]
    return ALL if os.environ.get("TRUENAME_CORPUS") == "all" else named + others[::8]


NAMED = ("universal", "openai", "anthropic", "claude-code", "vscode-copilot", "gemini-cli", "codex", "cursor")
# What docs/measurements/names.md says of a dialect: the share of names that are shortened, and the longest.
PUBLISHED = {
    dialect: (f"{share}%", int(longest))
    for dialect, share, longest in re.findall(
        r"^\| `([a-z-]+)` \| ([\d.]+) % \| (\d+) \|",
        (ROOT / "docs" / "measurements" / "names.md").read_text("utf-8"),
        re.MULTILINE,
    )
}
ALL = _groups()
GROUPS = _chosen()


@cache
def listings() -> list[tuple[str, list[dict[str, Any]]]]:
    return [(row["id"], row["tools"]) for row in catalogues()]


@cache
def catalogue(*, shuffled: bool = False) -> Catalog:
    servers = listings()
    if shuffled:
        servers = random.Random(7).sample(servers, len(servers))
    return Catalog.from_mcp(servers)


@cache
def servers() -> list[Catalog]:
    return [Catalog.from_mcp([listing]) for listing in listings()]


def check(names: NameTable) -> None:
    dialect, server = names.dialect, names.server_name
    seen = dialect.simulate(server, names.values())
    illegal = [(str(id), name) for id, name in names.items() if dialect.check(name, server)]
    lost: list[tuple[str, str]] = [(str(id), name) for id, name in names.items() if resolve(name, names).id != id]
    lost += [(str(id), seen.shown[name]) for id, name in names.items() if resolve(seen.shown[name], names).id != id]

    assert illegal == []
    assert lost == []
    assert (seen.dropped, dict(seen.merged), seen.refused) == ((), {}, ())
    assert len(set(seen.shown.values())) == len(names)
    if names.style.name != "canonical":
        assert len({fold(name) for name in names.values()}) == len(names)


def attempted(catalog: Catalog, dialect: Dialect) -> tuple[NameTable | None, tuple[Exception, ...]]:
    try:
        return project(catalog, dialect, style="declared"), ()
    except ExceptionGroup as group:
        return None, group.exceptions


def shortened(names: NameTable) -> float:
    return sum(names.explain(id).shortened for id in names) / len(names)


def report(dialect: Dialect, others: int, rows: list[dict[str, Any]]) -> None:
    if not is_whole():
        return
    text = json.dumps([{"dialect": dialect.name, "others": others, **row} for row in rows])
    part = f"{dialects.names().index(dialect.name):03}-{'declared' if rows[0]['style'] == 'declared' else 'all'}.json"
    folder = Path(os.environ[PARTS])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / part).write_text(text, "utf-8")


def test_dialects_that_share_a_run_differ_in_nothing_that_has_an_effect() -> None:
    assert {field.name for field in fields(dialects.get("openai"))} >= _ONLY_SAID
    assert sum(others + 1 for _, others in ALL) == len(dialects.names())
    assert len(ALL) > 30


@pytest.mark.parametrize(("dialect", "others"), GROUPS, ids=[dialect.name for dialect, _ in GROUPS])
def test_nine_thousand_real_tools_get_names_that_lead_back(dialect: Dialect, others: int) -> None:
    catalog, mixed = catalogue(), catalogue(shuffled=True)
    rows = []
    for style in dialect.styles:
        if style == "declared":
            continue
        names = project(catalog, dialect, style=style)

        assert set(names) == set(catalog)
        check(names)
        assert dict(names) == dict(project(mixed, dialect, style=style))
        longest = max(map(len, names.values()))
        rows.append({"style": style, "shortened": shortened(names), "longest": longest, "remark": ""})
    report(dialect, others, rows)
    prefixed = next((row for row in rows if row["style"] == "prefixed"), None)
    if is_whole() and prefixed and dialect.name in PUBLISHED:
        assert (f"{prefixed['shortened']:.2%}", prefixed["longest"]) == PUBLISHED[dialect.name]


def test_the_page_publishes_the_figures_of_five_dialects_that_are_run_here() -> None:
    assert len(PUBLISHED) == 5
    assert PUBLISHED.keys() <= {dialect.name for dialect, _ in GROUPS}


@pytest.mark.parametrize(("dialect", "others"), GROUPS, ids=[dialect.name for dialect, _ in GROUPS])
def test_each_real_server_s_declared_names_are_a_table_or_a_typed_refusal(dialect: Dialect, others: int) -> None:
    refused = 0
    longest = 0
    for catalog in servers():
        names, errors = attempted(catalog, dialect)
        assert {type(error) for error in errors} <= {NoLegalName, DuplicateTool, InvalidName}
        refused += names is None
        if names:
            check(names)
            assert dict(names) == {id: tool.origin.name for id, tool in catalog.items()}
            assert dict(names) == dict(project(Catalog(list(catalog.values())[::-1]), dialect, style="declared"))
            longest = max(longest, *map(len, names.values()))
    remark = f"{refused} of {len(servers())} servers refused"
    report(dialect, others, [{"style": "declared", "shortened": 0.0, "longest": longest, "remark": remark}])
    assert refused < len(servers())
