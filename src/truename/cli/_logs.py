"""Format all logs on stderr: one printable line each, as text or as JSON; tracebacks only on request."""

from __future__ import annotations

import json
import logging
import os
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from truename.audit import redact_text
from truename.cli._rendering import printable
from truename.gateway import UpstreamError
from truename.gateway.call_records import current_record

if TYPE_CHECKING:
    from truename.cli._options import LogFormat, LogLevel

__all__ = ["log_to_stderr"]

_LONGEST: Final = 1_000
_MOST_A_MINUTE: Final = 10
_MINUTE: Final = 60.0


class _Printable(logging.Formatter):
    """A formatter that writes one printable, bounded line per record: records contain text of servers and clients."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._where = "" if worker is None else f"worker {worker}: "

    def format(self, record: logging.LogRecord) -> str:
        left_out = f" ({left_out:,} more like it were left out)" if (left_out := _left_out(record)) else ""
        line = _bounded(f"{record.levelname.lower()}: {self._where}{_said(record)}") + left_out
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        if os.environ.get("TRUENAME_DEBUG") == "1":
            lines = "".join(traceback.format_exception(error)).splitlines()
            return "\n".join([line, *(_bounded(one) for one in lines)])
        return _bounded(f"{line} ({type(error).__name__}: {error})")


class _JsonFormatter(logging.Formatter):
    """A formatter that writes one JSON object per line: time, level, logger, message, and the current call if any."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _bounded(_said(record)),
        }
        if self._worker is not None:
            said["worker"] = self._worker
        if left_out := _left_out(record):
            said["left_out"] = left_out
        if (account := current_record()) is not None:
            said["call"] = account.serial
            said["principal"] = _bounded(account.principal.key)
            if account.tool is not None:
                said["tool"] = str(account.tool.id)
            if account.trace:
                said["trace"] = account.trace
        if (error := record.exc_info[1] if record.exc_info else None) is not None:
            said["error"] = _bounded(f"{type(error).__name__}: {error}")
            if os.environ.get("TRUENAME_DEBUG") == "1":
                lines = "".join(traceback.format_exception(error)).splitlines()
                said["traceback"] = [_bounded(line) for line in lines]
        return json.dumps(said)


class _Shown(logging.StreamHandler[TextIO]):
    """The handler of Truename, distinguishable from handlers that others install."""


class _Sparing(logging.Filter):
    """A filter that limits records of other libraries to ten a minute per line of code, and counts those left out.

    A hostile server can make the SDK log a warning for each of its messages, and so fill the disk.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if _is_ours(record):
            return True
        place = record.name, record.lineno
        began, count = self._said.get(place, (record.created, 0))
        if record.created - began >= _MINUTE:
            record.truename_left_out = max(0, count - _MOST_A_MINUTE)
            began, count = record.created, 0
        self._said[place] = began, count + 1
        return count < _MOST_A_MINUTE


def _left_out(record: logging.LogRecord) -> int:
    found: int = getattr(record, "truename_left_out", 0)
    return found


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == "truename"


def _said(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _bounded(text: str) -> str:
    shown = redact_text(text[: 2 * _LONGEST])
    return printable(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}...")


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a record is not about a failed server: those are shown as progress."""
    return not (isinstance(record.args, tuple) and any(isinstance(one, UpstreamError) for one in record.args[:1]))


def _is_ours_or_bad(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or _is_ours(record)


def log_to_stderr(form: LogFormat = "text", level: LogLevel = "warning", *, worker: int | None = None) -> None:
    """Log to stderr: warnings of all libraries, and Truename's records at or above a level.

    ``worker`` is the number of this process among several that write to one stderr; each record has it.

    Debug records of other libraries would contain whole messages; each of their warnings is limited to ten a minute.
    """
    shown = _Shown()
    shown.setFormatter(_JsonFormatter(worker) if form == "json" else _Printable(worker))
    shown.addFilter(_is_ours_or_bad)
    shown.addFilter(_Sparing())
    if form == "text":
        shown.addFilter(_is_news)
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _Shown)), shown]
    logging.getLogger("truename").setLevel(level.upper())
