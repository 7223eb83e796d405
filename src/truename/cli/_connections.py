"""Find the client and the gateway that a command connects, ask before files change, and print notes about them."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from truename import dialects
from truename.cli._errors import UsageError, leaves
from truename.cli._gateway_names import checked_url
from truename.cli._questions import answer, is_agreed, is_terminal
from truename.cli._rendering import say, show_hanging, styled
from truename.cli._sources import configuration
from truename.clients import config_files
from truename.clients.gateway_address import GatewayAddress
from truename.clients.origins import EntryOrigins
from truename.clients.plan import PlanNote
from truename.config import Config
from truename.config.interpolate import read_env_file
from truename.errors import ConfigError, UnknownDialect, excerpt

__all__ = [
    "ChangeFiles",
    "GatewayUrl",
    "PreviewFiles",
    "ProjectDirectory",
    "ToolsDump",
    "confirm",
    "find_client",
    "gateway_address",
    "gateway_url",
    "plain_notes",
    "read_gateway_config",
    "reload_advice",
    "show_notes",
]

GatewayUrl = Annotated[
    str | None,
    Parameter(
        name="--url",
        metavar="URL",
        help="The URL of the gateway; default: http://127.0.0.1:8750, or with tls_certificate access.public_url or "
        "https://127.0.0.1:8750.",
    ),
]
ToolsDump = Annotated[
    str | None,
    Parameter(name="--catalog", metavar="DUMP", help="A dump of the servers' tools, if the gateway is not running."),
]
ProjectDirectory = Annotated[
    Path | None, Parameter(name="--project", metavar="DIRECTORY", help="The project directory with the client's files.")
]
PreviewFiles = Annotated[
    bool,
    Parameter(name="--dry-run", show_default=False, help="Show what would be changed, as a diff, and change nothing."),
]
ChangeFiles = Annotated[bool, Parameter(name="--yes", show_default=False, help="Don't ask.")]

_DEFAULT_PLACE: Final = "127.0.0.1:8750"
_UNSET: Final = re.compile(r"the environment variable (\w+) is not set")
_MARKS: Final = {"info": "note"}


def find_client(text: str) -> str:
    """Find a client with a configuration file, by its name or any name of its dialect.

    If several match, ask on the terminal. Raises `UsageError` for an unknown client, and without a terminal.
    """
    known = {file.client: file for file in config_files()}
    word = text.lower()
    if word in known:
        return word
    try:
        dialect = dialects.get(text).name
    except UnknownDialect:
        dialect = ""
    # The first word of a name matches too: claude is Claude Code as well as Claude Desktop.
    fitting = [one for one, file in known.items() if file.dialect == dialect or one.startswith(f"{word}-")]
    if len(fitting) > 1:
        return _chosen(text, fitting, {one: known[one].title for one in fitting})
    if fitting and known[fitting[0]].dialect == dialect:
        return fitting[0]
    close = get_close_matches(text.lower(), known, 3)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"Known are: {', '.join(sorted(known))}."
    raise UsageError(fact=f"{excerpt(text)} is not a client with a known configuration file", advice=advice)


def _chosen(text: str, clients: Sequence[str], titles: Mapping[str, str]) -> str:
    fact = f"{excerpt(text)} is ambiguous: {' or '.join(f'{titles[one]} ({one})' for one in clients)}"
    if not is_terminal():
        raise UsageError(fact=fact, advice=f"Use one of: {', '.join(clients)}.")
    say(f"{fact}.")
    given = answer(f"Which? [{'/'.join(clients)}] ")
    if given not in clients:
        raise UsageError(fact=f"{excerpt(given)} is not one of them", advice=f"Use one of: {', '.join(clients)}.")
    return given


def confirm(*, yes: bool, files: int, as_json: bool) -> bool:
    """Ask for confirmation unless ``yes``. Raises `UsageError` without a terminal."""
    if yes:
        return True
    if as_json or not is_terminal():
        raise UsageError(
            fact="nothing was changed: confirmation needs a terminal",
            advice="Pass --yes to apply the changes, or --dry-run to preview them.",
        )
    return is_agreed(f"Change {files} {'file' if files == 1 else 'files'}? [y/N] ")


def reload_advice(advice: str) -> str:
    """Return how the client loads its new configuration, as a sentence to append; "" if unknown."""
    text = advice.removeprefix("None: ")
    return f" {text[:1].upper()}{text[1:]}" if text else ""


def show_notes(notes: Sequence[PlanNote], *, error: bool = False) -> None:
    """Print notes, each with its advice."""
    show_hanging(
        [
            (styled(_MARKS.get(note.kind, note.kind), "yellow"), styled(f"{note.fact}. {note.advice}".rstrip()))
            for note in notes
        ],
        indent=2,
        error=error,
    )


def plain_notes(notes: Sequence[PlanNote]) -> list[dict[str, str]]:
    """Return notes as JSON."""
    return [{"kind": one.kind, "subject": one.subject, "fact": one.fact, "advice": one.advice} for one in notes]


def read_gateway_config(source: str | None) -> Config:
    """Read the gateway's configuration; variables that are not set here stay references."""
    environ = dict(os.environ)
    try:
        return configuration(source, environ)
    except (ConfigError, ExceptionGroup) as error:
        unset = {name for one in leaves(error) for name in _UNSET.findall(getattr(one, "problem", ""))}
        if not unset:
            raise
        return configuration(source, environ | {name: f"${{{name}}}" for name in unset})


def gateway_url(config: Config, url: str | None) -> str:
    """Return the gateway's base URL: the one of the option, else the one that its settings lead to.

    Raises `UsageError`.
    """
    settings = config.settings
    if url is not None or settings.tls_certificate is None:
        return checked_url(url or f"http://{_DEFAULT_PLACE}")
    # The certificate is hardly for an address of this machine.
    return settings.access.public_url or f"https://{_DEFAULT_PLACE}"


def gateway_address(config: Config, url: str) -> GatewayAddress:
    """Return the gateway's address, with what is needed to match clients' entries to its servers."""
    env_file = config.settings.env_file
    environ = {**(read_env_file(Path(env_file)) if env_file is not None else {}), **os.environ}
    made = EntryOrigins(config.path).has if config.path is not None else lambda _, __: False
    return GatewayAddress(config=config, url=url, program=_program(), environ=environ, was_created_from=made)


def _program() -> str:
    """Return the path of the program that clients start."""
    # The absolute path, since a client may have another PATH than this shell.
    running = Path(sys.argv[0]).absolute()
    return str(running) if running.stem == "truename" else shutil.which("truename") or "truename"
