"""What `truename lint` is given: Python sources, dumps, and servers that are started and asked for their tools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.cli.addresses import is_address, server_at
from truename.cli.consenting import require_addresses
from truename.cli.failure import UsageFault
from truename.cli.rendering import say, styled
from truename.cli.scene import without_gateway
from truename.cli.sources import find, find_unnamed
from truename.config import Config, Settings
from truename.files.user import at_home
from truename.lint import DeclaredTools, read_declared
from truename.lint.declared import joined
from truename.lint.dumps import declared_by
from truename.lint.source_files import PYTHON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.conventions import Declaration

__all__ = ["Taken", "take"]

_UNREADABLE: Final = "unreadable_source"
_IN_MEMORY: Final = Settings(ledger="memory")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """All that was declared, the servers that failed, and whether it is more than single files of Python.

    ``peers`` are tools beside which these will stand.
    """

    declared: DeclaredTools
    peers: tuple[Declaration, ...] = ()
    failed: tuple[str, ...] = ()
    is_whole: bool = True


def take(
    sources: Sequence[str], exclude: Sequence[str], beside: Sequence[str] = (), *, named_by: Path | None = None
) -> Taken:
    """Read every source; the servers of configurations and of addresses are started and asked.

    ``named_by`` is the file that names the sources where no command line does: they need consent then.
    What stands ``beside`` are files; of those nothing is told but that one can't be read.
    Raises `UsageFault` for a source that is not there, and what is wrong with a configuration (`ConfigError`).
    """
    addresses = {source: server_at(source) for source in sources if is_address(source)}
    if named_by is not None and addresses:
        require_addresses(tuple(addresses), named_by)
    configs = {source: _configuration(source, is_named=named_by is None) for source in sources}
    # All files together: how servers that are made in them are told apart depends on how many there are.
    parts = [read_declared([at_home(one) for one, config in configs.items() if not config], exclude=exclude)]
    failed: list[str] = []
    for source, config in configs.items():
        if config is not None:
            declared, down = _asked(config, source)
            parts.append(declared)
            failed += down
    is_whole = any(config is not None or Path(one).suffix not in PYTHON for one, config in configs.items())
    peers = read_declared([at_home(one) for one in beside])
    parts.append(DeclaredTools(findings=tuple(one for one in peers.findings if one.rule.name == _UNREADABLE)))
    return Taken(declared=joined(parts), peers=peers.declarations, failed=tuple(failed), is_whole=is_whole)


def _configuration(source: str, *, is_named: bool) -> Config | None:
    if is_address(source):
        return Config(servers=(server_at(source),), settings=_IN_MEMORY)
    path = at_home(source)
    try:
        is_directory, is_there = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_directory = is_there = False
    if not is_there:
        raise UsageFault(
            fact=f"there is no file {source}",
            advice="Give a Python file, a directory, a dump, a configuration, or a server's http(s) address.",
        )
    if is_directory or path.suffix in PYTHON or not path.is_file():
        return None
    return find([source])[0].config if is_named else find_unnamed(path).config


def _asked(config: Config, source: str) -> tuple[DeclaredTools, list[str]]:
    try:
        from truename.cli.live import UpstreamError, ask_each  # noqa: PLC0415 - starts the gateway's half of the package
    except ModuleNotFoundError as error:
        raise without_gateway(error) from error
    answers: Mapping[str, Any] = ask_each(config)
    failed = [key for key, answer in answers.items() if isinstance(answer, UpstreamError)]
    for key in failed:
        say(styled("error: ", "bold red"), styled(str(answers[key])))
    lists = [(key, answer) for key, answer in answers.items() if key not in failed]
    declarations, findings = declared_by(lists, source)
    said = config.identities
    known = tuple(replace(one, identity=said[one.server]) if one.server in said else one for one in declarations)
    return DeclaredTools(declarations=known, findings=tuple(findings), files=(source,)), failed
