"""Fetch axe-core, which checks in a browser that the console's pages are accessible: python requirements/axe.py.

Only tests use it. It comes from its npm package and is not in the repository.
"""

from __future__ import annotations

import sys
from typing import Final

from npm_package import ROOT, NpmFile, NpmPackage

AXE: Final = NpmPackage(
    name="axe-core@4.14.1",
    files=(
        NpmFile(
            member="package/axe.min.js",
            sha256="29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
            target=ROOT / ".cache/axe/axe.min.js",
        ),
    ),
    without="no test checks that the console's pages are accessible",
)

if __name__ == "__main__":
    sys.exit(AXE.fetch())
