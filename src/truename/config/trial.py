"""Trying an entry out: whether the reader would take it, without its secrets and before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.config.load import parse
from truename.config.servers import STANDINS
from truename.errors import ConfigError, config_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.entries import TemplatedEntry

__all__ = ["trial"]

_WHERE: Final = Path("/truename.json")
_HALF: Final = config_error("", "", "a text holds half a character (a lone surrogate)", "Correct that text.")


def trial(entry: TemplatedEntry, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return what is wrong with the entry and what to do, or None."""
    found = [_attempt(entry, environ, standin) for standin in STANDINS]
    error = None if None in found else found[0]
    if error is None:
        return None
    where = error.key.removeprefix(f"mcpServers.{entry.seen.server.key}").lstrip(".")
    return (f"{where}: {error.problem}" if where else error.problem), error.remedy


def _attempt(entry: TemplatedEntry, environ: Mapping[str, str], standin: str) -> ConfigError | None:
    def text(place: str) -> str:
        parts = templates[place]
        return "".join(
            part if isinstance(part, str) else environ.get(getattr(part, "name", ""), standin) for part in parts
        )

    templates = dict(entry.templates())
    server = entry.seen.server
    raw: dict[str, Any] = {
        "args": [text(f"args[{i}]") for i in range(len(entry.args))],
        "env": {name: text(f"env.{name}") for name in entry.env},
        "headers": {name: text(f"headers.{name}") for name in entry.headers},
    }
    raw |= {name: text(name) for name in ("command", "url", "cwd") if getattr(server, name) is not None}
    try:
        # Given as plain texts: what looks like a reference now is none.
        content = json.dumps({"mcpServers": {server.key: _plain(raw)}}, ensure_ascii=False)
        content.encode()
        parse(content, _WHERE, {})
    except ConfigError as error:
        return error
    except UnicodeEncodeError:
        return _HALF
    except ExceptionGroup as group:
        return next(error for error in group.exceptions if isinstance(error, ConfigError))
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()}
