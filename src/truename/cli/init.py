"""`truename init`: propose one truename.toml from the servers of all clients on this machine."""

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import CopySecrets, DryRun, Force, JsonOutput, Out
from truename.cli._proposal import (
    SERVER_NAME,
    ProposedFiles,
    check_free,
    is_missing,
    plain,
    prepare,
    save_all,
    show_refused,
    show_servers,
    show_variables,
)
from truename.cli._rendering import count, print_json, say, say_error, show, styled
from truename.clients import ClientServer, FoundFile, Machine, find, read_source
from truename.clients.selection import LOCAL, OF_PROJECT, found_entry
from truename.config import Settings
from truename.config.entries import FoundEntry
from truename.config.proposal import Proposal, propose
from truename.errors import ConfigError
from truename.files.user import at_home

__all__ = ["gather", "init"]

Source = Annotated[str, Parameter(help="A client's configuration file; default: all on this machine.")]
Project = Annotated[
    Path | None,
    Parameter(
        name="--project",
        metavar="DIRECTORY",
        help="Include the project files of this directory; default: only the user's files.",
    ),
]
_MOST = 5
_HEAD = (
    "Servers found in the configurations of clients on this machine by `truename init`.",
    "A ${NAME} is an environment variable; write $${ for a plain ${.",
)


@dataclass(frozen=True, kw_only=True)
class FoundServers:
    """The servers that were found, files that cannot be read, and servers of projects that were not named."""

    seen: tuple[FoundEntry, ...]
    problems: tuple[ConfigError, ...]
    unnamed: tuple[FoundEntry, ...] = ()


def gather(sources: Sequence[str], machine: Machine, *, project: bool) -> FoundServers:
    """Return the servers of the given files or, without any, of all clients of the machine.

    Servers in a project's files are included only if ``project`` or the file is named: somebody else may have written
    them.
    """
    if sources:
        named = tuple(read_source(at_home(source)) for source in sources)
        return _gathered(named, machine, lambda _, __: True)
    return _gathered(
        find(machine),
        machine,
        lambda client_server, base: (
            client_server.scope not in OF_PROJECT
            or (project and (client_server.scope != LOCAL or base == machine.project))
        ),
    )


def _gathered(
    found: Iterable[FoundFile], machine: Machine, counts: Callable[[ClientServer, Path | None], bool]
) -> FoundServers:
    seen: list[FoundEntry] = []
    unnamed: list[FoundEntry] = []
    problems: dict[str, ConfigError] = {}
    for one in found:
        if one.problem is not None:
            problems.setdefault(str(one.problem), one.problem)
        for client_server in one.servers:
            it = found_entry(client_server, one, machine).guarded
            (seen if counts(client_server, it.base) else unnamed).append(it)
    return FoundServers(seen=tuple(seen), problems=tuple(problems.values()), unnamed=tuple(unnamed))


def init(
    *sources: Source,
    out: Out = Path("truename.toml"),
    project: Project = None,
    copy_secrets: CopySecrets = False,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: JsonOutput = False,
) -> int:
    """Propose one truename.toml from the servers that your clients use. Nothing is started, no client is changed."""
    if not dry_run:
        check_free(out, force=force)
    machine = Machine.here(project)
    gathered = gather(sources, machine, project=project is not None)
    proposal = propose(gathered.seen, machine.environ)
    if not proposal.servers:
        raise _nothing(gathered, proposal)
    if force and not dry_run and proposal.gateways and out.is_file():
        raise _led_there(proposal.gateways, out)
    settings = Settings(server_name=SERVER_NAME)
    files = prepare(proposal, out, settings, head=_HEAD, copy_secrets=copy_secrets, force=force or dry_run)
    written = [] if dry_run else save_all(files, force=force)
    told = as_json or dry_run
    if as_json:
        print_json(_document(gathered, proposal, files, written))
    else:
        if dry_run:
            sys.stdout.write(files.text)
        _summary(gathered, proposal, files, written, error=told)
    return EXIT_FINDINGS if proposal.refused or gathered.problems else 0


def _led_there(gateways: Sequence[FoundEntry], out: Path) -> UsageError:
    """Return the error for ``--force`` on a configuration to which clients are connected."""
    places = ", ".join(one.place for one in gateways[:_MOST])
    connected = dict.fromkeys(one.client for one in gateways)
    clients = " and ".join(f"`truename disconnect {client}`" for client in connected)
    return UsageError(
        fact=f"entries point at servers of {out} ({places}), and a new configuration may use these keys for others",
        advice=f"{clients} first, or write another file with --out.",
    )


def _nothing(gathered: FoundServers, proposal: Proposal) -> UsageError:
    if gathered.problems:
        problem = gathered.problems[0]
        return UsageError(
            fact=f"no server was found; {problem.file} cannot be used: {problem.problem}", advice=problem.remedy
        )
    if proposal.refused:
        first = proposal.refused[0]
        return UsageError(fact=f"{first.seen.place} cannot be used: {first.problem}", advice=first.remedy)
    if gathered.unnamed:
        return UsageError(
            fact="only project files configure servers, and no project was named",
            advice="Name it: --project DIR, or its file.",
        )
    if proposal.gateways:
        return UsageError(fact="the only server configured is Truename itself", advice="No action is needed.")
    return UsageError(
        fact="no client on this machine has an MCP server", advice="Pass a file, or write [mcpServers.KEY] by hand."
    )


def _summary(
    gathered: FoundServers, proposal: Proposal, files: ProposedFiles, written: list[Path], *, error: bool
) -> None:
    clients = {seen.title for merged in proposal.servers for seen in merged.seen}
    entries = sum(len(merged.seen) for merged in proposal.servers)
    show_servers(proposal, error=error)
    show("", error=error)
    counted = f"{count(entries, 'entry', 'entries')} of {count(len(clients), 'client')}"
    show(styled(f"{counted}; {count(len(proposal.servers), 'server')}.", "bold"), error=error)
    for one in proposal.gateways[:_MOST]:
        show(f"Left out: {one.place}, which is Truename itself.", error=error)
    if gathered.unnamed:
        keys = ", ".join(dict.fromkeys(one.server.key for one in gathered.unnamed))
        entries_of = count(len(gathered.unnamed), "entry", "entries")
        show(f"Left out: {entries_of} in project files ({keys[:200]}); --project DIR includes them.", error=error)
    show_refused(proposal)
    for problem in gathered.problems[:_MOST]:
        reason = f"{problem.key}: {problem.problem}" if problem.key else problem.problem
        say_error(f"{problem.file} was left out: {reason}", problem.remedy)
    if (more := len(gathered.problems) - _MOST) > 0:
        say(f"... and {more:,} more files; --json lists all.")
    show_variables(proposal, files, error=error)
    if not written:
        return
    show("", error=error)
    show(f"Written: {', '.join(map(str, written))}", error=error)
    if files.values is not None:
        show(f"{files.env.name} holds secrets: keep it out of version control (.gitignore).", error=error)
    _show_next(proposal, files, error=error)


def _show_next(proposal: Proposal, files: ProposedFiles, *, error: bool) -> None:
    show("", error=error)
    missing = any(is_missing(variable, files.known) for variable in proposal.variables)
    show(styled("Next, after setting the variables:" if missing else "Next:", "bold"), error=error)
    for command in _next(proposal, files.out):
        show(f"  {command}", error=error)


def _next(proposal: Proposal, out: Path) -> list[str]:
    clients = dict.fromkeys(seen.client for merged in proposal.servers for seen in merged.seen if seen.client != "file")
    config = shlex.quote(str(out))
    connect = next(iter(clients), "CLIENT")
    return [f"truename serve {config} --http 127.0.0.1:8750", f"truename connect {connect} --config {config}"]


def _document(
    gathered: FoundServers, proposal: Proposal, files: ProposedFiles, written: list[Path]
) -> dict[str, object]:
    return plain(proposal, files, written) | {
        "problems": [
            {"file": one.file, "key": one.key, "problem": one.problem, "remedy": one.remedy}
            for one in gathered.problems
        ],
        "unnamed": [{"client": one.client, "file": one.file, "key": one.server.key} for one in gathered.unnamed],
        "next": _next(proposal, files.out),
    }
