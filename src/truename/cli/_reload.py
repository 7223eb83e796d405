"""Reload the configuration while the gateway runs, and report errors with their lines."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from truename.cli._errors import errors_of, report, warn, warnings_of
from truename.cli._rendering import say, say_json
from truename.config.files import SETTINGS_FILE
from truename.config.watch import Reread, Watch
from truename.errors import ConfigError, TruenameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.cli._worker import Worker
    from truename.config import Config
    from truename.gateway import Gateway

__all__ = ["Reloads", "files_of", "line_of"]

log: Final = logging.getLogger("truename.gateway")

# Where settings stand under a key of their own.
_SECTIONS: tuple[tuple[str, ...], ...] = ((), ("truename",))
# A change is used when two checks in a row saw the same files.
_LOOK_EVERY: Final = 0.5
# Standard input and error; over stdio, standard output belongs to the client.
TERMINALS: Final = (0, 2)


def line_of(error: Exception) -> int | None:
    """Return the line of the key that an error names; None if unknown, or if the error has its line already."""
    if not isinstance(error, ConfigError) or not error.key or error.key.startswith("line "):
        return None
    from truename.editing import Document  # noqa: PLC0415 - the parsers, which only a configuration with errors needs

    path = Path(error.file)
    try:
        document = Document.read(path, "toml" if path.suffix.lower() == ".toml" else "jsonc")
    except TruenameError:
        return None
    found = [where for section in _SECTIONS if (where := _path(document.value, section, error.key))]
    return document.position(max(found, key=len))[0] if found else None


def _path(value: object, section: tuple[str, ...], key: str) -> tuple[str | int, ...]:
    """Return the path of a dotted key, as far as it exists; keys may contain dots."""
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
class _ReloadReport:
    as_json: bool
    is_quiet: bool

    def reloaded(self, what: object, warnings: Sequence[ConfigError]) -> None:
        if self.is_quiet:
            return
        if self.as_json:
            say_json({"reloaded": str(what)} | ({"warnings": warnings_of(warnings)} if warnings else {}))
        else:
            say(f"reloaded: {what}")
            warn(warnings)

    def refused(self, error: Exception) -> None:
        if self.is_quiet:
            log.info("The new configuration is not used; this worker keeps running with the old one.")
            return
        if self.as_json:
            placed = ((document, line_of(one)) for one, document in errors_of(error))
            errors = [document if line is None else {**document, "line": line} for document, line in placed]
            say_json({"reloaded": None, "errors": errors})
            return
        say("The new configuration is not used; the gateway keeps running with the old one.")
        for one, _ in errors_of(error):
            if (line := line_of(one)) is not None:
                say(f"  line {line:,}:")
            report(one, as_json=False)


class Reloads:
    """The reloads of a running gateway; ``reread`` reads its configuration again, with the command's options.

    All workers read the same files, so the first one reports; the supervisor knows what SIGHUP means.
    """

    def __init__(self, reread: Reread, config: Config, *, as_json: bool, worker: Worker | None = None) -> None:
        self._reread = reread
        self._mode = config.settings.reload
        self._worker = worker
        self._told = _ReloadReport(as_json=as_json, is_quiet=worker is not None and worker.number != 1)
        self._wanted = anyio.Event()
        self._terminals = tuple(number for number in TERMINALS if os.isatty(number))

    def hang_up(self) -> bool:
        """Handle SIGHUP: request a reload and return True, or return False if it means shutdown.

        It means shutdown if the terminal was closed, or if reloading is off.
        """
        if self._worker is None and (self._mode == "off" or not all(map(os.isatty, self._terminals))):
            return False
        self._wanted.set()
        return True

    async def keep_up(self, gateway: Gateway) -> None:
        """Reload the configuration when its files change or SIGHUP arrives, until cancelled."""
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
            # In a thread: the ledger may be large, and a file system may hang.
            config = await anyio.to_thread.run_sync(watch.read, self._reread.read, abandon_on_cancel=True)
            is_read = True
            if config is None:
                # The files are being written: read them at the next check.
                return
            self._wanted = anyio.Event()
            if (changed := await gateway.reload(config)) or is_asked:
                self._told.reloaded(changed, config.warnings)
            self._mode = config.settings.reload
            if self._worker is not None:
                self._worker.tell(reload=self._mode)
        except Exception as error:  # noqa: BLE001 - the gateway keeps running with the old configuration
            self._wanted = anyio.Event()
            if not is_read:
                gateway.audit.refused(error)
            self._told.refused(error)


def files_of(config: Config) -> tuple[Path, ...]:
    """Return the files of a configuration, whether they exist or not."""
    path = config.path
    if path is None:
        return ()
    beside = () if path.suffix.lower() == ".toml" else (path.with_name(SETTINGS_FILE),)
    secrets = () if config.settings.env_file is None else (Path(config.settings.env_file),)
    named = (config.settings.tls_certificate, config.settings.tls_key)
    return (path, *beside, *secrets, *config.files, *(Path(one) for one in named if one is not None))
