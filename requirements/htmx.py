"""Put htmx, with which pages of the console update themselves, where wheels take it from: python requirements/htmx.py.

It comes from its npm package and is not in the repository. Without it the pages work too: they are plain links and
forms, and are loaded anew to see what changed.
"""

from __future__ import annotations

import sys
from typing import Final

from npm_package import ROOT, NpmFile, NpmPackage

_FOLDER: Final = ROOT / "src/truename/console/static"
HTMX: Final = NpmPackage(
    name="htmx.org@2.0.11",
    files=(
        NpmFile(
            member="package/dist/htmx.min.js",
            sha256="d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
            target=_FOLDER / "htmx.min.js",
        ),
        NpmFile(
            member="package/LICENSE",
            sha256="d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
            target=_FOLDER / "htmx.LICENSE.txt",
        ),
    ),
    without="the console's pages do not update themselves",
)

if __name__ == "__main__":
    sys.exit(HTMX.fetch())
