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
    """A naming style; the presets are in `STYLES`, and a caller may pass its own.

    ``prefix``: when a name begins with the server's part. ``lead`` and ``separator`` are written before and after that
    part, ``dot`` replaces the dot between suite and tool (a separator that the dialect does not accept becomes ``_``).
    ``on_clash``: ``resolve`` chooses another name, ``error`` refuses to build. ``spelling``: ``readable`` adapts the
    name to the dialect, ``verbatim`` uses the declared name, ``canonical`` uses the id itself.

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
        """The text by which a ledger records the style: a preset's name, or all fields of another style."""
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
        message = f"{style!r} is not a style. Use one of {', '.join(STYLES)}, or pass a Style."
        raise ValueError(message)
    return STYLES[style]
