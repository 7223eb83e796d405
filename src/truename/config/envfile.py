"""A file of KEY=VALUE lines, beside the configuration, for what ``${KEY}`` stands for and no file should say twice."""

from __future__ import annotations

import os
import re
import stat
import sys
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError, ConfigErrors, config_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["VARIABLE", "env_bytes", "read_env_file", "write_env_lines"]

VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_BYTES: Final = 1024 * 1024
_OTHERS: Final = 0o077
_LINE: Final = re.compile(r"(?:export[ \t]+)?(?P<name>[^=\s]+)[ \t]*=[ \t]*(?P<value>.*)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "$": "$"}
_SINGLE: Final = re.compile(r"'(?P<inside>[^']*)'")
_DOUBLE: Final = re.compile(r'"(?P<inside>(?:[^"\\]|\\[nrt\\"$])*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_QUOTES: Final = frozenset("'\"")
_COMMENT: Final = re.compile(r"[ \t]#")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@%+,=~-]+")


def read_env_file(path: Path, raw: bytes | None = None) -> dict[str, str]:
    r"""Return what the lines of the file say, or those of its bytes; nothing in a value is replaced or run.

    A value is all that follows the ``=``, without blanks around it; in ``'...'`` it is taken as it is, in ``"..."``
    with the escapes ``\n \r \t \\ \" \$``. Lines beginning with ``#`` are comments; ``export`` is skipped. Raises
    `ConfigError`, or an `ExceptionGroup` of them, for a file that others may read (POSIX), that is no regular file,
    over 1 MiB or not UTF-8, and for each line that is not KEY=VALUE. No error shows anything of a value. Surprising:
    ``KEY=a # b`` is refused, since half of the programs that read such files would take ``# b`` for a comment.
    """
    faults = ConfigErrors(str(path))
    found: dict[str, str] = {}
    for number, line in enumerate(_text(env_bytes(path) if raw is None else raw, path).split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        read = _pair(text)
        if isinstance(read, str):
            faults.add(f"line {number}", read, "Write KEY=VALUE or KEY='VALUE'.")
        elif read[0] in found:
            faults.add(f"line {number}", f"{read[0]} stands there twice", "Remove one.")
        else:
            found[read[0]] = read[1]
    faults.raise_any()
    return found


def write_env_lines(values: Mapping[str, str]) -> str:
    r"""Return lines that `read_env_file` reads back to these values.

    >>> write_env_lines({"TOKEN": "it's $5"})
    'TOKEN="it\'s \\$5"\n'
    """
    return "".join(f"{name}={_written(value)}\n" for name, value in values.items())


def _written(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    for letter, character in (("\\", "\\"), ('"', '"'), ("$", "$"), ("n", "\n"), ("r", "\r"), ("t", "\t")):
        value = value.replace(character, f"\\{letter}")
    return f'"{value}"'


def _pair(text: str) -> tuple[str, str] | str:
    """Return the name and the value of a line, or what is wrong with it."""
    match = _LINE.fullmatch(text)
    if match is None or not VARIABLE.fullmatch(match["name"]):
        return "it does not begin with the name of a variable and ="
    if "\0" in text:
        return "it holds a NUL character"
    value = _unquoted(match["value"])
    if value is None:
        return "its quotes don't match, or it has an escape that is not known"
    if match["value"][:1] not in _QUOTES:
        if _COMMENT.search(value):
            return "it has a # that may be a comment or part of the value"
        if _CONTROL.search(value):
            return "it holds a control character outside quotes"
    return match["name"], value


def _unquoted(text: str) -> str | None:
    if text[:1] == "'":
        single = _SINGLE.fullmatch(text)
        return single and single["inside"]
    if text[:1] == '"':
        double = _DOUBLE.fullmatch(text)
        return double and _ESCAPED.sub(lambda found: _ESCAPES[found[1]], double["inside"])
    return text


def env_bytes(path: Path) -> bytes:
    """Return the bytes of such a file. Raises `ConfigError`, as `read_env_file` does."""
    try:
        # Without waiting: a pipe in its place must not hang whoever reads the configuration.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        remedy = "Correct env_file, or write the file."
        raise config_error(str(path), "", f"the env_file can't be read ({said})", remedy) from error
    try:
        _guard(path, os.fstat(descriptor))
    except ConfigError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as stream:
        raw = stream.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise config_error(
            str(path), "", f"the env_file is larger than {_MAX_BYTES:,} bytes", "Keep only variables in it."
        )
    return raw


def _text(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"the env_file is not UTF-8 (byte {error.start})"
        # Without the cause: it carries the bytes of the file, and what prints a traceback would show them.
        raise config_error(str(path), "", problem, "Save it as UTF-8.") from None


def _guard(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise config_error(str(path), "", "the env_file is not a regular file", "Give a file of KEY=VALUE lines.")
    if sys.platform != "win32" and status.st_mode & _OTHERS:
        problem = f"others may read or write it (mode {stat.S_IMODE(status.st_mode):o}), and it is for secrets"
        raise config_error(str(path), "", problem, f"Run `chmod 600 {path}`.")
