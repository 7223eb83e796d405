"""The application: its commands, and exit statuses (0 ok, 1 findings, 2 usage, 3 a server failed)."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

from cyclopts import App, CycloptsError, Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

_INTERRUPTED: Final = 130
_SOURCES: Final = (
    "A SOURCE is a dump of tools/list answers (JSON, JSONL, also gzipped) or a configuration (mcpServers JSON, "
    "truename.toml), whose servers are started to list their tools. Without one, ./truename.toml, ./.mcp.json or "
    "./mcp.json is used, if `truename allow` has allowed it."
)
_CONFIGURATION: Final = (
    "Without a SOURCE, ./truename.toml, ./.mcp.json or ./mcp.json is used, if `truename allow` has allowed it."
)
_COMMANDS: Final = (
    ("doctor", "Diagnose the MCP clients on this machine and their tools."),
    ("init", "Propose one truename.toml from the servers that your clients use."),
    ("connect", "Put the gateway into a client's own configuration."),
    ("disconnect", "Undo `connect`: restore a client's configuration."),
    ("import", "Make a truename.toml from another gateway's configuration."),
    ("allow", "Allow the configuration found in a directory, until it changes."),
    ("names", "Show the name that a client gets for every tool."),
    ("resolve", "Find the tool that a name refers to."),
    ("lint", "Check the names of tools against a convention, the clients' limits and each other."),
    ("explain", "Show what a rule looks for, why, and what to write instead."),
    ("diff", "Classify the changes between two lists of tools: breaking or not."),
    ("lock", "Write a lock of a repository's tools for review, or check that the tools still match it."),
    ("clients", "Show which tool names clients, frameworks and providers accept, and how they change others."),
    ("serve", "Run the gateway: one MCP server in front of many."),
    ("token", "Create, list and revoke access tokens for HTTP clients."),
    ("login", "Log in at a server, so that the gateway calls it as you."),
    ("logout", "Log out at a server, and revoke its tokens."),
    ("logins", "Show who is logged in at which server."),
    ("deprovision", "End everything of a person: tokens, sign-ins, logins, approvals; let them in no more."),
    ("profiles", "Show the tools that each profile exposes."),
    ("policy", "Propose rules for the gateway from a client's own lists of tools."),
    ("pins", "Show, accept and reject definitions of tools that are new or have changed."),
    ("approvals", "Show calls pending approval, and decide on them."),
    ("audit", "Verify, follow, export and prune the audit log of calls and decisions."),
    ("history", "Show the history of a name."),
    ("state", "Show where the state is kept, check it, and accept it after a loss."),
    ("rename", "Rename tools: plan it, change files and the ledger, undo it."),
    ("replay", "Show which tools recorded calls would reach now, or run them again."),
    ("demo", "Show how real clients change tool names, without and with Truename."),
)
# Python keywords cannot name a function or a module.
_MODULES: Final = {"import": "import_"}
_EPILOGUES: Final = {
    "login": "The server's entry must set auth.type = login. The browser is redirected here; tokens are stored "
    "encrypted, and a running gateway uses them at the next call.",
    "logout": "The tokens are revoked at the server's issuer if it supports that, and deleted here in any case.",
    "deprovision": "Running gateways that share the state follow within seconds. What the person decided for others, "
    "and their records in the audit log, stay.",
    "logins": "Tokens are not shown. `truename login SERVER` logs in, `truename logout SERVER` logs out.",
    "doctor": "Without a SOURCE, all clients on this machine are checked. Servers are started only after asking, or "
    "with --start; servers in a project's file only if that file is named. Nothing is changed.",
    "init": "Nothing is started, and an existing file is replaced only with --force. "
    "The next steps are `truename serve` and `truename connect`.",
    "connect": "Each server keeps its key, so that permissions keep working; `truename disconnect` restores the file. "
    "Without --config, ./truename.toml, ./.mcp.json or ./mcp.json is used.",
    "disconnect": "Files that are unchanged since `truename connect` are restored byte for byte; "
    "in others only its edits are reverted.",
    "import": "Its rename tables become overrides; everything that cannot be imported is listed.",
    "clients": "Without a NAME, all are listed.",
    "allow": "Without a FILE, ./truename.toml, ./.mcp.json or ./mcp.json is allowed, with a truename.toml beside it "
    "and its env_file, in their present state. A configuration that is named on the command line needs no consent.",
    "lint": "Python sources are parsed, never imported. Without a SOURCE, lint.sources of truename.toml or "
    "pyproject.toml is used, else this directory. Exit status 1: an error or a warning.",
    "explain": "Without a RULE, all are listed.",
    "replay": "Hidden tools are included, redirects are followed; tools of another platform are refused. Exit "
    "status 1: a call would fail, or failed.",
    "diff": "Each side is a Python source, a directory of them, a dump, a truename.lock, a configuration (its servers "
    "are started), an http(s) URL, or git:REVISION:PATH. Exit status 1: a breaking change.",
    "lock": "In CI, run `truename lock --check`: exit status 1 if a tool was added, removed, renamed or changed.",
    "demo": "It uses neither the network nor your servers.",
    "rename": "Without --apply nothing is changed. With it, all files change or none does, and --undo restores them. "
    "A SOURCE is a dump of tools/list answers, a configuration, or Python files.",
    **dict.fromkeys(("names", "resolve", "profiles"), _SOURCES),
    **dict.fromkeys(("serve", "history"), _CONFIGURATION),
}


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - costs 15 ms that only --version needs

    return version("truename")


app = App(
    name="truename",
    help="One canonical identity for every agent tool, a legal name for every client, never a guess on the way back.",
    help_format="plaintext",
    help_epilogue="`truename COMMAND --help` shows more. Exit status: 0 ok, 1 findings, 2 usage, 3 a server failed.",
    version=_version,
    version_format="plaintext",
    default_parameter=Parameter(negative=()),
)
for _place, (_name, _help) in enumerate(_COMMANDS):
    _module = _MODULES.get(_name, _name)
    app.command(
        f"truename.cli.{_module}:{_module}",
        name=_name,
        help=_help,
        sort_key=_place,
        # A command with subcommands is an App, which has its own epilogue.
        **({"help_epilogue": _EPILOGUES[_name]} if _name in _EPILOGUES else {}),
    )
app.register_install_completion_command(add_to_startup=False)


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
