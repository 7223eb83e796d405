"""What can be wrong with an upstream server, as errors that say which server, what happened and what to do."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from truename.config.interpolate import VARIABLE, unset_problem
from truename.errors import TruenameError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.config.interpolate import UnsetReference

__all__ = [
    "BrokenOff",
    "Tail",
    "UpstreamError",
    "fault_within",
    "needs_login",
    "printable",
    "unavailable",
    "unset",
    "unusable",
]

_MAX_LINE: Final = 300


@dataclass(kw_only=True, unsafe_hash=True)
class UpstreamError(TruenameError):
    """A server cannot be used: its key, what happened, what to do, and the last lines of its standard error.

    ``kind`` is the cause:

    - ``missing``, ``ended``: the program was not found, or ended
    - ``unreachable``, ``refused``, ``redirected``, ``address``: the address does not answer, refuses the request, leads
      to another address, or is not allowed
    - ``timeout``, ``lost``: no answer in time, or the connection was closed before it
    - ``protocol``, ``too_large``: the answer violates the protocol, or is larger than ``max_result``
    - ``busy``: too many calls; ``withheld``, ``blocked``: an answer came and is not passed on
    - ``question``: the server asked something that nobody could answer
    - ``login``, ``caller``, ``credential``: an access token is missing, or could not be obtained
    - ``unset``: the server's entry refers to a value that is not set
    """

    server: str
    kind: str
    problem: str
    remedy: str
    output: tuple[str, ...] = ()
    code: str = "upstream_unavailable"

    def __str__(self) -> str:
        said = f" Its last output: {' | '.join(self.output)}" if self.output else ""
        return f"Server {printable(self.server)!r} {self.problem}. {self.remedy}{said}"


def needs_login(problem: UpstreamError | None) -> bool:
    """Tell whether somebody has to log in first: waiting does not mend that."""
    return problem is not None and problem.code == "login_required"


class BrokenOff(UpstreamError):
    """The gateway stopped before the call ended."""


class Tail:
    """The last lines that a program wrote, bounded in number and length."""

    def __init__(self, lines: int = 40) -> None:
        self._lines: deque[str] = deque(maxlen=lines)
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Take what was read; a line counts once it is complete."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[: _MAX_LINE * 4]
        self._lines.extend(shown for line in lines if (shown := self._shown(line)))

    def lines(self, last: int = 5) -> tuple[str, ...]:
        """Return the last lines, printable."""
        rest = self._shown(self._rest)
        return tuple([*self._lines, *([rest] if rest else [])][-last:])

    @staticmethod
    def _shown(line: bytes) -> str:
        return printable(line[: _MAX_LINE * 4].decode("utf-8", "replace").strip(), _MAX_LINE)


def fault_within(error: BaseException) -> UpstreamError | None:
    """Find the error that says what happened; task groups wrap it once or more."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := fault_within(inner))), None)
    return error if isinstance(error, UpstreamError) else None


def unavailable(server: str, problem: UpstreamError | None) -> UpstreamError:
    """Build the error for a call while there is no connection; one that somebody has to see to stays as it is."""
    if problem is not None and problem.code != UpstreamError.code:
        return replace(problem)
    cause = f" ({problem.problem})" if problem else ""
    return UpstreamError(
        server=server,
        kind="unreachable",
        problem=f"is not available now{cause}; nothing was run",
        remedy="It is being restarted: try again later, or use another tool.",
    )


def unset(server: str, references: Sequence[UnsetReference]) -> UpstreamError:
    """Build the error for a server whose entry has references without a value."""
    variable = (
        "Set it where the gateway is started, or in its env_file: `truename init --copy-secrets` writes one with the "
        "values that your clients have."
    )
    remedies = dict.fromkeys(variable if VARIABLE.fullmatch(one.name) else one.remedy for one in references)
    return UpstreamError(
        server=server,
        kind="unset",
        problem=f"is not available: {printable(unset_problem(references), 500)}",
        remedy=" ".join(remedies),
        code="variable_unset",
    )


def unusable(server: str, error: Exception) -> UpstreamError:
    """Build the error for a server that brought about something that nobody thought of."""
    while isinstance(error, ExceptionGroup):
        # A task group wraps what happened, and its own text says nothing of it.
        error = error.exceptions[0]
    return UpstreamError(
        server=server,
        kind="protocol",
        problem=f"cannot be used ({type(error).__name__}: {printable(str(error), 200)})",
        remedy="Report it to the server's authors.",
    )
