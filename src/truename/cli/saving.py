"""Writing new files: never over what is there unless asked to, and then what was there is kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import Final

from truename.cli.failure import UsageFault

__all__ = ["PRIVATE", "check_free", "save"]

PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644


def check_free(path: Path, *, force: bool) -> None:
    """Raise `UsageFault` where `save` would have to refuse, before anything is done."""
    if path.is_symlink():
        raise UsageFault(fact=f"{path} is a link to {path.readlink()}", advice="Give the file itself: --out PATH.")
    if path.exists() and not path.is_file():
        raise UsageFault(fact=f"{path} is not a regular file", advice="Give another path: --out PATH.")
    if path.exists() and not force:
        advice = (
            f"--force replaces it and keeps it as {path.name}.bak; --out PATH writes elsewhere; --dry-run only shows."
        )
        raise UsageFault(fact=f"{path} exists already", advice=advice)
    if not path.absolute().parent.is_dir():
        raise UsageFault(
            fact=f"there is no directory {path.absolute().parent}", advice="Make it, or give another --out."
        )


def save(path: Path, text: str, *, mode: int = _PUBLIC, force: bool = False) -> Path | None:
    """Write the file in one piece, and return the copy of what was there before, if anything was.

    Raises `UsageFault` as `check_free`, and `OSError`.
    """
    check_free(path, force=force)
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
        # The file itself under a second name: at no time can more people read it than before.
        os.link(path, backup)
    except FileExistsError:
        return _keep(path)
    except OSError:
        os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        shutil.copy2(path, backup)
    return backup


def _place(name: str, path: Path) -> None:
    try:
        # Unlike a rename, a link never replaces a file that somebody made meanwhile.
        os.link(name, path)
    except FileExistsError:
        check_free(path, force=False)
        raise
    except OSError:
        # Some file systems have no links.
        Path(name).rename(path)
