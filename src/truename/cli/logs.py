"""The gateway's log on stderr: warnings only, one printable line each, nothing told twice."""

from __future__ import annotations

import logging

from truename.cli.rendering import printable
from truename.gateway import UpstreamError

__all__ = ["log_to_stderr"]


class _Printable(logging.Formatter):
    """One line a record, printable: what servers say goes through here too."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(f"{record.levelname.lower()}: {record.getMessage()}")


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out how servers fare: that is told as progress."""
    return not (isinstance(record.args, tuple) and any(isinstance(one, UpstreamError) for one in record.args[:1]))


def log_to_stderr() -> None:
    """Show warnings of the library on stderr from now on."""
    shown = logging.StreamHandler()
    shown.setFormatter(_Printable())
    shown.addFilter(_is_news)
    log = logging.getLogger("truename")
    log.handlers = [shown]
    log.setLevel(logging.WARNING)
