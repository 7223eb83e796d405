"""Complete words on the command line: clients, styles, and the servers, profiles and tools of a configuration.

Nothing is started and no reference is resolved for it: keys are read from the file as it is, tools from what the state
has on record. A configuration that was found, not named, gives tools only once `truename allow` has allowed it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cyclopts.completion import CompletionContext

__all__ = [
    "clients",
    "configured_clients",
    "contexts",
    "gateways",
    "pending_calls",
    "profiles",
    "rules",
    "servers",
    "styles",
    "tokens",
    "tools",
]

# More candidates help nobody, and shells are slow to show them.
_MOST: Final = 200
_SOURCES: Final = ("--config", "SOURCE", "SOURCES")


def clients(context: CompletionContext) -> Iterable[tuple[str, str]]:
    """Complete the name of a client, framework, provider or specification; behind ``@``, a version that was run."""
    from truename import dialects  # noqa: PLC0415 - each completer imports what it alone needs: a shell waits for it
    from truename.errors import UnknownDialect  # noqa: PLC0415 - as above

    named, _, _ = context.incomplete.rpartition("@")
    if not named:
        return [(one.name, one.title) for one in dialects.table()]
    with suppress(UnknownDialect):
        runs = [(one, run) for one in dialects.versions(named) for run in one.runs]
        return [(f"{named}@{run.version}", f"{one.title}, run on {run.date}") for one, run in runs]
    return []


def configured_clients(_: CompletionContext) -> Iterable[str]:
    """Complete the name of a client whose configuration files are known."""
    from truename.clients import config_files  # noqa: PLC0415 - as above

    return list(dict.fromkeys(file.client for file in config_files()))


def gateways(_: CompletionContext) -> Iterable[tuple[str, str]]:
    """Complete the name of a gateway to which names are exported."""
    from truename.clients.exporters import GATEWAYS  # noqa: PLC0415 - as above

    return [(name, kind.title) for name, kind in GATEWAYS.items()]


def styles(_: CompletionContext) -> Iterable[str]:
    """Complete the name of a style."""
    from truename.naming import STYLES  # noqa: PLC0415 - as above

    return list(STYLES)


def rules(_: CompletionContext) -> Iterable[tuple[str, str]]:
    """Complete the code of a lint rule."""
    from truename.cli._rules import RULEBOOK  # noqa: PLC0415 - as above

    return [(one.code, one.name) for one in RULEBOOK.values()]


def servers(context: CompletionContext) -> Iterable[str]:
    """Complete the key of a server in the configuration."""
    content = _content(context)
    return [key for name in ("mcpServers", "servers") for key in _table(content, name)]


def profiles(context: CompletionContext) -> Iterable[str]:
    """Complete the name of a profile in the configuration."""
    return _settings_table(context, "profiles")


def contexts(context: CompletionContext) -> Iterable[str]:
    """Complete the name of a context in the configuration."""
    return _settings_table(context, "contexts")


def tools(context: CompletionContext) -> Iterable[str]:
    """Complete the name or id of a tool that the state has on record."""

    def found(location: Any) -> Iterator[str]:
        from truename.ledger import open_ledger  # noqa: PLC0415 - as above

        ledger = open_ledger(location, readonly=True)
        try:
            for id, name in ledger.held("universal").items():
                yield name
                yield str(id)
        finally:
            ledger.close()

    return _recorded(context, "ledger", found)


def pending_calls(context: CompletionContext) -> Iterable[str]:
    """Complete the key of a call that awaits a decision."""

    def found(location: Any) -> Iterator[str]:
        from truename.trust.approval_queue import ApprovalQueue  # noqa: PLC0415 - as above

        queue = ApprovalQueue(location)
        try:
            yield from (one.key for one in queue.all() if one.is_open)
        finally:
            queue.close()

    return _recorded(context, "pending_call", found)


def tokens(context: CompletionContext) -> Iterable[str]:
    """Complete the name of an access token."""

    def found(location: Any) -> Iterator[str]:
        from truename.auth.inbound.static_tokens import StaticTokenStore  # noqa: PLC0415 - as above

        with StaticTokenStore(location, {}) as store:
            yield from dict.fromkeys(one.name for one in store.now().values())

    return _recorded(context, "token", found)


def _recorded(context: CompletionContext, table: str, find: Callable[[Any], Iterator[str]]) -> list[str]:
    """Return what is found in the state of the configuration, as far as it begins with the word; none without one."""
    from truename.errors import TruenameError  # noqa: PLC0415 - as above

    with suppress(TruenameError, ExceptionGroup, OSError, ValueError):
        location = _location(context)
        if location is not None and location.has(table):
            begun = (text for text in find(location) if text.startswith(context.incomplete))
            return [text for text, _ in zip(begun, range(_MOST), strict=False)]
    return []


def _location(context: CompletionContext) -> Any:
    from truename.cli._sources import configuration, default_source, open_found  # noqa: PLC0415 - as above

    named = _named(context)
    config = open_found(default_source(), may_ask=False) if named is None else configuration(str(named))
    return config.state_location()


def _named(context: CompletionContext) -> Path | None:
    """Return the configuration that the command line names."""
    for name in _SOURCES:
        given = context.get(name)
        if given is not None and given.raw is not None:
            return Path(given.raw)
    return None


def _content(context: CompletionContext) -> Mapping[str, Any]:
    from truename.cli._sources import DEFAULTS  # noqa: PLC0415 - as above
    from truename.config.files import decode, read_text  # noqa: PLC0415 - as above
    from truename.errors import ConfigError  # noqa: PLC0415 - as above

    named = _named(context)
    path = named or next((path for path in map(Path, DEFAULTS) if path.is_file()), None)
    if path is not None:
        with suppress(ConfigError, OSError):
            return decode(read_text(path), str(path), toml=path.suffix.lower() == ".toml")
    return {}


def _settings_table(context: CompletionContext, name: str) -> list[str]:
    content = _content(context)
    return [*_table(content, name), *_table(_table(content, "truename"), name)]


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}
