"""Show on stderr which servers are starting, ready or failed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from truename.cli._errors import split
from truename.cli._rendering import output, printable, styled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from rich.console import Console
    from rich.status import Status

__all__ = ["Progress", "busy", "counted"]


class ServerEvent(Protocol):
    """An event of a server, as the gateway reports it."""

    @property
    def kind(self) -> str:
        """The kind of event: start, resting, ready, failed, lost or changed."""
        ...

    @property
    def server(self) -> str:
        """The server's key."""
        ...

    @property
    def tools(self) -> int | None:
        """The number of its tools."""
        ...

    @property
    def seconds(self) -> float | None:
        """The duration of the start in seconds."""
        ...

    @property
    def text(self) -> str:
        """The error, for failed and lost."""
        ...


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show on stderr, if it is a terminal, what the block is doing."""
    console = output(error=True)
    if not console.is_terminal:
        yield
        return
    with console.status(styled(f"{what} ...")):
        yield


@contextmanager
def counted(what: str, number: int) -> Iterator[Callable[[], None]]:
    """Show on stderr, if it is a terminal, how many of several steps are done; the block calls the step after each."""
    console = output(error=True)
    if not console.is_terminal:
        yield lambda: None
        return
    done = 0
    with console.status(styled(f"{what}: 0 of {number:,}")) as status:

        def step() -> None:
            nonlocal done
            done += 1
            status.update(styled(f"{what}: {done:,} of {number:,}"))

        yield step


class Progress:
    """A line on stderr for each server event; on a terminal also a moving line with the servers that are starting.

    With ``is_quiet`` nothing is shown: another process shows it.
    """

    def __init__(self, servers: Iterable[str], *, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self.waiting = list(servers)
        self.failed: list[str] = []
        self._width = max((len(printable(key)) for key in self.waiting), default=0)
        self._status: Status | None = None

    @cached_property
    def _console(self) -> Console:
        # One console for both: only the console that draws the moving line removes it before it prints another line.
        return output(error=True)

    def __enter__(self) -> Self:
        # A gateway that nobody looks at answers before it needs a console.
        if self.waiting and sys.stderr.isatty():
            self._status = self._console.status(styled(self._awaited()))
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def on_event(self, event: ServerEvent) -> None:
        """Print an event of the gateway."""
        if self._is_quiet:
            return
        if event.kind == "ready":
            took = "" if event.seconds is None else f" in {event.seconds:.1f} s"
            self._settled(event, "ready ", "green", f"{_tools(event)}{took}")
        elif event.kind == "resting":
            self._settled(event, "idle  ", "", f"{_tools(event)}, started when needed")
        elif event.kind in ("failed", "lost"):
            fact, advice = split(event.text)
            self._settled(event, f"{event.kind:6}", "red", fact.removeprefix(f"Server {printable(event.server)!r} "))
            if advice:
                from rich.padding import Padding  # noqa: PLC0415 - rich costs 25 ms, before the first event needs it

                self._console.print(Padding(styled(advice), (0, 0, 0, self._width + 12), expand=False))
            if event.kind == "failed" and event.server not in self.failed:
                self.failed.append(event.server)
        elif event.kind == "changed":
            self._settled(event, "changed", "", _tools(event))

    def _settled(self, event: ServerEvent, word: str, style: str, what: str) -> None:
        from rich.table import Table  # noqa: PLC0415 - as above

        if event.server in self.waiting:
            self.waiting.remove(event.server)
        if event.kind == "ready" and event.server in self.failed:
            self.failed.remove(event.server)
        line = Table.grid(padding=(0, 2))
        line.add_column(width=self._width + 2, no_wrap=True)
        line.add_column(no_wrap=True)
        line.add_column(overflow="fold")
        line.add_row(styled(f"  {printable(event.server)}"), styled(word, style), styled(what))
        self._console.print(line)
        if self._status is not None:
            self._status.update(styled(self._awaited()))
            if not self.waiting:
                self._status.stop()

    def _awaited(self) -> str:
        return f"starting: {', '.join(printable(key) for key in self.waiting)}"


def _tools(event: ServerEvent) -> str:
    return "1 tool" if event.tools == 1 else f"{event.tools or 0:,} tools"
