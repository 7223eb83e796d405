"""The pages of the reference that are generated from the code: ``python -m docsite.reference``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from docsite.reference import audit, cli, dialects, error_classes, http, metrics, python_api
from truename.config import reference as settings
from truename.lint import pages as rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FOLDER", "PAGES"]

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "audit-fields.md": audit.page,
    "cli.md": cli.page,
    "dialects.md": dialects.page,
    "errors.md": error_classes.page,
    "http.md": http.page,
    "metrics.md": metrics.page,
    "python.md": python_api.page,
    "rules.md": rules.page,
    "settings.md": settings.page,
}
"""The text of each page by its file name."""
