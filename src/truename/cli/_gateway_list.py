"""Ask another gateway over HTTP: its list of tools, with the bearer token that the environment has for it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from truename.cli._declared_tools import server_at
from truename.cli._errors import UsageError
from truename.cli._workspace import ask_each_server
from truename.config import Config, Settings
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VARIABLE", "bearer", "listed_at"]

VARIABLE: Final = "TRUENAME_EXPORT_TOKEN"


def bearer() -> dict[str, str]:
    """Return the header with the token of the environment; empty if there is none. Raises `UsageError`."""
    token = os.environ.get(VARIABLE)
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError(
            fact=f"{VARIABLE} has a space, a line end or another character that no token has",
            advice="Set it again, without quotes and line ends.",
        )
    return {"Authorization": f"Bearer {token}"} if token else {}


def listed_at(url: str) -> Sequence[object]:
    """Return the tools that the MCP server at a URL lists. Raises `UsageError` and `UpstreamError`."""
    server = replace(server_at(url), headers=bearer())
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError(fact="--check has credentials in its URL", advice=f"Put the token into {VARIABLE}.")
    (answer,) = ask_each_server(Config(servers=(server,), settings=Settings(state="memory"))).values()
    if isinstance(answer, TruenameError):
        raise answer
    return answer
