"""What a tool's author says about it beside its definition: for whom it is, and where it works (seed 003)."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Metadata"]


def _nothing() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata of one tool; the defaults are those of a tool that says nothing.

    ``is_for_llm`` False is a deprecated tool or an implementation detail; ``is_recordable`` False keeps its calls out
    of recordings. ``platforms`` are in lower case, none is all of them; ``app`` "" is every app. ``owner`` is a team.
    ``family`` groups tools (seed 002) without a name being split. ``parameter_platforms`` says which parameters are
    for some of the platforms only.
    """

    is_for_llm: bool = True
    is_recordable: bool = True
    platforms: tuple[str, ...] = ()
    app: str = ""
    owner: str = ""
    family: str = ""
    parameter_platforms: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing, hash=False)
