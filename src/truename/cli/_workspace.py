"""Open the tools that a command works on: catalogue, ledger and settings."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from truename.catalog import BUILT_IN_ALIASES, Catalog
from truename.catalog.admit import numbered_id
from truename.cli._client_rules import client_rules
from truename.cli._errors import UsageError
from truename.cli._options import NamingOptions
from truename.cli._progress import busy
from truename.cli._rename_record import RenameRecord
from truename.cli._rendering import say, styled
from truename.cli._sources import Source, find_sources, other_shape, read_aliases
from truename.config import Settings
from truename.config.settings import wrong
from truename.errors import ConfigError, LedgerError, excerpt, spelling_remedy
from truename.identity import ToolId
from truename.ledger import Ledger, open_ledger
from truename.ledger import LedgerSettings as Recorded
from truename.naming import STYLES, NameTable, project
from truename.policy.former_ids import former_ids
from truename.policy.lineage import NO_LINEAGE, no_lineage
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.catalog import IdentityChange
    from truename.config import Config
    from truename.gateway import UpstreamError
    from truename.policy.lineage import LineageOf
    from truename.policy.profiles import Profile

__all__ = [
    "ProfileView",
    "ToolWorkspace",
    "ask_each_server",
    "audience_of",
    "check_option",
    "differences",
    "existing_state",
    "gateway_needed",
    "identity_mismatch",
    "ledger_settings",
    "open_workspace",
    "profile_servers",
    "style_mismatch",
    "with_options",
    "with_recorded_settings",
]

_MEMORY = "memory"
_AS_IT_IS = NamingOptions()


def with_recorded_settings(settings: Settings, recorded: Recorded | None) -> Settings:
    """Return the settings, with server name and aliases from the ledger where they are not set.

    The style is not filled in: `ToolWorkspace.style` looks it up in the ledger.
    """
    if recorded is None:
        return settings
    if settings.server_name == Settings().server_name:
        settings = replace(settings, server_name=recorded.server_name)
    if settings.aliases is None:
        settings = replace(settings, aliases=dict(recorded.aliases))
    return settings


def ledger_settings(settings: Settings, style: str) -> Recorded:
    """Return these settings in the form in which a ledger records them."""
    aliases = dict(Catalog((), settings.aliases).aliases)
    return Recorded(style=settings.style or style, server_name=settings.server_name, aliases=aliases)


def style_mismatch(recorded: Recorded, other: Recorded, sources: Sequence[str], ledger: str | None) -> UsageError:
    """Return the error for settings that differ from the ledger's, with the command that changes the ledger."""
    words = ["truename", "rename", *(sources if len(sources) < 2 else ["SOURCE"]), "--all", *_options(recorded, other)]
    if ledger is not None:
        words += ["--state", ledger]
    return UsageError(
        code="style_mismatch",
        fact=f"This ledger was created with {recorded.difference(other)}, not with {other.difference(recorded)}",
        advice=f"`{shlex.join(words)}` changes it, and the old names keep working. Or use another ledger "
        "(--state PATH).",
    )


def identity_mismatch(changes: Sequence[IdentityChange], source: str | None, ledger: str | None) -> UsageError:
    """Return the error for recorded ids that differ from the declared ones, with the command that changes them."""
    words = ["truename", "rename", *([] if source is None else [source]), "--ids"]
    if ledger is not None:
        words += ["--state", ledger]
    first, more = changes[0], len(changes) - 1
    others = f", and so are {more:,} more" if more else ""
    return UsageError(
        code="identity_mismatch",
        fact=f"Tool {excerpt(first.name)} of server {excerpt(first.server)} is {first.recorded} on record, and is "
        f"declared as {first.declared} now{others}",
        advice=f"`{shlex.join(words)}` redirects the old ids to the new ones (--dry-run shows the changes). Or declare "
        "the ids on record.",
    )


def differences(recorded: Recorded, other: Recorded) -> list[tuple[str, str, str]]:
    """Return the settings that differ: name, old value, new value."""
    found: list[tuple[str, str, str]] = []
    if recorded.style != other.style:
        found.append(("style", recorded.style, other.style))
    if recorded.server_name != other.server_name:
        found.append(("server_name", recorded.server_name, other.server_name))
    if dict(recorded.aliases) != dict(other.aliases):
        found.append(("aliases", _pairs(recorded), _pairs(other)))
    return found


def _pairs(made: Recorded) -> str:
    return ", ".join(f"{integration} = {alias}" for integration, alias in made.aliases.items()) or "none"


def _options(recorded: Recorded, other: Recorded) -> Iterator[str]:
    if recorded.style != other.style:
        yield from ("--style", other.style)
    if recorded.server_name != other.server_name:
        yield from ("--server-name", other.server_name)
    for integration, alias in other.aliases.items():
        if recorded.aliases.get(integration) != alias:
            yield from ("--alias", f"{integration}={alias}")


@dataclass(frozen=True, kw_only=True)
class ToolWorkspace:
    """The tools, the ledger (None: names are not remembered), the settings, and the servers that failed.

    ``registered`` has the names in the MCP registry that configurations give to their servers, by server id.
    """

    catalog: Catalog
    ledger: Ledger | None
    settings: Settings
    failed: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    ledger_option: str | None = None
    registered: Mapping[str, str] = field(default_factory=dict)
    renames: RenameRecord = field(default_factory=RenameRecord)

    @cached_property
    def lineage(self) -> LineageOf:
        """The function that says as which former tools a gateway judges a tool that its server may have renamed.

        Raises `StoreError`, and `UsageError` if the gateway's packages are not installed.
        """
        new = [id for id in self.catalog if id in self.renames.book.arrived]
        if not new or self.ledger is None:
            return no_lineage
        with gateway_needed():
            from truename.gateway.rate_limited_log import RateLimitedLog  # noqa: PLC0415 - the gateway is an extra
            from truename.gateway.trust.server_renames import ServerRenames  # noqa: PLC0415 - the gateway is an extra
        from truename.trust import PinStore  # noqa: PLC0415 - only where a server renamed tools

        with PinStore(self.renames.location, readonly=True) as pins:
            today = datetime.now(UTC).date
            known = ServerRenames(self.renames.book, self.settings, RateLimitedLog(), self.ledger, pins, today)
            found = {id: known.lineage(id) for id in new}
        return lambda id: found.get(id, NO_LINEAGE)

    @property
    def servers(self) -> int:
        """The number of servers of the tools."""
        return len({tool.origin.server_id for tool in self.catalog.values()})

    @property
    def style(self) -> str:
        """The style: as set, else as the ledger has it, else by the number of servers."""
        recorded = self.ledger.settings if self.ledger is not None else None
        if self.settings.style is not None:
            return self.settings.style
        if recorded is not None:
            return recorded.style
        return "on-conflict" if self.servers == 1 else "prefixed"

    def table(self, client: str) -> NameTable:
        """Project the names for a client. Raises groups of naming errors, `UsageError`, `LedgerError`."""
        dialect = client_rules(client)
        style = "canonical" if dialect.name == "native" and self.settings.style is None else self.style
        overrides: dict[str, Mapping[ToolId | str, str]] = {
            name: {ToolId.parse(id): one for id, one in fixed.items()}
            for name, fixed in self.settings.overrides.items()
        }
        server_name = self.settings.server_name
        try:
            with busy(f"Making the names for {dialect.title}"):
                return project(
                    self.catalog, dialect, style=style, ledger=self.ledger, overrides=overrides, server_name=server_name
                )
        except LedgerError as error:
            recorded = self.ledger.settings if self.ledger is not None else None
            if error.code != "style_mismatch" or recorded is None:
                raise
            other = ledger_settings(self.settings, recorded.style)
            raise style_mismatch(recorded, other, self.sources, self.ledger_option) from error


def open_workspace(sources: Sequence[str], making: NamingOptions = _AS_IT_IS) -> ToolWorkspace:
    """Read all sources, starting the servers of configurations, and open the ledger read-only.

    Raises `UsageError`, `ConfigError`, `LedgerError`, groups of naming errors.
    """
    found = find_sources(sources)
    state = _state(found, making.state)
    memory = None if state is None else open_ledger(state, readonly=True)
    recorded = memory.settings if memory is not None else None
    given = next((one.config.settings for one in found if one.config is not None), Settings())
    settings = with_options(with_recorded_settings(given, recorded), making)
    if making.state is None and making.is_otherwise and recorded is not None:
        other = ledger_settings(settings, recorded.style)
        if not recorded.same(other):
            was, would = recorded.difference(other), other.difference(recorded)
            say(f"The ledger has names with {was}; these names are with {would}, without the ledger.")
            memory = state = None
    catalog, registered, failed = _gathered(found, settings, memory)
    as_offered = ToolWorkspace(
        catalog=catalog,
        ledger=memory,
        settings=settings,
        failed=failed,
        sources=tuple(sources),
        ledger_option=making.state,
        registered=registered,
        renames=RenameRecord(state),
    )
    return replace(as_offered, catalog=settings.tools.over(catalog, as_offered.lineage))


def with_options(settings: Settings, making: NamingOptions) -> Settings:
    """Return the settings, overridden by the options. Raises `UsageError`."""
    if making.style is not None:
        settings = replace(settings, style=checked_style(making.style))
    if making.server_name is not None:
        check_option("--server-name", "server_name", making.server_name)
        settings = replace(settings, server_name=making.server_name)
    if making.alias:
        known = BUILT_IN_ALIASES if settings.aliases is None else settings.aliases
        given = read_aliases(making.alias)
        for alias in given.values():
            check_option("--alias", "aliases", alias)
        settings = replace(settings, aliases={**known, **given})
    return settings


def check_option(option: str, setting: str, text: str) -> None:
    """Raise `UsageError` for a value that is invalid for this setting."""
    if found := wrong(setting, text):
        problem, remedy = found
        raise UsageError(fact=f"{option}: {problem}", advice=remedy)


def checked_style(style: str) -> str:
    """Return the style if it is a known preset. Raises `UsageError` otherwise."""
    if style not in STYLES:
        raise UsageError(fact=f"{style!r} is not a style", advice=f"Use one of {', '.join(STYLES)}.")
    return style


def existing_state(location: StateLocation) -> StateLocation:
    """Return the location of a state database that has a ledger. Raises `UsageError` if there is none."""
    if not location.has("ledger"):
        fact = f"no ledger found at {location.name}"
        raise UsageError(fact=fact, advice="`truename serve` creates one; check the path.")
    return location


def _state(found: Sequence[Source], ledger_option: str | None) -> StateLocation | None:
    """Return the state that has the ledger; None if names are not remembered."""
    if ledger_option == _MEMORY:
        return None
    if ledger_option is not None:
        return existing_state(StateLocation.of(ledger_option))
    if len(found) != 1 or found[0].config is None:
        return None
    location = found[0].config.state_location()
    return location if location.has("ledger") else None


def _gathered(
    found: Sequence[Source], settings: Settings, memory: Ledger | None
) -> tuple[Catalog, Mapping[str, str], tuple[str, ...]]:
    """Return the tools of all sources, the names in the MCP registry by server id, and the servers that failed."""
    read: list[Catalog] = []
    named = [{} if one.config is None else one.config.registered for one in found]
    failed: list[str] = []
    for one in found:
        if one.config is None:
            with busy(f"Reading {one.path}"):
                read.append(_dumped(one.path, settings))
        else:
            with gateway_needed():
                from truename.cli._servers import list_tools  # noqa: PLC0415 - starts the gateway's half of the package
            catalog, down = list_tools(one.config)
            read.append(catalog)
            failed += down
    for notice in (notice for catalog in read for notice in catalog.notices):
        say(styled("note: ", "yellow"), styled(notice.text))
    if len(read) == 1 and memory is None and read[0].aliases == Catalog((), settings.aliases).aliases:
        return read[0], named[0], tuple(failed)
    identities = {key: said for one in found if one.config is not None for key, said in one.config.identities.items()}
    pairs: list[tuple[str, list[object]]] = []
    registered: dict[str, str] = {}
    labels: Counter[str] = Counter()
    for catalog, names in zip(read, named, strict=True):
        servers: defaultdict[tuple[str, str], list[object]] = defaultdict(list)
        for tool in catalog.values():
            servers[tool.origin.server_id, tool.origin.server].append(tool.definition)
        for (_, label), tools in servers.items():
            pairs.append((label, tools))
            labels[label] += 1
            if label in names:
                registered[numbered_id(label, labels[label])] = names[label]
    known = Ledger.memory() if memory is None else memory
    whole = Catalog.from_mcp(pairs, settings.aliases, known.bindings(), owners=known.origins(), identities=identities)
    return whole, registered, tuple(failed)


def _dumped(path: Path, settings: Settings) -> Catalog:
    try:
        # As in the gateway: a tool with an unusable name is left out, with a notice.
        catalog = Catalog.from_file(path, settings.aliases, strict=False)
        # If no tool is usable at all, raise the errors.
        return catalog if catalog or not catalog.notices else Catalog.from_file(path, settings.aliases)
    except ConfigError as error:
        fault = other_shape(path)
        if fault is None:
            raise
        raise fault from error


def ask_each_server(config: Config) -> Mapping[str, Sequence[object] | UpstreamError]:
    """Start the servers; return the tools of each by key, or the error why they could not be listed.

    Raises `UsageError` if the gateway's packages are not installed.
    """
    with gateway_needed():
        from truename.cli._servers import list_tools_of_each  # noqa: PLC0415 - starts the gateway's half of the package
    return list_tools_of_each(config)


@contextmanager
def gateway_needed() -> Iterator[None]:
    """Import the gateway's half of the package in the block. Raises `UsageError` if its packages are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            fact=f"starting servers needs the package {error.name}, which is not installed",
            advice="Install `truename[gateway]`.",
        ) from error


class ProfileView(NamedTuple):
    """The names of a workspace, filtered by profiles."""

    workspace: ToolWorkspace
    table: NameTable

    def by(self, names: Iterable[str] | None) -> NameTable:
        """Return the names that these profiles show (None: all). Raises `UsageError` for an unknown profile."""
        if names is None:
            return self.table
        known = self.workspace.settings.profiles
        for name in names:
            if name not in known:
                advice = spelling_remedy(name, known) if known else "Write [profiles.NAME] into the configuration."
                raise UsageError(fact=f"no such profile: {excerpt(name)}", advice=advice)
        choice, former = known.choice(names), former_ids(self.workspace.ledger)
        policy = self.workspace.settings.policy
        exposure = (policy and policy.exposure) or self.workspace.settings.exposure
        lineage = self.workspace.lineage
        tools = ((id, self.table.catalog[id]) for id in self.table)
        shown = frozenset(
            id for id, tool in tools if choice.shows_as_all(tool, exposure.metadata_of, former(id), lineage(id))
        )
        return self.table.among(shown, None)


def profile_servers(profile: Profile) -> dict[str, list[str]]:
    """Return the servers whose prompts and resources a profile includes."""
    said = {"prompts": profile.prompts, "resources": profile.resources}
    return {word: list(profile.servers if servers is None else servers) for word, servers in said.items()}


def audience_of(profile: Profile) -> Mapping[str, object]:
    """Return the audience of a profile, in the terms of the configuration."""
    words = ("groups", "scopes", "principals", "everyone", "default")
    said = {word: getattr(profile, word) for word in words}
    return {word: list(value) if isinstance(value, tuple) else value for word, value in said.items() if value}
