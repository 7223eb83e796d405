"""What a migration can't do, as an error: the fact, the remedy, and the file and line where that helps."""

from __future__ import annotations

from dataclasses import dataclass

from truename.errors import TruenameError

__all__ = ["MigrationError"]


@dataclass(kw_only=True, eq=False, repr=False)
class MigrationError(TruenameError, ValueError):
    """A change of names that can't be made, and nothing of it was made.

    The code is ``rename_refused``, or ``invalid_version`` for a protocol version that can't be counted up.
    """

    problem: str
    remedy: str
    file: str = ""
    line: int = 0
    code: str = "rename_refused"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.problem}. {self.remedy}"
