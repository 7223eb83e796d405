"""Errors as people and programs read them: one line of fact, one of advice; with ``--json`` a document too."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from truename.cli.rendering import print_json, say, say_error
from truename.errors import CODES, TruenameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cyclopts import CycloptsError

__all__ = ["EXIT_FINDINGS", "EXIT_UPSTREAM", "EXIT_USAGE", "UsageFault", "report", "report_usage", "split"]

EXIT_FINDINGS: Final = 1
EXIT_USAGE: Final = 2
EXIT_UPSTREAM: Final = 3
_MOST: Final = 50
# Only gateways know these codes; the command line must not import one to print an error.
_UPSTREAM: Final = "upstream"
_ADVICE: Final = re.compile(r"(?<=[.?!;]) (?=[A-Z`])")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(kw_only=True, unsafe_hash=True)
class UsageFault(TruenameError):
    """A command was asked for something that it can't do; the advice says what to type instead."""

    fact: str
    advice: str
    code: str = "usage"

    def __str__(self) -> str:
        return f"{self.fact}. {self.advice}"


def report(error: Exception, *, as_json: bool) -> int:
    """Tell what went wrong on stderr, with ``as_json`` on stdout too, and return the exit status."""
    found = list(_leaves(error))
    for number, one in enumerate(found):
        if number == _MOST:
            say(f"... and {len(found) - _MOST:,} more; --json lists all.")
            break
        say_error(*split(_text(one)))
    if as_json:
        print_json({"errors": [_plain(one) for one in found]})
    return max(map(_status, found))


def report_usage(error: CycloptsError, words: Sequence[str]) -> int:
    """Tell what was wrong with the command's words, and return the exit status."""
    chain = " ".join(error.command_chain or ())
    text = " ".join(str(error).split())
    advice = f"`truename {chain} --help` shows how." if chain else "`truename --help` lists the commands."
    say_error(text.rstrip("."), advice)
    if "--json" in words:
        print_json({"errors": [{"code": "usage", "text": f"{text.rstrip('.')}. {advice}"}]})
    return EXIT_USAGE


def split(text: str) -> tuple[str, str]:
    """Part a text at the end of its first sentence; what stands in quotes is one word.

    >>> split("Tool 'a. B' does not exist; nothing was run. Did you mean 'c'? Call it exactly.")
    ("Tool 'a. B' does not exist; nothing was run", "Did you mean 'c'? Call it exactly.")
    """
    masked = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    end = _ADVICE.search(masked)
    if end is None:
        return text.removesuffix("."), ""
    return text[: end.start()].removesuffix("."), text[end.end() :]


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _text(error: Exception) -> str:
    if isinstance(error, TruenameError | ValueError):
        return str(error)
    said = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{said}. This is a fault of Truename; TRUENAME_DEBUG=1 shows where it happened."


def _status(error: Exception) -> int:
    code = getattr(error, "code", None)
    if isinstance(code, str) and code in CODES:
        return CODES[code].exit_status
    return EXIT_UPSTREAM if isinstance(code, str) and code.startswith(_UPSTREAM) else EXIT_USAGE


def _plain(error: Exception) -> dict[str, Any]:
    told: dict[str, Any] = {"code": getattr(error, "code", "error"), "text": _text(error)}
    if isinstance(error, TruenameError):
        values = {field.name: getattr(error, field.name) for field in fields(error)}
        told |= {name: _value(value) for name, value in values.items() if name not in told and value not in (None, "")}
    return told


def _value(value: object) -> Any:
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)
