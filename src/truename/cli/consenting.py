"""The one way to a configuration that was found and not named: with its user's consent, and as it was consented to."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Final

from truename.cli.beside import read_configuration, read_files, read_variables
from truename.cli.failure import UsageFault
from truename.cli.hanging import show_hanging
from truename.cli.rendering import output, say, styled
from truename.config.consent import ConsentStore
from truename.config.reading import ConfigFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from truename.cli.disclosed import Disclosed
    from truename.config import Config
    from truename.config.consent import Consent

__all__ = ["CODE", "files_at", "give", "is_allowed", "open_found", "require_addresses", "show_disclosed"]

CODE: Final = "consent_required"
_YES: Final = ("y", "yes")
_LOCK: Final = ".lock"
_WHY: Final = "it was found, not named, and its servers and ${...} references may be a stranger's; nothing was started"


def open_found(path: Path, environ: Mapping[str, str] | None = None, *, may_ask: bool = True) -> Config:
    """Read a configuration that nobody named, if its user allowed it as it is now.

    Each of its files is read once: what was consented to is what is used. Raises `UsageFault` (``consent_required``)
    without consent, and what `read_configuration` raises.
    """
    files = _consented(path, environ, may_ask=may_ask)
    files.seal()
    return read_configuration(path, environ, files)


def require_addresses(addresses: Sequence[str], named_by: Path) -> None:
    """See that the user allowed the file that names these addresses, which nobody typed. Raises as `open_found`."""
    files = _consented(named_by, addresses=addresses)
    text = files.text(named_by)
    for address in addresses:
        # The list of sources was read by another reader, and earlier.
        if address not in text:
            advice = "Run the command again."
            raise UsageFault(fact=f"{named_by} changed while it was read", advice=advice, code=CODE)


def _consented(
    path: Path,
    environ: Mapping[str, str] | None = None,
    *,
    may_ask: bool = True,
    addresses: Sequence[str] = (),
) -> ConfigFiles:
    """Return the files of a configuration, read, for which there is consent; else ask for it, or raise `UsageFault`."""
    files, store = files_at(path), ConsentStore.here()
    if is_allowed(path, files, store.get(path), environ):
        return files
    if may_ask and is_terminal():
        if _agreed(path, files, addresses):
            give(path, files, environ)
            return files
        fact = f"{path} is not used: its user said no"
    else:
        before = _changed(files) if store.get(path) is not None else _WHY
        fact = f"{path} needs consent: {before}"
    named = shlex.quote(str(path))
    advice = f"Look at it, then say `truename allow {named}`; a path on the command line counts for one command."
    raise UsageFault(fact=fact, advice=advice, code=CODE)


def files_at(path: Path) -> ConfigFiles:
    """Read the files of a configuration, or one other file that names sources; nothing that they name.

    Raises `ConfigError`.
    """
    files = ConfigFiles(regular=True)
    if path.suffix == _LOCK:
        files.text(path)
    else:
        read_files(path, files)
    return files


def give(path: Path, files: ConfigFiles, environ: Mapping[str, str] | None = None) -> str:
    """Allow these files, and what they name now; return their digest. Raises `ConfigError`, `OSError`."""
    digest = files.digest(path.parent)
    ConsentStore.here().give(path, digest, _whole(path, files, environ))
    return digest


def is_allowed(
    path: Path, files: ConfigFiles, consent: Consent | None, environ: Mapping[str, str] | None = None
) -> bool:
    """Tell whether this is consent to these files and to what they name, which is read if it is to the files."""
    if consent is None or consent.digest != files.digest(path.parent):
        return False
    return consent.whole == _whole(path, files, environ)


def _whole(path: Path, files: ConfigFiles, environ: Mapping[str, str] | None) -> str:
    if path.suffix != _LOCK:
        read_variables(path, files, environ)
    return files.digest(path.parent)


def is_terminal() -> bool:
    """Tell whether somebody can be asked."""
    return sys.stdin.isatty() and output(error=True).is_terminal


def show_disclosed(found: Disclosed, addresses: Sequence[str] = (), *, error: bool = False) -> None:
    """Print what a configuration would do, server by server, and which references go where."""
    rows = [(styled(key, "bold"), styled(does)) for key, does in found.servers]
    rows += [(styled("connects to", "dim"), styled(address)) for address in addresses]
    rows += [(styled(reference, "yellow"), styled(f"goes to {place}")) for reference, place in found.references]
    rows += [(styled(place, "dim"), styled(address)) for place, address in found.addresses if address not in addresses]
    show_hanging(rows, indent=2, error=error)


def _changed(files: ConfigFiles) -> str:
    """Say which files may have changed: consent is to all of them together."""
    return f"{' or '.join(one.name for one in files.paths)} changed since it was allowed"


def _agreed(path: Path, files: ConfigFiles, addresses: Sequence[str]) -> bool:
    from truename.cli.disclosed import disclosed  # noqa: PLC0415 - only where somebody is asked

    changed = f" {_changed(files)}." if ConsentStore.here().get(path) is not None else ""
    say(f"{path} was found here, not named.{changed} With it these programs run and these references are sent:")
    show_disclosed(disclosed(files), addresses, error=True)
    say(styled("Allow it as it is now? [y/N] ", "bold"))
    return sys.stdin.readline().strip().lower() in _YES
