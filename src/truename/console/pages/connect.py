"""The page to connect a client: the command, the entry for its file, and what its names are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.auth.inbound.authentication import asks_for_token
from truename.clients import Machine, config_files
from truename.clients.gateway_address import entry_for
from truename.config import ServerConfig
from truename.console.name_previews import MAIN_CLIENT
from truename.console.page import Page, PageRoute
from truename.console.withheld_tools import withheld_tools
from truename.editing import Document

if TYPE_CHECKING:
    from truename.clients.table import ConfigFile
    from truename.console.page import PageRequest

__all__ = ["ROUTES"]

_MOST: Final = 100


async def _show(asked: PageRequest) -> Page:
    files = {file.client: file for file in reversed(config_files()) if file.shape and file.paths and not file.legacy}
    client = asked.query.get("client", "claude-code")
    values: dict[str, Any] = {"clients": [(key, file.title) for key, file in sorted(files.items())], "client": client}
    file = files.get(client)
    if file is not None:
        values |= await asked.computed(lambda: _values(asked, file))
    return Page(template="connect.html", title="Connect a client", values={"file": file, **values})


def _values(asked: PageRequest, file: ConfigFile) -> dict[str, Any]:
    settings = asked.gateway.config.settings
    server = ServerConfig(key=settings.server_name, url=f"{asked.here}/mcp", type="http")
    place = file.paths.get(Machine.here().system, next(iter(file.paths.values())))[0]
    document = Document.empty(Path(place), file.format).with_value(
        (*file.key, server.key), entry_for(server, file.shape)
    )
    dialect = dialects.get(file.dialect)
    table = asked.names.table(MAIN_CLIENT)
    withheld = withheld_tools(asked.gateway)
    shown = [(id, name) for id, name in table.items() if id not in withheld]
    names = [(str(id), name, dialect.shown(server.key, name)) for id, name in shown[:_MOST]]
    return {
        "place": place,
        "snippet": document.text,
        "command": f"truename connect {file.client} --url {asked.here}",
        "names": names,
        "count": len(shown),
        "most": _MOST,
        "has_profiles": bool(settings.profiles),
        "needs_token": settings.access.asks or asks_for_token(asked.gateway.config),
    }


ROUTES: Final = (PageRoute("GET", "/connect", "viewer", _show),)
