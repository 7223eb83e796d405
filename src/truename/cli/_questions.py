"""Ask the user questions on the terminal."""

from __future__ import annotations

import sys
from typing import Final

from truename.cli._rendering import output, say, styled

__all__ = ["answer", "is_agreed", "is_terminal"]

_YES: Final = ("y", "yes")


def is_terminal() -> bool:
    """Return whether stdin and stderr are a terminal."""
    return sys.stdin.isatty() and output(error=True).is_terminal


def answer(question: str) -> str:
    """Print a question on stderr; return the answer in lower case."""
    say(styled(question, "bold"))
    return sys.stdin.readline().strip().lower()


def is_agreed(question: str) -> bool:
    """Ask a question, and return whether the answer is yes."""
    return answer(question) in _YES
