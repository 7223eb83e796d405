"""Put htmx, with which pages of the console update themselves, where wheels take it from: python requirements/htmx.py.

It comes from its npm package, with its licence, and is not in the repository. Without it the pages work too: they are
plain links and forms, and are loaded anew to see what changed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

_PACKAGE: Final = "htmx.org@2.0.11"
_FOLDER: Final = Path(__file__).resolve().parent.parent / "src/truename/console/static"
# What is taken from the package: its member, the file that it becomes, its SHA-256.
_FILES: Final = (
    ("package/dist/htmx.min.js", "htmx.min.js", "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"),
    ("package/LICENSE", "htmx.LICENSE.txt", "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38"),
)


def _is_there(name: str, digest: str) -> bool:
    path = _FOLDER / name
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def main() -> int:
    """Fetch the files unless they are there; return the exit status."""
    if all(_is_there(name, digest) for _, name, digest in _FILES):
        return 0
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("There is no npm, so the console's pages do not update themselves. Install Node.js for it.\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([npm, "pack", "--silent", _PACKAGE], cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603 - a constant
        archives = [*Path(folder).glob("*.tgz")]
        if done.returncode or not archives:
            sys.stderr.write(f"npm cannot fetch {_PACKAGE}, so the console's pages do not update themselves.\n")
            return 0
        taken = {}
        with tarfile.open(archives[0]) as package:
            for member, name, digest in _FILES:
                found = package.extractfile(member)
                taken[name] = b"" if found is None else found.read()
                if hashlib.sha256(taken[name]).hexdigest() != digest:
                    sys.stderr.write(
                        f"{member} of {_PACKAGE} is not the file that was expected; nothing was written.\n"
                    )
                    return 1
    for name, raw in taken.items():
        (_FOLDER / name).write_bytes(raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
