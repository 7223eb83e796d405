"""New names for many tools at once: by a style, or by what a convention asks for. Only what is certain is proposed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions.classification import classify
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.conventions.convention import Convention

__all__ = ["Proposal", "conventional", "underscored"]

_PARTED: Final = re.compile(r"[./: ]+")
_LEGAL: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Proposal:
    """The renames that are certain, and the names that need a person, each with the reason."""

    renames: Mapping[str, str]
    unclear: Mapping[str, str]


def underscored(names: Iterable[str]) -> Proposal:
    """Propose single underscores for dots, slashes, colons and spaces (seed 002, option B).

    What is legal for Anthropic and OpenAI stays as it is; what would not be legal then either needs a person.

    >>> proposal = underscored(["powershell.exec", "winget_install", "天気.取得"])
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
    return Proposal(MappingProxyType(renames), MappingProxyType(unclear))


def conventional(names: Iterable[str], convention: Convention) -> Proposal:
    """Propose the names that a convention asks for, where it leaves no choice (seed 003's migration).

    >>> from truename.conventions.convention import Convention
    >>> dict(conventional(["clearKeychain_ios", "tap"], Convention.of("trailblaze")).renames)
    {'clearKeychain_ios': 'ios_clearKeychain'}
    """
    renames: dict[str, str] = {}
    unclear: dict[str, str] = {}
    for name in dict.fromkeys(names):
        found = classify(name, convention)
        if found.suggested:
            renames[name] = found.suggested
        elif not found.ok:
            unclear[name] = "; ".join(f"it {fault.text}" for fault in found.faults) or "it fits no category"
    return Proposal(MappingProxyType(renames), MappingProxyType(unclear))
