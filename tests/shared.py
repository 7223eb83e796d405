"""The shared collection of facts and real catalogues: it lies outside this repository, and tests find it here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

__all__ = ["ROOT", "shared"]

ROOT: Final = Path(__file__).resolve().parent.parent
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
