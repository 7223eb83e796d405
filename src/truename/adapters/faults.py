"""What can be wrong with something that is meant for, or was recorded under, a model API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from truename.errors import TruenameError, excerpt

__all__ = ["InvalidPayload"]

_ADVICE: Final = {
    "invalid_history": ("This is no history", "Mend it there; nothing was rewritten."),
    "invalid_request": ("This can't be asked of the model", "Choose something that this API has."),
}


@dataclass(kw_only=True, eq=False, repr=False)
class InvalidPayload(TruenameError, ValueError):
    """A history (``invalid_history``) or a request (``invalid_request``) is not what an API takes.

    ``field`` is the path to what is wrong, ``problem`` says what.
    """

    field: str
    problem: str
    code: str = "invalid_history"

    def __str__(self) -> str:
        fact, advice = _ADVICE[self.code]
        return f"{fact}: {excerpt(self.field, 200)[1:-1]} {self.problem}. {advice}"
