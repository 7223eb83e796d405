"""The application: its commands, and exit statuses (0 ok, 1 findings, 2 usage, 3 a server failed)."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from cyclopts import App, CycloptsError, Group, Parameter

from truename import __version__
from truename.cli._command_list import COMMANDS, epilogue_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

_INTERRUPTED: Final = 130
# Python keywords cannot name a function or a module.
_MODULES: Final = {"import": "import_"}


app = App(
    name="truename",
    help="One canonical identity for every agent tool, a legal name for every client, never a guess on the way back.",
    help_format="plaintext",
    help_epilogue="`truename COMMAND --help` shows more. Exit status: 0 ok, 1 findings, 2 usage, 3 a server failed.",
    version=__version__,
    version_format="plaintext",
    default_parameter=Parameter(negative=()),
)
for _place, (_title, _commands) in enumerate(COMMANDS.items()):
    _group = Group(_title, sort_key=_place)
    for _rank, _command in enumerate(_commands):
        _module = _MODULES.get(_command.name, _command.name)
        app.command(
            f"truename.cli.{_module}:{_module}",
            name=_command.name,
            group=_group,
            help=_command.help,
            sort_key=_rank,
            **({} if _command.has_subcommands else {"help_epilogue": epilogue_of(_command.name)}),
        )
app.register_install_completion_command(add_to_startup=False)
_options = Group("Options", sort_key=len(COMMANDS))
for _flag in ("--help", "--version", "--install-completion"):
    app[_flag].group = _options


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; tracebacks are shown only with ``TRUENAME_DEBUG=1``."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        return result if isinstance(result, int) else 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, as in `truename names | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("TRUENAME_DEBUG") == "1" and not isinstance(error, CycloptsError):
            raise
        from truename.cli._errors import report, report_usage  # noqa: PLC0415 - only when something is wrong

        return (
            report_usage(error, words) if isinstance(error, CycloptsError) else report(error, as_json="--json" in words)
        )
