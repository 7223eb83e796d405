"""What changed in clients over time: each version that was watched, beside the rules that were expected of it, as data.

``CLIENT.jsonl`` beside this file has a line for each version that was compared, oldest first.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from lab import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from truename.dialects import Dialect

__all__ = ["FOLDER", "Drifted", "Watched", "append", "load", "load_all", "rules_digest"]

FOLDER: Final = places.ROOT / "lab" / "drift"


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """A tool for which the client did something else than was expected: what the model was shown, and what it ran."""

    scenario: str
    server: str
    tool: str
    expected: tuple[str, ...]
    seen: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One version of one client on one day, compared with the rules of the dialect table.

    ``rules`` is the dialect whose rules were expected (``codex-cli``, or ``codex-cli@0.50.0`` of older versions),
    ``ran`` the version with which they were seen last, ``digest`` tells the same rules from others of that name.
    ``tools`` is how many were compared, ``differ`` how many did not agree; ``differences`` are the first of these.
    ``failures`` are the scenarios in which the client showed the model no tool at all, with what it printed.
    """

    client: str
    version: str
    day: str
    rules: str
    ran: str
    digest: str
    truename: str
    scenarios: tuple[str, ...]
    tools: int
    differ: int
    differences: tuple[Drifted, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the client did what was expected of it."""
        return not self.differ and not self.failures

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it worth a line: the version, the rules, and the scenarios that were played."""
        return self.client, self.version, self.digest, " ".join(self.scenarios)


def rules_digest(dialect: Dialect) -> str:
    """Return eight digits that change with the rules of a dialect, but not with its notes, days and versions."""
    sets = [sorted(one) for one in (dialect.chars, dialect.first, dialect.last, dialect.reserved) if one is not None]
    rules = (dialect.mangling, sets, dialect.max_length, dialect.words, dialect.unknown)
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:8]


def _path(client: str) -> Path:
    return FOLDER / f"{client}.jsonl"


def load(client: str) -> tuple[Watched, ...]:
    """Return what was seen of a client, in the order in which it was watched. Raises `ValueError` for another form."""
    path = _path(client)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return tuple(_read(json.loads(line)) for line in lines)


def load_all() -> Iterator[Watched]:
    """Yield what was seen of all clients."""
    for path in sorted(FOLDER.glob("*.jsonl")):
        yield from load(path.stem)


def append(watched: Watched) -> None:
    """Add a line, in place of one about the same version, rules and scenarios; a file is replaced as a whole."""
    known = [one for one in load(watched.client) if one.key != watched.key]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = _path(watched.client)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text("".join(f"{json.dumps(asdict(one), ensure_ascii=False)}\n" for one in (*known, watched)), "utf-8")
    fresh.replace(path)


def _read(row: Mapping[str, Any]) -> Watched:
    several = tuple(Drifted(**_frozen(one)) for one in row.get("differences", ()))
    return Watched(**{**_frozen(row), "differences": several})


def _frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
