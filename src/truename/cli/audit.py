"""`truename audit`: verify, show and export the audit log."""

import csv
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from truename.audit import (
    GENESIS,
    KINDS,
    Anchor,
    AuditRecord,
    LogDefect,
    anchor_file,
    read_records,
    recent_records,
    records_since,
)
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, say, show, shown_time, styled
from truename.cli._sources import configuration
from truename.errors import excerpt
from truename.files.user import at_home

__all__ = ["audit"]

Config = Annotated[Configuration | None, Parameter(name="--config")]
LogDirectory = Annotated[
    str | None, Parameter(name="--log", help="The directory of an audit log; default: the configuration's.")
]
Expect = Annotated[
    str | None,
    Parameter(name="--expect", help="NUMBER:HASH of a record that must exist, as printed by `truename audit anchor`."),
]
Lines = Annotated[int, Parameter(name=["--lines", "-n"], help="The number of records to show.")]
Follow = Annotated[bool, Parameter(name=["--follow", "-f"], show_default=False, help="Keep printing new records.")]
Since = Annotated[
    str | None, Parameter(name="--since", help="Only records from this time on: 2026-11-22, 2026-11-22T10:00.")
]
Tool = Annotated[str | None, Parameter(name="--tool", help="Only records of this tool: fs@1/read@1.")]
Principal = Annotated[
    str | None, Parameter(name="--principal", help="Only records of this principal, as the log has it.")
]
Kind = Annotated[str | None, Parameter(name="--kind", help=f"Only records of this kind: {', '.join(KINDS)}.")]
Format = Annotated[Literal["jsonl", "csv"], Parameter(name="--format", help="One JSON object per line, or CSV.")]

_COLUMNS = (
    *("number", "at", "kind", "who", "client", "tool", "server", "name", "call", "decision", "rule", "grant"),
    *("outcome", "code", "what", "by", "via", "request", "covers", "until", "why", "times"),
    *("seconds", "digest", "arguments_digest", "trace", "hash"),
)
_PAUSE = 0.5

audit = App(
    name="audit",
    help="Verify, follow and export the audit log of calls and decisions.",
    help_format="plaintext",
    help_epilogue="[audit] in the configuration enables the audit log. A log written with a key can be verified "
    "only with the same key.",
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


@audit.command
def verify(
    source: Configuration | None = None,
    /,
    *,
    log: LogDirectory = None,
    expect: Expect = None,
    as_json: JsonOutput = False,
) -> int:
    """Verify that no record was changed, removed, inserted, moved, or cut off. Exit status 1: the log is damaged."""
    expected = None if expect is None else _expected(expect)
    path, key = _place(source, log, must_exist=False)
    count, _, broken = _proved(path, key, expected)
    if as_json:
        print_json({"log": str(path), "records": count, "broken": [vars(one) for one in broken]})
    else:
        _tell(path, key, count, broken)
        if not broken and expected is None and not anchor_file(path).exists():
            say(
                "This machine stores no anchor, so truncation of the log together with its head is not detected. "
                "Compare it with what `truename audit anchor` printed earlier: --expect NUMBER:HASH."
            )
    return EXIT_FINDINGS if broken else 0


@audit.command
def anchor(source: Configuration | None = None, /, *, log: LogDirectory = None, as_json: JsonOutput = False) -> int:
    """Print the number and hash of the last record, to store elsewhere. Exit status 1: the log is damaged.

    `truename audit verify --expect` then detects truncation, and an older copy of the log.
    """
    path, key = _place(source, log)
    count, last, broken = _proved(path, key, None)
    if broken:
        _tell(path, key, count, broken, error=True)
    if as_json:
        head = {"number": last.number, "hash": last.hash, "expect": None if broken else str(last)}
        print_json({"log": str(path), **head, "broken": [vars(one) for one in broken]})
    elif not broken:
        show(str(last))
    return EXIT_FINDINGS if broken else 0


def _proved(path: Path, key: bytes | None, expected: Anchor | None) -> tuple[int, Anchor, list[LogDefect]]:
    """Return the number of records, the last of them, and all defects."""
    if not path.is_dir():
        problem = "the directory of the audit log does not exist"
        return 0, Anchor(0, GENESIS), [LogDefect(file=path.name, line=0, kind="truncated", problem=problem)]
    count, last, broken = 0, Anchor(0, GENESIS), list[LogDefect]()
    for found in read_records(path, key, anchor=anchor_file(path), expected=expected):
        if isinstance(found, LogDefect):
            broken.append(found)
        else:
            count, last = count + 1, Anchor(found.number, found.hash)
    return count, last, broken


def _expected(text: str) -> Anchor:
    try:
        return Anchor.parse(text.strip())
    except ValueError as error:
        advice = "Give what `truename audit anchor` printed: NUMBER:HASH."
        raise UsageError(fact=f"--expect: {excerpt(text)} is not an anchor", advice=advice) from error


def _tell(path: Path, key: bytes | None, count: int, broken: list[LogDefect], *, error: bool = False) -> None:
    if broken:
        for one in broken[:_SHOWN]:
            show(styled(one.kind, "bold red"), f" {one}", error=error)
        errors = "1 error" if len(broken) == 1 else f"{len(broken):,} errors"
        say(f"{errors} in {count:,} records of {path}." + (_MORE if len(broken) > _SHOWN else ""))
        if not count:
            say(_UNREAD)
    else:
        show(f"{count:,} records of {path} are intact" + ("." if key else ". The chain has no key."))


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
    path, key = _place(source, log)
    found, place = recent_records(path, max(0, lines), key)
    if place.offset and lines > 0 and not found:
        say(_UNREAD)
        return EXIT_FINDINGS
    while True:
        for record in found:
            _show(record, as_json=as_json)
        if not follow:
            return 0
        time.sleep(_PAUSE)
        found, place = records_since(path, place, key)


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
    """Write records to standard output. Exit status 1: the log is damaged."""
    path, key = _place(source, log)
    begin = _moment(since)
    wanted = {name: value for name, value in (("tool", tool), ("who", principal)) if value is not None}
    table = csv.DictWriter(sys.stdout, _COLUMNS, extrasaction="ignore") if form == "csv" else None
    if table is not None:
        table.writeheader()
    broken = 0
    for found in read_records(path, key):
        if isinstance(found, LogDefect):
            broken += 1
            say(styled("broken", "bold red"), f" {found}")
        elif found.at >= begin and kind in {None, found.kind} and wanted.items() <= found.body.items():
            if table is None:
                sys.stdout.write(_line(found))
            else:
                table.writerow({name: _cell(value) for name, value in found.plain.items()})
    return EXIT_FINDINGS if broken else 0


def _line(record: AuditRecord) -> str:
    return json.dumps(record.plain, ensure_ascii=True) + "\n"


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


def _place(source: str | None, log: str | None, *, must_exist: bool = True) -> tuple[Path, bytes | None]:
    """Return the directory of the audit log and its key; a missing directory is accepted if its anchor exists."""
    settings = configuration(source).settings.audit if log is None or source is not None else None
    key = None if settings is None or settings.key is None else settings.key.encode()
    path = at_home(log) if log is not None else Path(settings.path) if settings and settings.path else None
    if path is None:
        raise UsageError(fact="no audit log is configured", advice="Set audit.path, or name a log: --log DIRECTORY.")
    if not path.is_dir() and (must_exist or not anchor_file(path).exists()):
        raise UsageError(fact=f"no audit log found at {path}", advice="`truename serve` creates it when it starts.")
    return path, key


def _show(record: AuditRecord, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(_line(record))
        sys.stdout.flush()
        return
    body = dict(record.body)
    what = " ".join(str(body.pop(name)) for name in ("who", "tool", "outcome", "code") if body.get(name))
    told = {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items() if name in _TOLD
    }
    rest = " ".join(f"{name}={_cell(text)}" for name, text in told.items())
    show(shown_time(record.at), " ", styled(record.kind, "bold"), f" {_cell(what)} {rest}")
