"""Print errors: a line of fact and a line of advice; with ``--json`` a JSON document too."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from truename.cli._rendering import print_json, say, say_error, styled
from truename.errors import CODES, NoLegalName, TruenameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cyclopts import CycloptsError

    from truename.errors import ConfigError

__all__ = [
    "EXIT_FINDINGS",
    "EXIT_UPSTREAM",
    "UsageError",
    "errors_of",
    "leaves",
    "report",
    "report_usage",
    "split",
    "warn",
    "warnings_of",
]

EXIT_FINDINGS: Final = 1
EXIT_USAGE: Final = 2
EXIT_UPSTREAM: Final = 3
_MOST: Final = 50
_CANONICAL: Final = "canonical"
# The gateway defines these codes; printing an error must not import the gateway.
_UPSTREAM: Final = "upstream"
_ADVICE: Final = re.compile(r"(?<=[.?!;]) (?=[A-Z`])")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(kw_only=True, unsafe_hash=True)
class UsageError(TruenameError):
    """An error in how a command was used; the advice says what to type instead."""

    fact: str
    advice: str
    code: str = "usage"

    def __str__(self) -> str:
        return f"{self.fact}. {self.advice}"


def report(error: Exception, *, as_json: bool) -> int:
    """Print an error on stderr, with ``as_json`` also on stdout, and return the exit status."""
    found = list(leaves(error))
    told = list(dict.fromkeys(_told(found)))
    for number, (fact, advice) in enumerate(told):
        if number == _MOST:
            say(f"... and {len(told) - _MOST:,} more; --json lists all.")
            break
        say_error(fact, advice)
    if as_json:
        print_json({"errors": [_plain(one) for one in found]})
    return max(map(_status, found))


def errors_of(error: Exception) -> list[tuple[Exception, dict[str, object]]]:
    """Return the errors inside of groups, each with its JSON document."""
    return [(one, _plain(one)) for one in leaves(error)]


def warn(warnings: Sequence[ConfigError]) -> None:
    """Print the warnings about a configuration."""
    for one in warnings:
        where = f"{one.file}: {one.key}" if one.key else one.file
        say(styled("warning: ", "yellow"), f"{where}: {one.problem}. {one.remedy}")


def warnings_of(warnings: Sequence[ConfigError]) -> list[dict[str, str]]:
    """Return the warnings as JSON."""
    return [{"file": one.file, "key": one.key, "problem": one.problem, "remedy": one.remedy} for one in warnings]


def report_usage(error: CycloptsError, words: Sequence[str]) -> int:
    """Print an error in the command's arguments, and return the exit status."""
    chain = " ".join(error.command_chain or ())
    # The list of commands at the end is incomplete; --help has it.
    text = " ".join(str(error).split()).partition(" Available commands: ")[0]
    advice = f"`truename {chain} --help` shows how." if chain else "`truename --help` lists the commands."
    say_error(text.removesuffix("."), advice)
    if "--json" in words:
        print_json({"errors": [{"code": "usage", "text": f"{text.rstrip('.')}. {advice}"}]})
    return EXIT_USAGE


def split(text: str) -> tuple[str, str]:
    """Split a text after its first sentence; quoted texts are not searched for the end.

    >>> split("Tool 'a. B' does not exist; nothing was run. Did you mean 'c'? Call it exactly.")
    ("Tool 'a. B' does not exist; nothing was run", "Did you mean 'c'? Call it exactly.")
    """
    masked = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    end = _ADVICE.search(masked)
    if end is None:
        return text.removesuffix("."), ""
    return text[: end.start()].removesuffix("."), text[end.end() :]


def leaves(error: Exception) -> Iterator[Exception]:
    """Yield the errors inside of groups, or the error itself."""
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from leaves(one)
    else:
        yield error


def _told(found: list[Exception]) -> Iterator[tuple[str, str]]:
    """Yield fact and advice of each error; tools without a legal name are combined into one."""
    nameless: defaultdict[tuple[str, str], list[NoLegalName]] = defaultdict(list)
    for error in found:
        if isinstance(error, NoLegalName):
            nameless[error.dialect, error.style].append(error)
    for error in found:
        if isinstance(error, NoLegalName):
            yield _without_name(nameless[error.dialect, error.style])
        else:
            yield split(_text(error))


def _without_name(errors: list[NoLegalName]) -> tuple[str, str]:
    first = errors[0]
    if len(errors) == 1 and first.style != _CANONICAL:
        return split(str(first))
    why = "; ".join(reason.text for reason in first.reasons)
    others = f" and {len(errors) - 1:,} other tools have" if len(errors) > 1 else " has"
    fact = f"{first.id}{others} no legal name for {first.dialect} in style {first.style}{why and f' ({why})'}"
    advice = f"Styles that are legal there: {', '.join(first.styles)}."
    if first.style == _CANONICAL:
        advice += " Ids are for clients that take any name: `--for native`, or `truename serve --names canonical`."
    return fact, advice


def _text(error: Exception) -> str:
    if isinstance(error, TruenameError | ValueError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}. Check the path, and who may read and write it."
    message = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{message}. This is a bug in Truename; TRUENAME_DEBUG=1 shows where it happened."


def _status(error: Exception) -> int:
    code = getattr(error, "code", None)
    if isinstance(code, str) and code in CODES:
        return CODES[code].exit_status
    return EXIT_UPSTREAM if isinstance(code, str) and code.startswith(_UPSTREAM) else EXIT_USAGE


def _plain(error: Exception) -> dict[str, object]:
    told: dict[str, object] = {"code": getattr(error, "code", "error"), "text": _text(error)}
    if isinstance(error, TruenameError):
        values = {field.name: getattr(error, field.name) for field in fields(error)}
        told |= {name: _value(value) for name, value in values.items() if name not in told and value not in (None, "")}
    return told


def _value(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)
