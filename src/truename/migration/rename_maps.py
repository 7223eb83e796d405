"""Read the list of renames from a file, or derive it from a style or a convention."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.conventions.classification import classify
from truename.errors import ConfigError, excerpt
from truename.files.json_syntax import json_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.conventions.convention import Convention

__all__ = ["MAX_MAP", "RenameProposal", "propose_by_convention", "propose_underscored", "read_map"]

MAX_MAP: Final = 16 * 1024 * 1024
_TABLE: Final = "renames"
_SHAPE: Final = 'Write [renames] with "old" = "new" lines in TOML, or {"old": "new"} in JSON.'
_PLACE: Final = re.compile(r" \(at (line \d+, column \d+)\)\Z")


def read_map(raw: bytes, file: str) -> Mapping[str, str]:
    r"""Read the renames from the content of a file; the ending of its name ``file`` selects TOML or JSON.

    Raises `ConfigError` with the line of a syntax error, or the key of an invalid entry: a repeated old name is
    refused, since the later one would silently win.

    >>> dict(read_map(b'[renames]\n"fs.list" = "fs_list"', "renames.toml"))
    {'fs.list': 'fs_list'}
    """
    if len(raw) > MAX_MAP:
        raise _error(file, "", f"it is larger than {MAX_MAP:,} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _error(file, "", f"it is not UTF-8 (byte {error.start})") from error
    try:
        content = _toml(text, file) if file.lower().endswith(".toml") else _json(text, file)
    except RecursionError as error:
        raise _error(file, "", "it is nested too deeply") from error
    found = content.get(_TABLE, content if not file.lower().endswith(".toml") else None)
    if not isinstance(found, dict) or not found:
        raise _error(file, _TABLE, "it has no renames")
    for old, new in found.items():
        if not isinstance(new, str):
            raise _error(file, excerpt(old), "the new name is not a string")
    return found


def _toml(text: str, file: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        where = place[1] if place else f"line {text.count(chr(10)) + 1} (the end)"
        raise _error(file, where, f"it is not TOML ({_PLACE.sub('', str(error))})") from error


def _json(text: str, file: str) -> dict[str, object]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise _error(file, excerpt(next(key for key in keys if keys.count(key) > 1)), "it is repeated")
        return found

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _error(file, where, f"it is not JSON ({json_problem(error)})") from error
    except ValueError as error:
        raise _error(file, "", f"it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise _error(file, "", "it is not an object")
    return content


def _error(file: str, key: str, problem: str) -> ConfigError:
    return ConfigError(file=file, key=key, problem=problem, remedy=_SHAPE)


_PARTED: Final = re.compile(r"[./: ]+")
_LEGAL: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class RenameProposal:
    """The certain renames, and the names that need a person, each with the reason."""

    renames: Mapping[str, str]
    unclear: Mapping[str, str]


def propose_underscored(names: Iterable[str]) -> RenameProposal:
    """Propose single underscores for dots, slashes, colons and spaces.

    Names that are legal for Anthropic and OpenAI do not change; a name that would still not be legal needs a person.

    >>> proposal = propose_underscored(["powershell.exec", "winget_install", "天気.取得"])
    >>> dict(proposal.renames), list(proposal.unclear)
    ({'powershell.exec': 'powershell_exec'}, ['天気.取得'])
    """
    renames: dict[str, str] = {}
    unclear: dict[str, str] = {}
    for name in dict.fromkeys(names):
        new = _PARTED.sub("_", name).strip("_") if _PARTED.search(name) else name
        if not _LEGAL.fullmatch(new):
            unclear[name] = f"{excerpt(new)} is not 1 to 64 of a-z, A-Z, 0-9, _ and -"
        elif new != name:
            renames[name] = new
    return RenameProposal(MappingProxyType(renames), MappingProxyType(unclear))


def propose_by_convention(names: Iterable[str], convention: Convention) -> RenameProposal:
    """Propose the names that a convention prescribes, if it leaves no choice.

    >>> from truename.conventions.convention import Convention
    >>> dict(propose_by_convention(["clearKeychain_ios", "tap"], Convention.of("trailblaze")).renames)
    {'clearKeychain_ios': 'ios_clearKeychain'}
    """
    renames: dict[str, str] = {}
    unclear: dict[str, str] = {}
    for name in dict.fromkeys(names):
        found = classify(name, convention)
        if found.suggested:
            renames[name] = found.suggested
        elif not found.ok:
            unclear[name] = "; ".join(f"it {fault.text}" for fault in found.errors) or "it fits no category"
    return RenameProposal(MappingProxyType(renames), MappingProxyType(unclear))
