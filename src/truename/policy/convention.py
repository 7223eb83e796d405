"""A naming convention: what a team's tool names have to be, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.policy.finding import Severity

__all__ = ["Convention", "Suppression"]


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """A finding that a team lives with: the rule's code, globs on names, and the reason, which has to be given."""

    rule: str
    tools: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Convention:
    """What names have to be. The defaults ask for nothing but what every server must keep to.

    ``clients`` are the dialects that have to accept every name, ``categories`` maps a category to its format
    (``{app}_{platform}_{verbNoun}``), ``apps`` are the known ones (None: any), ``owners`` maps globs on names to teams
    and ``team`` is the one whose tools these are. ``families`` maps a family to globs on names. ``severities`` says
    how bad a rule's findings are here (None: the rule is off), by code.
    """

    preset: str = ""
    clients: tuple[str, ...] = ()
    categories: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    apps: tuple[str, ...] | None = None
    platforms: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    team: str = ""
    reserved: tuple[str, ...] = ()
    separator: str = ""
    casing: str = ""
    verbs: tuple[str, ...] = ()
    version_suffix: str = ""
    device_words: tuple[str, ...] = ()
    max_length: int = 0
    families: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing, hash=False)
    severities: Mapping[str, Severity | None] = field(default_factory=_nothing, hash=False)
    suppressions: tuple[Suppression, ...] = ()
    baseline: str = ""
