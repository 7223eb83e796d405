"""Every command with its options."""

from __future__ import annotations

import re
import types
import typing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from docsite.reference.text import code, head, table
from truename.cli._command_list import COMMANDS
from truename.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cyclopts import App
    from cyclopts.argument import Argument

    from truename.cli._command_list import Command

__all__ = ["page"]

_INTRODUCTION: Final = """Every command has `--help`. `truename --version` prints the version, and `truename --install-completion` installs the completion of your shell.

| exit status | meaning |
|---|---|
| 0 | the command succeeded |
| 1 | there are findings: see the command |
| 2 | the command, a file or a setting is wrong |
| 3 | a server failed |"""
_WORDS: Final = {str: "text", Path: "path", int: "whole number", float: "number", bool: "", "date": "date"}


def page() -> str:
    """Return the page."""
    parts = [head("Command line", "`src/truename/cli`"), _INTRODUCTION]
    for title, commands in COMMANDS.items():
        parts.append(f"## {title}")
        for command in commands:
            parts += _command(command)
    return "\n\n".join(parts) + "\n"


def _command(command: Command) -> Iterator[str]:
    inner = app[command.name]
    yield f"### `truename {command.name}`"
    yield command.help
    yield command.note
    yield "\n".join(f"- `truename {example.words}`: {example.does}" for example in command.examples)
    if inner.default_command is not None:
        yield from _options(f"truename {command.name}", inner)
    for name in inner:
        if not name.startswith("-"):
            yield f"#### `truename {command.name} {name}`"
            yield inner[name].help
            yield from _options(f"truename {command.name} {name}", inner[name])


def _options(words: str, command: App) -> Iterator[str]:
    # A class of options (`*`) is listed option by option.
    arguments = [
        one for one in command.assemble_argument_collection() if one.parameter.show is not False and one.names != ("*",)
    ]
    usage = [_usage(one) for one in arguments if not one.names[0].startswith("-")]
    has_options = any(one.names[0].startswith("-") for one in arguments)
    yield f"```text\n{' '.join([words, *(['[OPTIONS]'] if has_options else []), *usage])}\n```"
    if arguments:
        yield table(
            ("argument or option", "value", "default", "meaning"),
            ((_names(one), _type(one), _default(one), one.parameter.help or "") for one in arguments),
        )


def _usage(one: Argument) -> str:
    dots = "..." if typing.get_origin(_plain(one.hint)) is tuple else ""
    return f"{one.names[0]}{dots}" if one.required else f"[{one.names[0]}{dots}]"


def _names(one: Argument) -> str:
    # The negative of an option is nothing to type; an option may have such a name of its own.
    shown = [
        name for name in one.names if re.sub(r"^--(no|empty)-", "--", name) not in one.names or name == one.names[0]
    ]
    return ", ".join(map(code, shown))


def _plain(hint: Any) -> Any:
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        (hint, *_) = [inner for inner in typing.get_args(hint) if inner is not type(None)]
    if typing.get_origin(hint) is typing.Annotated:
        return _plain(typing.get_args(hint)[0])
    return hint


def _type(one: Argument) -> str:
    hint = _plain(one.hint)
    inner = _plain(typing.get_args(hint)[0]) if typing.get_origin(hint) in {tuple, list} else hint
    many = ", repeatable" if inner is not hint and one.names[0].startswith("-") else ""
    if typing.get_origin(inner) is typing.Literal:
        return " or ".join(f"`{word}`" for word in typing.get_args(inner)) + many
    if isinstance(inner, type) and issubclass(inner, Enum):
        return " or ".join(f"`{word.value}`" for word in inner) + many
    if inner is bool:
        return ""
    return _WORDS.get(inner, getattr(inner, "__name__", str(inner)).lower()) + many


def _default(one: Argument) -> str:
    default = one.field_info.default
    if one.required:
        return "required"
    if default in (None, False, ()) or isinstance(default, type):
        return ""
    return code(str(default))
