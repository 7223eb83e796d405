"""The commands of the command line, with those that only have others below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

__all__ = ["options_of"]


def options_of(command: App) -> set[str]:
    """Return the options of a command, and of those below it, each by its first name."""
    below = [command[name] for name in command if not name.startswith("-")]
    verbs = below if command.default_command is None else [command]
    arguments = (argument for verb in verbs for argument in verb.assemble_argument_collection())
    return {name for argument in arguments for name in argument.names[:1] if name.startswith("--")}
