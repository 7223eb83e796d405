"""Find the sources of a command, and ask for consent before a configuration that was found is used."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.audit import with_recorded_revision
from truename.cli._errors import UsageError
from truename.cli._questions import is_agreed, is_terminal
from truename.cli._rendering import say, show_hanging, styled
from truename.config import load, parse
from truename.config.consent import ConsentStore
from truename.config.files import SETTINGS_FILE, ConfigFiles, decode
from truename.config.load import env_file_of
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.config import Config
    from truename.config.consent import Consent

__all__ = [
    "CODE",
    "Disclosure",
    "Source",
    "configuration",
    "default_source",
    "disclose",
    "files_at",
    "find_sources",
    "find_unnamed",
    "give",
    "is_allowed",
    "names_servers",
    "open_found",
    "other_shape",
    "read_aliases",
    "read_configuration",
    "require_addresses",
    "reread",
    "server_entries",
    "show_disclosed",
]

_SERVERS: Final = ("mcpServers", "servers")
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl")
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{[^{}]*\}")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TOML: Final = ".toml"
_LOCK: Final = ".lock"
_DEEPEST: Final = 50
_SECTION: Final = "truename"
# Appended to a file with settings only, so that it can be checked as a configuration.
_NO_SERVERS: Final = "\n[mcpServers]\n"
CODE: Final = "consent_required"
_WHY: Final = (
    "it was found, not named, and its servers and ${...} references may be somebody else's; nothing was started"
)
DEFAULTS: Final = (SETTINGS_FILE, ".mcp.json", "mcp.json")
_SHAPES: Final = '{"mcpServers": {...}}, {"servers": {...}}, or [mcpServers.KEY] or [servers.KEY] in TOML'
_SERVER_FILES: Final = re.compile(r'"(mcpServers|servers)"\s*:')
_GZIP: Final = b"\x1f\x8b"
_HEAD: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Disclosure:
    """The effects of a configuration: servers started or connected, references and where they go, other URLs."""

    servers: tuple[tuple[str, str], ...] = ()
    references: tuple[tuple[str, str], ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()

    def plain(self) -> dict[str, object]:
        """Return the effects as JSON."""
        return {
            "servers": [{"key": key, "does": does} for key, does in self.servers],
            "references": [{"reference": reference, "place": place} for reference, place in self.references],
            "addresses": [{"place": place, "address": address} for place, address in self.addresses],
        }


def disclose(files: ConfigFiles) -> Disclosure:
    """Return the effects of the configuration in these files. Raises `ConfigError`."""
    servers: dict[tuple[str, str], None] = {}
    references: dict[tuple[str, str], None] = {}
    addresses: dict[tuple[str, str], None] = {}
    for path in files.paths:
        # A lock lists sources, and configures nothing.
        content = {} if path.suffix == _LOCK else decode(files.text(path), str(path), toml=path.suffix.lower() == _TOML)
        for _, key, entry in server_entries(content):
            servers[key, _does(entry)] = None
        for place, text in _texts(content, ""):
            found = _REFERENCE.findall(text)
            references |= {(reference, place): None for reference in found}
            is_server = place.startswith(tuple(f"{name}." for name in _SERVERS))
            if _ADDRESS.match(text) and not is_server:
                addresses[place, text] = None
    return Disclosure(servers=tuple(servers), references=tuple(references), addresses=tuple(addresses))


def server_entries(content: Mapping[str, object]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield the entries of servers in a configuration, each with the key of its table and its own key."""
    for name in _SERVERS:
        entries = content.get(name)
        if isinstance(entries, dict):
            yield from ((name, key, entry) for key, entry in entries.items() if isinstance(entry, dict))


def _does(entry: Mapping[str, object]) -> str:
    told = [f"connects to {entry[name]}" for name in _ADDRESSES if isinstance(entry.get(name), str)]
    if entry.get("command") is not None:
        told.append(_starts(entry))
    switched_off = " (disabled)" if entry.get("disabled") is True else ""
    return (" and ".join(told) or "does nothing") + switched_off


def _starts(entry: Mapping[str, object]) -> str:
    from truename.clients.doctor.file_findings import masked  # noqa: PLC0415 - costs 70 ms that only a disclosure needs

    arguments = entry.get("args")
    words = [entry["command"], *(arguments if isinstance(arguments, list) else ())]
    variables = entry.get("env")
    pairs = variables.items() if isinstance(variables, dict) else ()
    environment = [f"{name}={shlex.quote(masked(str(value), str(name)))}" for name, value in pairs]
    where = f" (in {entry['cwd']})" if entry.get("cwd") else ""
    return f"starts {' '.join([*environment, shlex.join(map(str, words))])}{where}"


def _texts(value: object, place: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every string of a document with its dotted path."""
    if isinstance(value, str):
        yield place, value
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{place}.{key}" if place else str(key), depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{place}[{number}]", depth + 1)


def names_servers(path: Path, files: ConfigFiles | None = None) -> bool:
    """Return whether a TOML file configures servers, not only settings. Raises `ConfigError`."""
    content = _toml(path, ConfigFiles() if files is None else files)
    return any(name in content for name in _SERVERS)


def configured_beside(settings: Path, names: Sequence[str]) -> Path | None:
    """Return the first of these files that exists in the same directory."""
    return next((path for name in names if (path := settings.with_name(name)).is_file()), None)


def read_configuration(
    path: Path, environ: Mapping[str, str] | None = None, files: ConfigFiles | None = None
) -> Config:
    """Read a configuration with the settings of a truename.toml beside it, which its own settings override.

    Raises `ConfigError` and groups of them.
    """
    files = ConfigFiles() if files is None else files
    beside = _settings_file(path, files)
    if beside is None:
        return load(path, environ, files)
    if names_servers(beside, files):
        say(styled("note: ", "yellow"), f"{beside} has servers of its own, so its settings don't apply to {path}.")
        return load(path, environ, files)
    parse(files.text(beside) + _NO_SERVERS, beside, environ, files)
    text = files.text(path)
    content = decode(text, str(path), toml=False)
    section = content.get(_SECTION, {})
    if not isinstance(section, dict):
        return parse(text, path, environ, files)  # raises the error
    content[_SECTION] = _settings(beside, files) | section
    return parse(json.dumps(content), path, environ, files)


def read_files(path: Path, files: ConfigFiles) -> tuple[Path, ...]:
    """Read the files of a configuration: the file itself, and a truename.toml beside it. Raises `ConfigError`."""
    beside = _settings_file(path, files)
    found = (path,) if beside is None else (path, beside)
    for file in found:
        decode(files.text(file), str(file), toml=file.suffix.lower() == _TOML)
    return found


def read_variables(path: Path, files: ConfigFiles, environ: Mapping[str, str] | None = None) -> None:
    """Read the files of a configuration and their ``env_file``. Raises `ConfigError` and groups of them."""
    for file in read_files(path, files):
        env_file = env_file_of(files.text(file), file, environ)
        if env_file is not None:
            files.env(env_file)


def _settings_file(path: Path, files: ConfigFiles) -> Path | None:
    beside = path.with_name(SETTINGS_FILE)
    return beside if path.suffix.lower() != _TOML and files.has(beside) else None


def _settings(path: Path, files: ConfigFiles) -> dict[str, Any]:
    content = _toml(path, files)
    section: dict[str, Any] = content.pop(_SECTION, {})
    return content | section


def _toml(path: Path, files: ConfigFiles) -> dict[str, Any]:
    return decode(files.text(path), str(path), toml=True)


def open_found(path: Path, environ: Mapping[str, str] | None = None, *, may_ask: bool = True) -> Config:
    """Read a configuration that was found, not named, if the user has allowed it in its present state.

    Each file is read once, so that the bytes in use are those that were allowed. Raises `UsageError`
    (``consent_required``) without consent, and everything that `read_configuration` raises.
    """
    files = _consented(path, environ, may_ask=may_ask)
    files.seal()
    return read_configuration(path, environ, files)


def require_addresses(addresses: Sequence[str], named_by: Path) -> None:
    """Require consent to a file that lists URLs of servers to connect to. Raises as `open_found`."""
    files = _consented(named_by, addresses=addresses)
    text = files.text(named_by)
    for address in addresses:
        # The list of sources was read before, so the file may have changed since.
        if address not in text:
            advice = "Run the command again."
            raise UsageError(fact=f"{named_by} changed while it was read", advice=advice, code=CODE)


def _consented(
    path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    may_ask: bool = True,
    addresses: Sequence[str] = (),
) -> ConfigFiles:
    """Read the files of a configuration and check the consent; ask for it, or raise `UsageError`."""
    files, store = files_at(path), ConsentStore.here()
    if is_allowed(path, files, store.get(path), environ):
        return files
    if may_ask and is_terminal():
        if _agreed(path, files, addresses):
            give(path, files, environ)
            return files
        fact = f"{path} is not used: you did not allow it"
    else:
        before = _changed(files) if store.get(path) is not None else _WHY
        fact = f"{path} needs consent: {before}"
    named = shlex.quote(str(path))
    advice = f"Review it, then run `truename allow {named}`; a path on the command line allows it for one command."
    raise UsageError(fact=fact, advice=advice, code=CODE)


def files_at(path: Path) -> ConfigFiles:
    """Read the files of a configuration, or a file that lists sources, but not the files that they refer to.

    Raises `ConfigError`.
    """
    files = ConfigFiles(regular=True)
    if path.suffix == _LOCK:
        files.text(path)
    else:
        read_files(path, files)
    return files


def give(path: Path, files: ConfigFiles, environ: Mapping[str, str] | None = None) -> str:
    """Store consent to these files and those they refer to; return the digest. Raises `ConfigError`, `OSError`."""
    digest = files.digest(path.parent)
    ConsentStore.here().give(path, digest, _whole(path, files, environ))
    return digest


def is_allowed(
    path: Path, files: ConfigFiles, consent: Consent | None, environ: Mapping[str, str] | None = None
) -> bool:
    """Return whether a consent covers these files, and the files that they refer to, which are read then."""
    if consent is None or consent.digest != files.digest(path.parent):
        return False
    return consent.whole == _whole(path, files, environ)


def _whole(path: Path, files: ConfigFiles, environ: Mapping[str, str] | None) -> str:
    if path.suffix != _LOCK:
        read_variables(path, files, environ)
    return files.digest(path.parent)


def show_disclosed(found: Disclosure, addresses: Sequence[str] = (), *, error: bool = False) -> None:
    """Print the effects of a configuration: servers, references and other URLs."""
    rows = [(styled(key, "bold"), styled(does)) for key, does in found.servers]
    rows += [(styled("connects to", "dim"), styled(address)) for address in addresses]
    rows += [(styled(reference, "yellow"), styled(f"goes to {place}")) for reference, place in found.references]
    rows += [(styled(place, "dim"), styled(address)) for place, address in found.addresses if address not in addresses]
    show_hanging(rows, indent=2, error=error)


def _changed(files: ConfigFiles) -> str:
    """Return the text that files changed since they were allowed; the digest does not tell which."""
    return f"{' or '.join(one.name for one in files.paths)} changed since it was allowed"


def _agreed(path: Path, files: ConfigFiles, addresses: Sequence[str]) -> bool:
    """Show the effects of a configuration that was found, and ask for consent to it."""
    changed = f" {_changed(files)}." if ConsentStore.here().get(path) is not None else ""
    say(f"{path} was found here, not named.{changed} It would run these programs and send these references:")
    show_disclosed(disclose(files), addresses, error=True)
    return is_agreed("Allow it as it is now? [y/N] ")


@dataclass(frozen=True, slots=True)
class Source:
    """A source: its path, and its configuration unless it is a dump."""

    path: Path
    config: Config | None


def find_sources(sources: Sequence[str], environ: Mapping[str, str] | None = None) -> tuple[Source, ...]:
    """Return the given sources or, without any, the default one of this directory, which needs consent.

    Raises `UsageError` if there is none, or no consent, and `ConfigError` for an invalid configuration.
    """
    if not sources:
        path = default_source()
        return (Source(path, open_found(path, environ) if _configures(path) else None),)
    return tuple(_found(at_home(source), environ) for source in sources)


def find_unnamed(path: Path) -> Source:
    """Return a source that was not named on the command line: a configuration needs the user's consent.

    Raises as `find_sources`.
    """
    if not _configures(path):
        return Source(path, None)
    path = _configuration_at(path)
    return Source(path, open_found(path))


def reread(config: Path, source: str | None) -> Config:
    """Read a configuration again, as `configuration` did for this source, without asking for consent."""
    return configuration(str(config)) if source else open_found(config, may_ask=False)


def default_source() -> Path:
    """Return the default source of this directory. Raises `UsageError` if there is none."""
    path = next((path for path in map(Path, DEFAULTS) if path.is_file()), None)
    if path is None:
        raise UsageError(
            fact=f"no SOURCE was given, and there is no {', '.join(DEFAULTS[:-1])} or {DEFAULTS[-1]} here",
            advice="Give a configuration (the mcpServers file of any client) or a dump of tools/list answers.",
        )
    return _configuration_at(path) if _configures(path) else path


def _found(path: Path, environ: Mapping[str, str] | None) -> Source:
    if not _configures(path):
        return Source(path, None)
    path = _configuration_at(path)
    return Source(path, read_configuration(path, environ))


def _configuration_at(path: Path) -> Path:
    """Return the file; if it has only settings, the configuration beside it. Raises `UsageError` if there is none."""
    if path.suffix.lower() != _TOML or names_servers(path):
        return path
    if path.name != SETTINGS_FILE:
        raise UsageError(
            fact=f"{path} has no servers",
            advice=f"Add [mcpServers.KEY] with a command or url; settings alone have to be in a {SETTINGS_FILE}.",
        )
    beside = configured_beside(path, DEFAULTS[1:])
    if beside is None:
        raise UsageError(
            fact=f"{path} has settings but no servers, and there is no {' or '.join(DEFAULTS[1:])} beside it",
            advice="Add [mcpServers.KEY] with a command or url, or put it beside the mcpServers file it is for.",
        )
    return beside


def configuration(source: str | None, environ: Mapping[str, str] | None = None) -> Config:
    """Return the configuration for a command that needs one. Raises `UsageError` for a dump, and `ConfigError`.

    Its state is compared with the audit log when it is opened.
    """
    (found,) = find_sources([source] if source else [], environ)
    if found.config is None and not (found.path.is_file() and os.access(found.path, os.R_OK)):
        # Reading it raises the best error.
        return read_configuration(found.path, environ)
    if found.config is None:
        raise UsageError(
            fact=f"{found.path} is a dump of tools, not a configuration of servers",
            advice='Give a file with {"mcpServers": {...}}, or see `truename names` for a dump.',
        )
    return with_recorded_revision(found.config)


def read_aliases(pairs: Sequence[str]) -> dict[str, str]:
    """Return the aliases written as integration=short. Raises `UsageError`."""
    aliases: dict[str, str] = {}
    for pair in pairs:
        integration, equals, alias = pair.partition("=")
        if not equals or not integration or not alias:
            raise UsageError(fact=f"{pair!r} is not an alias", advice="Write it as in --alias salesforce=sf.")
        aliases[integration] = alias
    return aliases


def _configures(path: Path) -> bool:
    """Return whether a file is a configuration; False for an unreadable one, which the reader of dumps reports."""
    if path.suffix.lower() == _TOML:
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return False
    if head.startswith(_GZIP) or not _SERVER_FILES.search(head.decode("utf-8", "replace")):
        return False
    return _names_servers(path)


def _names_servers(path: Path) -> bool:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError):
        # Comments are legal only in configurations, whose reader also gives the best errors.
        return True
    if not isinstance(content, dict):
        return False
    servers = content.get("mcpServers", content.get("servers"))
    return not isinstance(servers, list) and not (isinstance(servers, dict) and isinstance(servers.get("tools"), list))


def other_shape(path: Path) -> UsageError | None:
    """Return the error for a JSON file that configures servers in an unknown form, or None."""
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    values = content.values() if isinstance(content, dict) else ()
    entries = [entry for value in values if isinstance(value, dict) for entry in value.values()]
    if not any(isinstance(entry, dict) and entry.keys() & {"command", "url", "httpUrl"} for entry in entries):
        return None
    return UsageError(
        fact=f"{path} looks like a configuration in an unknown form, and has no list of tools",
        advice=f"Write its servers as {_SHAPES}.",
    )
