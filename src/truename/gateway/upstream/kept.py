"""What lazy servers listed when they last ran: kept beside the ledger, so that it is shown before they are started.

Of every server it is kept whether it gave instructions: for these alone a client's introduction waits at the start. So
it is whether it served skills: a client that comes while it starts is told of them.

A list is kept under a digest of the server's whole entry: another command, address, or account never has it. What is
read back is checked as what a server says is; a file that is damaged, too large or another user's is none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from truename.config.credentials import plain_auth
from truename.files.private import make_private, read_own, write_new
from truename.gateway.protocol.app_capability import UI_EXTENSION
from truename.gateway.protocol.definitions import ToolDefinition, unusable
from truename.gateway.protocol.schemas import unreadable
from truename.gateway.protocol.skills import SKILLS_CAPABILITIES, SKILLS_DIRECTORIES, SKILLS_EXTENSION
from truename.gateway.upstream.lists import KINDS, NOTHING, Lists
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from truename.config import ServerConfig
    from truename.gateway.protocol.definitions import Definition

__all__ = ["INSTRUCTIONS", "ListCache", "Remembered"]

log: Final = logging.getLogger("truename.gateway")

_FORMAT: Final = 1
MAX_BYTES: Final = 16 * 1024 * 1024
# Over all entries that there ever were; who was written longest ago goes first.
MAX_FILES: Final = 500
_CAPABILITIES: Final = ("tools", "prompts", "resources", "completions", "logging", UI_EXTENSION, *SKILLS_CAPABILITIES)
INSTRUCTIONS: Final = "instructions"
# What is known of every server, and the ending of the file that stands for it.
_MARKS: Final[Mapping[str, str]] = {
    INSTRUCTIONS: ".instructions",
    SKILLS_EXTENSION: ".skills",
    SKILLS_DIRECTORIES: ".skill-directories",
}


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """What a server said when it last ran."""

    tools: tuple[Definition, ...] = ()
    lists: Lists = NOTHING
    capabilities: frozenset[str] = frozenset()
    instructions: str = ""

    @classmethod
    def of(
        cls, tools: tuple[Definition, ...], lists: Lists, offers: Callable[[str], bool], instructions: str
    ) -> Remembered:
        """Return what is to be kept of a server that runs."""
        having = frozenset(filter(offers, _CAPABILITIES))
        return cls(tools=tools, lists=lists, capabilities=having, instructions=instructions)


class ListCache:
    """The lists in one folder; ``most`` is how many tools one server may have."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most

    def read(self, server: ServerConfig) -> Remembered | None:
        """Return what this server said last, None if that is not known."""
        try:
            said = json.loads(read_own(self._file(server), MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
        return self._read(said) if isinstance(said, dict) and said.get("format") == _FORMAT else None

    def _read(self, said: Mapping[str, Any]) -> Remembered | None:
        tools, instructions = said.get("tools"), said.get("instructions")
        having = said.get("capabilities")
        if not isinstance(tools, list) or not isinstance(instructions, str) or not isinstance(having, list):
            return None
        usable = (one for one in tools if isinstance(one, dict) and _is_tool(one))
        return Remembered(
            tools=tuple(usable)[: self._most],
            lists=Lists(**{name: self._others(said.get(name), name) for name in KINDS}),
            capabilities=frozenset(_CAPABILITIES) & {one for one in having if isinstance(one, str)},
            instructions=instructions,
        )

    def _others(self, entries: object, name: str) -> tuple[Definition, ...]:
        kind = KINDS[name]
        listed = entries if isinstance(entries, list) else []
        usable = (one for one in listed if isinstance(one, dict) and unusable(one, kind.shape) is None)
        return tuple({str(one.get(kind.key)): one for one in usable}.values())[: self._most]

    def write(self, server: ServerConfig, said: Remembered) -> None:
        """Keep what a server said; where that cannot be, it is started at the next start, and that is logged."""
        document = {
            "format": _FORMAT,
            "tools": said.tools,
            **{name: getattr(said.lists, name) for name in KINDS},
            "capabilities": sorted(said.capabilities),
            "instructions": said.instructions,
        }
        raw = json.dumps(document).encode()
        file = self._file(server)
        try:
            if len(raw) > MAX_BYTES:
                file.unlink(missing_ok=True)
                return
            make_private(self._folder)
            new = file.with_suffix(f".{secrets.token_hex(4)}.new")
            write_new(new, raw)
            new.replace(file)
            self._clear()
        except OSError as error:
            log.warning("the lists of server %r cannot be stored: %s", printable(server.key), error.strerror or error)

    def had(self, server: ServerConfig, what: str) -> bool:
        """Tell whether a server, lazy or not, had `INSTRUCTIONS` or one of `SKILLS_CAPABILITIES` when it last ran."""
        return self._mark(server, what).exists()

    def note(self, server: ServerConfig, what: str, *, is_so: bool) -> None:
        """Keep whether this server has one of these, for the next start."""
        mark = self._mark(server, what)
        with suppress(OSError):
            if not is_so:
                mark.unlink(missing_ok=True)
            elif not mark.exists():
                make_private(self._folder)
                write_new(mark, b"")
                self._clear()

    def _mark(self, server: ServerConfig, what: str) -> Path:
        return self._file(server).with_suffix(_MARKS[what])

    def _clear(self) -> None:
        files = [entry for entry in os.scandir(self._folder) if entry.is_file(follow_symlinks=False)]
        files.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime_ns, reverse=True)
        for entry in files[MAX_FILES:]:
            with suppress(OSError):
                os.unlink(entry.path)  # noqa: PTH108 - a name that was just scanned

    def _file(self, server: ServerConfig) -> Path:
        return self._folder / f"{_digest(server)}.json"


def _digest(server: ServerConfig) -> str:
    """Return what stands for all that decides which server this is, and for whom it works."""
    entry = (
        *(server.key, server.command, list(server.args), sorted(server.env.items()), server.cwd),
        *(server.url, sorted(server.headers.items()), server.type, server.isolation),
        None if server.auth is None else plain_auth(replace(server.auth, client_secret="")),
    )
    return hashlib.sha256(json.dumps(entry).encode()).hexdigest()[:32]


def _is_tool(one: Mapping[str, Any]) -> bool:
    return not isinstance(one.get("name"), str) or not (
        unusable(one, ToolDefinition) or unreadable(one.get("inputSchema"))
    )
