"""Logs on stderr, of whatever library: one printable line each, as text or as JSON; no tracebacks unless asked for."""

from __future__ import annotations

import json
import logging
import os
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from truename.audit import masked
from truename.cli.rendering import printable
from truename.gateway import UpstreamError
from truename.gateway.telemetry.account import account_now

if TYPE_CHECKING:
    from truename.cli.options import LogFormat, LogLevel

__all__ = ["log_to_stderr"]

_LONGEST: Final = 1_000


class _Printable(logging.Formatter):
    """One line a record, printable and bounded: what servers and clients say goes through here too."""

    def format(self, record: logging.LogRecord) -> str:
        line = _bounded(f"{record.levelname.lower()}: {_said(record)}")
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        if os.environ.get("TRUENAME_DEBUG") == "1":
            lines = "".join(traceback.format_exception(error)).splitlines()
            return "\n".join([line, *(_bounded(one) for one in lines)])
        return _bounded(f"{line} ({type(error).__name__}: {error})")


class _Json(logging.Formatter):
    """One JSON object a line: when, how bad, who says what; and of which call it is, where it is of one."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _bounded(_said(record)),
        }
        if (account := account_now()) is not None:
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


class _Shown(logging.StreamHandler):  # type: ignore[type-arg]  # generic for checkers only, not in Python 3.11
    """Ours, to be told from those that others put beside it."""


def _said(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _bounded(text: str) -> str:
    shown = masked(text[: 2 * _LONGEST])
    return printable(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}...")


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out how servers fare: that is told as progress."""
    return not (isinstance(record.args, tuple) and any(isinstance(one, UpstreamError) for one in record.args[:1]))


def _is_ours_or_bad(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] == "truename"


def log_to_stderr(form: LogFormat = "text", level: LogLevel = "warning") -> None:
    """Show warnings of all libraries on stderr from now on, and of our own what is at or above a level.

    What other libraries say beside that would hold whole messages.
    """
    shown = _Shown()
    shown.setFormatter(_Json() if form == "json" else _Printable())
    shown.addFilter(_is_ours_or_bad)
    if form == "text":
        shown.addFilter(_is_news)
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _Shown)), shown]
    logging.getLogger("truename").setLevel(level.upper())
