"""Read the files of a configuration: each once, decoded from JSON or TOML, with a digest of their contents."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from truename.config.interpolate import env_bytes, read_env_file
from truename.errors import config_error, excerpt
from truename.files.json_syntax import json_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from truename.config.model import Config

__all__ = ["SETTINGS_FILE", "ConfigFiles", "decode", "digest_of", "read_text"]

MAX_BYTES: Final = 16 * 1024 * 1024
_REGULAR: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_TOML_PLACE: Final = re.compile(r" \(at line (\d+), column (\d+)\)\Z")
_TOML_END: Final = re.compile(r" \(at end of document\)\Z")
# Strings are matched too, so that nothing inside one is taken for what it looks like.
_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
SETTINGS_FILE: Final = "truename.toml"


def read_text(path: Path) -> str:
    """Read a configuration file, with or without a byte order mark. Raises `ConfigError`."""
    return text_of(read_bytes(path), path)


def read_bytes(path: Path, *, regular: bool = False) -> bytes:
    """Return the bytes of a configuration file; with ``regular`` a pipe or a device is refused without waiting.

    Raises `ConfigError`.
    """
    try:
        with _opened(path) if regular else path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = f"it cannot be read ({getattr(error, 'strerror', None) or error})"
        raise config_error(str(path), "", problem, "Check the path.") from error
    if len(raw) > MAX_BYTES:
        raise config_error(str(path), "", f"it is larger than {MAX_BYTES:,} bytes", "Give a configuration file.")
    return raw


def _opened(path: Path) -> BinaryIO:
    descriptor = os.open(path, _REGULAR)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise config_error(str(path), "", "it is not a regular file", "Give a configuration file.")


def text_of(raw: bytes, path: Path) -> str:
    """Return the text of a configuration file's bytes. Raises `ConfigError`."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise config_error(str(path), "", f"it is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error


def decode(text: str, file: str, *, toml: bool) -> dict[str, Any]:
    """Parse the text of a configuration file. Raises `ConfigError` with line and column."""
    content = _toml(text, file) if toml else _json(text, file)
    if not isinstance(content, dict):
        raise config_error(file, "", "it is not an object", 'Write {"mcpServers": {...}}.')
    return content


def _toml(text: str, file: str) -> object:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise config_error(file, "", "it is nested too deeply", "Make it flatter.") from error
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        if place := _TOML_PLACE.search(said):
            where = f"line {place[1]}, column {place[2]}"
        else:
            where = f"line {text.count(chr(10)) + 1} (the end)"
        what = _TOML_END.sub("", _TOML_PLACE.sub("", said))
        raise config_error(file, where, f"it is not TOML ({what})", "Fix the file there.") from error


def _json(text: str, file: str) -> object:
    try:
        try:
            return json.loads(text, object_pairs_hook=_Unique(file))
        except json.JSONDecodeError:
            return json.loads(_TRAILING.sub(_blank, _COMMENT.sub(_blank, text)), object_pairs_hook=_Unique(file))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise config_error(file, where, f"it is not JSON ({json_problem(error)})", "Fix the file there.") from error
    except RecursionError as error:
        raise config_error(file, "", "it is nested too deeply", "Make it flatter.") from error
    except ValueError as error:
        raise config_error(file, "", f"it is not JSON ({error})", "Fix the file there.") from error


def _blank(match: re.Match[str]) -> str:
    """Replace a comment or trailing comma by blanks, so that lines and columns stay the same."""
    found = match[0]
    return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)


class _Unique:
    """Refuses an object that has a key twice: the second value would silently win."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __call__(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise config_error(self._file, excerpt(key), "the key occurs twice", "Remove or rename one.")
            found[key] = value
        return found


class ConfigFiles:
    """Reads files and caches their bytes; a file is never read a second time.

    With ``regular`` pipes and devices are refused without waiting. All methods raise `ConfigError` for a file that
    cannot be read.
    """

    def __init__(self, *, regular: bool = False) -> None:
        self._regular = regular
        self._read: dict[Path, bytes | None] = {}
        self._is_sealed = False

    def has(self, path: Path) -> bool:
        """Return whether the file exists, and read it if it does."""
        return self._bytes(path, lambda: self._raw(path) if path.is_file() else None) is not None

    def text(self, path: Path) -> str:
        """Return the text of a configuration file."""
        return text_of(self._bytes(path, lambda: self._raw(path)) or b"", path)

    def env(self, path: Path) -> dict[str, str]:
        """Return the variables of an ``env_file``; raises groups of `ConfigError`, too."""
        return read_env_file(path, self._bytes(path, lambda: env_bytes(path)) or b"")

    def seal(self) -> None:
        """Refuse files that were not read so far, because `digest` does not cover them."""
        self._is_sealed = True

    def digest(self, base: Path) -> str:
        """Return the SHA-256 of all files that were read, with their names relative to a directory."""
        found = hashlib.sha256()
        base = base.absolute()
        for path, raw in sorted(self._read.items()):
            name = str(path.relative_to(base) if path.is_relative_to(base) else path)
            for part in (name.encode("utf-8", "surrogateescape"), b"absent" if raw is None else b"file", raw or b""):
                found.update(len(part).to_bytes(8, "big") + part)
        return f"sha256:{found.hexdigest()}"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that were read and exist."""
        return tuple(sorted(path for path, raw in self._read.items() if raw is not None))

    def _raw(self, path: Path) -> bytes:
        return read_bytes(path, regular=self._regular)

    def _bytes(self, path: Path, read: Callable[[], bytes | None]) -> bytes | None:
        key = path.absolute()
        if key not in self._read:
            if self._is_sealed:
                raise config_error(str(path), "", "it changed while it was read", "Run the command again.")
            self._read[key] = read()
        return self._read[key]


"""The file of settings that may stand beside one of servers."""


def digest_of(config: Config) -> str:
    """Return the SHA-256 of the files of a configuration as they are now, by name; "" for one without files.

    Files that its references name are left out, because they hold secrets.
    """
    return " ".join(_digests(config.path)) if config.path is not None else ""


def _digests(path: Path) -> Iterator[str]:
    for file in dict.fromkeys((path, path.with_name(SETTINGS_FILE))):
        with suppress(OSError):
            yield f"{file.name}=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
