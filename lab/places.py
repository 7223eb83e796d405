"""Where things of the lab are: its home with the installed clients, its results, this repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["FRAMEWORKS", "RESULTS", "ROOT", "home", "shared"]

ROOT: Final = Path(__file__).resolve().parent.parent
FRAMEWORKS: Final = ROOT / "lab" / "frameworks"
RESULTS: Final = ROOT / "lab" / "results"


def home() -> Path:
    """Return the folder of the installed clients: ``TRUENAME_LAB``, or ``.cache/lab`` of the repository."""
    return Path(os.environ.get("TRUENAME_LAB") or ROOT / ".cache" / "lab").absolute()


def shared() -> Path:
    """Return the folder of the shared collections: ``TRUENAME_SHARED``, or ``shared`` beside the repository."""
    return Path(os.environ.get("TRUENAME_SHARED") or ROOT.parent / "shared").absolute()
