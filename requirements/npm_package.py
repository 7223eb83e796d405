"""Fetch files of an npm package whose digests are known."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ROOT", "NpmFile", "NpmPackage"]

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class NpmFile:
    """A file of a package, and where it belongs."""

    member: str
    sha256: str
    target: Path

    def fits(self, content: bytes) -> bool:
        """Return whether this is the content that was reviewed."""
        return hashlib.sha256(content).hexdigest() == self.sha256


@dataclass(frozen=True, kw_only=True)
class NpmPackage:
    """A package at a version, and its files; ``without`` says what is missing where they cannot be fetched."""

    name: str
    files: tuple[NpmFile, ...]
    without: str

    def fetch(self) -> int:
        """Fetch the files unless they are there; return the exit status, which is 1 only for files that are others."""
        if all(one.target.is_file() and one.fits(one.target.read_bytes()) for one in self.files):
            return 0
        npm = shutil.which("npm")
        if npm is None:
            sys.stderr.write(f"There is no npm, so {self.without}. Install Node.js for it.\n")
            return 0
        contents = self._packed(npm)
        if contents is None:
            sys.stderr.write(f"npm cannot fetch {self.name}, so {self.without}.\n")
            return 0
        for one in self.files:
            if not one.fits(contents[one.member]):
                sys.stderr.write(
                    f"{one.member} of {self.name} is not the file that was expected; nothing was written.\n"
                )
                return 1
        for one in self.files:
            one.target.parent.mkdir(parents=True, exist_ok=True)
            one.target.write_bytes(contents[one.member])
        return 0

    def _packed(self, npm: str) -> dict[str, bytes] | None:
        with tempfile.TemporaryDirectory() as folder:
            command = [npm, "pack", "--silent", self.name]
            done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603 - constants
            archives = [*Path(folder).glob("*.tgz")]
            if done.returncode or not archives:
                return None
            with tarfile.open(archives[0]) as package:
                found = {one.member: package.extractfile(one.member) for one in self.files}
                return {member: b"" if file is None else file.read() for member, file in found.items()}
