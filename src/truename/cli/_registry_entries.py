"""Read an entry of the MCP registry: from a file, from its address, or by name from a registry that is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from truename.cli._errors import UsageError
from truename.clients.importers import read_plain, registry_entry
from truename.config.files import decode
from truename.editing import SourceLines
from truename.errors import ConfigError, excerpt
from truename.files.user import at_home
from truename.policy.registry_names import REGISTRY_NAME

if TYPE_CHECKING:
    from truename.clients.importers import ImportedConfig
    from truename.config import ServerConfig

__all__ = ["EntryReader", "command_line"]

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_LATEST: Final = "/v0.1/servers/{}/versions/latest"


class EntryReader:
    """Reads entries; ``lines`` has the places of their keys."""

    def __init__(self, *, package: str | None, package_host: str | None, registry: str | None) -> None:
        self._package = package
        self._package_host = package_host
        self._registry = registry
        self._texts: dict[str, str] = {}
        self.lines = SourceLines(self._texts)

    def read(self, source: str) -> ImportedConfig:
        """Return the server of an entry. Raises `ConfigError` with file and line, and `UsageError`."""
        try:
            return self._imported(source)
        except ConfigError as error:
            raise self.lines.told(error) from error

    def _imported(self, source: str) -> ImportedConfig:
        named = None
        if self._registry is not None:
            if not REGISTRY_NAME.fullmatch(source):
                raise UsageError(
                    fact=f"{excerpt(source)} is not a name of the MCP registry",
                    advice="Write it as io.github.owner/server, or leave out --registry for a file or an address.",
                )
            named = source
            source = self._registry.rstrip("/") + _LATEST.format(quote(source, safe=""))
        if "://" in source:
            self._texts[source] = text = _fetched(source)
            values = decode(text, source, toml=False)
            return registry_entry(values, source, self._package, package_host=self._package_host, named=named)
        path = at_home(Path(source))
        if REGISTRY_NAME.fullmatch(source) and not path.exists():
            raise UsageError(
                fact=f"there is no file {source}", advice="To ask a registry, name it with --registry URL."
            )
        return registry_entry(read_plain(path), path, self._package, package_host=self._package_host)


def _fetched(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    except ValueError:
        is_safe = False
    if not is_safe or not url.isprintable():
        raise UsageError(fact=f"{excerpt(url)} is not an https address", advice="Give https://HOST/PATH, or a file.")
    import anyio  # noqa: PLC0415 - the network is a heavy import, and most entries are files

    from truename.auth.network.fetch import FetchError  # noqa: PLC0415 - as above
    from truename.auth.network.web import web  # noqa: PLC0415 - as above

    async def get() -> tuple[int, bytes]:
        async with web() as fetch:
            found = await fetch(url)
            return found.status, found.body

    def refused(problem: str) -> ConfigError:
        return ConfigError(file=url, key="", problem=problem, remedy="Check the address, or save the entry in a file.")

    try:
        status, body = anyio.run(get)
    except FetchError as error:
        raise refused(str(error)) from error
    if status != 200:
        raise refused(f"the answer has status {status}")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise refused("it is not UTF-8") from error


def command_line(server: ServerConfig) -> str:
    """Return what would run or be reached, with its variables or headers, on one line.

    Each text is in quotes, so that none hides another.
    """
    if server.url is not None:
        return " ".join((server.url, *(_quoted(f"{name}: {value}") for name, value in server.headers.items())))
    variables = (f"{name}={_quoted(value)}" for name, value in server.env.items())
    return " ".join((*variables, *map(_quoted, (server.command or "", *server.args))))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)
