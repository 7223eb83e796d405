"""Logs on stderr, of whatever library: warnings only, one printable line each, no tracebacks unless asked for."""

from __future__ import annotations

import logging
import os
import traceback
from typing import Final

from truename.cli.rendering import printable
from truename.gateway import UpstreamError

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


class _Shown(logging.StreamHandler):  # type: ignore[type-arg]  # generic for checkers only, not in Python 3.11
    """Ours, to be told from those that others put beside it."""


def _said(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _bounded(text: str) -> str:
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out how servers fare: that is told as progress."""
    return not (isinstance(record.args, tuple) and any(isinstance(one, UpstreamError) for one in record.args[:1]))


def log_to_stderr() -> None:
    """Show warnings of all libraries on stderr from now on."""
    shown = _Shown()
    shown.setFormatter(_Printable())
    shown.addFilter(_is_news)
    shown.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _Shown)), shown]
    logging.getLogger("truename").setLevel(logging.WARNING)
