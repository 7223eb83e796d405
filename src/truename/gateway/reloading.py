"""Another configuration for a gateway that runs: taken whole or not at all, and no call is dropped for it."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from truename.config import Settings, verify
from truename.errors import ConfigErrors, config_error
from truename.gateway.report import Reloaded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from truename.config import Config
    from truename.config.audit import Audit
    from truename.gateway.hub import Hub
    from truename.gateway.upstream.fleet import Fleet

    # Looks at a configuration, and returns what is done when it is taken. Raises what speaks against it.
    Guard = Callable[[Config], Callable[[], None]]

__all__ = ["LIVE", "Guard", "differences", "limited", "take"]

# What counts from the moment at which it is said. All else is built into what runs.
LIVE: Final = frozenset(
    (
        *("call_timeout", "startup_timeout", "answer_timeout", "max_rounds", "max_held", "max_held_bytes"),
        *("max_isolated", "isolation_idle"),
        *("max_concurrent", "max_waiting", "breaker_failures", "breaker_seconds", "drain_timeout", "max_result"),
        *("max_tools", "tool_search", "max_listed", "list_budget", "pinned", "overrides", "names_in_texts"),
        *("policy", "metadata", "convention", "context", "contexts", "protocol", "token", "access", "env_file"),
        *("audit", "tools"),
        *("reload", "trust", "profiles", "approvals"),
        *("start", "idle_timeout", "server_instructions", "max_instructions"),
        # These may say what the ledger remembers, or leave it open: the ledger judges that.
        *("style", "aliases", "server_name"),
    )
)
_STATE: Final = "state"
_OF_THE_JOURNAL: Final = ("path", "key", "max_segment", "max_waiting")


async def take(hub: Hub, fleet: Fleet, before: Config, after: Config, guards: Iterable[Guard] = ()) -> Reloaded:
    """Have the second configuration in place of the first, and return what changed.

    Raises `ConfigError`, `LedgerError`, groups of these and of naming errors: then nothing is changed.
    """
    verify(after)
    _refuse_fixed(before, after)
    steps = [guard(after) for guard in guards]
    await hub.check(after)
    changed = differences(before, after)
    if not changed:
        return changed
    await hub.reload(after.settings, after.enabled, partial(fleet.show, after))
    fleet.follow(after)
    for step in steps:
        step()
    return changed


def differences(before: Config, after: Config) -> Reloaded:
    """Return what the second configuration says otherwise."""
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
    fixed = [name for name in differences(before, after).settings if name not in LIVE and name != _STATE]
    fixed += _fixed_audit(before.settings.audit, after.settings.audit)
    if before.state_location().path != after.state_location().path:
        fixed.append(_STATE)
    for name in fixed:
        faults.add(name, "it can't change while the gateway runs", "Restart the gateway, or change it back.")
    faults.raise_any()


def _fixed_audit(before: Audit, after: Audit) -> list[str]:
    """Return what can't change of a journal that is open: where it is, and how it is written."""
    return [f"audit.{name}" for name in _OF_THE_JOURNAL if getattr(before, name) != getattr(after, name)]


def limited(config: Config, keys: Collection[str]) -> Config:
    """Return the configuration with these of its servers. Raises `ConfigError` where it has none of them."""
    found = tuple(server for server in config.enabled if server.key in keys)
    if not found:
        told = ", ".join(map(repr, sorted(keys)))
        problem = f"no server is left of those that are served here ({told})"
        raise config_error(
            str(config.path or "settings"), "mcpServers", problem, "Restart the gateway, or add it again."
        )
    settings = replace(config.settings, tools=config.settings.tools.partly())
    return config.__class__(path=config.path, servers=found, settings=settings, files=config.files)
