"""The checker: were all calls answered, rightly or by a typed error, by whom they were meant for, and at most once?"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.chaos.journal import Entry

__all__ = ["Call", "Return", "faults_in", "late", "leaks"]

# Errors that say so much promise that nothing happened.
# What the SDK says in either era of an exception that nobody caught.
_UNCAUGHT: Final = frozenset({"0", "-32603"})
PROMISES: Final = ("not sent", "nothing was run")
LONGEST_RETURN: Final = 2.0
# A return is three exchanges in a row, the greeting, the list and the call: each takes the machine's time.
EXCHANGES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call as its client saw it. ``code`` is that of a typed error; ``broken`` says what no client should meet."""

    server: str
    tool: str
    nonce: str
    at: float
    seconds: float = 0.0
    text: str = ""
    code: str = ""
    broken: str = ""

    @property
    def is_answered(self) -> bool:
        return not self.code and not self.broken


@dataclass(frozen=True, kw_only=True)
class Return:
    """A server that was tormented, and answers again since ``at``; ``seconds`` until a call was answered.

    ``restart`` are the seconds that the gateway took to start it anew, where it has to. ``control`` is the longest that
    a call of the untouched server took meanwhile.
    """

    server: str
    torment: str
    at: float
    seconds: float | None
    restart: float = 0.0
    control: float = 0.0

    @property
    def is_late(self) -> bool:
        allowed = LONGEST_RETURN + EXCHANGES * self.control
        return self.seconds is None or self.restart + self.seconds > allowed


def faults_in(calls: Sequence[Call], ran: Iterable[Entry], *, steady: str) -> list[str]:
    """Return what is wrong, one sentence each. ``steady`` is the server that nobody tormented."""
    by_nonce: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in ran:
        if entry.tool:
            by_nonce[entry.nonce].append(entry)
    known = {call.nonce for call in calls}
    strangers = [f"a call that nobody made was run: {nonce}" for nonce in by_nonce if nonce not in known]
    return strangers + [fault for call in calls for fault in _faults(call, by_nonce[call.nonce], steady)]


def _faults(call: Call, ran: list[Entry], steady: str) -> Iterable[str]:
    where = f"{call.server}/{call.tool} ({call.nonce})"
    if call.broken:
        yield f"{where}: ended neither with an answer nor with a typed error: {call.broken}"
    if call.code in _UNCAUGHT:
        yield f"{where}: something broke in the gateway: {call.text[:300]}"
    if call.is_answered and call.text != f"{call.server}:{call.tool}:{call.nonce}":
        yield f"{where}: got another answer: {call.text[:100]!r}"
    if call.is_answered and not ran:
        yield f"{where}: was answered and never run"
    if len(ran) > 1:
        yield f"{where}: was run {len(ran)} times"
    yield from (
        f"{where}: was run by {one.server}/{one.tool}"
        for one in ran
        if (one.server, one.tool) != (call.server, call.tool)
    )
    if ran and any(promise in call.text for promise in PROMISES):
        yield f"{where}: was run, and its error says that it was not: {call.text[:200]}"
    if call.server == steady and not call.is_answered:
        yield f"{where}: failed, though nobody tormented its server: {call.text[:200]}"


def late(returns: Iterable[Return]) -> list[str]:
    """Return a sentence for each server that was there again and not called in time.

    In time is: within two seconds and three times what a call of the untouched server took at that moment.
    """
    return [
        f"{one.server}: no call was answered within {LONGEST_RETURN:g} s, and {EXCHANGES} times the {one.control:.2f} s"
        f" of the untouched server: {one.restart:.2f} s until its start, then {one.seconds} s ({one.torment})"
        for one in returns
        if one.is_late
    ]


def leaks(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return a sentence for each thing that there is more of than there was."""
    grown = Counter(after) - Counter(before)
    return [f"{what}: {before.get(what, 0)} before, {after[what]} after" for what in sorted(grown)]
