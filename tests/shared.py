"""What tests of all rooms share: where the collection of facts and real catalogues lies, and how patient to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

__all__ = ["ROOT", "UNHURRIED", "shared"]

ROOT: Final = Path(__file__).resolve().parent.parent
# Seconds of processor time for what takes hours when it is not linear: no statement about speed, on any machine.
UNHURRIED: Final = 60.0
_WHERE: Final = Path(os.environ.get("TRUENAME_SHARED") or ROOT.parent / "shared")


def shared(*parts: str) -> Path:
    """Return a file of the collection; without it the test is skipped, in CI it fails."""
    path = _WHERE.joinpath(*parts)
    if path.exists():
        return path
    word = f"the shared collection has no {'/'.join(parts)}; set TRUENAME_SHARED to where it lies"
    if os.environ.get("CI") == "true":
        pytest.fail(word, pytrace=False)
    pytest.skip(word)
