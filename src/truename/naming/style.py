"""Define naming styles: how a tool's name is spelled, and how clashes are resolved."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STYLES", "Style", "style_of"]


@dataclass(frozen=True, slots=True)
class Style:
    """A naming strategy as a value; the presets are in `STYLES`, and a caller may pass one of its own.

    ``prefix``: whether the server's part stands in front. ``lead`` and ``separator`` frame that part, ``dot`` takes
    the place of the dot between suite and tool (where the separator is not legal for a dialect, ``_`` is used).
    ``on_clash``: ``resolve`` finds another name, ``error`` refuses to build. ``spelling``: ``readable`` adapts the
    name to the dialect, ``verbatim`` takes it as declared, ``canonical`` is the id itself.

    >>> colons = Style("always-colon", prefix="always", separator=":")
    """

    name: str
    prefix: Literal["always", "on-conflict", "never"] = "always"
    separator: str = "_"
    lead: str = ""
    dot: str = "_"
    on_clash: Literal["resolve", "error"] = "resolve"
    spelling: Literal["readable", "verbatim", "canonical"] = "readable"

    @property
    def recorded(self) -> str:
        """How a ledger remembers the style: a preset by its name, another by all that it is."""
        return self.name if STYLES.get(self.name) == self else repr(self)


STYLES: Final[Mapping[str, Style]] = MappingProxyType(
    {
        style.name: style
        for style in (
            Style("prefixed"),
            Style("on-conflict", prefix="on-conflict", separator=":", dot="."),
            Style("server-prefix", lead="mcp_", separator="__"),
            Style("canonical", prefix="never", spelling="canonical"),
            Style("declared", prefix="never", on_clash="error", spelling="verbatim"),
            Style("dotted-double", prefix="never", dot="__"),
        )
    }
)


def style_of(style: str | Style) -> Style:
    """Return the preset of this name, or the style itself. Raises `ValueError` that lists the presets."""
    if isinstance(style, Style):
        return style
    if style not in STYLES:
        message = f"{style!r} is no style. Use one of {', '.join(STYLES)}, or pass a Style."
        raise ValueError(message)
    return STYLES[style]
