"""Reload the configuration of a running gateway, and report the lines of its errors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.cli._errors import errors_of, report
from truename.cli._rendering import say, say_json, styled
from truename.config.files import SETTINGS_FILE
from truename.config.watch import Reread, Watch
from truename.editing import Document
from truename.errors import ConfigError, TruenameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.config import Config
    from truename.gateway import Gateway

__all__ = ["Reloads", "files_of", "line_of", "warn", "warnings_of"]

# Where settings stand under a key of their own.
_SECTIONS: tuple[tuple[str, ...], ...] = ((), ("truename",))
# A change is read when two looks in a row saw the same.
_LOOK_EVERY: Final = 0.5
# Standard output is the client's, where it is served.
_TERMINALS: Final = (0, 2)


def line_of(error: Exception) -> int | None:
    """Return the line of the key that an error names; None if there is none, or the error names its line itself."""
    if not isinstance(error, ConfigError) or not error.key or error.key.startswith("line "):
        return None
    path = Path(error.file)
    try:
        document = Document.read(path, "toml" if path.suffix.lower() == ".toml" else "jsonc")
    except TruenameError:
        return None
    found = [where for section in _SECTIONS if (where := _path(document.value, section, error.key))]
    return document.position(max(found, key=len))[0] if found else None


def _path(value: Any, section: tuple[str, ...], key: str) -> tuple[str | int, ...]:
    """Return the path to a dotted key, as far as it exists; keys may contain dots themselves."""
    for step in section:
        value = value.get(step) if isinstance(value, dict) else None
    where: tuple[str | int, ...] = ()
    rest = key
    while isinstance(value, dict) and rest:
        name = next((name for name in sorted(value, key=len, reverse=True) if _begins(rest, name)), "")
        if not name:
            break
        where, value, rest = (*where, name), value[name], rest[len(name) :].lstrip(".")
    return (*section, *where) if where else ()


def _begins(rest: str, name: str) -> bool:
    return bool(name) and rest.startswith(name) and rest[len(name) : len(name) + 1] in {"", ".", "["}


@dataclass(frozen=True, kw_only=True)
class _Failure:
    as_json: bool

    def reloaded(self, what: object, warnings: Sequence[ConfigError]) -> None:
        if self.as_json:
            say_json({"reloaded": str(what)} | ({"warnings": warnings_of(warnings)} if warnings else {}))
        else:
            say(f"reloaded: {what}")
            warn(warnings)

    def refused(self, error: Exception) -> None:
        if self.as_json:
            errors = [_placed(one, document) for one, document in errors_of(error)]
            say_json({"reloaded": None, "errors": errors})
            return
        say("The new configuration is invalid; the gateway keeps running with the old one.")
        for one, _ in errors_of(error):
            if (line := line_of(one)) is not None:
                say(f"  line {line:,}:")
            report(one, as_json=False)


def _placed(error: Exception, document: dict[str, Any]) -> dict[str, Any]:
    line = line_of(error)
    return document if line is None else {**document, "line": line}


def warn(warnings: Sequence[ConfigError]) -> None:
    """Print probable mistakes in a configuration."""
    for one in warnings:
        where = f"{one.file}: {one.key}" if one.key else one.file
        say(styled("warning: ", "yellow"), f"{where}: {one.problem}. {one.remedy}")


def warnings_of(warnings: Sequence[ConfigError]) -> list[dict[str, str]]:
    """Return probable mistakes in a configuration as JSON."""
    return [{"file": one.file, "key": one.key, "problem": one.problem, "remedy": one.remedy} for one in warnings]


class Reloads:
    """Reloads the configuration of a gateway; ``reread`` reads it as at the start, with the same options."""

    def __init__(self, reread: Reread, config: Config, *, as_json: bool) -> None:
        self._reread = reread
        self._mode = config.settings.reload
        self._told = _Failure(as_json=as_json)
        self._wanted = anyio.Event()
        self._terminals = tuple(number for number in _TERMINALS if os.isatty(number))

    def hang_up(self) -> bool:
        """Handle SIGHUP: tell whether it requests a reload; otherwise the gateway stops.

        It stops if the terminal was closed, or if reloading is off.
        """
        if self._mode == "off" or not all(map(os.isatty, self._terminals)):
            return False
        self._wanted.set()
        return True

    async def keep_up(self, gateway: Gateway) -> None:
        """Reload the configuration when its files change or SIGHUP requests it, until cancelled."""
        watch = Watch(lambda: (*files_of(gateway.config), *self._reread.watched))
        while True:
            with anyio.move_on_after(_LOOK_EVERY):
                await self._wanted.wait()
            is_other = watch.look() and self._mode == "watch"
            if self._wanted.is_set() or is_other:
                await self._reload(gateway, watch)

    async def _reload(self, gateway: Gateway, watch: Watch) -> None:
        is_asked = self._wanted.is_set()
        is_read = False
        try:
            # In a thread: a large ledger is read, and a file system may hang.
            config = await anyio.to_thread.run_sync(watch.read, self._reread.read, abandon_on_cancel=True)
            is_read = True
            if config is None:
                # Somebody is writing it: it is read afterwards.
                return
            self._wanted = anyio.Event()
            if (changed := await gateway.reload(config)) or is_asked:
                self._told.reloaded(changed, config.warnings)
            self._mode = config.settings.reload
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the gateway goes on
            self._wanted = anyio.Event()
            if not is_read:
                gateway.audit.refused(error)
            self._told.refused(error)


def files_of(config: Config) -> tuple[Path, ...]:
    """Return the files that a configuration is read from, whether they exist or not."""
    path = config.path
    if path is None:
        return ()
    beside = () if path.suffix.lower() == ".toml" else (path.with_name(SETTINGS_FILE),)
    secrets = () if config.settings.env_file is None else (Path(config.settings.env_file),)
    return (path, *beside, *secrets, *config.files)
