"""What is fed, and what must hold whatever the input is: a typed error or a right answer."""

from __future__ import annotations

import gzip
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz import (
    targets_audit,
    targets_configuration,
    targets_consent,
    targets_envelopes,
    targets_exposure,
    targets_identities,
    targets_kept,
    targets_sessions,
    targets_sign_in,
    targets_tokens,
    targets_upstream,
)
from tests.fuzz.judging import must
from tests.fuzz.mutation import mutated, mutated_bytes, text, value
from truename import Catalog, Ledger, NameTable, ToolId, ToolRef, dialects, project, resolve
from truename.config import parse
from truename.errors import ResolutionError, TruenameError
from truename.identity import decode
from truename.naming import STYLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["TARGETS"]


def tool_id(chance: Random) -> None:
    id = ToolId.parse(text(chance))
    must(ToolId.parse(str(id)) == id, "parse(str(id)) is id")
    must(str(id).isascii() and len(str(id)) <= 512, "an id is short ASCII")


def tool_ref(chance: Random) -> None:
    ref = ToolRef.parse(text(chance))
    must(ToolRef.parse(str(ref)) == ref, "parse(str(ref)) is ref")


def decoding(chance: Random) -> None:
    plain = decode(text(chance))
    must(plain.isprintable() and "%" not in plain, "what is decoded is printable and holds no %")


def listings(chance: Random) -> None:
    pairs = [(text(chance), _listing(chance)) for _ in range(chance.randrange(5))]
    lenient = Catalog.from_mcp(pairs, strict=False)
    must(len({(tool.origin.server_id, tool.origin.name) for tool in lenient.values()}) == len(lenient), "one each")
    Catalog.from_mcp(pairs)


def _listing(chance: Random) -> Any:
    tools = [_tool(chance) for _ in range(chance.randrange(6))]
    return chance.choice((tools, {"tools": tools}, {"result": {"tools": tools}}, value(chance)))


def _tool(chance: Random) -> Any:
    name = text(chance)
    return chance.choice((name, {"name": name}, {"name": name, "inputSchema": value(chance)}, value(chance)))


_DUMPS: Final = (
    b'{"a": [{"name": "x"}], "b": {"tools": [{"name": "y.z"}]}}',
    b'{"name": "x"}\n{"name": "y"}\n',
    b'{"server": "a", "tools": [{"name": "x", "inputSchema": {"type": "object"}}]}\n{"id": "b", "tools": []}\n',
    b'\xef\xbb\xbf[{"name": "x"}]',
    b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "x"}]}}',
)


def dumps(chance: Random) -> None:
    raw = chance.choice(_DUMPS)
    if chance.random() < 0.3:
        raw = json.dumps({text(chance): value(chance)}).encode()
    raw = mutated_bytes(chance, raw)
    if chance.random() < 0.3:
        raw = mutated_bytes(chance, gzip.compress(raw, mtime=0))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "dump.json")
        path.write_bytes(raw)
        Catalog.from_file(path)


_MCP: Final = json.dumps(
    {
        "mcpServers": {
            "a": {"command": "x", "args": ["${HOME}", "${NONE:-y}"], "env": {"K": "v"}},
            "b": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${env:T}"}},
        },
        "truename": {"style": "prefixed", "aliases": {"salesforce": "sf"}, "names": "detect", "call_timeout": 3},
    },
    indent=1,
)
_TOML: Final = """style = "prefixed"
server_name = "tn"
[servers.a]
command = "x"
args = ["--y", "${HOME}"]
[truename.overrides.openai]
"a/b" = "c"
"""


def configurations(chance: Random) -> None:
    given, name = chance.choice(((_MCP, "mcp.json"), (_TOML, "truename.toml")))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        given = mutated(chance, given)
    if chance.random() < 0.3:
        given = json.dumps({"mcpServers": {text(chance): value(chance)}, "truename": value(chance)})
    parse(given, Path(name), {"HOME": "/home/x", "T": "t"})


def projections(chance: Random) -> None:
    servers = {text(chance)[:80]: [text(chance)[:200] for _ in range(chance.randrange(8))] for _ in range(4)}
    catalog = Catalog.from_mcp(servers, strict=False)
    dialect = dialects.get(chance.choice(dialects.names()))
    style = chance.choice(sorted(STYLES))
    ledger = chance.choice((None, Ledger.memory()))
    names = project(catalog, dialect, style=style, ledger=ledger)
    must(set(names) == set(catalog), "a table is total")
    must(len(set(names.values())) == len(names), "a table is one-to-one")
    for id, name in names.items():
        must(names.id_of(name) == id, "a name leads to its tool")
        must(resolve(name, names).id == id, "a name resolves to its own tool")
        must(resolve(str(id), names).id == id or str(id) in names.values(), "an id resolves to its own tool")
        must(not dialect.check(name), "a name is legal")


@cache
def _table() -> NameTable:
    pairs = [("data-grout", ["prism.refract", "search"]), ("salesforce", ["get_leads", "search", "create_lead"])]
    catalog = Catalog.from_mcp([*pairs, ("Weather", ["get_data", "天気取得"]), ("a", ["b", "createPage"])])
    return project(catalog, "universal", ledger=Ledger.memory())


def resolutions(chance: Random) -> None:
    table = _table()
    given = chance.choice((text(chance), mutated(chance, chance.choice(list(table.values())))))
    try:
        found = resolve(given, table)
    except ResolutionError as error:
        must(all(name in table.values() for name in getattr(error, "suggestions", ())), "suggestions exist")
        raise
    must(found.id in table, "what is found is in the table")


def detections(chance: Random) -> None:
    client = chance.choice((None, text(chance), {"name": value(chance)}, value(chance)))
    keys = ("User-Agent", "x-truename-dialect", "X-OpenAI-Mode", "x-anthropic-client", text(chance))
    headers = {chance.choice(keys): chance.choice((text(chance), "true", "cursor")) for _ in range(3)}
    found = dialects.detect(client, chance.choice((None, headers)))
    must(found.evidence.isprintable() and len(found.evidence) < 2_000, "evidence is short and printable")


def simulations(chance: Random) -> None:
    dialect = dialects.get(chance.choice(dialects.names()))
    # A digest of a client's own takes a third of a microsecond a letter: what is longer takes longer, and that is all.
    server, names = text(chance)[:1_000_000], [text(chance)[:1_000_000] for _ in range(chance.randrange(8))]
    seen = dialect.simulate(server, names)
    for name in names:
        places = (name in seen.shown) + (name in seen.dropped) + (name in seen.refused)
        must(places == 1, "each name is shown, dropped or refused")
    for name in names:
        dialect.check(name, server)
        dialect.shown(server, name)


@cache
def _journal() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        ledger = Ledger.open(Path(directory, "names.ledger"))
        for tools in (["x", "y.z", "search"], ["search", "天気"]):
            project(Catalog.from_mcp({"a": ["old"], "b": tools}, bound=ledger.bindings()), "openai", ledger=ledger)
        ledger.retire("a_old", "b_search")
        ledger.redirect("older", "b_search")
        return Path(directory, "names.ledger").read_bytes()


def journals(chance: Random) -> None:
    raw = mutated_bytes(chance, _journal())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "names.ledger")
        path.write_bytes(raw)
        catalog = Catalog.from_mcp({"b": ["search", "new"]})
        try:
            project(catalog, "openai", ledger=Ledger.open(path, readonly=True))
            must(path.read_bytes() == raw, "reading writes nothing")
            project(catalog, "openai", ledger=Ledger.open(path))
        except TruenameError:
            must(path.read_bytes() == raw, "a refused file stays as it was")
            raise
        again = Ledger.open(path, readonly=True)
        must(again.standing("b_search") is not None or not raw, "what was written is read again")


TARGETS: Final[dict[str, Callable[[Random], None]]] = {
    target.__name__: target
    for target in (
        tool_id,
        tool_ref,
        decoding,
        listings,
        dumps,
        configurations,
        projections,
        resolutions,
        detections,
        simulations,
        journals,
        *targets_audit.TARGETS,
        *targets_envelopes.TARGETS,
        *targets_configuration.TARGETS,
        *targets_consent.TARGETS,
        *targets_kept.TARGETS,
        *targets_exposure.TARGETS,
        *targets_identities.TARGETS,
        *targets_sessions.TARGETS,
        *targets_sign_in.TARGETS,
        *targets_tokens.TARGETS,
        *targets_upstream.TARGETS,
    )
}
