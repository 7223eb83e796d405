"""A source file that a test writes and imports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    """Return where to write it; its module is forgotten afterwards."""
    path = tmp_path / "declared_by_a_test.py"
    yield path
    sys.modules.pop(path.stem, None)
