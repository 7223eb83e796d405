"""`truename import`: convert another gateway's configuration to a truename.toml, and list everything that is lost."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import CopySecrets, DryRun, Force, JsonOutput, Out
from truename.cli._proposal import (
    SERVER_NAME,
    ProposedFiles,
    check_free,
    plain,
    prepare,
    save_all,
    show_refused,
    show_servers,
    show_variables,
)
from truename.cli._questions import is_agreed, is_terminal
from truename.cli._registry_entries import EntryReader, command_line
from truename.cli._rendering import Cell, count, print_json, print_table, say, show, styled
from truename.clients import Machine, find, read_source
from truename.clients.doctor.connector_findings import configured_in, named_entries
from truename.clients.importers import KINDS, PACKAGES, ImportedConfig, names_of, read_peer
from truename.config import Settings
from truename.config.connectors import ConfiguredEntry, alike
from truename.config.files import SETTINGS_FILE
from truename.config.proposal import Proposal, propose
from truename.conventions import Finding, Location, Severity
from truename.editing import SourceLines
from truename.files.user import at_home

__all__ = ["import_"]

Peer = Annotated[
    str,
    Parameter(
        name="FILE",
        help="The other gateway's configuration, or a directory of them; or the word registry and an entry of the MCP "
        "registry: a file, an address, or a name with --registry.",
    ),
]
Package = Annotated[
    str | None,
    Parameter(name="--package", metavar="KIND", help=f"What to take of a registry's entry: {', '.join(PACKAGES)}."),
]
RegistryUrl = Annotated[
    str | None, Parameter(name="--registry", metavar="URL", help="The MCP registry that is asked for a name.")
]
PackageHost = Annotated[
    str | None,
    Parameter(
        name="--package-host",
        metavar="HOST",
        help="The host of the package registry that an entry may name: the one that npx, uvx or docker asks here.",
    ),
]
Agreed = Annotated[bool, Parameter(name="--yes", show_default=False, help="Write a registry's entry without asking.")]
_REGISTRY = "registry"
From = Annotated[
    str | None,
    Parameter(name="--from", metavar="GATEWAY", help=f"The other gateway, if it is not detected: {', '.join(KINDS)}."),
]
_MOST = 5
_MOST_ROWS = 200
_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


class _Result(NamedTuple):
    imports: tuple[ImportedConfig, ...]
    proposal: Proposal
    settings: Settings
    findings: tuple[Finding, ...]
    files: ProposedFiles
    written: tuple[Path, ...]
    lines: SourceLines


def import_(
    *files: Peer,
    kind: From = None,
    package: Package = None,
    package_host: PackageHost = None,
    registry: RegistryUrl = None,
    yes: Agreed = False,
    out: Out = Path("truename.toml"),
    copy_secrets: CopySecrets = False,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: JsonOutput = False,
) -> int:
    """Convert another gateway's configuration to a truename.toml. Exit status 1: something cannot be imported."""
    if not dry_run:
        check_free(out, force=force)
    if not files:
        raise UsageError(fact="no FILE was given", advice="Give the configuration of another gateway.")
    entries = EntryReader(package=package, package_host=package_host, registry=registry)
    if is_entry := files[0] == _REGISTRY and len(files) > 1:
        imports = tuple(map(entries.read, files[1:]))
    elif package or package_host or registry:
        option = "--package" if package else "--package-host" if package_host else "--registry"
        raise UsageError(fact=f"{option} is about an entry of the MCP registry", advice="Write: import registry NAME.")
    else:
        imports = tuple(imported for file in files for imported in read_peer(at_home(Path(file)), kind))
    proposal = propose((seen for imported in imports for seen in imported.seen), Machine.here().environ)
    if not proposal.servers:
        raise _nothing(imports, proposal, entries.lines)
    settings, findings = _settings(imports, proposal)
    findings = entries.lines.all(findings)
    head = tuple(f"Imported from {_title(imported)}: {imported.file}" for imported in imports[:_MOST])
    texts = prepare(proposal, out, settings, head=head, copy_secrets=copy_secrets, force=force or dry_run)
    if is_entry and dry_run:
        _tell_twins(proposal)
    elif is_entry and not yes:
        _confirm(proposal, out)
    written = [] if dry_run else save_all(texts, force=force)
    result = _Result(imports, proposal, settings, findings, texts, tuple(written), entries.lines)
    if as_json:
        print_json(_document(result))
    else:
        if dry_run:
            sys.stdout.write(texts.text)
        _summary(result, error=dry_run)
    return EXIT_FINDINGS if findings or proposal.refused else 0


def _title(imported: ImportedConfig) -> str:
    return KINDS[imported.kind].title if imported.kind in KINDS else "the MCP registry"


def _confirm(proposal: Proposal, out: Path) -> None:
    """Ask whether what a registry's entry starts may be written: nobody vouches for it. Raises `UsageError`."""
    for merged in proposal.servers:
        say(f"{merged.server.key} ({merged.server.registry_name}) is: {command_line(merged.server)}")
    _tell_twins(proposal, replaced=out)
    if not is_terminal():
        raise UsageError(fact="nothing was written", advice="Read the command above, and give --yes.")
    if not is_agreed("Write it? [y/N]"):
        raise UsageError(fact="nothing was written", advice="--dry-run shows the whole configuration.")


def _tell_twins(proposal: Proposal, replaced: Path | None = None) -> None:
    """Print which servers of this machine are probably one connector with one that is imported."""
    new = [
        ConfiguredEntry(
            server=merged.server,
            location=Location(file=merged.seen[0].file),
            beside=_REGISTRY,
            registry_name=merged.server.registry_name,
        )
        for merged in proposal.servers
    ]
    own = Path(SETTINGS_FILE)
    files = list(find(Machine.here()))
    if own.is_file() and (replaced is None or own.absolute() != replaced.absolute()):
        # As a client's file: nobody agreed to it, so its references are not followed.
        files.append(read_source(own))
    for found, shared in alike([*new, *configured_in(files)]):
        if found[0] in new:
            say(f"{named_entries(found)} are probably one connector: {shared}. Nothing is merged.")


def _settings(imports: tuple[ImportedConfig, ...], proposal: Proposal) -> tuple[Settings, tuple[Finding, ...]]:
    keys = {(seen.file, seen.server.key): merged.server.key for merged in proposal.servers for seen in merged.seen}
    names = names_of(imports, keys, SERVER_NAME)
    settings = Settings(server_name=SERVER_NAME, aliases=names.aliases or None)
    if names.overrides:
        settings = replace(settings, overrides=MappingProxyType({"universal": names.overrides}))
    return settings, (*(finding for imported in imports for finding in imported.left), *names.left)


def _nothing(imports: tuple[ImportedConfig, ...], proposal: Proposal, lines: SourceLines) -> UsageError:
    whose = ", ".join(f"{imported.file} ({_title(imported)})" for imported in imports[:_MOST])
    if proposal.refused:
        first = proposal.refused[0]
        at = lines.found(Location(file=first.seen.file, key=first.seen.where), is_whole=True)
        return UsageError(fact=f"no server of {whose} can be used: {at}: {first.problem}", advice=first.remedy)
    left = (finding for imported in imports for finding in imported.left)
    reason = next((finding for finding in left if finding.rule.severity is Severity.ERROR), None)
    if reason is not None:
        place = "" if reason.location is None else f"{lines.found(reason.location)}: "
        return UsageError(fact=f"no server of {whose} can be imported: {place}{reason.fact}", advice=reason.remedy)
    known = [lines.found(one.location) for imported in imports for one in imported.left if one.location is not None]
    unread = f"; not imported: {', '.join(map(str, known[:_MOST]))}" if known else ""
    return UsageError(
        fact=f"{whose} has no servers{unread}", advice="If another gateway wrote it, name that with --from."
    )


def _summary(result: _Result, *, error: bool) -> None:
    imports, proposal, settings, findings, files, written, lines = result
    show_servers(proposal, error=error)
    show("", error=error)
    renames = sum(map(len, settings.overrides.values()))
    titles = ", ".join(dict.fromkeys(_title(imported) for imported in imports))
    counted = f"{count(len(proposal.servers), 'server')} and {count(renames, 'name')} of {titles}."
    show(styled(counted, "bold"), error=error)
    show_refused(proposal, lines)
    if findings:
        show("", error=error)
        show(styled(f"Not imported ({len(findings):,}):", "bold"), error=error)
        rows: list[list[Cell]] = [
            [styled(one.rule.name, _COLOURS[one.rule.severity]), one.fact, _place(one.location)]
            for one in findings[:_MOST_ROWS]
        ]
        print_table(["kind", "finding", "where"], rows, error=error)
        if (more := len(findings) - _MOST_ROWS) > 0:
            show(f"... and {more:,} more; --json lists all.", error=error)
    show_variables(proposal, files, error=error)
    if written:
        show("", error=error)
        show(f"Written: {', '.join(map(str, written))}", error=error)
        show(
            styled("Next:", "bold"), f" truename serve {shlex.quote(str(files.out))} --http 127.0.0.1:8750", error=error
        )


def _place(location: Location | None) -> str:
    """Return file, line and column; the path of the key only where its line is not known (--json has both)."""
    return "" if location is None else str(replace(location, key="") if location.line else location)


def _document(result: _Result) -> dict[str, object]:
    imports, proposal, settings, findings, files, written, lines = result
    return plain(proposal, files, written, lines) | {
        "from": [{"file": imported.file, "kind": imported.kind} for imported in imports],
        "overrides": {dialect: dict(names) for dialect, names in settings.overrides.items()},
        "aliases": dict(settings.aliases or {}),
        "left": [
            {
                "code": one.rule.code,
                "rule": one.rule.name,
                "severity": str(one.rule.severity),
                "fact": one.fact,
                "remedy": one.remedy,
                "where": one.location.key if one.location else "",
                "file": one.location.file if one.location else "",
                "line": one.location.line if one.location else 0,
                "column": one.location.column if one.location else 0,
                "server": one.server,
                "tools": list(one.tools),
            }
            for one in findings
        ],
    }
