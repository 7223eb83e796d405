"""What a page of the console answers to a request that it does not do."""

from __future__ import annotations

__all__ = ["RefusedError"]


class RefusedError(Exception):
    """A request that is not answered as asked: the HTTP status, and a text that says why and what to do."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
