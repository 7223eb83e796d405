"""Show a proposed configuration, and write it with its env_file."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.cli._errors import UsageError
from truename.cli._rendering import Cell, print_table, say, say_error, shortened, show, styled
from truename.cli._sources import files_at, give
from truename.clients.origins import EntryOrigins
from truename.config import Settings, json_schema, render
from truename.config.interpolate import read_env_file, write_env_lines
from truename.conventions import Location
from truename.editing import SourceLines
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.config import ServerConfig
    from truename.config.entries import FoundEntry, Variable
    from truename.config.proposal import Proposal

__all__ = [
    "PRIVATE",
    "SERVER_NAME",
    "ProposedFiles",
    "check_free",
    "is_missing",
    "plain",
    "prepare",
    "save",
    "save_all",
    "show_refused",
    "show_servers",
    "show_variables",
]

PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644
SERVER_NAME: Final = "tn"
_SCHEMA: Final = "truename.schema.json"
_MOST: Final = 3
_MOST_TOLD: Final = 50
_WHAT: Final = 80


def check_free(path: Path, *, force: bool, option: str = "--out") -> None:
    """Raise `UsageError` for a path that `save` would refuse; ``option`` gives the path."""
    if path.is_symlink():
        raise UsageError(fact=f"{path} is a link to {path.readlink()}", advice=f"Give the file itself: {option} PATH.")
    if path.exists() and not path.is_file():
        raise UsageError(fact=f"{path} is not a regular file", advice=f"Give another path: {option} PATH.")
    if path.exists() and not force:
        shows = "; --dry-run only shows" if option == "--out" else ""
        advice = f"--force replaces it and keeps it as {path.name}.bak; {option} PATH writes elsewhere{shows}."
        raise UsageError(fact=f"{path} exists already", advice=advice)
    if not path.absolute().parent.is_dir():
        raise UsageError(
            fact=f"directory not found: {path.absolute().parent}", advice=f"Make it, or give another {option}."
        )


def save(path: Path, text: str, *, mode: int = _PUBLIC, force: bool = False, option: str = "--out") -> Path | None:
    """Write a file atomically; return the backup of the file that it replaced, if any.

    Raises `UsageError` as `check_free`, and `OSError`.
    """
    check_free(path, force=force, option=option)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(mode)
        backup = _keep(path) if path.exists() else None
        if backup is None:
            _place(name, path)
        else:
            Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    return backup


def _keep(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.bak{number or ''}") for number in count())
    backup = next(name for name in names if not os.path.lexists(name))
    try:
        # A hard link keeps the permissions: at no time can more people read it than before.
        os.link(path, backup)
    except FileExistsError:
        return _keep(path)
    except OSError:
        os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        shutil.copy2(path, backup)
    return backup


def _place(name: str, path: Path) -> None:
    try:
        # Unlike a rename, a hard link never replaces a file that was created meanwhile.
        os.link(name, path)
    except FileExistsError:
        check_free(path, force=False)
        raise
    except OSError:
        # Some file systems have no hard links.
        Path(name).rename(path)


@dataclass(frozen=True, kw_only=True)
class ProposedFiles:
    """The files to write: the configuration's text, and the variables of its env_file, if any.

    ``known`` are the variables that an existing env_file already has, ``made_of`` the clients' entries from which each
    server is created.
    """

    text: str
    out: Path
    known: frozenset[str]
    env: Path
    values: Mapping[str, str] | None = None
    made_of: Mapping[str, Sequence[FoundEntry]] = field(default_factory=dict)


def prepare(
    proposal: Proposal, out: Path, settings: Settings, *, head: Sequence[str], copy_secrets: bool, force: bool
) -> ProposedFiles:
    """Return the files to write. Raises `UsageError` if secrets are to be copied and an env_file already exists."""
    if out.suffix.lower() != ".toml":
        raise UsageError(fact=f"{out} does not end in .toml", advice="Give a name that ends in .toml: --out PATH.toml.")
    env = out.with_name(f"{out.stem}.env")
    known = _known(env)
    if copy_secrets:
        check_free(env, force=force)
    if copy_secrets or known:
        settings = replace(settings, env_file=env.name)
    text = render(proposal.config(settings), head=head, notes=proposal.notes, schema=f"./{_SCHEMA}")
    copied = {one.name: one.value for one in proposal.variables if one.value and _can_be_written(one.value)}
    values = {**known, **copied} if copy_secrets else None
    made_of = {merged.server.key: merged.seen for merged in proposal.servers}
    return ProposedFiles(text=text, out=out, known=frozenset(values or known), env=env, values=values, made_of=made_of)


def save_all(files: ProposedFiles, *, force: bool) -> list[Path]:
    """Write the files; return their paths and those of backups. Raises `UsageError`, `OSError`."""
    schema = files.out.with_name(_SCHEMA)
    # Checked first: a part of the files would make the next attempt fail.
    check_free(schema, force=True)
    done: list[Path | None] = []
    if files.values is not None:
        done += [files.env, save(files.env, write_env_lines(files.values), mode=PRIVATE, force=force)]
    content = f"{json.dumps(json_schema(), indent=2)}\n"
    if not schema.exists() or (force and schema.read_bytes() != content.encode()):
        done += [schema, save(schema, content, force=force)]
    # Last, so that the files it refers to exist.
    done += [files.out, save(files.out, files.text, force=force)]
    _allow(files)
    # Without this record, `truename connect` can match servers only while the variables are set.
    with suppress(OSError):
        EntryOrigins(files.out).remember(files.made_of)
    return [path for path in done if path is not None]


def _allow(files: ProposedFiles) -> None:
    """Give consent to the written configuration: the user asked for it."""
    if files.values is None and files.env.exists():
        # The env_file existed before, so its variables need the user's consent.
        return
    # If consent cannot be stored, the user is asked later.
    with suppress(TruenameError, ExceptionGroup, OSError):
        written = files_at(files.out)
        if written.text(files.out) == files.text:
            give(files.out, written)


def is_missing(variable: Variable, known: frozenset[str]) -> bool:
    """Return whether the user still has to set the variable."""
    return variable.needed and not (variable.is_set or variable.has_default or variable.name in known)


def show_servers(proposal: Proposal, *, error: bool) -> None:
    """Print the servers with their commands or URLs, and where they were found."""
    rows: list[list[Cell]] = []
    for merged in proposal.servers:
        titles = list(dict.fromkeys(seen.title for seen in merged.seen))
        more = f" and {len(titles) - _MOST} more" if len(titles) > _MOST else ""
        found = ", ".join(titles[:_MOST]) + more
        off = " (off)" if merged.server.disabled else ""
        rows.append([styled(merged.server.key, "bold cyan"), f"{_what(merged.server)}{off}", found])
    if rows:
        print_table(["server", "command or URL", "found in"], rows, error=error)
    for merged in proposal.servers:
        if merged.apart:
            show(f"{merged.server.key}: {merged.apart}.", error=error)


def show_refused(proposal: Proposal, lines: SourceLines | None = None) -> None:
    """Print the entries that cannot become a server, with their files and lines."""
    lines = SourceLines() if lines is None else lines
    for refused in proposal.refused[:_MOST_TOLD]:
        at = lines.found(Location(file=refused.seen.file, key=refused.seen.where), is_whole=True)
        say_error(f"{at} was left out: {refused.problem}", refused.remedy)
    if (more := len(proposal.refused) - _MOST_TOLD) > 0:
        say(f"... and {more:,} more; --json lists all.")


def show_variables(proposal: Proposal, files: ProposedFiles, *, error: bool) -> None:
    """Print the variables that have to be set, and where each value is now."""
    missing = [variable for variable in proposal.variables if is_missing(variable, files.known)]
    if not missing:
        return
    show("", error=error)
    show(styled("Set these variables before `truename serve`:", "bold"), error=error)
    for variable in missing[:_MOST_TOLD]:
        show("  ", styled(variable.name, "yellow"), error=error)
        for place in variable.places[:_MOST]:
            show(f"    {'used' if variable.said else 'its value is'} in {place}", error=error)
        if (left := len(variable.places) - _MOST) > 0:
            show(f"    and in {left} more places", error=error)
        if variable.said:
            show(f"    it has {variable.said}, which only the program that wrote the file can fill in", error=error)
    if (more := len(missing) - _MOST_TOLD) > 0:
        show(f"  and {more:,} more; --json lists all.", error=error)


def plain(
    proposal: Proposal, files: ProposedFiles, written: Sequence[Path], lines: SourceLines | None = None
) -> dict[str, object]:
    """Return the proposal as JSON."""
    lines = SourceLines() if lines is None else lines
    return {
        "servers": [
            {
                "key": merged.server.key,
                "command": merged.server.command,
                "args": list(merged.server.args),
                "url": merged.server.url,
                "disabled": merged.server.disabled,
                "found": [
                    {"client": seen.client, "file": seen.file, "where": seen.where, "key": seen.server.key}
                    for seen in merged.seen
                ],
                "remarks": list(merged.remarks),
            }
            for merged in proposal.servers
        ],
        "variables": [
            {
                "name": variable.name,
                "places": list(variable.places),
                "set": not is_missing(variable, files.known),
                "said": variable.said,
            }
            for variable in proposal.variables
        ],
        "refused": [
            {
                "server": one.seen.server.key,
                "file": one.seen.file,
                "where": one.seen.where,
                "line": lines.found(Location(file=one.seen.file, key=one.seen.where), is_whole=True).line,
                "problem": one.problem,
                "remedy": one.remedy,
            }
            for one in proposal.refused
        ],
        "gateways": [{"client": seen.client, "file": seen.file, "where": seen.where} for seen in proposal.gateways],
        "text": files.text,
        "written": [str(path) for path in written],
    }


def _what(server: ServerConfig) -> str:
    if server.url is not None:
        return server.url
    command = Path(server.command or "")
    return shortened(" ".join([command.name if command.is_absolute() else str(server.command), *server.args]), _WHAT)


def _known(env: Path) -> dict[str, str]:
    try:
        return read_env_file(env) if env.is_file() else {}
    except (TruenameError, ExceptionGroup):
        # Its errors are reported when it is used.
        return {}


def _can_be_written(value: str) -> bool:
    return "\0" not in value and not any(0xD800 <= ord(character) <= 0xDFFF for character in value)
