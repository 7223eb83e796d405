"""A whole configuration as a frozen value, and where its state is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from truename.config.field_types import MEMORY
from truename.config.settings import Settings, wrong
from truename.errors import ConfigErrors, excerpt
from truename.files.private import state_directory
from truename.files.user import at_home
from truename.storage import StateLocation
from truename.storage.vault_keys import KeySource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import ServerIdentity
    from truename.config.servers import ServerConfig
    from truename.errors import ConfigError
    from truename.storage import Revision

__all__ = ["Config", "state_path", "verify"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole configuration: its file, its servers in the order of the file, and its settings.

    ``files`` are those that its references name. ``warnings`` are probable mistakes that do not prevent a start, each
    with its place and what to do. ``known_revision`` is the latest revision of the state that the audit log recorded:
    an older state is refused (`truename.audit.with_recorded_revision`).
    """

    path: Path | None = None
    servers: tuple[ServerConfig, ...] = ()
    settings: Settings = field(default_factory=Settings)
    files: tuple[Path, ...] = field(default=(), compare=False)
    warnings: tuple[ConfigError, ...] = field(default=(), compare=False)
    known_revision: Revision | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        policy, registered = self.settings.policy, self.registered
        # Only what stands in the entries counts, whoever made the policy.
        if policy is not None and policy.registered != registered:
            bound = replace(self.settings, policy=replace(policy, registered=registered))
            object.__setattr__(self, "settings", bound)

    @property
    def registered(self) -> Mapping[str, str]:
        """The names in the MCP registry of the servers that have one, by key."""
        return MappingProxyType({one.key: one.registry_name for one in self.servers if one.registry_name is not None})

    @property
    def enabled(self) -> tuple[ServerConfig, ...]:
        """The servers that are not disabled."""
        return tuple(server for server in self.servers if not server.disabled)

    @property
    def identities(self) -> Mapping[str, ServerIdentity]:
        """The declared identities of the servers that are not disabled, by key."""
        return MappingProxyType({server.key: server.identity for server in self.enabled})

    def state_location(self, environ: Mapping[str, str] | None = None) -> StateLocation:
        """Return the place of the state database; memory where the setting says so, or there is no file of settings.

        At the default place, files of earlier versions are imported.
        """
        said, keys = self.settings.state, self._key_source()
        if said == MEMORY or (said is None and self.path is None):
            return StateLocation()
        if said is not None:
            location = StateLocation.of(said)
            beside = location.recorded_beside
            own = None if beside is None else beside.with_name(f"{beside.name}.keys") / "vault.key"
            return replace(location, known=self.known_revision, keys=replace(keys, own=own))
        path = state_path(self.path or Path(), environ)
        keys = replace(keys, own=_keys_directory(path) / "vault.key")
        return StateLocation(path, _former_files(path), self.known_revision, keys=keys)

    def _key_source(self) -> KeySource:
        file, command = self.settings.vault_key_file, self.settings.vault_key_command
        return KeySource(file=None if file is None else at_home(file), command=command)

    def keys_path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """Return the directory of the key that seals secrets and of locks between processes, or None for memory."""
        path = self.state_location(environ).recorded_beside
        if path is None:
            return None
        return path.with_name(f"{path.name}.keys") if self.settings.state else _keys_directory(path)

    def pins_location(self, environ: Mapping[str, str] | None = None) -> StateLocation:
        """Return the place of the pins: the state database, unless ``trust.pins`` names another."""
        said = self.settings.trust.pins
        if said is None:
            return self.state_location(environ)
        return StateLocation.of(None if said == MEMORY else said)


def _keys_directory(state: Path) -> Path:
    """Return the directory of keys and locks for a database at its default place."""
    return state.parents[1] / "access" / state.stem


def _former_files(state: Path) -> Mapping[str, Path]:
    """Return the files that earlier versions kept, by owner, for a database at its default place."""
    home, name = state.parents[1], state.stem
    access = home / "access" / name
    return MappingProxyType(
        {
            "ledger": state.with_suffix(".ledger"),
            "pin": home / "pins" / f"{name}.pins",
            "approval": home / "approvals" / f"{name}.json",
            "pending_call": home / "approvals" / f"{name}.json.pending",
            "token": access / "tokens.json",
            "sign_in": access / "sign-ins.db",
            "secret": access / "vault.db",
            "session": access / "sessions.db",
        }
    )


def state_path(config_path: Path | str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the default state database of a configuration, in the user's state directory.

    ``XDG_STATE_HOME`` (or ``~/.local/state``), ``~/Library/Application Support`` on macOS, ``%LOCALAPPDATA%`` on
    Windows. The name holds a digest of the configuration's absolute path.
    """
    path = at_home(config_path).resolve()
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    stem = "".join(character if character.isalnum() else "-" for character in path.stem)[:40]
    return state_directory(environ) / "ledgers" / f"{stem}-{digest}.db"


def verify(config: Config) -> None:
    """Raise `ConfigError`, or a group of them, for settings that command options made invalid."""
    settings = config.settings
    errors = ConfigErrors(str(config.path or "settings"))
    given = [("server_name", "server_name", settings.server_name)]
    given += [("aliases", f"aliases.{excerpt(key)[1:-1]}", alias) for key, alias in (settings.aliases or {}).items()]
    if settings.token is not None:
        given.append(("token", "token", settings.token))
    for setting, where, text in given:
        if found := wrong(setting, text):
            errors.add(where, *found)
    errors.raise_any()
