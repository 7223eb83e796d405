"""What a driver gets and what it gives."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lab.clients import Client

__all__ = ["PROMPT", "Driver", "Entry", "Launch", "Stage", "write", "write_json"]

PROMPT: Final = "Use the tools."


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One server as the client is to have it: its key, and an address or a command."""

    key: str
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where one trial plays: the model's address without a version, the servers, an empty home and project folder."""

    client: Client
    model: str
    servers: tuple[Entry, ...]
    home: Path
    work: Path


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A command with what it needs beyond the lab's own environment."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None


class Driver(Protocol):
    """Writes the configuration and returns how to start the client."""

    def __call__(self, stage: Stage, /) -> Launch:
        """Write and return."""
        ...


def write(path: Path, text: str) -> Path:
    """Write a file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_json(path: Path, document: Any) -> Path:
    """Write a JSON file with its folders."""
    return write(path, json.dumps(document, indent=1, ensure_ascii=False))
