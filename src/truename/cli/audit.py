"""`truename audit`: verify, show and export the audit log."""

import csv
import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from truename.audit import (
    GENESIS,
    KINDS,
    Anchor,
    AuditRecord,
    ChainReport,
    FollowedLog,
    HeadStore,
    LogDefect,
    LogReport,
    StoredHead,
    anchor_file,
    find_old,
    in_order_of_time,
    remove_leftovers,
    verify_chains,
)
from truename.audit import prune as prune_chain
from truename.cli import _completion
from truename.cli._command_list import epilogue_of
from truename.cli._durations import seconds_of
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM, UsageError
from truename.cli._options import Configuration, JsonOutput
from truename.cli._progress import busy
from truename.cli._rendering import count, print_json, say, show, shown_time, styled
from truename.cli._sources import configuration
from truename.config import Config as Configured
from truename.errors import StoreError, excerpt
from truename.files.user import at_home, whoami

__all__ = ["audit"]

Config = Annotated[Configuration | None, Parameter(name="--config", metavar="FILE")]
LogDirectory = Annotated[
    str | None,
    Parameter(name="--log", metavar="DIRECTORY", help="The directory of an audit log; default: the configuration's."),
]
Expect = Annotated[
    tuple[str, ...],
    Parameter(
        name="--expect",
        metavar="NUMBER:HASH",
        show_default=False,
        help="NUMBER:HASH of a record that must exist, or all that `truename audit anchor` printed. May be repeated.",
    ),
]
Complete = Annotated[
    bool,
    Parameter(
        name="--complete", show_default=False, help="Report chains that are not in this directory as errors too."
    ),
]
OlderThan = Annotated[
    str, Parameter(name="--older-than", metavar="TIME", help="How old a record must be to be removed: 12h, 90d, 52w.")
]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", show_default=False, help="Show what would be removed; remove nothing.")
]
Lines = Annotated[int, Parameter(name=["--lines", "-n"], metavar="N", help="The number of records to show.")]
Follow = Annotated[bool, Parameter(name=["--follow", "-f"], show_default=False, help="Keep printing new records.")]
Since = Annotated[
    str | None,
    Parameter(name="--since", metavar="TIME", help="Only records from this time on: 2026-11-22, 2026-11-22T10:00."),
]
Tool = Annotated[
    str | None,
    Parameter(
        name="--tool", metavar="TOOL", completer=_completion.tools, help="Only records of this tool: fs@1/read@1."
    ),
]
Principal = Annotated[
    str | None, Parameter(name="--principal", metavar="NAME", help="Only records of this principal, as the log has it.")
]
Kind = Annotated[
    str | None, Parameter(name="--kind", metavar="KIND", help=f"Only records of this kind: {', '.join(KINDS)}.")
]
Format = Annotated[Literal["jsonl", "csv"], Parameter(name="--format", help="One JSON object per line, or CSV.")]

_COLUMNS = (
    *("number", "chain", "at", "kind", "who", "client", "tool", "server", "name", "call", "decision", "rule", "grant"),
    *("outcome", "code", "what", "by", "via", "request", "covers", "until", "why", "times"),
    *("seconds", "digest", "arguments_digest", "trace", "hash"),
)
_PAUSE = 0.5
_IS_LOST = ("are lost", "is lost")

audit = App(
    name="audit",
    help="Verify, follow, export and prune the audit log of calls and decisions.",
    help_format="plaintext",
    help_epilogue=epilogue_of("audit"),
    default_parameter=Parameter(negative=()),
)

_SHOWN = 50
_UNREAD = (
    "No line can be read as a record. Pass the key with which the log was written: [audit] key in the configuration."
)
_MORE = " Only the first are shown; --json has all."
_TOLD = frozenset(
    (
        *("decision", "rule", "grant", "seconds", "call", "lost", "what", "name", "server", "by", "arguments"),
        *("of", "via", "request", "covers", "until", "why", "times", "count", "changed", "files", "token", "sign_in"),
    )
)


@dataclass(frozen=True, kw_only=True)
class AuditPlace:
    """A log, its key, and the heads of its state database; None where it has none, or they cannot be read."""

    path: Path
    key: bytes | None
    heads: tuple[StoredHead, ...] | None
    heads_problem: str


@audit.command
def verify(
    source: Configuration | None = None,
    /,
    *,
    log: LogDirectory = None,
    expect: Expect = (),
    complete: Complete = False,
    as_json: JsonOutput = False,
) -> int:
    """Verify that no record was changed, removed, inserted, moved, or cut off, and that no chain is missing.

    Exit status 1: the log is damaged. 3: the heads in the state database cannot be read; all else was verified.
    """
    expected = [anchor for one in expect for anchor in _expected(one)]
    place = _place(source, log, must_exist=False)
    report = _proved(place, expected)
    broken = [*report.defects, *(_elsewhere(one) for one in report.elsewhere if complete)]
    if as_json:
        plain = {
            "log": str(place.path),
            "records": report.records,
            "broken": [vars(one) for one in broken],
            "chains": [_plain(one) for one in report.chains],
            "elsewhere": [_plain_head(one) for one in report.elsewhere],
            "heads": place.heads_problem or ("compared" if place.heads is not None else "none"),
        }
        print_json(plain)
    else:
        _tell(place, report, broken)
        if not broken and not expect and not any(one.by for one in report.chains):
            say(
                "This machine stores no anchor, so truncation of the log together with its head is not detected. "
                "Compare it with what `truename audit anchor` printed earlier: --expect NUMBER:HASH."
            )
    return EXIT_FINDINGS if broken else EXIT_UPSTREAM if place.heads_problem else 0


@audit.command
def anchor(source: Configuration | None = None, /, *, log: LogDirectory = None, as_json: JsonOutput = False) -> int:
    """Print the number and hash of the last record of each chain, to store elsewhere. Exit status 1: it is damaged.

    `truename audit verify --expect` then detects truncation, and an older copy of the log.
    """
    place = _place(source, log)
    report = _proved(place, ())
    broken = [*report.defects]
    lasts = [one.last for one in report.chains] or [Anchor(0, GENESIS)]
    if broken:
        _tell(place, report, broken, error=True)
    if as_json:
        first = {"number": lasts[0].number, "hash": lasts[0].hash, "expect": None if broken else str(lasts[0])}
        anchors = [{"chain": one.name, "expect": str(one.last)} for one in report.chains if not broken]
        plain = {"log": str(place.path), **first, "anchors": anchors, "broken": [vars(one) for one in broken]}
        print_json(plain)
    elif not broken:
        for last in lasts:
            show(str(last))
    return EXIT_FINDINGS if broken else 0


@audit.command
def prune(
    source: Configuration | None = None,
    /,
    *,
    older_than: OlderThan,
    dry_run: DryRun = False,
    as_json: JsonOutput = False,
) -> int:
    """Remove files whose records are all older than a time, and record what was removed. The others stay proven.

    Gateways may run meanwhile. Exit status 1: the log is damaged; nothing is removed from such a log.
    """
    place, config = _place(source, None), configuration(source)
    settings, location = config.settings.audit, config.state_location()
    report = _proved(place, ())
    if not dry_run and remove_leftovers(report):
        report = _proved(place, ())
    if report.defects:
        _tell(place, report, [*report.defects], error=True)
        return EXIT_FINDINGS
    before = (datetime.now(UTC) - timedelta(seconds=seconds_of(older_than))).isoformat(timespec="milliseconds")
    found = find_old(report, before, place.key)
    for one in found if not dry_run else ():
        prune_chain(one, settings, location, {"by": whoami(), "via": "command"})
    if as_json:
        plain = [
            {"chain": one.chain.name, "records": one.records, "files": len(one.files), "until": one.last.at}
            for one in found
        ]
        print_json({"log": str(place.path), "before": before, "dry_run": dry_run, "pruned": plain})
        return 0
    would = "would be removed" if dry_run else "were removed"
    for one in found:
        show(f"{_named(one.chain)}{count(one.records, 'record')} until {shown_time(one.last.at)} {would}.")
    if not found:
        show(f"No file of {place.path} has only records from before {shown_time(before)}.")
    return 0


def _proved(place: AuditPlace, expected: Sequence[Anchor]) -> LogReport:
    """Verify all chains of a log."""
    if not place.path.is_dir():
        problem = "the directory of the audit log does not exist"
        gone = LogDefect(file=place.path.name, line=0, kind="truncated", problem=problem)
        return LogReport(chains=(), elsewhere=(), broken=(gone,))
    heads, is_known = place.heads or (), place.heads is not None
    with busy(f"Verifying {place.path}"):
        return verify_chains(place.path, place.key, heads=heads, expected=expected, is_database_known=is_known)


def _elsewhere(head: StoredHead) -> LogDefect:
    problem = f"the chain is not here; {head.host} wrote {count(head.number, 'record')} to {head.path}"
    return LogDefect(file=head.name or "journal", line=0, kind="elsewhere", problem=problem)


def _plain(chain: ChainReport) -> dict[str, object]:
    return {
        "chain": chain.name,
        "id": chain.id,
        "records": chain.records,
        "last": str(chain.last),
        "proven": chain.proven,
        "by": chain.by,
        "state": None if chain.head is None else chain.head.state,
        "lost": chain.lost,
    }


def _plain_head(head: StoredHead) -> dict[str, object]:
    shown = ("host", "path", "name", "number", "state", "at")
    return {"id": head.chain, **{name: getattr(head, name) for name in shown}}


def _named(chain: ChainReport) -> str:
    return f"{chain.name}: " if chain.name else ""


def _expected(text: str) -> list[Anchor]:
    """Return the anchors of an option: all that `truename audit anchor` printed may be one value."""
    try:
        return [Anchor.parse(one) for one in text.split() or [""]]
    except ValueError as error:
        advice = "Give what `truename audit anchor` printed: NUMBER:HASH."
        raise UsageError(fact=f"--expect: {excerpt(text)} is not an anchor", advice=advice) from error


def _tell(place: AuditPlace, report: LogReport, broken: Sequence[LogDefect], *, error: bool = False) -> None:
    path, records, chains = place.path, report.records, report.chains
    if broken:
        for one in broken[:_SHOWN]:
            show(styled(one.kind, "bold red"), f" {one}", error=error)
        errors = "1 error" if len(broken) == 1 else f"{len(broken):,} errors"
        say(f"{errors} in {count(records, 'record')} of {path}." + (_MORE if len(broken) > _SHOWN else ""))
        if not records and any(one.kind == "changed" and one.line for one in broken):
            say(_UNREAD)
    else:
        several = f" in {len(chains):,} chains" if len(chains) > 1 else ""
        unkeyed = "" if place.key else " The chains have no key." if several else " The chain has no key."
        are = "is" if records == 1 else "are"
        show(f"{count(records, 'record')} of {path}{several} {are} intact.{unkeyed}")
    for chain in chains:
        if chain.unproven and chain.by:
            newer = f"records {chain.proven + 1:,} to {chain.last.number:,} are too new to be proven"
            say(f"{_named(chain)}{newer}: only the files of the log have them.")
        if chain.lost:
            say(f"{_named(chain)}{count(chain.lost, 'record')} could not be written, and {_IS_LOST[chain.lost == 1]}.")
    for head in report.elsewhere:
        say(f"Not here: {count(head.number, 'record')} that {head.host} wrote to {head.path}; verify them there.")
    if place.heads_problem:
        say(f"The heads in the state database were not compared. {place.heads_problem}")


@audit.command
def tail(
    source: Configuration | None = None,
    /,
    *,
    log: LogDirectory = None,
    lines: Lines = 20,
    follow: Follow = False,
    as_json: JsonOutput = False,
) -> int:
    """Show the last records, and new ones with --follow. Exit status 1: no record can be read."""
    place = _place(source, log)
    followed = FollowedLog(place.path, place.key)
    found = followed.recent(max(0, lines))
    if followed.has_lines and lines > 0 and not found:
        say(_UNREAD)
        return EXIT_FINDINGS
    while True:
        for chain, record in found:
            _show(chain, record, as_json=as_json)
        if not follow:
            return 0
        time.sleep(_PAUSE)
        found = followed.more()


@audit.command
def export(
    source: Configuration | None = None,
    /,
    *,
    log: LogDirectory = None,
    form: Format = "jsonl",
    since: Since = None,
    tool: Tool = None,
    principal: Principal = None,
    kind: Kind = None,
) -> int:
    """Write the records of all chains to standard output, in order of time. Exit status 1: the log is damaged."""
    place = _place(source, log)
    begin = _moment(since)
    wanted = {name: value for name, value in (("tool", tool), ("who", principal)) if value is not None}
    table = csv.DictWriter(sys.stdout, _COLUMNS, extrasaction="ignore") if form == "csv" else None
    if table is not None:
        table.writeheader()
    broken = 0
    for chain, found in in_order_of_time(place.path, place.key):
        if isinstance(found, LogDefect):
            broken += 1
            say(styled("broken", "bold red"), f" {chain}{'/' if chain else ''}{found}")
        elif found.at >= begin and kind in {None, found.kind} and wanted.items() <= found.body.items():
            if table is None:
                sys.stdout.write(_line(chain, found))
            else:
                table.writerow({name: _cell(value) for name, value in _fields(chain, found).items()})
    return EXIT_FINDINGS if broken else 0


def _fields(chain: str, record: AuditRecord) -> dict[str, object]:
    """Return the fields of a record, and the name of its chain, unless it is that of the directory itself."""
    return {**record.plain, "chain": chain} if chain else record.plain


def _line(chain: str, record: AuditRecord) -> str:
    return json.dumps(_fields(chain, record), ensure_ascii=True) + "\n"


def _cell(value: object) -> object:
    """Escape a cell, so that no spreadsheet reads it as a formula, and no terminal as a control sequence."""
    if not isinstance(value, str):
        return value
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in value)
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def _moment(text: str | None) -> str:
    if text is None:
        return ""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(fact=f"{excerpt(text)} is not a date", advice="Write it as 2026-11-22T10:00.") from error
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC).isoformat(timespec="milliseconds")


def _place(source: str | None, log: str | None, *, must_exist: bool = True) -> AuditPlace:
    """Return the place of a log; a missing directory is accepted if its anchor exists."""
    config = configuration(source) if log is None or source is not None else None
    settings = None if config is None else config.settings.audit
    key = None if settings is None or settings.key is None else settings.key.encode()
    path = at_home(log) if log is not None else Path(settings.path) if settings and settings.path else None
    if path is None:
        raise UsageError(fact="no audit log is configured", advice="Set audit.path, or name a log: --log DIRECTORY.")
    if not path.is_dir() and (must_exist or not anchor_file(path).exists()):
        raise UsageError(fact=f"no audit log found at {path}", advice="`truename serve` creates it when it starts.")
    heads, problem = (None, "") if config is None else _heads(config, key)
    return AuditPlace(path=path, key=key, heads=heads, heads_problem=problem)


def _heads(config: Configured, key: bytes | None) -> tuple[tuple[StoredHead, ...] | None, str]:
    """Return the heads in the state database of a configuration, or why they cannot be read."""
    try:
        store = HeadStore.readable(config.state_location(), key)
        if store is None:
            return None, ""
        with closing(store):
            return store.all(), ""
    except StoreError as error:
        return None, str(error)


def _show(chain: str, record: AuditRecord, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(_line(chain, record))
        sys.stdout.flush()
        return
    body = dict(record.body)
    what = " ".join(str(body.pop(name)) for name in ("who", "tool", "outcome", "code") if body.get(name))
    told = {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items() if name in _TOLD
    }
    rest = " ".join(f"{name}={_cell(text)}" for name, text in told.items())
    from_chain = f" chain={chain}" if chain else ""
    show(shown_time(record.at), " ", styled(record.kind, "bold"), f" {_cell(what)} {rest}{from_chain}")
