"""What the settings say of tools beside what their servers say, field by field: for people, and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.cli.rendering import say, show, styled
from truename.config.mentions import idle
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.catalog import Tool
    from truename.cli.scene import Scene
    from truename.naming import NameTable
    from truename.policy.presentation import Presentation

__all__ = ["plain_presented", "show_presented", "tell_idle"]

_NOTES: Final = "annotations"
_LONGEST: Final = 200


class _Word(NamedTuple):
    """One field as it is shown, and as the server has it (None: not at all)."""

    field: str
    shown: Any
    server: Any


def tell_idle(scene: Scene) -> None:
    """Tell which settings are about no tool, where all servers have listed theirs."""
    for place in () if scene.failed else idle(scene.settings, scene.catalog, scene.ledger):
        say(styled("note: ", "yellow"), styled(f"{place} is about no tool that there is."))


def show_presented(table: NameTable, said: Presentation) -> None:
    """Print which tools are shown otherwise than their servers have them, under what key of the settings, and how."""
    for id in table:
        tool = table.catalog[id]
        if not tool.presented:
            continue
        keys = ", ".join(f"[tools.{excerpt(key)}]" for key in said.keys(id))
        show(styled(id.short, "bold"), "  ", styled(f"overridden by {keys}", "dim"))
        for word in _words(tool):
            show(styled(f"  {word.field}: {_told(word.shown)}"))
            show(styled(f"    the server says {'nothing' if word.server is None else _told(word.server)}", "dim"))
        show("")


def plain_presented(tool: Tool, said: Presentation) -> dict[str, Any]:
    """Return what is overridden of a tool as JSON; empty if nothing is."""
    if not tool.presented:
        return {}
    fields = {word.field: {"shown": word.shown, "server": word.server} for word in _words(tool)}
    return {"overridden": {"by": list(said.keys(tool.id)), "fields": fields}}


def _words(tool: Tool) -> Iterator[_Word]:
    for field, value in tool.presented.items():
        if field != _NOTES:
            yield _Word(field, value, tool.definition.get(field))
    notes = tool.definition.get(_NOTES)
    own: Mapping[str, Any] = notes if isinstance(notes, dict) else {}
    for name, value in tool.presented.get(_NOTES, {}).items():
        yield _Word(f"{_NOTES}.{name}", value, own.get(name))


def _told(value: object) -> str:
    return excerpt(value, _LONGEST) if isinstance(value, str) else str(value).lower()
