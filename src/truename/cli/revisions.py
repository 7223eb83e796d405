"""What a repository held at another time: ``git:REVISION:PATH``, a file or a directory of that revision."""

from __future__ import annotations

import io
import subprocess
import tarfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from truename.cli.failure import UsageFault

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PREFIX", "checked_out"]

PREFIX: Final = "git:"
_FORM: Final = "Write it as git:REVISION:PATH, as in git:main:src."
_MOST: Final = 512 * 1024 * 1024
_SECONDS: Final = 120


@contextmanager
def checked_out(source: str) -> Iterator[Path]:
    """Put a file or a directory of a revision into a directory of its own, for as long as it is looked at.

    Raises `UsageFault` for what is no such text, and for what git says is not there.
    """
    revision, colon, path = source.removeprefix(PREFIX).partition(":")
    if not colon or not revision or not path or revision.startswith("-"):
        raise UsageFault(fact=f"{source!r} names no file of a revision", advice=_FORM)
    packed = _archived(revision, path, source)
    with TemporaryDirectory(prefix="truename-") as directory:
        _unpack(packed, Path(directory))
        yield Path(directory) / path


def _unpack(packed: bytes, directory: Path) -> None:
    """Write the plain files; a revision is no less hostile than a server, so links and paths upwards are left out."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            target = directory / member.name
            if ".." in target.parts or not target.is_relative_to(directory):
                continue
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


def _archived(revision: str, path: str, source: str) -> bytes:
    command = ["git", "archive", "--format=tar", revision, "--", path]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603 - no shell
    except FileNotFoundError as error:
        raise UsageFault(fact="git is not installed", advice="Install it, or give a file.") from error
    except subprocess.TimeoutExpired as error:
        raise UsageFault(fact=f"git did not give {source} in time", advice="Give a file.") from error
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.decode("utf-8", "replace").split())[:200]
        raise UsageFault(fact=f"git has no {source} ({said})", advice="Check the revision and the path.") from error
    if len(done.stdout) > _MOST:
        raise UsageFault(fact=f"{source} is larger than {_MOST:,} bytes", advice="Name a smaller part of it.")
    return done.stdout
