"""The run of a program that a request is for, and the one that it reached.

Programs count their tasks from one again and again: an id means something in the run alone that gave it.
"""

from __future__ import annotations

import secrets

__all__ = ["OtherRunError", "ProgramRun"]


class OtherRunError(Exception):
    """A request is for another run of the program than the one that it would reach; nothing was sent."""


class ProgramRun:
    """The run that one request is for: ``wanted``, None for any; "" is a server that is no program of the gateway.

    ``reached`` is the run that the request was sent to last. Before it is sent that is one that nobody else has: what
    answers then (the call of another process, whose client came back here) came from no run that is known here.

    >>> run = ProgramRun()
    >>> run.reach("5f")
    >>> run.reached
    '5f'
    """

    def __init__(self, wanted: str | None = None) -> None:
        self.wanted = wanted
        self.reached = f"unknown-{secrets.token_hex(8)}"

    def reach(self, run: str) -> None:
        """Take it that the request goes to this run now. Raises `OtherRunError`."""
        if self.wanted not in {None, run}:
            raise OtherRunError
        self.reached = run
