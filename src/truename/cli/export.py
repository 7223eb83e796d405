"""`truename export`: put the names of our table where another gateway keeps renames, and check what it then lists."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import yaml
from cyclopts import Parameter

from truename.cli import _completion
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._export_output import (
    applied_document,
    comparison_document,
    export_document,
    show_applied,
    show_comparison,
    show_export,
    show_restored,
)
from truename.cli._gateway_api import HttpApi
from truename.cli._gateway_list import VARIABLE, listed_at
from truename.cli._options import Client, Force, JsonOutput, NamingOptions, Source
from truename.cli._proposal import PRIVATE, check_free, save
from truename.cli._rendering import print_json, show
from truename.cli._sources import Source as FoundSource
from truename.cli._sources import find_sources, server_entries
from truename.cli._workspace import ToolWorkspace, open_workspace
from truename.clients.exporters import (
    GATEWAYS,
    ApiPlan,
    Export,
    ExportSource,
    FormerValues,
    GatewayApi,
    GatewayState,
    SoughtServer,
    choose_prefixes,
    compare,
    read_undo,
)
from truename.config.files import decode, read_text
from truename.errors import ConfigError, excerpt, spelling_remedy
from truename.ledger import open_ledger
from truename.naming import NameTable
from truename.storage import StateLocation

__all__ = ["export"]

_MEMORY: Final = "memory"
_TOML: Final = ".toml"
_YAML: Final = frozenset({".yaml", ".yml"})
_UNDO: Final = "{}-undo.json"
_NOT_RECORDED: Final = (
    "The names were recorded nowhere, so a later export may give one to another tool. Name a configuration as SOURCE, "
    "or the ledger of a gateway: --state PATH."
)
To = Annotated[
    str,
    Parameter(
        name="--to", metavar="GATEWAY", completer=_completion.gateways, help=f"The gateway: {', '.join(GATEWAYS)}."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExportTarget:
    """What is done with an export: it is shown, written, sent, undone or compared."""

    write: Annotated[
        Path | None, Parameter(name="--write", metavar="FILE", help="Write the gateway's file, and record the names.")
    ] = None
    url: Annotated[
        str | None,
        Parameter(
            name="--url",
            metavar="URL",
            help=f"The gateway's API, which says what it has; {VARIABLE} is the bearer token for it.",
        ),
    ] = None
    apply: Annotated[
        bool,
        Parameter(
            name="--apply", negative=(), show_default=False, help="Set the names through the API, and record them."
        ),
    ] = False
    undo_file: Annotated[
        Path | None,
        Parameter(
            name="--undo-file",
            metavar="FILE",
            help="Where --apply keeps the former names; default: GATEWAY-undo.json.",
        ),
    ] = None
    undo: Annotated[
        Path | None, Parameter(name="--undo", metavar="FILE", help="Restore the former names of this file.")
    ] = None
    check: Annotated[
        str | None,
        Parameter(
            name="--check",
            metavar="URL",
            help=f"Compare with tools/list of the running gateway at its MCP address; {VARIABLE} is sent to it.",
        ),
    ] = None

    @property
    def records(self) -> bool:
        """Whether the names are given to somebody, so that they have to be recorded."""
        return self.write is not None or self.apply


_AS_IT_IS = NamingOptions()
_SHOWN = ExportTarget()


def export(
    *sources: Source,
    to: To,
    client: Client = "universal",
    making: NamingOptions = _AS_IT_IS,
    target: ExportTarget = _SHOWN,
    force: Force = False,
    as_json: JsonOutput = False,
) -> int:
    """Export the names to another gateway. Exit status 1: it cannot express something, or its list differs."""
    if to not in GATEWAYS:
        raise UsageError(fact=f"names cannot be exported to {to!r}", advice=spelling_remedy(to, GATEWAYS))
    _check_options(target, to, force=force)
    api = GATEWAYS[to].api
    # Without an API, the options say no URL.
    if target.undo is not None and target.url is not None and api is not None:
        return _undone(target.undo, to, api, target.url, as_json=as_json)
    found = find_sources(sources)
    workspace = open_workspace(sources, making)
    http = None if target.url is None else HttpApi(target.url)
    state = None
    if api is not None and http is not None:
        state = api.state(http.read(api.paths), _sought(workspace.table(client), _entries(found)))
    with _recording(workspace, found, is_recorded=target.records) as recorded:
        names, exported = _exported(recorded, found, to, client, state, is_recorded=target.records)
        if target.records and recorded.ledger is None:
            exported = replace(exported, notes=(*exported.notes, _NOT_RECORDED))
    plan = None if api is None or state is None else api.plan(exported, state)
    if plan is not None:
        exported = exported.without(plan.left)
    if target.check is not None:
        return _checked(exported, names, target.check, as_json=as_json)
    if plan is not None and http is not None:
        return _applied(exported, plan, target, http, workspace, force=force, as_json=as_json)
    written = () if target.write is None else _written(exported, target.write, force=force)
    if as_json:
        print_json(export_document(exported, GATEWAYS[to], written, workspace.failed))
    else:
        show_export(exported, GATEWAYS[to])
        for path in written:
            show(f"Written: {path}")
    return EXIT_UPSTREAM if workspace.failed else EXIT_FINDINGS if exported.left else 0


def _check_options(target: ExportTarget, to: str, *, force: bool) -> None:
    """Raise `UsageError` for options that do not go together."""
    given = [
        name
        for name, is_given in (
            ("--write", target.write is not None),
            ("--apply", target.apply),
            ("--undo", target.undo is not None),
            ("--check", target.check is not None),
        )
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(fact=f"{' and '.join(given)} exclude each other", advice="Give one of them.")
    needs_api = target.apply or target.undo is not None
    if (needs_api or target.url is not None) and GATEWAYS[to].api is None:
        advice = "Use --write, and give the file to the gateway."
        raise UsageError(fact=f"{GATEWAYS[to].title} keeps names in a file, not behind an API", advice=advice)
    if needs_api and target.url is None:
        raise UsageError(fact=f"{given[0]} needs the gateway's API", advice="Add --url http://HOST:PORT.")
    if target.write is not None:
        check_free(target.write, force=force, option="--write")
    if target.apply:
        undo = _undo_file(target, to)
        check_free(undo, force=force or _earlier(undo, to, target.url) is not None, option="--undo-file")


def _undo_file(target: ExportTarget, to: str) -> Path:
    return Path(_UNDO.format(to)) if target.undo_file is None else target.undo_file


def _earlier(path: Path, to: str, url: str | None) -> FormerValues | None:
    """Return what an undo file for this API has, such as that of an export that was interrupted; None for others."""
    if not path.is_file():
        return None
    try:
        earlier = read_undo(decode(read_text(path), str(path), toml=False), str(path), to)
    except ConfigError:
        return None
    return earlier if earlier.url == _plain_url(url) else None


def _plain_url(url: str | None) -> str:
    return "" if url is None else url.rstrip("/")


def _sought(names: NameTable, entries: Mapping[str, Mapping[str, object]]) -> list[SoughtServer]:
    """Return the servers as the gateway may know them."""
    servers = ExportSource(names=names).by_server()
    proposed = choose_prefixes(names, servers)
    return [
        SoughtServer(key=key, url=str(entries.get(key, {}).get("url") or ""), proposed=proposed[key]) for key in servers
    ]


def _exported(
    workspace: ToolWorkspace,
    found: tuple[FoundSource, ...],
    to: str,
    client: str,
    state: GatewayState | None,
    *,
    is_recorded: bool,
) -> tuple[NameTable, Export]:
    """Return the names and their export; both are in the ledger if it is to be recorded."""
    names = workspace.table(client)
    source = ExportSource(names=names, entries=_entries(found))
    if state is not None:
        source = replace(source, known_as=state.known_as, separator=state.separator)
    exported, claims = GATEWAYS[to].export(source)
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
        entries |= {key: entry for _, key, entry in server_entries(content) if key in enabled}
    return entries


def _written(exported: Export, path: Path, *, force: bool) -> tuple[Path, ...]:
    """Write the gateway's documents, which may have secrets of the entries, so that only the user can read them."""
    documents = [dict(one) for one in exported.documents.values()]
    if any(Path(name).suffix in _YAML for name in exported.documents):
        text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
    else:
        text = "".join(f"{json.dumps(one, indent=2)}\n" for one in documents)
    backup = save(path, text, mode=PRIVATE, force=force, option="--write")
    return (path,) if backup is None else (path, backup)


def _applied(
    exported: Export,
    plan: ApiPlan,
    target: ExportTarget,
    http: HttpApi,
    workspace: ToolWorkspace,
    *,
    force: bool,
    as_json: bool,
) -> int:
    """Show the requests, or send them; the former names are in a file before the first one is sent."""
    undo = None
    if target.apply and plan.requests:
        undo = _undo_file(target, exported.gateway)
        former = replace(plan.former, url=_plain_url(target.url))
        api = GATEWAYS[exported.gateway].api
        earlier = None if force else _earlier(undo, exported.gateway, target.url)
        if earlier is not None and api is not None:
            former = earlier.before(former, api.is_passing)
        text = f"{json.dumps(former.plain(), indent=2)}\n"
        save(undo, text, mode=PRIVATE, force=force or earlier is not None, option="--undo-file")
        http.send(plan.requests, remedy=f"Repeat the command, or undo it: --undo {undo}.")
    if as_json:
        print_json(applied_document(exported, GATEWAYS[exported.gateway], plan, undo, is_sent=target.apply))
    else:
        show_export(exported, GATEWAYS[exported.gateway])
        show_applied(exported, plan, undo, is_sent=target.apply)
    return EXIT_UPSTREAM if workspace.failed else EXIT_FINDINGS if exported.left else 0


def _undone(path: Path, to: str, api: GatewayApi, url: str, *, as_json: bool) -> int:
    former = read_undo(decode(read_text(path), str(path), toml=False), str(path), to)
    if former.url not in {"", _plain_url(url)}:
        problem = f"it has the names of the gateway at {excerpt(former.url)}"
        remedy = "Give that URL with --url. If the gateway has moved, correct the URL in the file."
        raise ConfigError(file=str(path), key="url", problem=problem, remedy=remedy)
    http = HttpApi(url)
    plan = api.undo(former, api.state(http.read(api.paths), ()))
    http.send(plan.requests, remedy="Repeat the command.")
    if as_json:
        print_json({"gateway": to, "restored": [one.what for one in plan.requests], "kept": list(plan.kept)})
    else:
        show_restored(plan)
    return EXIT_FINDINGS if plan.kept else 0


def _checked(exported: Export, names: NameTable, url: str, *, as_json: bool) -> int:
    compared = compare(exported, names, listed_at(url))
    if as_json:
        print_json(comparison_document(exported, compared, url))
    else:
        show_comparison(exported, compared, url)
    return 0 if compared.is_equal else EXIT_FINDINGS
