"""What the tests of comparisons share: tools written short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.conventions.declarations import Declaration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.migration import ToolChanges

LIST = "List the files of a directory on this machine."
READ = "Read one whole file from the disk as text."
SEND = "Send a message to a channel of the team."


def tool(name: str, description: str = "", *parameters: str, server: str = "", **more: Any) -> Declaration:
    """Return a declared tool; a parameter with a ``?`` behind it is optional, all are texts."""
    properties = {one.rstrip("?"): {"type": "string"} for one in parameters}
    required = [one for one in parameters if not one.endswith("?")]
    schema = {"type": "object", "properties": properties, "required": required}
    return Declaration(
        name=name, server=server, definition={"name": name, "description": description, "inputSchema": schema, **more}
    )


def bare(*names: str) -> list[Declaration]:
    """Return tools of which only the names are known."""
    return [Declaration(name=name) for name in names]


def told(changes: ToolChanges) -> list[tuple[str, str, str]]:
    """Return kind, old name and new name of each change, a guess with a ``?`` behind its kind."""
    return [
        (
            f"{one.kind}{'?' if one.certainty == 'suggested' else ''}",
            one.old.name if one.old else "",
            one.new.name if one.new else "",
        )
        for one in changes
    ]


def pairs(changes: ToolChanges) -> set[tuple[str, str]]:
    """Return the renames, guessed or certain."""
    return {(one.old.name, one.new.name) for one in changes.renames() if one.old and one.new}


def facts(items: Iterable[object]) -> list[str]:
    """Return each as its text."""
    return [str(one) for one in items]
