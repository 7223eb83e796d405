"""Which names a client will see at the gateway: from a dump, the ledger, or the running gateway's own answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from truename.catalog import Catalog
from truename.cli.reachable import ask_names
from truename.cli.rendering import say, styled
from truename.clients.gateway_address import UpcomingNames, alone, remembered, together
from truename.errors import TruenameError
from truename.files.user import at_home
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from truename.clients.gateway_address import NewNames
    from truename.config import Config

__all__ = ["known_tools", "new_names"]


def new_names(config: Config, dump: str | None, *, client: str, url: str | None) -> UpcomingNames:
    """Return the names by server, as far as they can be known; ``url`` is given where a gateway answers.

    ``client`` is the client's dialect. Raises `ConfigError` for a dump that can't be read, `LedgerError` for a ledger.
    """
    keys = [server.key for server in config.enabled]
    ledger = _ledger(config)
    listed = _listed(dump, ledger, keys)
    shared = {"canonical": "native", "detect": client}.get(config.settings.names, "universal")
    own = _made(partial(alone, listed, config, ledger, dialect=client)) if listed else {}
    # Without a memory, names of all servers together can be told only from all of them.
    is_whole = ledger is not None or len(listed) == len(keys)
    common = _made(partial(together, listed, config, ledger, dialect=shared)) if listed and is_whole else {}
    missing = [key for key in keys if key not in own or key not in common]
    if url is None or not missing:
        return UpcomingNames(own, common)
    asked = ask_names(url, missing, config.settings.token, dialect=client)
    return UpcomingNames({**asked.alone, **own}, {**asked.together, **common})


def known_tools(config: Config, dump: str | None) -> Mapping[str, Sequence[str]]:
    """Return the servers' own names of their tools, by server, as a dump or the ledger knows them.

    Raises `ConfigError` for a dump that can't be read, `LedgerError` for a ledger.
    """
    return _listed(dump, _ledger(config), [server.key for server in config.enabled])


def _ledger(config: Config) -> Ledger | None:
    path = config.ledger_path()
    return Ledger.open(path, readonly=True) if path is not None and path.is_file() else None


def _listed(dump: str | None, ledger: Ledger | None, keys: Sequence[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {} if ledger is None else remembered(ledger)
    if dump is not None:
        given: dict[str, list[str]] = {}
        for tool in Catalog.from_file(at_home(dump)).values():
            given.setdefault(tool.origin.server, []).append(tool.origin.name)
        found |= given
    return {key: found[key] for key in keys if key in found}


def _made(make: Callable[[], NewNames]) -> NewNames:
    try:
        return make()
    except (TruenameError, ExceptionGroup) as error:
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        say(styled("note: ", "yellow"), f"The names at the gateway can't be told: {first}")
        return {}
