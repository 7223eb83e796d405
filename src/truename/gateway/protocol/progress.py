"""Who is told how far a request has come."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ReportProgress"]


class ReportProgress(Protocol):
    """Tells the progress, what it is out of, and a text for people, where they are known."""

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell it."""
        ...
