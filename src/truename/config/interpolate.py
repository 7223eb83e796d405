"""Replace references in a configuration by their values: of the environment, env files, files or the keyring.

``${VAR}``, ``${VAR:-default}`` and ``${env:VAR}``; ``$${`` is a plain ``${``. In the gateway's own configuration also
``${file:PATH}`` and ``${keyring:SERVICE/NAME}`` (`Sources`).
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError, ConfigErrors, config_error
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = [
    "VARIABLE",
    "Sources",
    "UnsetReference",
    "env_bytes",
    "interpolate",
    "literal",
    "read_env_file",
    "unset_problem",
    "write_env_lines",
]

KINDS: Final = ("file", "keyring")
_LONGEST: Final = 64 * 1024
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
_REFERENCE: Final = re.compile(r"\$(?P<escape>\$(?=\{))|\$\{(?P<inside>[^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_PLACE: Final = "Write the path itself; cwd may be relative to this file."
# Editors fill these in themselves; an error that calls them unset variables would help nobody.
_EDITORS: Final = {
    "workspaceFolder": _PLACE,
    "workspaceFolderBasename": "Write the directory's name itself.",
    "workspaceRoot": _PLACE,
    "fileWorkspaceFolder": _PLACE,
    "extensionPath": _PLACE,
    "userHome": "Write ${HOME}.",
    "pathSeparator": "Write / itself.",
}


@dataclass(frozen=True, kw_only=True)
class UnsetReference:
    """A reference that has no value now: its text inside ``${}``, what is wrong, and what to do."""

    name: str
    problem: str
    remedy: str


def unset_problem(references: Iterable[UnsetReference]) -> str:
    """Describe references that have no value in one clause."""
    references = tuple(references)
    variables = [one.name for one in references if VARIABLE.fullmatch(one.name)]
    many = len(variables) > 1
    told = f"the environment variable{'s' * many} {', '.join(variables)} {'are' if many else 'is'} not set"
    others = (one.problem for one in references if one.name not in variables)
    return ", ".join((*((told,) if variables else ()), *others))


class NoValue(Exception):
    """A reference has no value: what is wrong with it, and what to do. It holds nothing of a value."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class _IllegalReference(NoValue):
    """A reference that cannot have a value, whatever the machine has."""


class Sources(Mapping[str, str]):
    """The environment, files and the keyring; ``files`` are those that references have named.

    Only the gateway's own configuration uses it: references in other programs' files are not followed.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._files: dict[Path, None] = {}
        self._standin: Callable[[str], str] | None = None
        self.unset: tuple[UnsetReference, ...] = ()

    def tolerant(self, standin: Callable[[str], str]) -> Sources:
        """Return the same sources, where ``standin`` replaces references without a value; ``unset`` collects these."""
        other = Sources(self._environ)
        other._files, other._standin = self._files, standin
        return other

    def without(self, reference: UnsetReference) -> str | None:
        """Return the replacement of a reference without a value; None if such a reference is an error."""
        if self._standin is None:
            return None
        self.unset = tuple(dict.fromkeys((*self.unset, reference)))
        return self._standin(reference.name)

    def __getitem__(self, name: str) -> str:
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)

    def __repr__(self) -> str:
        return f"Sources({len(self)} variables)"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that references have named."""
        return tuple(self._files)

    def value(self, kind: str, what: str) -> str:
        """Return the value of ``file:PATH`` or ``keyring:SERVICE/NAME``. Raises `NoValue`."""
        return self._in_file(what) if kind == "file" else _in_keyring(what)

    def _in_file(self, what: str) -> str:
        path = at_home(what)
        if not path.is_absolute() or "\0" in what:
            problem = f"{what!r} is not an absolute path"
            raise _IllegalReference(problem, "Write the whole path: ${file:/run/secrets/NAME}.")
        self._files[path] = None
        try:
            raw = _read(path)
        except OSError as error:
            problem = f"the file {str(path)!r} cannot be read ({error.strerror or error})"
            raise NoValue(problem, "Check the path and who may read it.") from error
        try:
            text = raw.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            problem = f"the file {str(path)!r} is not UTF-8"
            raise NoValue(problem, "Save it as UTF-8.") from None
        if not text or len(raw) > _LONGEST:
            problem = f"the file {str(path)!r} is {'longer than 64 KiB' if text else 'empty'}"
            raise NoValue(problem, "Put the secret into it, and nothing else.")
        return text


def _read(path: Path) -> bytes:
    # A pipe or a device may never end, and must not be waited for.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        return stream.read(_LONGEST + 1)


def _in_keyring(what: str) -> str:
    service, _, name = what.rpartition("/")
    if not service or not name:
        problem = f"{what!r} names no entry of a keyring"
        raise _IllegalReference(problem, "Write ${keyring:SERVICE/NAME}.")
    try:
        import keyring.errors  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        problem = "the keyring cannot be asked: the package keyring is not installed"
        raise NoValue(problem, 'Install it: pip install "truename[keyring]".') from None
    try:
        found = keyring.get_password(service, name)
    except keyring.errors.KeyringError as error:
        problem = f"the keyring cannot be asked ({type(error).__name__})"
        raise NoValue(problem, "Unlock it, or use a file or a variable.") from error
    if not found:
        problem = f"the keyring has no entry {what!r}"
        raise NoValue(problem, f"Make it: keyring set {service} {name}.")
    return found


def read_env_file(path: Path, raw: bytes | None = None) -> dict[str, str]:
    r"""Return the variables of an env file, or of its bytes; nothing in a value is replaced or run.

    A value is everything after the ``=``, without blanks around it; in ``'...'`` it is taken as it is, in ``"..."``
    with the escapes ``\n \r \t \\ \" \$``. Lines beginning with ``#`` are comments; ``export`` is skipped. Raises
    `ConfigError`, or an `ExceptionGroup` of them, for a file that others may read (POSIX), that is not a regular file,
    over 1 MiB or not UTF-8, and for each line that is not KEY=VALUE. No error shows a value. Surprising:
    ``KEY=a # b`` is refused, because half of the programs that read such files take ``# b`` for a comment.
    """
    errors = ConfigErrors(str(path))
    found: dict[str, str] = {}
    for number, line in enumerate(_env_text(env_bytes(path) if raw is None else raw, path).split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        read = _pair(text)
        if isinstance(read, str):
            errors.add(f"line {number}", read, "Write KEY=VALUE or KEY='VALUE'.")
        elif read[0] in found:
            errors.add(f"line {number}", f"{read[0]} occurs twice", "Remove one.")
        else:
            found[read[0]] = read[1]
    errors.raise_any()
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
    """Return the name and the value of a line, or its problem."""
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
    """Return the bytes of an env file. Raises `ConfigError`, as `read_env_file` does."""
    try:
        # Without waiting: a pipe in its place must not block the reader.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        remedy = "Correct env_file, or write the file."
        raise config_error(str(path), "", f"the env_file cannot be read ({said})", remedy) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise config_error(str(path), "", "the env_file is not a regular file", "Give a file of KEY=VALUE lines.")
        if sys.platform != "win32" and status.st_mode & _OTHERS:
            problem = f"others may read or write it (mode {stat.S_IMODE(status.st_mode):o}), and it is for secrets"
            raise config_error(str(path), "", problem, f"Run `chmod 600 {path}`.")
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


def _env_text(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"the env_file is not UTF-8 (byte {error.start})"
        # Without the cause: it carries the bytes of the file, which a traceback would show.
        raise config_error(str(path), "", problem, "Save it as UTF-8.") from None


def _remedy(inside: str) -> str:
    kind, _, name = inside.partition(":")
    if kind in {"input", "command"}:
        return "No editor is here to ask: put the value into an environment variable and write ${NAME}."
    return _EDITORS.get(kind) or _EDITORS.get(name) or "Write ${NAME} or ${NAME:-default}; $${ is a plain ${."


def literal(text: str) -> str:
    """Return the text with ``${`` escaped, so that it is read back as it is.

    >>> literal("echo ${HOME}")
    'echo $${HOME}'
    """
    return text.replace("${", "$${")


def interpolate(text: str, environ: Mapping[str, str], errors: ConfigErrors, key: str) -> str:
    """Return the text with its references replaced, once: references in their values are not replaced.

    Errors: a variable that is not set and has no default, and references of other kinds (VS Code's ``${input:...}``).
    """

    def replacement(match: re.Match[str]) -> str:
        return "$" if match["escape"] else _replacement(match, environ, errors, key)

    return _REFERENCE.sub(replacement, text)


def _replacement(match: re.Match[str], environ: Mapping[str, str], errors: ConfigErrors, key: str) -> str:
    variable = _VARIABLE.fullmatch(match["inside"])
    kind, _, what = match["inside"].partition(":")
    if variable is None and kind in KINDS and isinstance(environ, Sources):
        try:
            return environ.value(kind, what)
        except _IllegalReference as error:
            errors.add(key, error.problem, error.remedy)
            return ""
        except NoValue as error:
            reference = UnsetReference(name=f"{kind}:{what}", problem=error.problem, remedy=error.remedy)
            return _replaced(reference, environ, errors, key)
    if variable is None:
        errors.add(key, f"{match[0]} is not an environment variable", _remedy(match["inside"]))
        return ""
    name, default = variable["name"], variable["default"]
    value = environ.get(name, "")
    if value or (default is None and name in environ):
        return value
    return default if default is not None else _missing(match[0], name, environ, errors, key)


def _missing(said: str, name: str, environ: Mapping[str, str], errors: ConfigErrors, key: str) -> str:
    if remedy := _EDITORS.get(name):
        errors.add(key, f"{said} is known to an editor only", remedy)
        return ""
    problem = f"the environment variable {name} is not set"
    reference = UnsetReference(name=name, problem=problem, remedy=f"Set it, or write ${{{name}:-default}}.")
    return _replaced(reference, environ, errors, key)


def _replaced(reference: UnsetReference, environ: Mapping[str, str], errors: ConfigErrors, key: str) -> str:
    if isinstance(environ, Sources) and (standin := environ.without(reference)) is not None:
        return standin
    errors.add(key, reference.problem, reference.remedy)
    return ""
