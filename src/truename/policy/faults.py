"""What can go wrong with a call or with what is kept about calls, as errors with typed fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from truename.errors import ConfigError, PolicyError, TruenameError, excerpt

__all__ = ["CallRepeated", "InvalidCall", "StoreError"]

_REPEATED: Final = {
    "call_reused": "The call id {call} was used for another call of {id}{other}; nothing was run. "
    "Give each call an id of its own.",
    "call_repeated": "The call {call} of {id} was begun before{other}; it was not run again. Make a new call.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class InvalidCall(TruenameError, ValueError):
    """A payload is no call: ``field`` is the path to what is wrong in it, ``problem`` says what."""

    field: str
    problem: str
    code: str = "invalid_call"

    def __str__(self) -> str:
        return f"This is no call: {excerpt(self.field)[1:-1]} {self.problem}; nothing was run. Send it again, mended."


@dataclass(kw_only=True, eq=False, repr=False)
class CallRepeated(PolicyError):
    """A call id came a second time: for something else (``call_reused``), or to be run again (``call_repeated``).

    ``call`` is the id, ``state`` what became of the first (seen, running, done, failed).
    """

    call: str
    state: str = ""
    code: str = "call_repeated"

    def __str__(self) -> str:
        other = f" (it is {self.state})" if self.state else ""
        return _REPEATED[self.code].format(call=excerpt(self.call), id=self.id, other=other)


@dataclass(kw_only=True, eq=False, repr=False)
class StoreError(ConfigError):
    """What is kept can't be used: ``file`` and ``key`` say where, and the code what kind of fault it is.

    ``corrupt`` (damaged, or not ours), ``newer`` (written by a later version), ``busy`` (another process has the
    lock), ``unusable`` (disk or path), ``full``.
    """
