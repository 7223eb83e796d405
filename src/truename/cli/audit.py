"""`truename audit`: what was called and decided, proved to be as it was written."""

import csv
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

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
from truename.cli._rendering import print_json, say, show, styled
from truename.cli._sources import configuration
from truename.errors import excerpt
from truename.files.user import at_home

__all__ = ["audit"]

Config = Annotated[Configuration | None, Parameter(name="--config")]
Journal = Annotated[
    str | None, Parameter(name="--journal", help="The directory of a journal; else the configuration's own.")
]
Expect = Annotated[
    str | None,
    Parameter(name="--expect", help="NUMBER:HASH of a record that it has to have, as `truename audit anchor` printed."),
]
Lines = Annotated[int, Parameter(name=["--lines", "-n"], help="How many records, from the end.")]
Follow = Annotated[bool, Parameter(name=["--follow", "-f"], show_default=False, help="Keep printing new records.")]
Since = Annotated[str | None, Parameter(name="--since", help="From this moment on: 2026-11-22, 2026-11-22T10:00.")]
Tool = Annotated[str | None, Parameter(name="--tool", help="Of this tool: fs@1/read@1.")]
Principal = Annotated[str | None, Parameter(name="--principal", help="Of this principal, as the journal has it.")]
Kind = Annotated[str | None, Parameter(name="--kind", help=f"Of this kind: {', '.join(KINDS)}.")]
Format = Annotated[Literal["jsonl", "csv"], Parameter(name="--format", help="One JSON object a line, or a table.")]

_COLUMNS = (
    *("number", "at", "kind", "who", "client", "tool", "server", "name", "call", "decision", "rule", "grant"),
    *("outcome", "code", "what", "by", "via", "request", "covers", "until", "why", "times"),
    *("seconds", "digest", "arguments_digest", "trace", "hash"),
)
_PAUSE = 0.5

audit = App(
    name="audit",
    help="Prove, follow and export the journal of calls and decisions.",
    help_format="plaintext",
    help_epilogue="The journal is switched on by [audit] in the configuration. Without its key a chain that was made "
    "with one can't be proved.",
    default_parameter=Parameter(negative=()),
)

_SHOWN = 50
_UNREAD = "No line can be read as a record. Give the key with which it was written: [audit] key in the configuration."
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
    journal: Journal = None,
    expect: Expect = None,
    as_json: JsonOutput = False,
) -> int:
    """Prove that no record was changed, taken out, put in, moved, or cut off the end. Exit status 1: it was."""
    expected = None if expect is None else _expected(expect)
    path, key = _place(source, journal, must_be_there=False)
    count, _, broken = _proved(path, key, expected)
    if as_json:
        print_json({"journal": str(path), "records": count, "broken": [vars(one) for one in broken]})
    else:
        _tell(path, key, count, broken)
        if not broken and expected is None and not anchor_file(path).exists():
            say(
                "This machine stores no anchor, so truncation of the journal together with its head is not detected. "
                "Compare it with what `truename audit anchor` printed earlier: --expect NUMBER:HASH."
            )
    return EXIT_FINDINGS if broken else 0


@audit.command
def anchor(source: Configuration | None = None, /, *, journal: Journal = None, as_json: JsonOutput = False) -> int:
    """Print the number and hash of the last record, to be kept elsewhere. Exit status 1: it is not as it was written.

    `truename audit verify --expect` finds with it that records were cut off since, or that an older copy was put back.
    """
    path, key = _place(source, journal)
    count, last, broken = _proved(path, key, None)
    if broken:
        _tell(path, key, count, broken, error=True)
    if as_json:
        told = {"number": last.number, "hash": last.hash, "expect": None if broken else str(last)}
        print_json({"journal": str(path), **told, "broken": [vars(one) for one in broken]})
    elif not broken:
        show(str(last))
    return EXIT_FINDINGS if broken else 0


def _proved(path: Path, key: bytes | None, expected: Anchor | None) -> tuple[int, Anchor, list[LogDefect]]:
    """Return how many records there are, the last of them, and all that is wrong."""
    if not path.is_dir():
        return 0, Anchor(0, GENESIS), [_gone(path)]
    count, last, broken = 0, Anchor(0, GENESIS), list[LogDefect]()
    for found in read_records(path, key, anchor=anchor_file(path), expected=expected):
        if isinstance(found, LogDefect):
            broken.append(found)
        else:
            count, last = count + 1, Anchor(found.number, found.hash)
    return count, last, broken


def _gone(path: Path) -> LogDefect:
    return LogDefect(file=path.name, line=0, kind="truncated", problem="the journal's directory is gone")


def _expected(text: str) -> Anchor:
    try:
        return Anchor.parse(text.strip())
    except ValueError as error:
        advice = "Give what `truename audit anchor` printed: NUMBER:HASH."
        raise UsageError(fact=f"--expect: {excerpt(text)} is no anchor", advice=advice) from error


def _tell(path: Path, key: bytes | None, count: int, broken: list[LogDefect], *, error: bool = False) -> None:
    if broken:
        for one in broken[:_SHOWN]:
            show(styled(one.kind, "bold red"), f" {one}", error=error)
        errors = "1 error" if len(broken) == 1 else f"{len(broken):,} errors"
        say(f"{errors} in {count:,} records of {path}." + (_MORE if len(broken) > _SHOWN else ""))
        if not count:
            say(_UNREAD)
    else:
        show(f"{count:,} records of {path} are as they were written" + ("." if key else ". The chain has no key."))


@audit.command
def tail(
    source: Configuration | None = None,
    /,
    *,
    journal: Journal = None,
    lines: Lines = 20,
    follow: Follow = False,
    as_json: JsonOutput = False,
) -> int:
    """Show the last records, and with --follow those that come. Exit status 1: there is none that can be read."""
    path, key = _place(source, journal)
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
    journal: Journal = None,
    form: Format = "jsonl",
    since: Since = None,
    tool: Tool = None,
    principal: Principal = None,
    kind: Kind = None,
) -> int:
    """Write records to standard output. Exit status 1: the journal is not as it was written."""
    path, key = _place(source, journal)
    begin = _moment(since)
    wanted = {"tool": tool, "who": principal}
    table = csv.DictWriter(sys.stdout, _COLUMNS, extrasaction="ignore") if form == "csv" else None
    if table is not None:
        table.writeheader()
    broken = 0
    for found in read_records(path, key):
        if isinstance(found, LogDefect):
            broken += 1
            say(styled("broken", "bold red"), f" {found}")
        elif found.at >= begin and kind in {None, found.kind} and _is_wanted(found, wanted):
            _write(found, table)
    return EXIT_FINDINGS if broken else 0


def _write(record: AuditRecord, table: "csv.DictWriter[str] | None") -> None:
    if table is None:
        sys.stdout.write(_line(record))
    else:
        table.writerow({name: _cell(value) for name, value in record.plain.items()})


def _line(record: AuditRecord) -> str:
    return json.dumps(record.plain, ensure_ascii=True) + "\n"


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula, and no terminal for an order."""
    if not isinstance(value, str):
        return value
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in value)
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def _is_wanted(record: AuditRecord, wanted: dict[str, str | None]) -> bool:
    return all(value is None or record.body.get(name) == value for name, value in wanted.items())


def _moment(text: str | None) -> str:
    if text is None:
        return ""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(fact=f"{excerpt(text)} is not a date", advice="Write it as 2026-11-22T10:00.") from error
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC).isoformat(timespec="milliseconds")


def _place(source: str | None, journal: str | None, *, must_be_there: bool = True) -> tuple[Path, bytes | None]:
    """Return where the journal is, and its key; one that is gone is there if its anchor still is."""
    said = configuration(source).settings.audit if journal is None or source is not None else None
    key = None if said is None or said.key is None else said.key.encode()
    path = at_home(journal) if journal is not None else Path(said.path) if said and said.path else None
    if path is None:
        raise UsageError(fact="no journal is configured", advice="Set audit.path, or name one: --journal DIRECTORY.")
    if not path.is_dir() and (must_be_there or not anchor_file(path).exists()):
        raise UsageError(fact=f"no journal found at {path}", advice="`truename serve` begins it at its start.")
    return path, key


def _show(record: AuditRecord, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(_line(record))
        sys.stdout.flush()
        return
    body = dict(record.body)
    what = " ".join(str(body.pop(name)) for name in ("who", "tool", "outcome", "code") if body.get(name))
    rest = " ".join(f"{name}={_cell(_plain(value))}" for name, value in body.items() if name in _TOLD)
    show(record.at.replace("T", " ").removesuffix("+00:00"), " ", styled(record.kind, "bold"), f" {_cell(what)} {rest}")


def _plain(value: object) -> Any:
    return value if isinstance(value, str) else json.dumps(value)
