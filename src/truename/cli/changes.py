"""What would be changed in files, as a diff that can be shown to others: secrets are left out of it."""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from functools import reduce
from typing import TYPE_CHECKING, Final

from truename.cli.rendering import output, show, styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["diff", "show_diff"]

_HIDDEN: Final = "***"
_CONTEXT: Final = 2
_LONGEST: Final = 240
# The lines around a change are shown too, and servers are not all that a file holds.
_NAMED: Final = re.compile(
    r"(?P<name>[\w.-]{0,60}(?:token|secret|passw|api_?key|credential|authorization)[\w.-]{0,60})"
    r"(?P<between>\"?\s*[:=]\s*\"?)(?P<value>[^\",}\]\s][^\",}\]]{0,2000})",
    re.IGNORECASE,
)
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
# Shorter texts stand in too many other places.
_SHORTEST_SECRET: Final = 4


def diff(path: Path, before: bytes | None, after: bytes | None, secrets: Iterable[str]) -> Iterator[str]:
    """Return the lines of a unified diff; None is a file that is not there."""
    hidden = _spellings(secrets)
    old, new = ([] if raw is None else raw.decode("utf-8", "replace").splitlines() for raw in (before, after))
    here, there = (str(path) if raw is not None else "/dev/null" for raw in (before, after))
    for line in unified_diff(old, new, here, there, n=_CONTEXT, lineterm=""):
        yield _shown(reduce(lambda text, secret: text.replace(secret, _HIDDEN), hidden, line))


def _shown(line: str) -> str:
    # Cut first: what strangers put on one line may be megabytes.
    shown = _NAMED.sub(_masked, line[:_LONGEST]).expandtabs(4)
    return shown if len(line) <= _LONGEST else f"{shown}... ({len(line):,} characters)"


def show_diff(path: Path, before: bytes | None, after: bytes | None, secrets: Iterable[str]) -> None:
    """Print the diff on stdout."""
    for line in diff(path, before, after, secrets):
        output().print(styled(line, _STYLES.get(line[:1], "")), soft_wrap=True)
    show("")


def _masked(found: re.Match[str]) -> str:
    """Leave a reference, and the name of a variable; mask whatever else stands under a name like that."""
    if "$" in found["value"] or "{" in found["value"] or found["name"].lower().endswith("env_var"):
        return found[0]
    return f"{found['name']}{found['between']}{_HIDDEN}"


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Return the texts as files may have them, the longest first."""
    plain = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
    written = {json.dumps(secret, ensure_ascii=plain_only)[1:-1] for secret in plain for plain_only in (True, False)}
    return sorted(plain | written, key=len, reverse=True)
