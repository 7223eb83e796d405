"""Test support: load, used by tests of several modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truename.config import Config, ServerConfig, Settings, parse
from truename.errors import ConfigError

ENVIRON = {"HOME": "/home/me", "TOKEN": "s3cret", "EMPTY": ""}


def read(text: str | dict[str, Any], name: str = "mcp.json") -> Config:
    return parse(text if isinstance(text, str) else json.dumps(text), Path("/etc") / name, ENVIRON)


def faults_of(text: str | dict[str, Any], name: str = "mcp.json") -> list[ConfigError]:
    try:
        read(text, name)
    except ConfigError as error:
        return [error]
    except ExceptionGroup as group:
        return [error for error in group.exceptions if isinstance(error, ConfigError)]
    return []


def one(**entry: Any) -> dict[str, Any]:
    return {"mcpServers": {"s": entry}}


def server(**entry: Any) -> ServerConfig:
    return read(one(**entry)).servers[0]


def settings(**values: Any) -> Settings:
    return read({"mcpServers": {}, "truename": values}).settings
