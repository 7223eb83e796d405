"""News of one call for somebody who may not read them: some are dropped before they pile up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from truename.gateway.protocol.progress import ReportProgress

__all__ = ["MOST_UNTOLD", "ProgressLimit"]

MOST_UNTOLD: Final = 100


class ProgressLimit:
    """Passes progress on, unless `MOST_UNTOLD` of it wait already to be read."""

    def __init__(self, tell: ReportProgress) -> None:
        self._tell = tell
        self._untold = 0

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the progress, or drop it."""
        if self._untold >= MOST_UNTOLD:
            return
        self._untold += 1
        try:
            await self._tell(progress, total, message)
        finally:
            self._untold -= 1
