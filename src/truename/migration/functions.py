"""Tools that have the name of a function: where in a source a name of their own is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FunctionTool", "Gap", "ReadFunctions"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A place for a name in a declaration: the text from ``start`` to ``end``, and what goes around the name there."""

    start: int
    end: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that is a tool: the tool's name, the offset of the function's name, and where a name can be written.

    ``has_name`` tells whether the declaration says the name, so that the function's own says nothing. Without it and
    without ``gaps`` only the function can be renamed, which is for a person: others call it.
    """

    name: str
    start: int
    gaps: tuple[Gap, ...] = ()
    has_name: bool = False


# Reads the functions that are tools in a text of this file name.
ReadFunctions = Callable[[str, str], tuple[FunctionTool, ...]]
