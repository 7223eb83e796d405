"""Replace the configuration of a running gateway: whole or not at all, and without dropping a call."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from truename.config import Settings, verify
from truename.config.fields import fixed_changes
from truename.errors import ConfigErrors, config_error
from truename.gateway.report import Reloaded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from truename.config import Config
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.server_pool import ServerPool

    # Checks a configuration, and returns a function to run when it is taken over. That one may return the names of
    # settings whose files changed, where their values did not. Raises if the configuration must not be taken over.
    Guard = Callable[[Config], Callable[[], tuple[str, ...] | None]]

__all__ = ["Guard", "differences", "limited", "take"]

# Compared by their paths below, or checked by the HTTP authentication (a gateway over stdio has none).
_APART: Final = ("state", "access.")


async def take(
    registry: Registry, pool: ServerPool, before: Config, after: Config, guards: Iterable[Guard] = ()
) -> Reloaded:
    """Replace the first configuration by the second, and return the changes.

    Raises `ConfigError`, `LedgerError`, groups of these and of naming errors: then nothing changes.
    """
    verify(after)
    _refuse_fixed(before, after)
    steps = [guard(after) for guard in guards]
    await registry.check(after)
    changed = differences(before, after)
    if changed:
        await registry.reload(after.settings, after.enabled, partial(pool.show, after))
        pool.follow(after)
    renewed = [name for step in steps for name in step() or ()]
    return replace(changed, settings=tuple(dict.fromkeys((*changed.settings, *renewed))))


def differences(before: Config, after: Config) -> Reloaded:
    """Return the differences of the second configuration from the first."""
    old, new = ({server.key: server for server in config.enabled} for config in (before, after))
    settings = (field.name for field in fields(Settings))
    return Reloaded(
        added=tuple(key for key in new if key not in old),
        removed=tuple(key for key in old if key not in new),
        changed=tuple(key for key in new if key in old and new[key] != old[key]),
        settings=tuple(name for name in settings if getattr(before.settings, name) != getattr(after.settings, name)),
        moved=[key for key in old if key in new] != [key for key in new if key in old],
    )


def _refuse_fixed(before: Config, after: Config) -> None:
    faults = ConfigErrors(str(after.path or "settings"))
    fixed = [name for name in fixed_changes(before.settings, after.settings) if not name.startswith(_APART)]
    if not before.state_location().is_same(after.state_location()):
        fixed.append("state")
    for name in fixed:
        faults.add(name, "it cannot change while the gateway runs", "Restart the gateway, or undo the change.")
    faults.raise_any()


def limited(config: Config, keys: Collection[str]) -> Config:
    """Return the configuration with only these servers. Raises `ConfigError` if it has none of them."""
    found = tuple(server for server in config.enabled if server.key in keys)
    if not found:
        told = ", ".join(map(repr, sorted(keys)))
        problem = f"no server remains of those that this gateway serves ({told})"
        raise config_error(
            str(config.path or "settings"), "mcpServers", problem, "Restart the gateway, or add it again."
        )
    settings = replace(config.settings, tools=config.settings.tools.partly())
    return config.__class__(path=config.path, servers=found, settings=settings, files=config.files)
