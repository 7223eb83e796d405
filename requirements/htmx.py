"""Put htmx, with which pages of the console update themselves, where wheels take it from: python requirements/htmx.py.

It comes from its npm package and is not in the repository. Without it the pages work too: they are plain links and
forms, and are loaded anew to see what changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from npm_file import fetch

_PACKAGE: Final = "htmx.org@2.0.11"
_FILE: Final = "package/dist/htmx.min.js"
_SHA256: Final = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
_TARGET: Final = Path(__file__).resolve().parent.parent / "src/truename/console/static/htmx.min.js"

if __name__ == "__main__":
    sys.exit(fetch(_PACKAGE, _FILE, _SHA256, _TARGET, "the console's pages do not update themselves"))
