"""Put the scripts of the documentation's site into `.cache/docsite`: python requirements/site_scripts.py.

They come from their npm packages and are not in the repository. Without Mermaid the site shows diagrams as text;
without the other one the search of a site that is opened as a file stays empty.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from npm_file import NpmFile, fetch

_FOLDER: Final = Path(__file__).resolve().parent.parent / ".cache" / "docsite"
_SCRIPTS: Final = (
    (
        "mermaid@11.17.2",
        NpmFile(
            "package/dist/mermaid.min.js",
            _FOLDER / "mermaid.js",
            "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8",
        ),
        "diagrams are shown as text",
    ),
    (
        "iframe-worker@1.0.4",
        NpmFile(
            "package/shim/index.js",
            _FOLDER / "iframe-worker.js",
            "e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609",
        ),
        "a site that is opened as a file has no search",
    ),
)

if __name__ == "__main__":
    sys.exit(max(fetch(package, (file,), without) for package, file, without in _SCRIPTS))
