"""A repository of any size, made the same each time: sources, fixtures, pages, and files that are nobody's business."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["RENAMES", "contents", "make"]

_FAMILIES: Final = {
    "powershell": ["exec"],
    "fs": ["list", "search", "read", "disk_usage"],
    "winget": ["list", "install", "uninstall", "update"],
    "diag": ["processes", "services", "eventlog", "autostart"],
    "net": ["config", "dns_flush", "adapter_reset"],
    "screen": ["capture"],
    "telemetry": ["collect"],
    "agent": ["update"],
}
# The nineteen names that seed 002 changed at once.
RENAMES: Final = {f"{family}.{verb}": f"{family}_{verb}" for family, verbs in _FAMILIES.items() for verb in verbs}
_NAMES: Final = tuple(RENAMES)
_WORDS: Final = ("agent", "server", "reads", "the", "list", "updates", "kenny-agent.updater.exe", "fs", "net", "value")


def make(root: Path, files: int) -> Path:
    """Write that many files below a directory; every third one has names that change."""
    drawn = random.Random(20_260_605)
    for number in range(files):
        path, raw = _KINDS[number % len(_KINDS)](number, drawn)
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return what all files below hold."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def _prose(drawn: random.Random, lines: int) -> list[str]:
    return [" ".join(drawn.choices(_WORDS, k=12)) for _ in range(lines)]


def _python(number: int, drawn: random.Random) -> tuple[str, bytes]:
    name, other = drawn.sample(_NAMES, 2)
    lines = [f'"""Module {number}."""', f"DISPATCH = {{\"{name}\": run, '{other}': run}}", *_prose(drawn, 60)]
    return f"src/package_{number % 40}/module_{number}.py", "\n".join(lines).encode()


def _plain(number: int, drawn: random.Random) -> tuple[str, bytes]:
    return f"lib/part_{number % 30}/unit_{number}.rs", ("\n".join(_prose(drawn, 90)) + "\n").encode()


def _fixture(number: int, drawn: random.Random) -> tuple[str, bytes]:
    name = drawn.choice(_NAMES)
    content = {"id": number, "tool": name, "args": {"text": " ".join(_prose(drawn, 20))}}
    return f"fixtures/{number}/request_{name}.json", json.dumps(content, indent=2).encode()


def _page(number: int, drawn: random.Random) -> tuple[str, bytes]:
    rows = [f"| `{name}` | {line} |" for name, line in zip(drawn.sample(_NAMES, 3), _prose(drawn, 3), strict=True)]
    text = "\r\n".join([f"# Page {number}", *rows, *_prose(drawn, 40)])
    return f"docs/page_{number}.md", b"\xef\xbb\xbf" + text.encode()


def _history(number: int, drawn: random.Random) -> tuple[str, bytes]:
    return f"docs/adr/{number:04d}-decision.md", f"`{drawn.choice(_NAMES)}` was chosen.\n".encode()


def _binary(number: int, drawn: random.Random) -> tuple[str, bytes]:
    return f"assets/picture_{number}.png", drawn.randbytes(3_000)


_KINDS: Final[tuple[Callable[[int, random.Random], tuple[str, bytes]], ...]] = (
    _python,
    _plain,
    _plain,
    _fixture,
    _plain,
    _page,
    _plain,
    _history,
    _plain,
    _binary,
)
