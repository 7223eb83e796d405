"""Put htmx, with which pages of the console update themselves, where wheels take it from: python requirements/htmx.py.

It comes from its npm package and is not in the repository. Without it the pages work too: they are plain links and
forms, and are loaded anew to see what changed.
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
_FILE: Final = "package/dist/htmx.min.js"
_SHA256: Final = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
_TARGET: Final = Path(__file__).resolve().parent.parent / "src/truename/console/static/htmx.min.js"


def main() -> int:
    """Fetch the file unless it is there; return the exit status."""
    if _TARGET.is_file() and hashlib.sha256(_TARGET.read_bytes()).hexdigest() == _SHA256:
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
        with tarfile.open(archives[0]) as package:
            found = package.extractfile(_FILE)
            raw = b"" if found is None else found.read()
    if hashlib.sha256(raw).hexdigest() != _SHA256:
        sys.stderr.write(f"{_FILE} of {_PACKAGE} is not the file that was expected; nothing was written.\n")
        return 1
    _TARGET.write_bytes(raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
