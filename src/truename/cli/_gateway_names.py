"""Determine the tool names at the gateway: from a dump, from its ledger, or from the running gateway."""

from __future__ import annotations

import json
import ssl
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from truename.catalog import Catalog
from truename.cli._errors import UsageError
from truename.cli._rendering import say, styled
from truename.clients.gateway_address import (
    UpcomingNames,
    alone_path,
    names_alone,
    names_together,
    tools_in_ledger,
)
from truename.config import Config, ServerConfig, Settings
from truename.config.field_types import MEMORY
from truename.errors import TruenameError, excerpt
from truename.files.user import at_home
from truename.ledger import open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from truename.catalog import Tool
    from truename.clients.gateway_address import NewNames
    from truename.ledger import Ledger

__all__ = ["ask_names", "checked_url", "is_running", "known_tools", "new_names"]

_PATIENCE: Final = 2.0
_ENOUGH: Final = 1024
_STARTING: Final = 10.0


class _Stay(HTTPRedirectHandler):
    """A handler that does not follow redirects."""

    def redirect_request(self, *_: object) -> None:
        """Return None, so that the redirect itself is the response."""


def checked_url(url: str) -> str:
    """Return the gateway's base URL, without a path. Raises `UsageError`."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1) and parts.username is None
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise UsageError(
            fact=f"--url: {excerpt(url)} is not the address of a gateway", advice="Write it as http://127.0.0.1:8750."
        )
    return url.rstrip("/").removesuffix("/mcp")


def is_running(url: str) -> bool:
    """Return whether a gateway answers at this URL within two seconds; proxies are not used.

    Raises `UsageError` for one whose certificate is not trusted here.
    """
    opener = build_opener(ProxyHandler({}), _Stay())
    try:
        with opener.open(Request(f"{url}/healthz"), timeout=_PATIENCE) as answer:  # noqa: S310 - checked_url saw it
            found = json.loads(answer.read(_ENOUGH))
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise UsageError(
                fact=f"the certificate at {url} is not trusted: {reason.verify_message}",
                advice="Set the environment variable SSL_CERT_FILE to the file of the authority that issued it.",
            ) from error
        return False
    return isinstance(found, dict) and found.get("status") == "ok"


def ask_names(url: str, servers: Iterable[str], token: str | None, *, dialect: str) -> UpcomingNames:
    """Ask the running gateway for the tool names of each server; servers that it does not list are left out.

    The gateway does not tell the servers' own tool names, so the names at a server's own address replace them.
    ``dialect`` is the client's.
    """
    paths = {key: alone_path(key, dialect) for key in servers}
    main = "/mcp" + "/" * max((len(key) for key in paths), default=0)
    tools = _listed(url, {**paths, main: "/mcp"}, token)
    shared = {_canonical(tool): tool.origin.name for tool in tools if tool.origin.server == main}
    alone: defaultdict[str, dict[str, str]] = defaultdict(dict)
    together: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for tool in tools:
        server, name = tool.origin.server, tool.origin.name
        if server == main:
            continue
        alone[server][name] = name
        if (shown := shared.get(_canonical(tool))) is not None:
            together[server][name] = shown
    return UpcomingNames(dict(alone), dict(together))


def _canonical(tool: Tool) -> str:
    return str(tool.definition.get("canonical_name"))


def _listed(url: str, paths: Mapping[str, str], token: str | None) -> tuple[Tool, ...]:
    try:
        import anyio  # noqa: PLC0415 - the gateway's half of the package is optional

        from truename.gateway import fetch_catalog  # noqa: PLC0415 - as above
    except ModuleNotFoundError:
        return ()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    servers = tuple(
        ServerConfig(key=key, url=f"{url}{path}", type="http", headers=headers) for key, path in paths.items()
    )
    settings = Settings(state=MEMORY, startup_timeout=_STARTING)
    return tuple(anyio.run(fetch_catalog, Config(servers=servers, settings=settings)).values())


def new_names(config: Config, dump: str | None, *, client: str, url: str | None) -> UpcomingNames:
    """Return the tool names at the gateway by server, as far as they can be determined.

    ``client`` is the client's dialect, ``url`` the URL of a running gateway. Raises `ConfigError` for a dump that
    cannot be read, `LedgerError` for such a ledger.
    """
    keys = [server.key for server in config.enabled]
    ledger = _ledger(config)
    listed = _listed_in(dump, ledger, keys)
    shared = {"canonical": "native", "detect": client}.get(config.settings.names, "universal")
    own = _try_names(partial(names_alone, listed, config, ledger, dialect=client)) if listed else {}
    # Without a ledger, the names of all servers together depend on the tools of all of them.
    is_whole = ledger is not None or len(listed) == len(keys)
    common = _try_names(partial(names_together, listed, config, ledger, dialect=shared)) if listed and is_whole else {}
    missing = [key for key in keys if key not in own or key not in common]
    if url is None or not missing:
        return UpcomingNames(own, common)
    asked = ask_names(url, missing, config.settings.token, dialect=client)
    return UpcomingNames({**asked.alone, **own}, {**asked.together, **common})


def known_tools(config: Config, dump: str | None) -> Mapping[str, Sequence[str]]:
    """Return the servers' own tool names, by server, from a dump or the ledger.

    Raises `ConfigError` for a dump that cannot be read, `LedgerError` for such a ledger.
    """
    return _listed_in(dump, _ledger(config), [server.key for server in config.enabled])


def _ledger(config: Config) -> Ledger | None:
    location = config.state_location()
    return open_ledger(location, readonly=True) if location.has("ledger") else None


def _listed_in(dump: str | None, ledger: Ledger | None, keys: Sequence[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {} if ledger is None else tools_in_ledger(ledger)
    if dump is not None:
        given: dict[str, list[str]] = {}
        for tool in Catalog.from_file(at_home(dump)).values():
            given.setdefault(tool.origin.server, []).append(tool.origin.name)
        found |= given
    return {key: found[key] for key in keys if key in found}


def _try_names(make: Callable[[], NewNames]) -> NewNames:
    try:
        return make()
    except (TruenameError, ExceptionGroup) as error:
        first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        say(styled("note: ", "yellow"), f"Could not determine the names at the gateway: {first}")
        return {}
