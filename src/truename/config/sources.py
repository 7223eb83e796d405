"""Where the references of a configuration get their values: the environment, files, the system's keyring."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["KINDS", "NoValue", "Sources"]

KINDS: Final = ("file", "keyring")
_LONGEST: Final = 64 * 1024


class NoValue(Exception):
    """A reference has no value: what is wrong with it, and what to do. Nothing of a value is in it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class Sources(Mapping[str, str]):
    """The environment, and files and the keyring besides; ``files`` are those that were asked for.

    Only the gateway's own configuration has it: what other programs' files refer to stays there.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._files: dict[Path, None] = {}
        self._standin: Callable[[str], str] | None = None
        self.unset: tuple[str, ...] = ()

    def tolerant(self, standin: Callable[[str], str]) -> Sources:
        """Return the same, in which ``standin`` stands for a variable that is not set; ``unset`` are those."""
        other = Sources(self._environ)
        other._files, other._standin = self._files, standin
        return other

    def without(self, name: str) -> str | None:
        """Return what stands for a variable that is not set; None where that is a fault."""
        if self._standin is None:
            return None
        self.unset = tuple(dict.fromkeys((*self.unset, name)))
        return self._standin(name)

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
        """The files whose text is in the configuration now."""
        return tuple(self._files)

    def value(self, kind: str, what: str) -> str:
        """Return the value of ``file:PATH`` or ``keyring:SERVICE/NAME``. Raises `NoValue`."""
        return self._in_file(what) if kind == "file" else _in_keyring(what)

    def _in_file(self, what: str) -> str:
        path = at_home(what)
        if not path.is_absolute() or "\0" in what:
            problem = f"{what!r} is no absolute path"
            raise NoValue(problem, "Write the whole path: ${file:/run/secrets/NAME}.")
        self._files[path] = None
        try:
            raw = _read(path)
        except OSError as error:
            problem = f"the file {str(path)!r} can't be read ({error.strerror or error})"
            raise NoValue(problem, "Check the path and who may read it.") from error
        return _text(path, raw)


def _read(path: Path) -> bytes:
    # What is no file (a pipe, a device) may never end, and must not be waited for.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no regular file")
        return stream.read(_LONGEST + 1)


def _text(path: Path, raw: bytes) -> str:
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        problem = f"the file {str(path)!r} is not UTF-8"
        raise NoValue(problem, "Save it as UTF-8.") from None
    if not text or len(raw) > _LONGEST:
        problem = f"the file {str(path)!r} is {'longer than 64 KiB' if text else 'empty'}"
        raise NoValue(problem, "Put the secret into it, and nothing else.")
    return text


def _in_keyring(what: str) -> str:
    service, _, name = what.rpartition("/")
    if not service or not name:
        problem = f"{what!r} names no entry of a keyring"
        raise NoValue(problem, "Write ${keyring:SERVICE/NAME}.")
    try:
        import keyring  # noqa: PLC0415 - an extra, and slow to import
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        problem = "the keyring can't be asked: the package keyring is not installed"
        raise NoValue(problem, 'Install it: pip install "truename[keyring]".') from None
    try:
        found = keyring.get_password(service, name)
    except KeyringError as error:
        problem = f"the keyring can't be asked ({type(error).__name__})"
        raise NoValue(problem, "Unlock it, or use a file or a variable.") from error
    if not found:
        problem = f"the keyring has no entry {what!r}"
        raise NoValue(problem, f"Make it: keyring set {service} {name}.")
    return found
