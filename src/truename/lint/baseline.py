"""Keep a baseline: a reviewable file of the findings that a team accepts for now."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.conventions import Finding, Location
from truename.errors import ConfigError, excerpt
from truename.lint.rules import UPKEEP, find_rule, unknown_rule_finding
from truename.lint.source_files import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "DEFAULT_NAME",
    "Baseline",
    "BaselineEntry",
    "entry_of",
    "find_stale_entries",
    "is_acceptable",
    "read_baseline",
    "relative_path",
    "render_baseline",
    "stale_entry_finding",
    "with_fingerprints",
]

# The location of a server that was asked at its URL.
_ADDRESS: Final = "://"


def with_fingerprints(findings: Iterable[Finding], base: Path) -> Iterator[tuple[Finding, str]]:
    """Yield each finding with its fingerprint: 32 hexadecimal digits of a digest.

    The digest covers rule, client, tools, the file relative to ``base``, and the server if the file is not a source
    (labels of servers in sources depend on the other sources). Findings that are equal in all of these also get an
    ordinal. Line, column and wording do not count.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for one in findings:
        file = relative_path(one.location.file, base) if one.location else ""
        server = "" if file.endswith(PYTHON) else one.server
        parts = (one.rule.code, one.client, server, file, *one.tools)
        seen[parts] += 1
        marked = (*parts, f"#{seen[parts]}") if seen[parts] > 1 else parts
        yield one, hashlib.sha256("\0".join(marked).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def relative_path(file: str, base: Path) -> str:
    """Return a path relative to a directory, with slashes; a path outside of it unchanged."""
    if _ADDRESS in file:
        return file
    try:
        return Path(file).absolute().relative_to(base).as_posix() if file else ""
    except ValueError:
        return Path(file).as_posix()


DEFAULT_NAME: Final = "truename-baseline.jsonl"
_HEADING: Final = {"truename.baseline": 1}
_MAX_BYTES: Final = 32 * 1024 * 1024
_LONGEST: Final = 512
# Findings about unreadable files or about the baseline cannot be accepted.
_NEVER: Final = frozenset({"stale_baseline", "unreadable_source", "unknown_rule"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEntry:
    """One accepted finding; all but the fingerprint is for people. ``line`` is its line in the file, or 0."""

    rule: str
    name: str
    tools: tuple[str, ...]
    server: str
    file: str
    fingerprint: str
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A baseline file: its entries, its bytes, and the findings about it."""

    path: Path
    entries: tuple[BaselineEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    raw: bytes = b""


def entry_of(finding: Finding, fingerprint: str, base: Path) -> BaselineEntry | None:
    """Return the entry that accepts a finding; None for a finding that cannot be accepted."""
    if not is_acceptable(finding):
        return None
    return BaselineEntry(
        rule=finding.rule.code,
        name=finding.rule.name,
        tools=finding.tools,
        server=finding.server,
        file=relative_path(finding.location.file, base) if finding.location else "",
        fingerprint=fingerprint,
    )


def is_acceptable(finding: Finding) -> bool:
    """Return whether a baseline may accept a finding; none about unreadable files or the baseline itself."""
    return finding.rule.name not in _NEVER


def render_baseline(entries: Iterable[BaselineEntry]) -> bytes:
    """Return the bytes of a baseline: sorted by file, tool and rule, without duplicates."""
    order = sorted(
        {one.fingerprint: one for one in entries}.values(),
        key=lambda one: (one.file, one.server, one.tools, one.rule, one.fingerprint),
    )
    lines = [_HEADING, *(_plain(one) for one in order)]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode("ascii")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline. Unreadable lines become findings; the other lines count.

    Raises `ConfigError` if the file is missing, or is not a baseline.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _refused(
            path, f"it is not readable ({reason})", "Create one with `truename lint --write-baseline`."
        ) from error
    if len(raw) > _MAX_BYTES:
        raise _refused(path, f"it is larger than {_MAX_BYTES:,} bytes", "Fix most of the names first.")
    lines = raw.decode("utf-8", "replace").split("\n")
    if _decoded(lines[0]) != _HEADING:
        raise _refused(path, "it is not a baseline", f"Its first line must be {_HEADING}.")
    return _read(path, raw, lines)


def _read(path: Path, raw: bytes, lines: list[str]) -> Baseline:
    entries: list[BaselineEntry] = []
    findings: list[Finding] = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        location = Location(file=str(path), line=number)
        entry = _entry(_decoded(line), number)
        if entry is None:
            finding = Finding(
                rule=UPKEEP["unreadable_source"],
                fact="Invalid baseline entry: this line cannot be read as one.",
                remedy="Remove it, or write the file again with --write-baseline.",
                location=location,
            )
            findings.append(finding)
        elif find_rule(entry.rule) is None:
            findings.append(unknown_rule_finding(entry.rule, location))
        else:
            entries.append(entry)
    return Baseline(path=path, entries=tuple(entries), findings=tuple(findings), raw=raw)


def _decoded(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _entry(value: object, line: int) -> BaselineEntry | None:
    if not isinstance(value, dict):
        return None
    texts = {key: value.get(key, "") for key in ("rule", "name", "server", "file", "fingerprint")}
    tools = value.get("tools", [])
    is_plain = all(isinstance(text, str) for text in (*texts.values(), *(tools if isinstance(tools, list) else [None])))
    if not is_plain or not texts["fingerprint"]:
        return None
    return BaselineEntry(**texts, tools=tuple(tools), line=line)


def _plain(entry: BaselineEntry) -> Mapping[str, object]:
    told = {"rule": entry.rule, "name": entry.name, "file": entry.file, "server": entry.server}
    return {key: value for key, value in told.items() if value} | {
        "tools": list(entry.tools),
        "fingerprint": entry.fingerprint,
    }


def stale_entry_finding(entry: BaselineEntry, path: Path) -> Finding:
    """Return the finding that a baseline entry no longer matches anything."""
    tools = ", ".join(excerpt(tool, 64) for tool in entry.tools[:3])
    return Finding(
        rule=UPKEEP["stale_baseline"],
        fact=f"{entry.rule} {excerpt(entry.name, 64)[1:-1]} of {tools or excerpt(entry.file, 200)} is no longer found.",
        remedy="Remove the line, or run `truename lint --fix`.",
        location=Location(file=str(path), line=entry.line),
        server=entry.server[:_LONGEST],
        tools=entry.tools,
    )


def _refused(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)


def find_stale_entries(
    entries: Iterable[BaselineEntry], found: set[str], files: Iterable[str], base: Path
) -> Iterator[BaselineEntry]:
    """Yield the stale entries, as far as the linted files can tell.

    An entry for a file that was not linted is kept, unless that file is missing; an entry about several tools is
    checked only if all files of the baseline were linted, since the other tool may be in any of them.
    """
    entries = tuple(entries)
    read = {relative_path(file, base) for file in files}
    is_whole = all(entry.file in read or _is_gone(entry.file, base) for entry in entries)
    for entry in entries:
        is_known = entry.file in read or _is_gone(entry.file, base)
        if entry.fingerprint not in found and is_known and (is_whole or len(entry.tools) < 2):
            yield entry


def _is_gone(file: str, base: Path) -> bool:
    is_file = bool(file) and file.isprintable() and "://" not in file
    return is_file and not (base / file).exists()
