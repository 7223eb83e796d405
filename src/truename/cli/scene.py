"""What a command that looks at names works with: the tools of all sources, the memory of names, the settings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from truename import dialects
from truename.catalog import BUILT_IN_ALIASES, Catalog
from truename.cli.failure import UsageFault
from truename.cli.options import Making
from truename.cli.remembered import adopted, mismatch, wanted
from truename.cli.rendering import say, styled
from truename.cli.sources import Found, find, other_shape, read_aliases
from truename.config import Settings
from truename.config.checks import wrong
from truename.errors import ConfigError, LedgerError
from truename.files.user import at_home
from truename.identity import ToolId
from truename.ledger import Ledger
from truename.naming import STYLES, NameTable, project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from truename.config import Config

__all__ = ["Scene", "check_option", "checked_style", "configured", "existing_ledger", "set_up"]

_MEMORY = "memory"
_AS_IT_IS = Making()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The tools, the memory (None: nothing is remembered), the settings, and the servers that failed."""

    catalog: Catalog
    ledger: Ledger | None
    settings: Settings
    failed: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    ledger_option: str | None = None

    @property
    def servers(self) -> int:
        """How many servers the tools come from."""
        return len({tool.origin.server_id for tool in self.catalog.values()})

    @property
    def style(self) -> str:
        """The style of names: as asked, as the ledger remembers, or by the number of servers."""
        recorded = self.ledger.settings if self.ledger is not None else None
        if self.settings.style is not None:
            return self.settings.style
        if recorded is not None:
            return recorded.style
        return "on-conflict" if self.servers == 1 else "prefixed"

    def table(self, client: str) -> NameTable:
        """Return the names that this client gets. Raises groups of naming errors, `UsageFault`, `LedgerError`."""
        dialect = dialects.get(client)
        style = "canonical" if dialect.name == "native" and self.settings.style is None else self.style
        try:
            return project(
                self.catalog,
                dialect,
                style=style,
                ledger=self.ledger,
                overrides={name: _by_id(fixed) for name, fixed in self.settings.overrides.items()},
                server_name=self.settings.server_name,
            )
        except LedgerError as error:
            recorded = self.ledger.settings if self.ledger is not None else None
            if error.code != "style_mismatch" or recorded is None:
                raise
            other = wanted(self.settings, recorded.style)
            raise mismatch(recorded, other, self.sources, self.ledger_option) from error


def set_up(sources: Sequence[str], making: Making = _AS_IT_IS) -> Scene:
    """Read all sources, starting the servers of configurations, and open the ledger for reading only.

    Raises `UsageFault`, `ConfigError`, `LedgerError`, groups of naming errors.
    """
    found = find(sources)
    memory = _memory(found, making.ledger)
    recorded = memory.settings if memory is not None else None
    settings = configured(adopted(_settings(found), recorded), making)
    if making.ledger is None and making.is_otherwise and recorded is not None:
        other = wanted(settings, recorded.style)
        if not recorded.same(other):
            was, would = recorded.difference(other), other.difference(recorded)
            say(f"The ledger has names with {was}; these are what {would} would give without it.")
            memory = None
    catalog, failed = _gathered(found, settings, memory)
    return Scene(
        catalog=settings.tools.over(catalog),
        ledger=memory,
        settings=settings,
        failed=failed,
        sources=tuple(sources),
        ledger_option=making.ledger,
    )


def configured(settings: Settings, making: Making) -> Settings:
    """Return the settings with what the options say otherwise. Raises `UsageFault`."""
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
    """Raise `UsageFault` for a text that no file may have for this setting either."""
    if found := wrong(setting, text):
        problem, remedy = found
        raise UsageFault(fact=f"{option}: {problem}", advice=remedy)


def checked_style(style: str) -> str:
    """Return the style if there is such a preset. Raises `UsageFault`."""
    if style not in STYLES:
        raise UsageFault(fact=f"{style!r} is no style", advice=f"Use one of {', '.join(STYLES)}.")
    return style


def existing_ledger(path: Path) -> Path:
    """Return the path if there is a file. Raises `UsageFault`."""
    if not path.is_file():
        raise UsageFault(fact=f"there is no ledger at {path}", advice="`truename serve` begins one; check the path.")
    return path


def _by_id(fixed: Mapping[str, str]) -> Mapping[ToolId | str, str]:
    return {ToolId.parse(id): name for id, name in fixed.items()}


def _settings(found: Iterable[Found]) -> Settings:
    return next((one.config.settings for one in found if one.config is not None), Settings())


def _memory(found: Sequence[Found], wanted: str | None) -> Ledger | None:
    if wanted == _MEMORY:
        return None
    if wanted is not None:
        return Ledger.open(existing_ledger(at_home(wanted)), readonly=True)
    path = found[0].config.ledger_path() if len(found) == 1 and found[0].config is not None else None
    return Ledger.open(path, readonly=True) if path is not None and path.is_file() else None


def _gathered(found: Sequence[Found], settings: Settings, memory: Ledger | None) -> tuple[Catalog, tuple[str, ...]]:
    read: list[Catalog] = []
    failed: list[str] = []
    for one in found:
        if one.config is None:
            read.append(_dumped(one.path, settings))
        else:
            catalog, down = _asked(one.config)
            read.append(catalog)
            failed += down
    for notice in (notice for catalog in read for notice in catalog.notices):
        say(styled("note: ", "yellow"), styled(notice.text))
    if len(read) == 1 and memory is None and read[0].aliases == Catalog((), settings.aliases).aliases:
        return read[0], tuple(failed)
    identities = {key: said for one in found if one.config is not None for key, said in one.config.identities.items()}
    pairs = [pair for catalog in read for pair in _listings(catalog)]
    known = Ledger.memory() if memory is None else memory
    whole = Catalog.from_mcp(pairs, settings.aliases, known.bindings(), owners=known.origins(), identities=identities)
    return whole, tuple(failed)


def _dumped(path: Path, settings: Settings) -> Catalog:
    try:
        # As the gateway does: one name that can't be used costs one tool, which is told.
        catalog = Catalog.from_file(path, settings.aliases, strict=False)
        # Where no name at all can be admitted, the reasons are the answer.
        return catalog if catalog or not catalog.notices else Catalog.from_file(path, settings.aliases)
    except ConfigError as error:
        fault = other_shape(path)
        if fault is None:
            raise
        raise fault from error


def _asked(config: Config) -> tuple[Catalog, Sequence[str]]:
    try:
        from truename.cli.live import ask  # noqa: PLC0415 - starts the gateway's half of the package
    except ModuleNotFoundError as error:
        raise without_gateway(error) from error
    return ask(config)


def without_gateway(error: ModuleNotFoundError) -> UsageFault:
    """Return what to say when the optional part is not installed."""
    return UsageFault(
        fact=f"starting servers needs the package {error.name}, which is not installed",
        advice="Install `truename[gateway]`.",
    )


def _listings(catalog: Catalog) -> Iterable[tuple[str, list[Any]]]:
    servers: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for tool in catalog.values():
        servers[tool.origin.server_id, tool.origin.server].append(tool.definition)
    return [(label, tools) for (_, label), tools in servers.items()]
