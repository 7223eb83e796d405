"""The commands of the command line, with those that only have others below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.cli.app import app

if TYPE_CHECKING:
    from cyclopts import App

__all__ = ["assert_options_of_serve", "options_of"]


def options_of(command: App) -> set[str]:
    """Return the options of a command, and of those below it, each by its first name."""
    below = [command[name] for name in command if not name.startswith("-")]
    verbs = below if command.default_command is None else [command]
    arguments = (argument for verb in verbs for argument in verb.assemble_argument_collection())
    return {name for argument in arguments for name in argument.names[:1] if name.startswith("--")}


def assert_options_of_serve(words: list[str]) -> None:
    """Check that `truename serve` has all options among these words of a command."""
    assert {word for word in words if word.startswith("--")} <= options_of(app["serve"])
