"""A whole configuration as a frozen value, and where its state is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from truename.config.access import TOKENS
from truename.config.field_types import MEMORY
from truename.config.settings import Settings, wrong
from truename.errors import ConfigErrors, excerpt
from truename.files.private import state_directory
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import ServerIdentity
    from truename.config.servers import ServerConfig
    from truename.errors import ConfigError

__all__ = ["Config", "state_path", "verify"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration: its file, its servers in the order of the file, and its settings.

    ``files`` are those that its references name. ``warnings`` are probable mistakes that do not prevent a start, each
    with its place and what to do.
    """

    path: Path | None = None
    servers: tuple[ServerConfig, ...] = ()
    settings: Settings = field(default_factory=Settings)
    files: tuple[Path, ...] = field(default=(), compare=False)
    warnings: tuple[ConfigError, ...] = field(default=(), compare=False)

    @property
    def enabled(self) -> tuple[ServerConfig, ...]:
        """The servers that are not disabled."""
        return tuple(server for server in self.servers if not server.disabled)

    @property
    def identities(self) -> Mapping[str, ServerIdentity]:
        """The declared identities of the servers that are not disabled, by key."""
        return MappingProxyType({server.key: server.identity for server in self.enabled})

    def ledger_path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """Return the file of the ledger, or None if it is in memory."""
        if self.settings.ledger == MEMORY or (self.settings.ledger is None and self.path is None):
            return None
        if self.settings.ledger is not None:
            return at_home(self.settings.ledger)
        return state_path(self.path or Path(), environ)

    @property
    def asks_for_token(self) -> bool:
        """Whether clients need a token: one is set or was made, and they do not sign in instead."""
        access, directory = self.settings.access, self.access_path()
        made = directory is not None and (directory / TOKENS).exists()
        return not (access.oauth or access.sign_in) and bool(self.settings.token or access.tokens or made)

    def access_path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """Return the directory of tokens and sign-ins, or None if they are not stored."""
        if self.settings.access.state is not None:
            return at_home(self.settings.access.state)
        return self._state("access", "", environ)

    def pins_path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """Return the file of the pins, or None if they are in memory, as the names are then."""
        said = self.settings.trust.pins
        if said is not None:
            return None if said == MEMORY else Path(said)
        return None if self.ledger_path(environ) is None else self._state("pins", ".pins", environ)

    def approvals_path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """Return the file of decisions on calls, or None if they are in memory, as the names are then."""
        said = self.settings.approvals.path
        if said is not None:
            return None if said == MEMORY else Path(said)
        return None if self.ledger_path(environ) is None else self._state("approvals", ".json", environ)

    def _state(self, kind: str, suffix: str, environ: Mapping[str, str] | None) -> Path | None:
        if self.path is None:
            return None
        ledger = state_path(self.path, environ)
        return ledger.parent.parent / kind / f"{ledger.stem}{suffix}"


def state_path(config_path: Path | str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the default ledger file of a configuration, in the user's state directory.

    ``XDG_STATE_HOME`` (or ``~/.local/state``), ``~/Library/Application Support`` on macOS, ``%LOCALAPPDATA%`` on
    Windows. The name holds a digest of the configuration's absolute path.
    """
    path = at_home(config_path).resolve()
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    stem = "".join(character if character.isalnum() else "-" for character in path.stem)[:40]
    return state_directory(environ) / "ledgers" / f"{stem}-{digest}.ledger"


def verify(config: Config) -> None:
    """Raise `ConfigError`, or a group of them, for settings that command options made invalid."""
    settings = config.settings
    faults = ConfigErrors(str(config.path or "settings"))
    given = [("server_name", "server_name", settings.server_name)]
    given += [("aliases", f"aliases.{excerpt(key)[1:-1]}", alias) for key, alias in (settings.aliases or {}).items()]
    if settings.token is not None:
        given.append(("token", "token", settings.token))
    for setting, where, text in given:
        if found := wrong(setting, text):
            faults.add(where, *found)
    faults.raise_any()
