"""Ops about one name or one table of names (seeds 000 to 002)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.world import (
    answer,
    catalog_of,
    detected,
    listing,
    table_of,
)
from truename import Catalog, NameTable, ToolId, dialects
from truename.conventions import Convention, Declaration, lint
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Sequence


@op("valid_name", needs="profile name")
def valid_name(given: Given) -> Facts:
    return {"valid": not dialects.get(given["profile"]).check(given["name"])}


@op("check_list", needs="profile names")
def check_list(given: Given) -> Facts:
    dialect = dialects.get(given["profile"])
    illegal = [name for name in given["names"] if dialect.check(name)]
    return {"ok": not illegal, "first": illegal[0] if illegal else None, "all": illegal}


@op("parse", "canonicalize", needs="input")
def parse(given: Given) -> Facts:
    id = ToolId.parse(given["input"])
    return {
        "canonical": str(id),
        "integration": id.integration,
        "integration_version": id.integration_version,
        "suite": id.suite,
        "tool": id.tool,
        "tool_version": id.version,
    }


@op("roundtrip", needs="inputs")
def roundtrip(given: Given) -> Facts:
    return {"equal": bool(given["inputs"]) and all(str(ToolId.parse(text)) == text for text in given["inputs"])}


@op("lint_integration", needs="input")
def lint_integration(given: Given) -> Facts:
    """Ask the linter about the one tool of a server with this key."""
    tool = Declaration(name="get_leads", server=given["input"])
    return {"ok": not lint([tool], Convention.of("canonical")).findings}


@op("default_alias", needs="alias")
def default_alias(given: Given) -> Facts:
    meanings = {alias: integration for integration, alias in Catalog.of().aliases.items()}
    return {"integration": meanings.get(given["alias"])}


@op("flatten", needs="input", names=True)
def flatten(given: Given) -> Facts:
    return {"name": table_of({**given, "catalog": [given["input"]]})[ToolId.parse(given["input"])]}


@op("assigned", needs="catalog", names=True)
def assigned(given: Given) -> Facts:
    return {name: str(id) for id, name in table_of(given).items()}


@op("assigned_unique", needs="catalog", names=True)
def assigned_unique(given: Given) -> Facts:
    return _unique(table_of(given))


@op("list_names", needs="catalog|tools|servers")
def list_names(given: Given) -> Facts:
    return _uniqueness([entry["name"] for entry in listing(given)], len(catalog_of(given)))


def _unique(table: NameTable) -> Facts:
    return _uniqueness(list(table.values()), len(table))


def _uniqueness(names: Sequence[str], tools: int) -> Facts:
    return {"names": list(names), "unique": len({fold(name) for name in names}) == tools}


@op("descriptor", needs="catalog tool", takes="description inputSchema")
def descriptor(given: Given) -> Facts:
    (entry,) = (one for one in listing(given) if one["canonical_name"] == str(ToolId.parse(given["tool"])))
    return {**entry, "descriptors": [entry]}


@op("descriptor_all", needs="catalog", takes="description inputSchema")
def descriptor_all(given: Given) -> Facts:
    return {"descriptors": listing(given)}


@op("detect", needs="client|headers|user_agent")
def detect(given: Given) -> Facts:
    found = detected(given).dialect
    return {
        "openai_mode": found is not None and found is not dialects.get("native"),
        "dialect": None if found is None else found.name,
    }


@op("resolve", needs="catalog input", takes="catalog_extra cursor_names advertise passthrough", names=True)
def resolve(given: Given) -> Facts:
    return answer(given["input"], table_of(given), passthrough=given.get("passthrough", False))


@op("resolve_all_equal", needs="catalog inputs", names=True)
def resolve_all_equal(given: Given) -> Facts:
    table = table_of(given)
    answers = [answer(text, table) for text in given["inputs"]]
    reached = {one["canonical"] for one in answers}
    return answers[0] if len(reached) == 1 else {"canonical": [one["canonical"] for one in answers]}


@op("encode", needs="input", names=True)
def encode(given: Given) -> Facts:
    return {"name": next(iter(table_of({**given, "tools": [given["input"]]}).values()))}


@op("encode_resolve", needs="catalog input", names=True)
def encode_resolve(given: Given) -> Facts:
    return answer(given["input"], table_of({**given, "tools": given["catalog"]}))


@op("encode_unique", needs="catalog|names|inputs|tools", names=True)
def encode_unique(given: Given) -> Facts:
    tools = next(given[key] for key in ("catalog", "names", "inputs", "tools") if key in given)
    return _unique(table_of({**given, "tools": tools}))


@op("family", needs="name")
def family(given: Given) -> Facts:
    (id,) = catalog_of({"tools": [given["name"]]})
    return {"family": id.suite, "verb": id.tool}


@op("mcp_prefix", needs="server|servers", takes="default opt_in server servers tool call", names=True)
def mcp_prefix(given: Given) -> Facts:
    pairs = given["servers"] if "servers" in given else [[given["server"], given["tool"]]]
    servers = [[label, [tool]] for label, tool in pairs]
    table = table_of({**given, "servers": servers})
    names = [table[id] for id in table.catalog]
    origins = [tool.origin for tool in table.catalog.values()]
    facts = {
        "exposed": names[0],
        "contains_server": all(fold(o.server) in fold(name) for o, name in zip(origins, names, strict=True)),
    }
    return _unique(table) | facts | (answer(names[0], table) if given.get("call") else {})
