"""Put the scripts of the documentation's site into `.cache/docsite`: python requirements/site_scripts.py.

They come from their npm packages and are not in the repository. Without Mermaid the site shows diagrams as text;
without the other one the search of a site that is opened as a file stays empty.
"""

from __future__ import annotations

import sys
from typing import Final

from npm_package import ROOT, NpmFile, NpmPackage

_FOLDER: Final = ROOT / ".cache" / "docsite"
_SCRIPTS: Final = (
    NpmPackage(
        name="mermaid@11.17.2",
        files=(
            NpmFile(
                member="package/dist/mermaid.min.js",
                sha256="581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8",
                target=_FOLDER / "mermaid.js",
            ),
        ),
        without="diagrams are shown as text",
    ),
    NpmPackage(
        name="iframe-worker@1.0.4",
        files=(
            NpmFile(
                member="package/shim/index.js",
                sha256="e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609",
                target=_FOLDER / "iframe-worker.js",
            ),
        ),
        without="a site that is opened as a file has no search",
    ),
)

if __name__ == "__main__":
    sys.exit(max(package.fetch() for package in _SCRIPTS))
