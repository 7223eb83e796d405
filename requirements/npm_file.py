"""Take files out of an npm package, if npm is there and each file is the one that is expected."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["NpmFile", "fetch"]


class NpmFile(NamedTuple):
    """A member of a package, the file that it becomes, and its SHA-256."""

    member: str
    target: Path
    sha256: str

    @property
    def is_there(self) -> bool:
        """Return whether the target is this file."""
        return self.target.is_file() and hashlib.sha256(self.target.read_bytes()).hexdigest() == self.sha256


def fetch(package: str, files: tuple[NpmFile, ...], without: str) -> int:
    """Write files of a package to their targets, unless all are there; return the exit status.

    Without npm or a registry nothing is written and a message tells the effect (``without``): that is no error.
    """
    if all(file.is_there for file in files):
        return 0
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write(f"There is no npm, so {without}. Install Node.js for it.\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([npm, "pack", "--silent", package], cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603 - a constant
        archives = [*Path(folder).glob("*.tgz")]
        if done.returncode or not archives:
            sys.stderr.write(f"npm cannot fetch {package}, so {without}.\n")
            return 0
        taken = {}
        with tarfile.open(archives[0]) as opened:
            for file in files:
                found = opened.extractfile(file.member)
                taken[file] = b"" if found is None else found.read()
    for file, raw in taken.items():
        if hashlib.sha256(raw).hexdigest() != file.sha256:
            sys.stderr.write(f"{file.member} of {package} is not the file that was expected; nothing was written.\n")
            return 1
    for file, raw in taken.items():
        file.target.parent.mkdir(parents=True, exist_ok=True)
        file.target.write_bytes(raw)
    return 0
