"""Renaming in files: the options, the order of things, and the ledger after the files."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.cli.failure import EXIT_FINDINGS, UsageFault
from truename.cli.migration_settings import clients_here, settings_here
from truename.cli.renamed import Done, print_done, print_left, print_undone
from truename.cli.rendering import output, styled
from truename.cli.restyling import ledger_path
from truename.cli.wanted import Wanted, wanted
from truename.files import absolute
from truename.files.private import state_directory
from truename.files.user import at_home
from truename.ledger import Ledger
from truename.lint.python_tools import read_functions
from truename.migration import (
    Decision,
    MigrationSettings,
    RenamePlan,
    Survey,
    apply,
    decision_record,
    enter,
    file_name,
    next_number,
    plan,
    promises,
    recover,
    survey,
    undo,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import date

    from truename.cli.rename_options import Fate, Where

__all__ = ["Request", "check", "migrate", "take_back"]

_EVERY: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be renamed: words, a file of renames or a style; and the clients that have to accept the names."""

    words: tuple[str, ...]
    map_file: str | None
    style: str | None
    ledger: str | None
    clients: tuple[str, ...]

    def wanted(self, where: Where) -> Wanted:
        """Return the renames. Raises `UsageFault`, `ConfigError`."""
        return wanted(self.words, self.map_file, self.style, where.among)


def migrate(request: Request, where: Where, fate: Fate, *, dry_run: bool, as_json: bool) -> int:
    """Plan, show, and with ``--apply`` make the change: the files first, all or none, then the ledger."""
    today = datetime.now(UTC).date()
    until = fate.until(today)
    settings = settings_here()
    asked = request.wanted(where)
    ledger = _ledger(request.ledger, fate, readonly=dry_run or where.apply is None)
    made = _planned(asked, request.clients, where, settings, ledger)
    done = Done(
        plan=made,
        unclear=asked.unclear,
        until=until,
        clean_break=fate.clean_break,
        has_ledger=ledger is not None,
        count_up=where.protocol,
    )
    if made.ok and made.renames and where.apply is not None:
        if not dry_run:
            done = replace(done, recovered=recover(_state()))
        found = _surveyed(made, where.apply, where, settings, request.map_file)
        records = where.record or settings.record
        done = _recorded(replace(done, survey=found), found, records, where.because or "", today)
        if not dry_run:
            done = _made(done, done.survey or found, ledger)
    print_done(done, as_json=as_json, diff=where.diff)
    return 0 if made.ok else EXIT_FINDINGS


def check(request: Request, where: Where, *, as_json: bool) -> int:
    """Look for old names that are left, for CI."""
    if where.apply is not None:
        raise UsageFault(fact="--check only looks, and --apply changes", advice="Give one of them.")
    settings = settings_here()
    asked = request.wanted(where)
    # Once the change is made the new names are there, and what is left of the old ones is all that counts.
    made = _planned(replace(asked, known=()), request.clients, where, settings, None)
    found = _surveyed(made, where.check or (), where, settings, request.map_file)
    print_left(made, found, as_json=as_json)
    return 0 if found.is_clean else EXIT_FINDINGS


def take_back(*, as_json: bool) -> int:
    """Give the files of the last rename that was made in this directory back."""
    with _progress() as told:
        undone = undo(_state(), Path.cwd(), on_step=told)
    print_undone(undone, as_json=as_json)
    return 0 if undone.originals is not None else EXIT_FINDINGS


def _planned(
    asked: Wanted, clients: Sequence[str], where: Where, settings: MigrationSettings, ledger: Ledger | None
) -> RenamePlan:
    servers = dict.fromkeys((*where.server, *asked.servers, *_servers_of(asked, ledger)))
    return plan(
        asked.renames,
        known=asked.known or _beside(asked, ledger),
        servers=servers,
        clients=clients or clients_here(),
        ledger=ledger,
        control_plane=(*settings.control_plane, *where.control_plane),
    )


def _servers_of(asked: Wanted, ledger: Ledger | None) -> Iterator[str]:
    if ledger is not None:
        yield from (server for server, name in ledger.bindings() if name in asked.renames)


def _beside(asked: Wanted, ledger: Ledger | None) -> tuple[str, ...]:
    """Return the names of the servers that have the tools, as the ledger knows them."""
    servers = set(_servers_of(asked, ledger))
    own = () if ledger is None else ledger.bindings()
    # After the change a server has the new name, and the ledger the old one of the same tool.
    return tuple(name for server, name in own if server in servers and name not in asked.renames.values())


def _surveyed(
    made: RenamePlan, paths: Sequence[str], where: Where, settings: MigrationSettings, map_file: str | None
) -> Survey:
    records = Path(where.record or settings.record).as_posix()
    if not paths:
        raise UsageFault(fact="no file or directory was named", advice="Say where: --apply PATH, or --check PATH.")
    with _progress() as told:
        return survey(
            made,
            [Path(path) for path in paths],
            exclude=dict.fromkeys((*settings.exclude, *where.exclude, *([f"{records}/*"] if records != "." else ()))),
            # The map itself says both names, and originals say the old ones: both have to go on saying so.
            skip=[_state().parent, *([at_home(map_file)] if map_file else ())],
            rename_files=where.rename_files,
            count_up=where.protocol,
            pattern=settings.protocol_pattern,
            pattern_file=settings.protocol_file,
            functions=read_functions,
            on_file=lambda number, count: told("read", number, count),
        )


def _recorded(done: Done, found: Survey, asked: str, reason: str, today: date) -> Done:
    """Add the decision record to the changes, if one is asked for and there is anything to record."""
    if not asked or not found.changes:
        return done
    directory = absolute(at_home(asked))
    number = next_number(path.name for path in directory.iterdir()) if directory.is_dir() else 1
    decision = Decision(
        number=number,
        day=today,
        until=done.until,
        clean_break=done.clean_break,
        protocol=found.protocol,
        reason=reason,
    )
    path = directory / file_name(done.plan, number)
    return replace(done, record=path, survey=found.with_file(path, decision_record(done.plan, decision)))


def _made(done: Done, found: Survey, ledger: Ledger | None) -> Done:
    """Change the files, then tell the ledger; where it can't be told, the files are given back."""
    entries, unknown = promises(done.plan.renames, ledger) if ledger is not None else ((), ())
    note = {"renames": dict(done.plan.renames), "ledger": bool(entries)}
    with _progress() as told:
        applied = apply(found.changes, _state(), note=note, on_step=told)
    protocol = found.protocol.new if found.protocol is not None else ""
    if ledger is not None:
        try:
            enter(ledger, entries, until=done.until, clean_break=done.clean_break, protocol=protocol)
        except BaseException:
            if applied.originals is not None:
                undo(_state(), Path.cwd())
            raise
    return replace(done, applied=applied, entered=entries, unknown=unknown)


def _ledger(given: str | None, fate: Fate, *, readonly: bool) -> Ledger | None:
    if given is None and not fate.is_said:
        return None
    try:
        path = ledger_path(None, given)
    except UsageFault as fault:
        if given is not None:
            raise
        if fate.clean_break:
            # Where no gateway showed the old name there is nobody to tell that it ended.
            return None
        raise UsageFault(
            fact=f"there is no ledger in which the old names could be listed: {fault.fact}",
            advice="Give the gateway's: --ledger PATH. Where no gateway shows these tools, leave --listed-... out.",
        ) from fault
    return Ledger.open(path, readonly=readonly)


def _state() -> Path:
    return state_directory() / "migrations"


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a moving line on a terminal, nothing elsewhere."""
    console = output(error=True)
    status = console.status(styled("reading files"))

    def told(word: str, number: int, count: int) -> None:
        if number % _EVERY == 0:
            status.update(styled(f"{number:,} of {count:,} files {word}"))

    with status if console.is_terminal else nullcontext():
        yield told
