"""From what a row gives to Truename's values: catalogue, dialect, style, name table."""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.serving import listed
from tests.acceptance.words import OP_DIALECTS, OP_STYLES, STYLES, USER_AGENT
from tests.shared import ROOT
from truename import Catalog, Ledger, NameTable, Style, dialects, project, resolve
from truename.errors import AmbiguousName, TruenameError, UnknownDialect
from truename.gateway.views.choice import view_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.acceptance.verdict import Facts
    from truename.dialects import Detection, Dialect
    from truename.naming import Passthrough, Resolution

__all__ = [
    "NEW_LEDGER",
    "NO_LEDGER",
    "USED_LEDGER",
    "NotChecked",
    "answer",
    "catalog_of",
    "detected",
    "dialect_of",
    "listing",
    "remembering",
    "servers_of",
    "style_of",
    "table_of",
    "typed",
]

NO_LEDGER: Final = "no ledger"
NEW_LEDGER: Final = "a new ledger"
USED_LEDGER: Final = "a used ledger"
_MEMORY: Final = ContextVar("_MEMORY", default=NO_LEDGER)
_LAB: Final = ROOT / "lab" / "results"
_WHO: Final = frozenset({"client", "headers", "user_agent"})
_LABEL = "tools"
_SCHEMA = {"type": "object"}


class NotChecked(Exception):
    """A row asks for something that this driver cannot check; the text says what."""


def catalog_of(given: Mapping[str, Any]) -> Catalog:
    """Build the catalogue: ids (``catalog``), servers in order, or one server's plain names (``tools``)."""
    aliases = given.get("aliases")
    if "servers" in given:
        return Catalog.from_mcp(servers_of(given["servers"]), aliases)
    if "tools" in given:
        return Catalog.from_mcp(servers_of([[_LABEL, given["tools"]]]), aliases)
    plain = Catalog.of(*given["catalog"], *given.get("catalog_extra", ()), aliases=aliases)
    return Catalog((replace(t, definition=_entry(t.origin.name, given)) for t in plain.values()), plain.aliases)


def servers_of(servers: Sequence[Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return servers as `Catalog.from_mcp` takes them; a tool that is only a name gets a whole tools/list entry."""
    return [
        (label, [tool if isinstance(tool, dict) else _entry(tool, {}) for tool in tools]) for label, tools in servers
    ]


def _entry(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    description = given.get("description", f"The tool {name}")
    return {"name": name, "description": description, "inputSchema": given.get("inputSchema", _SCHEMA)}


def detected(given: Mapping[str, Any]) -> Detection:
    """Say who the client is, from what it sends: its clientInfo, its headers, its user agent."""
    return dialects.detect(*_sent(given))


def _sent(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return the clientInfo and headers of the client that a row names: as it was seen to send them, as far as known.

    One that was run sends what the lab recorded, one that is recognised by name that name, any other the row's word.
    """
    info, headers = _seen(given["client"]) if "client" in given else ({}, {})
    headers |= given.get("headers", {})
    if "user_agent" in given:
        headers[USER_AGENT] = given["user_agent"]
    return info, headers


def _seen(client: str) -> tuple[Mapping[str, Any], dict[str, str]]:
    try:
        row = dialects.get(client)
    except UnknownDialect:
        return {"name": client}, {}
    if row.kind == "own":
        return {"name": client}, {}
    for trial in (trial for name in row.lab for trial in json.loads((_LAB / name).read_bytes())["trials"]):
        if (said := trial.get("handshake", {})).get("client_info"):
            agent = said.get("user_agent")
            return said["client_info"], {USER_AGENT: agent} if agent else {}
    return {"name": row.client_info[0].replace("*", "1") if row.client_info else client}, {}


def dialect_of(given: Mapping[str, Any]) -> Dialect:
    """Return the dialect that the row names, or its client's (unknown: native), or its op's."""
    if "profile" in given:
        found = dialects.get(given["profile"])
    elif given.keys() & _WHO:
        found = detected(given).dialect or dialects.get("native")
    else:
        found = dialects.get(OP_DIALECTS[given["op"]])
    return replace(found, max_length=given["max_len"]) if "max_len" in given else found


def style_of(given: Mapping[str, Any], dialect: Dialect) -> str | Style:
    """Return the style that the row names, or its op's, or what the gateway shows such a client."""
    named = given.get("strategy", given.get("scheme"))
    if named is not None:
        if named not in STYLES:
            raise NotChecked(f"no style is known as {named!r}")
        return STYLES[named]
    if given.get("opt_in"):
        return OP_STYLES[f"{given['op']} (opted in)"]
    return OP_STYLES.get(given["op"]) or view_for(dialect.name).style or "prefixed"


def table_of(given: Mapping[str, Any]) -> NameTable:
    """Project what the row gives; ``advertise: false`` is a table of another style, in which names are canonical."""
    catalog, dialect = catalog_of(given), dialect_of(given)
    style = style_of(given, dialect)
    if given.get("advertise") is False:
        dialect, style = dialects.get("native"), "canonical"
    overrides = {dialect.name: {id: name for name, id in given.get("cursor_names", {}).items()}}
    make = partial(project, catalog, dialect, style=style, overrides=overrides)
    memory = _MEMORY.get()
    if memory == NO_LEDGER:
        return make()
    ledger = Ledger.memory()
    return [make(ledger=ledger) for _ in range(1 if memory == NEW_LEDGER else 2)][-1]


@contextmanager
def remembering(memory: str) -> Iterator[None]:
    """Have `table_of` project with a memory of this kind while the block lasts."""
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def listing(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return what a running gateway lists to the client that the row names, or under the path of its profile."""
    style = style_of(given, dialect_of(given))
    if not isinstance(style, str):
        raise NotChecked("a gateway has the styles that a configuration can name")
    path = f"/mcp/for/{dialects.get(given['profile']).name}" if "profile" in given else "/mcp"
    client, headers = _sent(given) if given.keys() & _WHO else ({"name": "mcp"}, {})
    # Canonical names are a view of their own beside any style.
    style = "prefixed" if style == "canonical" else style
    return listed(catalog_of(given), style=style, path=path, client=client, headers=headers)


def answer(text: str, table: NameTable, *, passthrough: bool = False) -> Facts:
    """Resolve, and return what can be seen of it: the tool, the step, where the call goes; or the error."""

    def resolved() -> Facts:
        found = resolve(text, table, on_unknown="passthrough") if passthrough else resolve(text, table)
        return _resolution(text, found, table)

    return typed({"canonical": None}, resolved)


def _resolution(text: str, found: Resolution | Passthrough, table: NameTable) -> Facts:
    if found.id is None:
        return {"step": found.step, "passthrough": text}
    origin = table.catalog[found.id].origin
    return {
        "canonical": str(found.id),
        "step": found.step,
        "server": origin.server,
        "upstream_name": origin.name,
        "tool": origin.name,
    }


def typed(facts: Facts, observe: Callable[[], Facts]) -> Facts:
    """Return the facts and what is observed; a typed error is an observation too, any other is raised."""
    try:
        return facts | observe()
    except ExceptionGroup as group:
        errors, others = group.split(TruenameError)
        if errors is None or others is not None:
            raise
        return facts | _error(errors)
    except TruenameError as error:
        return facts | _error(error)


def _error(error: TruenameError | ExceptionGroup[TruenameError]) -> Facts:
    each = list(_leaves(error))
    facts: Facts = {"error": each[0].code, "message": "\n".join(map(str, each))}
    if isinstance(each[0], AmbiguousName):
        facts["candidates"] = list(each[0].candidates)
    return facts


def _leaves(error: BaseException) -> Iterator[TruenameError]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    elif isinstance(error, TruenameError):
        yield error
