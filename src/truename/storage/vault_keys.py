"""Find the keys that encrypt the secrets of a state: in the environment, in a file, or printed by a command.

No key is ever in the state, in an argument of a command, in a log or in a message.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from truename.errors import ConfigError
from truename.files.private import make_private, open_plain, read_own, sync_directory, write_new
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["COMMAND_VARIABLE", "FILE_VARIABLE", "KEY_BYTES", "KEY_VARIABLE", "KeySource"]

KEY_VARIABLE: Final = "TRUENAME_VAULT_KEY"
FILE_VARIABLE: Final = "TRUENAME_VAULT_KEY_FILE"
COMMAND_VARIABLE: Final = "TRUENAME_VAULT_KEY_COMMAND"
KEY_BYTES: Final = 32
_VARIABLES: Final = (KEY_VARIABLE, FILE_VARIABLE, COMMAND_VARIABLE)
_LONGEST: Final = 4_096
_MADE: Final = "Generate one: python -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"


@dataclass(frozen=True)
class KeySource:
    """The places of a state's keys: the settings' ``file`` or ``command``, else ``own``, a file made at first use.

    A variable of the environment counts more than both settings: `KEY_VARIABLE` has the keys themselves,
    `FILE_VARIABLE` a path, `COMMAND_VARIABLE` a command line, which is split like a shell does it and run without one.

    >>> KeySource().keys({"TRUENAME_VAULT_KEY": "A" * 43 + "="}) == (bytes(32),)
    True
    """

    own: Path | None = None
    file: Path | None = None
    command: tuple[str, ...] = ()

    def is_external(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether an operator says where the key is, so that a mistake is to be found at the start."""
        return bool(self.file or self.command or environ.keys() & set(_VARIABLES))

    def keys(self, environ: Mapping[str, str] = os.environ) -> tuple[bytes, ...]:
        """Return the keys, the one to encrypt with first: 32 bytes in base64, separated by commas or white space.

        A command runs once for each process. Raises `ConfigError`; no error contains a key.
        """
        given = [name for name in _VARIABLES if name in environ]
        if len(given) > 1 or (self.file and self.command and not given):
            places = " and ".join(given or ["vault_key_file", "vault_key_command"])
            _refuse(places, "they name two places of the key", "Keep one of them.")
        if given == [KEY_VARIABLE]:
            return _decoded(environ[KEY_VARIABLE], KEY_VARIABLE)
        if given == [FILE_VARIABLE]:
            return _in_file(at_home(environ[FILE_VARIABLE]))
        if given == [COMMAND_VARIABLE]:
            return _by_command(environ[COMMAND_VARIABLE], COMMAND_VARIABLE)
        if self.file is not None:
            return _in_file(self.file)
        if self.command:
            return _by_command(self.command, "vault_key_command")
        # Without a place of its own nothing outlives the process.
        return (secrets.token_bytes(KEY_BYTES),) if self.own is None else _in_own_file(self.own)


def _in_own_file(path: Path) -> tuple[bytes, ...]:
    with suppress(FileExistsError, OSError):
        make_private(path.parent)
        write_new(path, base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        sync_directory(path.parent)
    try:
        raw = read_own(path, _LONGEST)
    except OSError as error:
        _refuse_unread(path, error)
    return _decoded(raw.decode("ascii", "replace"), str(path))


def _in_file(path: Path) -> tuple[bytes, ...]:
    """Read a file that an operator names: a secret that Kubernetes or Docker mounts is a link to a file of root."""
    try:
        with open_plain(path.resolve(strict=True)) as stream:
            raw = stream.read(_LONGEST + 1)
    except OSError as error:
        _refuse_unread(path, error)
    return _decoded(raw[:_LONGEST].decode("ascii", "replace"), str(path))


def _refuse_unread(path: Path, error: OSError) -> NoReturn:
    remedy = f"Check the file, or give the key by {KEY_VARIABLE}, {FILE_VARIABLE} or {COMMAND_VARIABLE}."
    _refuse(str(path), f"the vault's key is not readable ({error.strerror or error})", remedy, error)


def _by_command(command: str | tuple[str, ...], where: str) -> tuple[bytes, ...]:
    from truename.storage.key_command import printed_by  # noqa: PLC0415 - starts programs, which few configurations need

    return _decoded(printed_by(command, where), where)


def _decoded(text: str, where: str) -> tuple[bytes, ...]:
    found = []
    for part in text.replace(",", " ").split() or [""]:
        with suppress(binascii.Error, ValueError):
            key = base64.b64decode(part, validate=True)
            if len(key) == KEY_BYTES:
                found.append(key)
                continue
        _refuse(where, "it is not a key of 32 bytes in base64", _MADE)
    return tuple(found)


def _refuse(where: str, problem: str, remedy: str, cause: Exception | None = None) -> NoReturn:
    raise ConfigError(file=where, key="", problem=problem, remedy=remedy) from cause
