"""What `truename serve` does when its configuration changes: reads it anew, and says what came of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.cli.beside import SETTINGS_FILE
from truename.cli.failure import errors_of, report
from truename.cli.located import line_of
from truename.cli.rendering import say, say_json, styled
from truename.config.watch import Reread, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.config import Config
    from truename.errors import ConfigError
    from truename.gateway import Gateway

__all__ = ["Reloads", "warn", "warnings_of"]

# A change counts when two looks saw the same.
_LOOK_EVERY: Final = 0.5
# Standard output is the client's, where it is served.
_TERMINALS: Final = (0, 2)


@dataclass(frozen=True, kw_only=True)
class _Told:
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
        say("The new configuration can't be used; the gateway goes on as it is.")
        for one, _ in errors_of(error):
            if (line := line_of(one)) is not None:
                say(f"  line {line:,}:")
            report(one, as_json=False)


def _placed(error: Exception, document: dict[str, Any]) -> dict[str, Any]:
    line = line_of(error)
    return document if line is None else {**document, "line": line}


def warn(warnings: Sequence[ConfigError]) -> None:
    """Print what is probably not meant in a configuration."""
    for one in warnings:
        where = f"{one.file}: {one.key}" if one.key else one.file
        say(styled("warning: ", "yellow"), f"{where}: {one.problem}. {one.remedy}")


def warnings_of(warnings: Sequence[ConfigError]) -> list[dict[str, str]]:
    """Return the same for programs."""
    return [{"file": one.file, "key": one.key, "problem": one.problem, "remedy": one.remedy} for one in warnings]


class Reloads:
    """Keeps a gateway up with its configuration; ``reread`` reads it as at the start, options and all."""

    def __init__(self, reread: Reread, config: Config, *, as_json: bool) -> None:
        self._reread = reread
        self._mode = config.settings.reload
        self._told = _Told(as_json=as_json)
        self._wanted = anyio.Event()
        self._terminals = tuple(number for number in _TERMINALS if os.isatty(number))

    def hang_up(self) -> bool:
        """Take SIGHUP: tell whether it asks for the configuration to be read anew, and not for the end.

        It is the end where the terminal was closed, and where nothing is to be read anew.
        """
        if self._mode == "off" or not all(map(os.isatty, self._terminals)):
            return False
        self._wanted.set()
        return True

    async def keep_up(self, gateway: Gateway) -> None:
        """Read the configuration anew when it is other or somebody asks, until cancelled."""
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
            # In a thread: a large ledger is looked at, and a file system may hang.
            config = await anyio.to_thread.run_sync(watch.read, self._reread.read, abandon_on_cancel=True)
            is_read = True
            if config is None:
                # Somebody is writing it: it is read when that is over.
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
    """Return the files of which a configuration is made, there or not."""
    path = config.path
    if path is None:
        return ()
    beside = () if path.suffix.lower() == ".toml" else (path.with_name(SETTINGS_FILE),)
    secrets = () if config.settings.env_file is None else (Path(config.settings.env_file),)
    return (path, *beside, *secrets, *config.files)
