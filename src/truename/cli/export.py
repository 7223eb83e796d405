"""`truename export`: put the names of our table where another gateway keeps renames, and check what it then lists."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._export_output import comparison_document, export_document, show_comparison, show_export
from truename.cli._gateway_list import listed_at
from truename.cli._options import Client, Force, JsonOutput, NamingOptions, Source
from truename.cli._proposal import PRIVATE, check_free, save
from truename.cli._rendering import print_json, show
from truename.cli._sources import Source as FoundSource
from truename.cli._sources import find_sources
from truename.cli._workspace import ToolWorkspace, open_workspace
from truename.clients.exporters import GATEWAYS, Export, ExportSource, compare
from truename.config.files import decode, read_text
from truename.errors import spelling_remedy
from truename.ledger import open_ledger
from truename.naming import NameTable
from truename.storage import StateLocation

__all__ = ["export"]

To = Annotated[
    str,
    Parameter(
        name="--to", metavar="GATEWAY", completer=_completion.gateways, help=f"The gateway: {', '.join(GATEWAYS)}."
    ),
]
Write = Annotated[
    Path | None, Parameter(name="--write", metavar="FILE", help="Write the gateway's file, and record the names.")
]
Check = Annotated[
    str | None,
    Parameter(
        name="--check",
        metavar="URL",
        help="Compare with tools/list of the running gateway; TRUENAME_EXPORT_TOKEN is its bearer token.",
    ),
]
_AS_IT_IS = NamingOptions()
_SERVERS: Final = ("mcpServers", "servers")
_MEMORY: Final = "memory"
_TOML: Final = ".toml"


def export(
    *sources: Source,
    to: To,
    client: Client = "universal",
    making: NamingOptions = _AS_IT_IS,
    write: Write = None,
    force: Force = False,
    check: Check = None,
    as_json: JsonOutput = False,
) -> int:
    """Export the names to another gateway. Exit status 1: it cannot express something, or its list differs."""
    if to not in GATEWAYS:
        raise UsageError(fact=f"{to!r} is not a gateway for names", advice=spelling_remedy(to, GATEWAYS))
    if write is not None and check is not None:
        raise UsageError(fact="--write and --check exclude each other", advice="Write first, start the gateway, check.")
    if write is not None:
        check_free(write, force=force, option="--write")
    found = find_sources(sources)
    workspace = open_workspace(sources, making)
    with _recording(workspace, found, is_recorded=write is not None) as recorded:
        names, exported = _exported(recorded, found, to, client, is_recorded=write is not None)
    if check is not None:
        return _checked(exported, names, check, as_json=as_json)
    written = () if write is None else _written(exported, write, force=force)
    if as_json:
        print_json(export_document(exported, GATEWAYS[to], written, workspace.failed))
    else:
        show_export(exported, GATEWAYS[to])
        for path in written:
            show(f"Written: {path}")
    return EXIT_UPSTREAM if workspace.failed else EXIT_FINDINGS if exported.left else 0


def _exported(
    workspace: ToolWorkspace, found: tuple[FoundSource, ...], to: str, client: str, *, is_recorded: bool
) -> tuple[NameTable, Export]:
    """Return the names and their export; both are in the ledger if it is to be recorded."""
    names = workspace.table(client)
    exported, claims = GATEWAYS[to].export(ExportSource(names=names, entries=_entries(found)))
    if is_recorded and names.ledger is not None and not names.ledger.readonly:
        names.ledger.remember(None, claims, ())
    return names, exported


@contextmanager
def _recording(
    workspace: ToolWorkspace, found: tuple[FoundSource, ...], *, is_recorded: bool
) -> Iterator[ToolWorkspace]:
    """Open the ledger of the workspace for writing in the block, if the names are to be recorded and it has one."""
    location = _location(workspace, found) if is_recorded else None
    if location is None:
        yield workspace
        return
    ledger = open_ledger(location)
    try:
        with ledger.transaction():
            yield replace(workspace, ledger=ledger)
    finally:
        ledger.close()


def _location(workspace: ToolWorkspace, found: tuple[FoundSource, ...]) -> StateLocation | None:
    if workspace.ledger_option == _MEMORY:
        return None
    if workspace.ledger_option is not None:
        return StateLocation.of(workspace.ledger_option)
    if len(found) != 1 or found[0].config is None:
        return None
    location = found[0].config.state_location()
    # Options that make other names than the ledger's leave it out: `open_workspace` says so.
    is_left_out = workspace.ledger is None and location.has("ledger")
    return None if location.is_memory or is_left_out else location


def _entries(found: tuple[FoundSource, ...]) -> Mapping[str, Mapping[str, object]]:
    """Return the entries of all configurations as they are written, without those of servers that are disabled."""
    entries: dict[str, Mapping[str, object]] = {}
    for source in found:
        if source.config is None or source.config.path is None:
            continue
        path = source.config.path
        content = decode(read_text(path), str(path), toml=path.suffix.lower() == _TOML)
        enabled = {server.key for server in source.config.enabled}
        for name in _SERVERS:
            given = content.get(name)
            if isinstance(given, dict):
                entries |= {key: entry for key, entry in given.items() if key in enabled and isinstance(entry, dict)}
    return entries


def _written(exported: Export, path: Path, *, force: bool) -> tuple[Path, ...]:
    """Write the gateway's document, which may have secrets of the entries, so that only the user can read it."""
    (document,) = exported.documents.values()
    text = f"{json.dumps(document, indent=2)}\n"
    backup = save(path, text, mode=PRIVATE, force=force, option="--write")
    return (path,) if backup is None else (path, backup)


def _checked(exported: Export, names: NameTable, url: str, *, as_json: bool) -> int:
    compared = compare(exported, names, listed_at(url))
    if as_json:
        print_json(comparison_document(exported, compared, url))
    else:
        show_comparison(exported, compared, url)
    return 0 if compared.is_equal else EXIT_FINDINGS
