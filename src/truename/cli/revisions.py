"""What a repository held at another time: ``git:REVISION:PATH``, a file or a directory of that revision."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from posixpath import normpath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.cli.failure import UsageFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["PREFIX", "checked_out"]

PREFIX: Final = "git:"
_FORM: Final = "Write it as git:REVISION:PATH, as in git:main:src."
_MOST: Final = 512 * 1024 * 1024
_SECONDS: Final = 120
_LONGEST_HEAD: Final = 200
# Plain files only: neither links nor modules of others.
_ENTRY: Final = re.compile(rb"100[0-7]{3} blob ([0-9a-f]+) +([0-9]+)\t(.+)", re.DOTALL)


class _File(NamedTuple):
    """A file of a revision: its object, its size, and its place below what was asked for."""

    object: str
    size: int
    place: str


@contextmanager
def checked_out(source: str) -> Iterator[Path]:
    """Put a file or a directory of a revision into a directory of its own, for as long as it is looked at.

    The bytes are those that were committed: neither attributes (``export-ignore``) nor filters change what is
    compared. Raises `UsageFault` for what is no such text, and for what git says is not there.
    """
    revision, colon, path = source.removeprefix(PREFIX).partition(":")
    if not colon or not revision or not path or revision.startswith("-"):
        raise UsageFault(fact=f"{source!r} names no file of a revision", advice=_FORM)
    if path.startswith("/"):
        raise UsageFault(fact=f"{source} is no path as seen from here", advice=_FORM)
    files = _files(revision, path, source)
    if sum(one.size for one in files) > _MOST:
        raise UsageFault(fact=f"{source} is larger than {_MOST:,} bytes", advice="Name a smaller part of it.")
    content = _contents(files, source)
    with TemporaryDirectory(prefix="truename-") as directory:
        base = Path(directory).joinpath(*(part for part in PurePosixPath(path).parts if part != ".."))
        _unpack(files, content, base, source)
        yield base


def _files(revision: str, path: str, source: str) -> list[_File]:
    here = _git(source, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").removesuffix("\n")
    place = normpath(here + path)
    found = _git(source, "rev-parse", "--verify", f"{revision}:{'' if place == '.' else place}").decode().strip()
    kind, _, size = _git(source, "cat-file", "--batch-check=%(objecttype) %(objectsize)", asked=[found]).partition(b" ")
    if kind == b"blob":
        return [_File(found, int(size), "")]
    # Without --full-tree it would look for the present directory inside of what was named.
    entries = _git(source, "ls-tree", "-r", "-z", "-l", "--full-tree", found).split(b"\0")
    matches = [match for entry in entries if (match := _ENTRY.fullmatch(entry))]
    return [_File(one[1].decode(), int(one[2]), one[3].decode("utf-8", "surrogateescape")) for one in matches]


def _contents(files: Sequence[_File], source: str) -> bytes:
    """Return all files behind each other, each with a line in front and a line's end behind."""
    return _git(source, "cat-file", "--batch", asked=[one.object for one in files]) if files else b""


def _unpack(files: Sequence[_File], content: bytes, base: Path, source: str) -> None:
    """Write the files; a revision is no less hostile than a server, so paths upwards are left out."""
    (base.parent if [one.place for one in files] == [""] else base).mkdir(parents=True, exist_ok=True)
    start = 0
    for one in files:
        head, _, _ = content[start : start + _LONGEST_HEAD].partition(b"\n")
        if not head.endswith(b" blob %d" % one.size):
            raise UsageFault(fact=f"git lacks a file of {source}", advice="Fetch it whole: `git fetch --refetch`.")
        start += len(head) + 1
        target = base / one.place if one.place else base
        if ".." not in PurePosixPath(one.place).parts:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content[start : start + one.size])
            except OSError as error:
                fact = f"{one.place!r} of {source} can't be put on this disk ({error.strerror or error})"
                raise UsageFault(fact=fact, advice="Name a smaller part of it.") from error
        start += one.size + 1


def _git(source: str, *words: str, asked: Sequence[str] = ()) -> bytes:
    given = "".join(f"{one}\n" for one in asked).encode()
    try:
        done = subprocess.run(["git", *words], input=given, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603, S607 - no shell; git is wherever it is installed
    except FileNotFoundError as error:
        raise UsageFault(fact="git is not installed", advice="Install it, or give a file.") from error
    except subprocess.TimeoutExpired as error:
        raise UsageFault(fact=f"git did not give {source} in time", advice="Give a file.") from error
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.decode("utf-8", "replace").split())[:200]
        raise UsageFault(fact=f"git has no {source} ({said})", advice="Check the revision and the path.") from error
    return done.stdout
