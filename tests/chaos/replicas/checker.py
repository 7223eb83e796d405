"""The checker: does a history, with what servers, audit logs and the database hold after it, keep every promise?

It shares no code with Truename, and reads the database by plain SQL. Each violation is one sentence.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.chaos.replicas.history import Operation

__all__ = [
    "CHECKS",
    "RESUMED",
    "SILENT",
    "STALE",
    "Evidence",
    "Ran",
    "Resumption",
    "resumed",
    "resumptions",
    "summary",
    "violations",
]

RESUMED: Final = 2.0
"""The seconds after the death of a replica within which another one answers calls of HTTP servers."""
SILENT: Final = 1.4
"""The seconds for which an owner is silent before its sessions are another replica's (docs/operate/replicas.md)."""
STALE: Final = 6.0
"""The seconds until every replica has seen a decision: docs/operate/state.md says five, and a look takes some time."""
# Answers that leave an approval as it is.
_UNTOUCHED: Final = frozenset({"approval_required", "unsupported", "unreachable", "http 401"})
_SEPARATORS: Final = re.compile(r"[-_:. ]+")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A call that a server ran, for the gateway with the number ``by``."""

    server: str
    tool: str
    nonce: str
    at: float
    by: int = -1


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that is known after a run.

    ``claims`` and ``holders`` are the ledger's: (name, id) of every claim, and (first, present) by folded name.
    ``pins`` has the pinned digest of each tool, ``audited`` the numbers of calls that audit logs announce, ``decided``
    the keys and digests of decisions that they have, ``damaged`` what is wrong with a log. ``quarantined`` is the
    server whose changed definitions are not shown before an operator accepts them, ``steady`` one that nobody touches.
    """

    operations: Sequence[Operation]
    ran: Sequence[Ran] = ()
    claims: frozenset[tuple[str, str]] = frozenset()
    holders: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    audited: frozenset[str] = frozenset()
    decided: frozenset[str] = frozenset()
    damaged: Sequence[str] = ()
    quarantined: str = "delta"
    steady: str = "steady"

    def of(self, what: str, outcome: str = "") -> Iterator[Operation]:
        """Yield the operations of a kind."""
        return (one for one in self.operations if one.what == what and outcome in {"", one.outcome})


def fold(name: str) -> str:
    """Return what clients that ignore case and separators make of a name."""
    return _SEPARATORS.sub("_", name.lower()).strip("_")


def names_mean_one_tool(evidence: Evidence) -> Iterator[str]:
    """No name ever means two tools: whoever answered a call of it, was listed under it, or holds it."""
    ran_by: defaultdict[str, dict[tuple[str, str], Operation]] = defaultdict(dict)
    for call in evidence.of("call", "ok"):
        ran_by[call.asked["name"]].setdefault((call.answer["server"], call.answer["tool"]), call)
    for name, origins in ran_by.items():
        if len(origins) > 1:
            who = " and ".join(f"{'/'.join(origin)} (at {call.replica})" for origin, call in origins.items())
            yield f"{name!r} ran {who}"
    folded: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, origins in ran_by.items():
        if "/" not in name:
            folded[fold(name)].update(origins)
    for name, several in folded.items():
        if len(several) > 1:
            yield f"spellings of {name!r} ran {sorted(several)}"


def replicas_agree(evidence: Evidence) -> Iterator[str]:
    """No two replicas, nor one at two times, show one name for two tools, or one tool under two ids."""
    shown: defaultdict[str, dict[str, Operation]] = defaultdict(dict)
    for listed in evidence.of("list", "ok"):
        for name, (id, _) in listed.answer["tools"].items():
            shown[fold(name)].setdefault(id, listed)
    for name, ids in shown.items():
        if len(ids) > 1:
            who = " and ".join(f"{id} (at {listed.replica})" for id, listed in ids.items())
            yield f"{name!r} was listed for {who}"
    ids_of: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    origins_of: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for call in evidence.of("call", "ok"):
        origin = call.answer["server"], call.answer["tool"]
        known = [call.asked["name"]] if "/" in call.asked["name"] else shown.get(fold(call.asked["name"]), {})
        for id in known:
            ids_of[origin].add(id)
            origins_of[id].add(origin)
    yield from (f"{'/'.join(one)} has the ids {sorted(ids)}" for one, ids in ids_of.items() if len(ids) > 1)
    yield from (f"{id} ran {sorted(origins)}" for id, origins in origins_of.items() if len(origins) > 1)


def claims_are_kept(evidence: Evidence) -> Iterator[str]:
    """Every name that was shown is in the ledger at the end, for the tool that it was shown for."""
    looked_at: set[tuple[str, str]] = set()
    for listed in evidence.of("list", "ok"):
        for name, (id, _) in listed.answer["tools"].items():
            if (name, id) in looked_at:
                continue
            looked_at.add((name, id))
            if (name, id) not in evidence.claims:
                yield f"{name!r} was listed at {listed.replica} for {id}, and the ledger has no such claim"
            holders = evidence.holders.get(fold(name))
            if holders != (id, id):
                yield f"{name!r} was listed at {listed.replica} for {id}, and its holders are {holders}"
    for name, several in _grouped(evidence.claims).items():
        if len(several) > 1:
            yield f"the ledger has claims of {name!r} for {sorted(several)}"


def _grouped(claims: frozenset[tuple[str, str]]) -> Mapping[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, id in claims:
        found[fold(name)].add(id)
    return found


def calls_run_once(evidence: Evidence) -> Iterator[str]:
    """A call that was answered ran once, by who answers it; one that was refused did not run; none ran twice."""
    ran: defaultdict[str, list[Ran]] = defaultdict(list)
    for one in evidence.ran:
        ran[one.nonce].append(one)
    attempts: defaultdict[str, list[Operation]] = defaultdict(list)
    for call in evidence.of("call"):
        attempts[call.asked["nonce"]].append(call)
    for nonce, made in ran.items():
        if nonce not in attempts:
            yield f"a call that nobody made was run: {nonce}"
        elif len(made) > 1:
            yield f"a call was run {len(made)} times: {nonce} ({_described(attempts[nonce])})"
    for nonce, calls in attempts.items():
        yield from _wrong_answers(nonce, calls, ran[nonce])


def _wrong_answers(nonce: str, calls: Sequence[Operation], ran: Sequence[Ran]) -> Iterator[str]:
    answered = [call for call in calls if call.outcome == "ok"]
    if answered and not ran:
        yield f"a call was answered and not run: {nonce} ({_described(calls)})"
    if ran and all(call.outcome == "fail" for call in calls):
        yield f"a call was refused and run: {nonce} ({_described(calls)})"
    for call in answered:
        said = call.answer["server"], call.answer["tool"], call.answer["nonce"]
        if ran and said != (ran[0].server, ran[0].tool, nonce):
            yield f"a call got the answer of another: {nonce} got {said}"


def _described(calls: Sequence[Operation]) -> str:
    return ", ".join(f"{call.asked['name']} at {call.replica}: {call.outcome}" for call in calls)


def approvals_are_kept(evidence: Evidence) -> Iterator[str]:
    """A call that needs an approval runs after one was given, and after one was given it runs, at any replica."""
    grants = {grant.asked["nonce"]: grant for grant in evidence.of("grant")}
    ran = {one.nonce: one for one in evidence.ran}
    calls: defaultdict[str, list[Operation]] = defaultdict(list)
    for call in evidence.of("call"):
        if call.asked.get("needs_approval"):
            calls[call.asked["nonce"]].append(call)
    for nonce, made in calls.items():
        grant = grants.get(nonce)
        if nonce in ran and (grant is None or grant.outcome == "fail" or ran[nonce].at < grant.invoked):
            yield f"a call was run without an approval: {nonce}"
        if grant is None or grant.outcome != "ok":
            continue
        for call in made:
            if call.ended < grant.ended:
                continue
            if call.outcome != "fail" or call.answer.get("code") not in _UNTOUCHED:
                # A call that was begun and interrupted needs another approval.
                break
            if call.answer["code"] == "approval_required" and call.invoked > grant.ended + STALE:
                yield f"an approval was lost: {nonce} was granted, and {call.replica} asked for an approval again"


def pins_are_kept(evidence: Evidence) -> Iterator[str]:
    """What was shown is pinned; the last definition that an operator accepted is the pin; nothing else is shown.

    That holds while the database is away too: with settings that can withhold a definition, as those of a run do, a
    tool is not shown before its pin is stored.
    """
    shown: defaultdict[str, dict[int, Operation]] = defaultdict(dict)
    for listed in evidence.of("list", "ok"):
        for id, version in listed.answer["tools"].values():
            shown[id].setdefault(version, listed)
    yield from _unpinned(evidence)
    accepted: defaultdict[str, list[Operation]] = defaultdict(list)
    for one in evidence.of("accept"):
        accepted[one.asked["tool"]].append(one)
    for id, decisions in accepted.items():
        possible = {one.asked["digest"] for one in _last(decisions)}
        if any(one.outcome == "ok" for one in decisions) and evidence.pins.get(id) not in possible:
            yield f"the pin of {id} is {evidence.pins.get(id)}, and an operator accepted {sorted(possible)}"
    for id in (id for id in shown if id.startswith(f"{evidence.quarantined}@")):
        for version, listed in shown[id].items():
            allowed = [one for one in accepted[id] if one.invoked < listed.ended and one.outcome != "fail"]
            earlier = [seen for seen, other in shown[id].items() if other.ended < listed.ended]
            if earlier and not any(one.asked["version"] >= version for one in allowed):
                yield f"{id} was listed at {listed.replica} with definition {version}, which nobody accepted"


def _unpinned(evidence: Evidence) -> Iterator[str]:
    where: defaultdict[str, list[Operation]] = defaultdict(list)
    for listed in evidence.of("list", "ok"):
        for id in {id for id, _ in listed.answer["tools"].values()} - evidence.pins.keys():
            where[id].append(listed)
    for id, several in sorted(where.items()):
        numbers = f"{several[0].number} to {several[-1].number}"
        yield f"{id} was listed and has no pin (operations {numbers}, at {sorted({one.replica for one in several})})"


def _last(decisions: Sequence[Operation]) -> Sequence[Operation]:
    """Return the last decision that was acknowledged, and those that may have been made after it began."""
    acknowledged = [one for one in decisions if one.outcome == "ok"]
    if not acknowledged:
        return decisions
    last = max(acknowledged, key=lambda one: one.ended)
    return [last, *(one for one in decisions if one.outcome != "fail" and one.ended > last.invoked)]


def audit_is_kept(evidence: Evidence) -> Iterator[str]:
    """Every call that ran was announced in an audit log, every decision is in one, and every log is whole."""
    yield from evidence.damaged
    for one in evidence.ran:
        if one.nonce not in evidence.audited:
            yield f"a call was run and is in no audit log: {one.nonce} ({one.server}/{one.tool})"
    for what, key in (("grant", "key"), ("accept", "digest")):
        for decision in evidence.of(what, "ok"):
            if decision.asked[key] not in evidence.decided:
                yield f"a decision is in no audit log: {what} {decision.asked[key]}"


def sessions_are_kept(evidence: Evidence) -> Iterator[str]:
    """A session that its client did not end is found at every replica, whoever died."""
    for what in ("call", "list"):
        for one in evidence.of(what, "fail"):
            if one.answer.get("code") == "session not found":
                yield f"the session of {one.process} was not found at {one.replica} (operation {one.number})"


def sessions_have_one_owner(evidence: Evidence) -> Iterator[str]:
    """No replica serves a session that another one took over, as long as that one lives.

    A replica takes a session over when its owner was silent for `SILENT` seconds. So of two calls, one after the other,
    of which two replicas had a tool run sooner than that, the second one was run by who had lost the session, unless
    the first replica died, stopped or was cut off from the database meanwhile. A replica for which only the database is
    away goes on with its sessions until it can ask whether it still has them (docs/operate/replicas.md).
    """
    ran = {one.nonce: one for one in evidence.ran}
    down, silent = _downtimes(evidence), _downtimes(evidence, "silence")
    calls: defaultdict[str, list[tuple[Operation, Ran]]] = defaultdict(list)
    for call in evidence.of("call", "ok"):
        if (session := call.asked.get("session")) and (found := ran.get(call.asked["nonce"])) and found.by >= 0:
            calls[session].append((call, found))
    for session, several in calls.items():
        for (first, one), (second, other) in pairwise(several):
            is_excused = any(start < other.at and end > one.at - SILENT for start, end in down[one.by])
            is_excused |= any(start < other.at < end + SILENT for start, end in silent[other.by])
            if one.by != other.by and other.at - one.at < SILENT and not is_excused:
                numbers = f"operations {first.number} and {second.number}"
                yield f"the session {session} was served by {one.by}, and then by {other.by} ({numbers})"


def calls_go_on(evidence: Evidence) -> Iterator[str]:
    """After a replica died or stopped, every other one that is up answers a call of a steady server within 2 seconds.

    What a direct call of that server takes meanwhile, the machine takes. A death is not judged while the database is
    away, as then calls that a policy decides on may be refused.
    """
    for one in resumptions(evidence):
        if one.seconds > one.allowed:
            yield f"no call was answered at {one.replica} within {one.allowed:.2f} s of the death of {one.dead}"


@dataclass(frozen=True, kw_only=True)
class Resumption:
    """How long after a death or a stop the next call was answered at another replica that was up all the time."""

    dead: int
    replica: int
    seconds: float
    allowed: float


def resumptions(evidence: Evidence) -> Iterator[Resumption]:
    """Yield how long it took at every other replica after each death."""
    down, away = _downtimes(evidence), [(one.invoked, one.ended) for one in evidence.of("away")]
    direct = list(evidence.of("direct", "ok"))
    steady: defaultdict[int, list[float]] = defaultdict(list)
    for call in evidence.of("call", "ok"):
        if call.answer["server"] == evidence.steady:
            steady[call.replica].append(call.ended)
    # Who is stopped may hold a lock of the database until it goes on.
    deaths = [(one, one.ended) for one in evidence.of("kill", "ok")]
    deaths += [(one, one.invoked) for one in evidence.of("stop")]
    for death, at in deaths:
        control = [one.ended - one.invoked for one in direct if at - 1 < one.ended < at + 2 * RESUMED]
        allowed = RESUMED + 3 * max(control, default=0.0)
        for replica, times in down.items():
            missing = any(start < at + allowed and end > at - 1 for start, end in (*times, *away))
            if replica != death.replica and not missing:
                next_one = min((ended for ended in steady[replica] if ended >= at), default=float("inf"))
                yield Resumption(dead=death.replica, replica=replica, seconds=next_one - at, allowed=allowed)


def _downtimes(evidence: Evidence, what: str = "down") -> Mapping[int, list[tuple[float, float]]]:
    """Return from when to when each replica was not up, or was cut off from the database (``silence``)."""
    found: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for one in evidence.of(what):
        found[one.replica].append((one.invoked, one.ended))
    return found


CHECKS: Final[Mapping[str, Callable[[Evidence], Iterator[str]]]] = {
    "no name means two tools": names_mean_one_tool,
    "no two replicas disagree": replicas_agree,
    "no claim is lost": claims_are_kept,
    "no call is made twice": calls_run_once,
    "no approval is lost": approvals_are_kept,
    "no pin is lost": pins_are_kept,
    "no audit record is lost": audit_is_kept,
    "no session is lost": sessions_are_kept,
    "a session has one owner": sessions_have_one_owner,
    "calls go on": calls_go_on,
}


def violations(evidence: Evidence) -> dict[str, list[str]]:
    """Return the violations of each promise."""
    return {promise: list(check(evidence)) for promise, check in CHECKS.items()}


def resumed(evidence: Evidence) -> str:
    """Return how long it took after all deaths, in words."""
    found = sorted(one.seconds for one in resumptions(evidence))
    if not found:
        return "nobody died"
    return f"{len(found):,} times, median {found[len(found) // 2]:.2f} s, longest {found[-1]:.2f} s"


def summary(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return how many operations there are of each kind, by outcome."""
    counted = Counter((one.what, one.outcome) for one in operations)
    kinds = sorted({one.what for one in operations})
    return {what: {outcome: counted[what, outcome] for outcome in ("ok", "fail", "info")} for what in kinds}
