"""Remove suppressions and baseline entries that no longer have an effect.

Names are never changed here, since they have callers. `truename rename` changes a name everywhere.
"""

from __future__ import annotations

import io
import re
import secrets
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError
from truename.files import absolute, copy_metadata, find_obstacle, sync_directory, write_new
from truename.lint.baseline import render_baseline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.lint.baseline import Baseline, BaselineEntry
    from truename.lint.python_source import InlineSuppression

__all__ = ["Fix", "remove_stale_entries", "remove_unused_comments", "replace_bytes"]

_RULES: Final = re.compile(r"\[[^\]]{0,500}\]")
_BY_HAND: Final = "Nothing was changed; make the change by hand."


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A change of one file: its bytes before and after, and a description of each fix."""

    path: Path
    before: bytes | None
    after: bytes
    done: tuple[str, ...]


def remove_stale_entries(baseline: Baseline, stale: Iterable[BaselineEntry]) -> Fix | None:
    """Return the fix that removes stale entries from a baseline; None if there are none."""
    gone = {one.fingerprint for one in stale}
    if not gone:
        return None
    after = render_baseline(one for one in baseline.entries if one.fingerprint not in gone)
    told = f"{len(gone)} {'entry' if len(gone) == 1 else 'entries'} removed because they match no finding"
    return Fix(path=baseline.path, before=baseline.raw, after=after, done=(told,))


def remove_unused_comments(unused: Sequence[InlineSuppression]) -> tuple[Fix, ...]:
    """Return the fixes that remove unused rules from comments; every other byte stays.

    Raises `ConfigError` (``left_alone``) for an unreadable file.
    """
    by_file: dict[str, list[InlineSuppression]] = {}
    for one in unused:
        by_file.setdefault(one.location.file, []).append(one)
    return tuple(_mended(Path(file), several) for file, several in by_file.items())


def _mended(path: Path, unused: Sequence[InlineSuppression]) -> Fix:
    try:
        before = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
        # Split lines like the tokenizer, and keep the line ends.
        lines = io.StringIO(before.decode(encoding), newline="").readlines()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise _refused(path, f"it is not readable ({error})") from error
    by_line: dict[int, set[str]] = {}
    for one in unused:
        by_line.setdefault(one.location.line, set()).add(one.rule)
    columns = {one.location.line: one.location.column for one in unused}
    for number, rules in by_line.items():
        lines[number - 1] = _without(lines[number - 1], columns[number] - 1, rules)
    done = tuple(f"comment about {one.rule} removed (line {one.location.line})" for one in unused)
    return Fix(path=path, before=before, after="".join(lines).encode(encoding), done=done)


def _without(line: str, start: int, rules: set[str]) -> str:
    """Remove rules from a comment; without any rule left, remove the comment, and a line that is then empty."""
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    found = _RULES.search(body, start)
    if found is None:
        return line
    left = [one for word in found[0][1:-1].split(",") if (one := word.strip()) and one not in rules]
    if left:
        return f"{body[: found.start()]}[{', '.join(left)}]{body[found.end() :]}{end}"
    kept = body[:start].rstrip()
    return f"{kept}{end}" if kept else ""


def replace_bytes(fix: Fix) -> None:
    """Replace the content of a file atomically.

    Raises `ConfigError` (``left_alone``) for a file that must not be replaced: a link, another user's, read-only, or
    changed since it was read.
    """
    path = absolute(fix.path)
    found = find_obstacle(path, fix.before)
    if found is not None:
        raise _refused(path, found.problem, found.remedy)
    temporary = path.with_name(f".{path.name[:100]}.truename-{secrets.token_hex(4)}")
    try:
        write_new(temporary, fix.after)
        if fix.before is not None:
            copy_metadata(temporary, path)
        temporary.replace(path)
    except OSError as error:
        raise _refused(path, f"it cannot be changed ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _refused(path: Path, problem: str, remedy: str = "") -> ConfigError:
    return ConfigError(code="left_alone", file=str(path), key="", problem=problem, remedy=remedy or _BY_HAND)
