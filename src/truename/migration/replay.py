"""Replaying: each call of a recording again, for the tool that has its identity now."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.errors import PolicyError, TruenameError, UnknownTool
from truename.migration.recording import BrokenLine, RecordedCall
from truename.naming import resolve
from truename.policy import Caller, Policy, bound_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from truename.naming import NameTable
    from truename.policy import Call, Context

__all__ = ["Replayed", "rehearse", "replay", "replayed_call"]

State = Literal["ready", "done", "failed", "refused", "unknown", "broken"]
_NOBODY: Final = Caller()
# What a redirected name may still answer: the identity was never seen here, or has no tool now.
_GONE: Final = ("unknown", "absent")


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What became of one line of a recording.

    ``done`` with the result, ``failed`` (the tool raised), ``refused`` (by policy or context, or an approval is
    missing), ``unknown`` (no tool has this identity now), ``broken`` (the line is no call). In a rehearsal, where
    nothing is run, ``ready`` is what would be.
    """

    line: int
    state: State
    recorded: RecordedCall | None = None
    call: Call | None = None
    result: Any = None
    error: Exception | None = None
    problem: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether the call went to a tool of another id: the recorded one was redirected."""
        return self.call is not None and self.recorded is not None and self.call.id != self.recorded.id

    @property
    def is_changed(self) -> bool:
        """Whether the tool has another definition than was recorded, if one was; a rename is one, too."""
        known = self.recorded.digest if self.recorded else ""
        return self.call is not None and known not in ("", self.call.digest)


def replay(
    recording: Iterable[RecordedCall | BrokenLine],
    names: NameTable,
    run: Callable[[Call], Any],
    *,
    policy: Policy,
    caller: Caller = _NOBODY,
    context: Context | None = None,
    go_on: bool = False,
) -> Iterator[Replayed]:
    """Run the calls of a recording again, in their order; after the first that is not done stop, or ``go_on``.

    A call goes to the tool that has its identity now, or to which that was redirected; a tool that is not for models
    is run too, for the origin of these calls is ``replay``. The policy decides on each as on any call, so what is of
    another platform or app is refused. ``context`` is where it is replayed (None: as it was recorded).
    ``run`` is given the call as it is bound now, each with an id of its own.
    """
    for found in _calls(recording, names, caller, context):
        ended = found if found.call is None else _ran(found, found.call, run, policy)
        yield ended
        if ended.state != "done" and not go_on:
            return


def rehearse(
    recording: Iterable[RecordedCall | BrokenLine],
    names: NameTable,
    *,
    policy: Policy,
    caller: Caller = _NOBODY,
    context: Context | None = None,
) -> Iterator[Replayed]:
    """Say of every line what `replay` would do with it now; nothing is run, and no tool changes what comes after."""
    for found in _calls(recording, names, caller, context):
        yield found if found.call is None else _allowed(found, found.call, policy)


def replayed_call(entry: RecordedCall, names: NameTable, caller: Caller, call_id: str) -> Call:
    """Return the call that a recorded one is now. Raises what `resolve` raises.

    The identity goes first. The name that was used counts only where a ledger has it on record: without one it may
    be another tool's by now.

    >>> from truename import Catalog, Ledger, project
    >>> ledger = Ledger.memory()
    >>> names = project(Catalog.of("fs/read_file"), "openai", ledger=ledger)
    >>> ledger.redirect("fs@1/read@1", "fs@1/read_file@1")
    >>> from truename import ToolId
    >>> entry = RecordedCall(id=ToolId.parse("fs/read"), arguments={}, name="fs_read")
    >>> str(replayed_call(entry, names, Caller(), "c1").id)
    'fs@1/read_file@1'
    """
    return bound_call(
        name=_present(entry, names), call_id=call_id, arguments=entry.arguments, names=names, caller=caller
    )


def _present(entry: RecordedCall, names: NameTable) -> str:
    try:
        return str(resolve(str(entry.id), names).id)
    except UnknownTool as error:
        if error.reason not in _GONE or not entry.name or names.ledger is None:
            raise
        if names.ledger.standing(entry.name) is None:
            raise
        return str(resolve(entry.name, names).id)


def _calls(
    recording: Iterable[RecordedCall | BrokenLine], names: NameTable, caller: Caller, context: Context | None
) -> Iterator[Replayed]:
    token = secrets.token_hex(4)
    for number, entry in enumerate(recording, 1):
        if isinstance(entry, BrokenLine):
            yield Replayed(line=entry.line, state="broken", problem=entry.problem)
        else:
            who = caller.within(replace(entry.context if context is None else context, origin="replay"))
            yield _bound(entry, names, who, f"replay-{token}-{number}")


def _bound(entry: RecordedCall, names: NameTable, caller: Caller, call_id: str) -> Replayed:
    try:
        call = replayed_call(entry, names, caller, call_id)
    except TruenameError as error:
        return Replayed(line=entry.line, state="unknown", recorded=entry, error=error, problem=str(error))
    return Replayed(line=entry.line, state="ready", recorded=entry, call=call)


def _allowed(found: Replayed, call: Call, policy: Policy) -> Replayed:
    try:
        policy.enforce(call)
    except PolicyError as error:
        return replace(found, state="refused", error=error, problem=str(error))
    return found


def _ran(found: Replayed, call: Call, run: Callable[[Call], Any], policy: Policy) -> Replayed:
    began = False
    try:
        with policy.running(call):
            began = True
            return replace(found, state="done", result=run(call))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its outcome, and the report goes on
        state: State = "failed" if began or not isinstance(error, PolicyError) else "refused"
        return replace(found, state=state, error=error, problem=str(error) or type(error).__name__)
