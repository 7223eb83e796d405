"""What `truename lint` is given: Python sources, dumps, and servers that are started and asked for their tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.cli.failure import UsageFault
from truename.cli.rendering import say, styled
from truename.cli.scene import without_gateway
from truename.cli.sources import find
from truename.config import Config, ServerConfig, Settings
from truename.lint import Declared, read_declared
from truename.lint.declared import joined
from truename.lint.dumps import declared_by
from truename.lint.walk import PYTHON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Taken", "take"]

_SCHEMES: Final = ("http://", "https://")
_IN_MEMORY: Final = Settings(ledger="memory")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """All that was declared, the servers that failed, and whether it is more than single files of Python."""

    declared: Declared
    failed: tuple[str, ...] = ()
    is_whole: bool = True


def take(sources: Sequence[str], exclude: Sequence[str]) -> Taken:
    """Read every source; the servers of configurations and of addresses are started and asked.

    Raises `UsageFault` for a source that is not there, and what is wrong with a configuration (`ConfigError`).
    """
    parts: list[Declared] = []
    failed: list[str] = []
    is_whole = False
    for source in sources:
        config = _configuration(source)
        is_whole |= config is not None or Path(source).suffix not in PYTHON
        if config is None:
            parts.append(read_declared([Path(source).expanduser()], exclude=exclude))
        else:
            declared, down = _asked(config, source)
            parts.append(declared)
            failed += down
    return Taken(declared=joined(parts), failed=tuple(failed), is_whole=is_whole)


def _configuration(source: str) -> Config | None:
    if source.lower().startswith(_SCHEMES):
        return _address(source)
    path = Path(source).expanduser()
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
    return find([source])[0].config


def _address(source: str) -> Config:
    try:
        host = urlsplit(source).hostname
    except ValueError:
        host = None
    if not host:
        raise UsageFault(fact=f"{source!r} is not an address", advice="Write it as http://HOST:PORT/PATH.")
    server = ServerConfig(key=host.replace(".", "-").replace(":", "-"), url=source, type="http")
    return Config(servers=(server,), settings=_IN_MEMORY)


def _asked(config: Config, source: str) -> tuple[Declared, list[str]]:
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
    return Declared(declarations=tuple(declarations), findings=tuple(findings), files=(source,)), failed
