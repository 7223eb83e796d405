"""What tests of all folders share: their data, the collection of real catalogues, and how patient to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

__all__ = ["DATA", "ROOT", "UNHURRIED", "data", "found", "shared"]

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "tests" / "data"
# Seconds of processor time for what takes hours when it is not linear: no statement about speed, on any machine.
UNHURRIED: Final = 60.0
_WHERE: Final = Path(os.environ.get("TRUENAME_SHARED") or ROOT.parent / "shared")


def data(*parts: str) -> Path:
    """Return a file of the tests' own data."""
    return DATA.joinpath(*parts)


def found(*parts: str) -> Path | None:
    """Return a file of the collection, or None without it; in CI the test fails."""
    there = _WHERE.joinpath(*parts).exists()
    return shared(*parts) if there or os.environ.get("CI") == "true" else None


def shared(*parts: str) -> Path:
    """Return a file of the collection; without it the test is skipped, in CI it fails."""
    path = _WHERE.joinpath(*parts)
    if path.exists():
        return path
    word = f"the shared collection has no {'/'.join(parts)}; set TRUENAME_SHARED to where it lies"
    if os.environ.get("CI") == "true":
        pytest.fail(word, pytrace=False)
    pytest.skip(word)
