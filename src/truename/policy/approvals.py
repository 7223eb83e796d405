"""Record approvals, and ensure that an approved call runs at most once.

Everything is looked up by a `Call`, in which the tool's name is already resolved; no name is used as a key. The rules
for when a decision counts are in `truename.policy.approval_validity`.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from truename.catalog import unfolded
from truename.errors import ApprovalRequired, CallRepeated, InvalidCall, NotAllowed
from truename.policy.approval_validity import SCOPES, Grant, Subject, Verdict, judge, suspension
from truename.policy.call import shape_of
from truename.policy.former_ids import chain
from truename.policy.sql import SqlApprovalStore
from truename.policy.store import CallKey, MemoryStore, StoredCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from truename.catalog import Catalog, Tool
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.policy.approval_validity import Scope
    from truename.policy.call import Call
    from truename.policy.store import ApprovalRecords, ApprovalStore
    from truename.storage import StateLocation

__all__ = ["Approvals", "subject_of"]

_LONGEST_TEXT: Final = 4_096
_UNDECIDED: Final = Verdict("undecided")


class Approvals:
    """The decisions of people about calls, in a store (by default in memory).

    A decision also counts for another id if an operator redirected the old id to it (`Ledger.redirect`), which a call
    knows from its table's ledger; redirects of names do not count. Within a session of a principal, a call id means one
    call: the same id with another tool or other arguments raises `CallRepeated` (``call_reused``) from every method of
    this class. Give each conversation its own session if decisions outlive it: some providers count call ids from 1 in
    each conversation.

    >>> from truename import Catalog, project
    >>> from truename.policy import bound_call
    >>> def search(catalog: Catalog, id: str):
    ...     names = project(catalog, "openai", style="on-conflict")
    ...     return bound_call(name="search", call_id=id, arguments={}, names=names)
    >>> approvals = Approvals()
    >>> grant = approvals.approve(search(Catalog.from_mcp({"docs": ["search"]}), "c1"), scope="always")
    >>> approvals.status(search(Catalog.from_mcp({"docs": ["search"]}), "c2")).state
    'approved'
    >>> approvals.status(search(Catalog.from_mcp({"evil": ["search"]}), "c3")).state
    'undecided'
    """

    def __init__(self, store: ApprovalStore | None = None) -> None:
        self._store = MemoryStore() if store is None else store

    @classmethod
    def open(cls, path: StateLocation | Path | str) -> Self:
        """Open, or create, a state database. Raises `StoreError`: ``corrupt``, ``newer``, ``busy``, ``unusable``."""
        return cls(SqlApprovalStore(path))

    def approve(self, call: Call, scope: Scope = "call", *, by: str = "") -> Grant:
        """Approve this call, or with a wider scope similar calls: ``arguments``, ``session``, ``always``.

        Raises `CallRepeated`, `StoreError`, and `InvalidCall` for a session scope without a session.
        """
        return self._decide(call, scope, approved=True, by=by)

    def reject(self, call: Call, scope: Scope = "call", *, message: str = "", by: str = "") -> Grant:
        """Reject this call, or similar calls; ``message`` is for the model. Raises the errors of `approve`."""
        return self._decide(call, scope, approved=False, by=by, message=message)

    def keep(self, grant: Grant, *, most: int | None = None, only_first: bool = False) -> Grant:
        """Record and return a decision that was made elsewhere, without the call that it is about.

        With ``only_first``, a decision on this call that is recorded already is returned, and this one is not recorded.

        At most ``most`` decisions of its author (``by``) about this principal are kept; beyond that, the oldest is
        removed.

        Raises `CallRepeated` if the call id belongs to another call, `InvalidCall` for a scope whose fields are
        missing, and `StoreError`.
        """
        texts = {name: getattr(grant, name) for name in ("message", "by", "principal", "agent", "session")}
        _check(grant.scope, grant.session, texts)
        asked = StoredCall(
            where=CallKey(grant.principal, grant.session, grant.call_id),
            id=grant.subject.id,
            arguments=grant.arguments,
            at=grant.at,
        )
        with self._store.change() as book:
            for old in book.grants():
                if old.is_over(grant.at):
                    book.drop(old.key)
                elif only_first and (old.principal, old.call_id) == (grant.principal, grant.call_id):
                    return old
            known = book.call(asked.where) if grant.call_id else asked
            if known is None:
                book.put(asked)
            elif (known.id, known.arguments) != (asked.id, asked.arguments):
                raise CallRepeated(id=asked.id, call=grant.call_id, code="call_reused")
            book.keep(grant)
            own = [old.key for old in book.grants(grant.principal) if old.by == grant.by]
            for key in own[: -most if most else 0]:
                book.drop(key)
        return grant

    def state_of(self, grant: Grant) -> str:
        """Return the state of the single call of a decision (seen, running, done, failed); "" if unknown."""
        record = self._store.read().call(CallKey(grant.principal, grant.session, grant.call_id))
        return "" if record is None else record.state

    def status(self, call: Call) -> Verdict:
        """Return the verdict on a call: approved, rejected, suspended with the reason, or undecided.

        The latest decision that covers the call counts, whatever its scope (specification, section 6).
        """
        return self._status(self._store.read(), call)

    def reads(self, call: Call) -> bool:
        """Return whether `status` waits for a server's answer, which a thread that runs an event loop must not do."""
        if not isinstance(self._store, SqlApprovalStore):
            return False
        return self._store.reads(_where(call), call.caller.agent, _ids(call))

    def has_news(self) -> bool:
        """Return whether somebody may have decided since the last look at a server, without waiting for it."""
        return isinstance(self._store, SqlApprovalStore) and self._store.has_news()

    def refresh(self) -> None:
        """Read what was decided since, so that `status` need not. Raises `StoreError`."""
        self._store.read()

    def begin(self, call: Call, grant: Grant | None = None) -> None:
        """Record that a call is running, so that it is not run again.

        ``grant`` is the decision that allowed it, which must still count. Raises `CallRepeated` if the call was already
        started, in any thread or process, `ApprovalRequired` if the grant does not count any more, and `NotAllowed` if
        the call was rejected.
        """
        with self._store.change() as book:
            record = self._seen(book, call)
            if record is not None and record.state != "seen":
                raise CallRepeated(id=call.id, call=call.call_id, state=record.state)
            verdict = self._status(book, call)
            if verdict.state == "rejected":
                raise NotAllowed(id=call.id, rule="rejected", decision=verdict.grant.message if verdict.grant else "")
            if grant is not None and verdict.state != "approved":
                reason = verdict.reason or "the approval was revoked"
                raise ApprovalRequired(id=call.id, approval_key=str(call.id), call=call.call_id, decision=reason)
            book.put(_record(call, "running"))

    def finish(self, call: Call, *, failed: bool = False) -> None:
        """Record that a running call ended. It is never run again, even if it failed."""
        with self._store.change() as book:
            record = self._seen(book, call)
            if record is None or record.state != "running":
                raise InvalidCall(field="call_id", problem="belongs to a call that is not running")
            book.put(replace(record, state="failed" if failed else "done", at=present_time()))

    @contextmanager
    def once(self, call: Call, grant: Grant | None = None) -> Iterator[None]:
        """Run the block for this call at most once: `begin` before it, `finish` after it."""
        # A tool may change its arguments while it runs; the call to finish is the one that began.
        begun = call.copied()
        self.begin(begun, grant)
        try:
            yield
        except BaseException:
            self.finish(begun, failed=True)
            raise
        self.finish(begun)

    def grants(self, principal: str | None = None, agent: str | None = None) -> Sequence[Grant]:
        """Return the recorded decisions, oldest first; None matches any principal or agent."""
        return tuple(self._store.read().grants(principal, agent))

    def suspended(
        self, catalog: Catalog, endpoints: Mapping[str, str] | None = None, ledger: Ledger | None = None
    ) -> Sequence[tuple[Grant, str]]:
        """Return the decisions that do not count for the present tools, each with the reason.

        A decision about a tool that is not in the catalogue is not included: it may count again when the tool returns.
        """
        found = []
        for grant in self._store.read().grants():
            present = [id for id in chain(grant.subject.id, ledger) if id in catalog]
            reason = suspension(grant, _subject(catalog[present[-1]], endpoints or {})) if present else ""
            if reason:
                found.append((grant, reason))
        return tuple(found)

    def revoke(self, key: str) -> Grant | None:
        """Remove a decision by its key; return it, or None if there is none."""
        with self._store.change() as book:
            return book.drop(key)

    def end_session(self, principal: str, session: str) -> None:
        """Remove the decisions and the calls of one session, except calls that are still running.

        Raises `InvalidCall` for an empty session, which would mean every call without a session.
        """
        if not session:
            raise InvalidCall(field="session", problem="is empty, so there is no session to end")
        with self._store.change() as book:
            book.forget(principal, session)

    def _decide(self, call: Call, scope: Scope, *, approved: bool, by: str, message: str = "") -> Grant:
        _check(scope, call.caller.session, {"by": by, "message": message, **vars(call.caller)})
        grant = Grant(
            key=secrets.token_hex(8),
            approved=approved,
            scope=scope,
            principal=call.caller.principal,
            agent=call.caller.agent,
            subject=subject_of(call),
            session=call.caller.session,
            call_id=call.call_id,
            arguments=call.arguments_digest,
            message=message,
            by=by,
            at=present_time(),
            wire_name=call.wire_name,
        )
        with self._store.change() as book:
            if self._seen(book, call) is None:
                book.put(_record(call, "seen"))
            book.keep(grant)
        return grant

    def _status(self, book: ApprovalRecords, call: Call) -> Verdict:
        self._seen(book, call)
        caller = call.caller
        known = book.about(caller.principal, caller.agent, _ids(call))
        if not known:
            # Most calls return here, which saves digesting their arguments.
            return _UNDECIDED
        now = present_time()
        return judge([one for one in known if not one.is_over(now)], call, subject_of(call))

    def _seen(self, book: ApprovalRecords, call: Call) -> StoredCall | None:
        """Return the record of the call, if any. Raises `CallRepeated` if its id was used for another call."""
        record = book.call(_where(call))
        if record is None:
            return None
        if record.id not in (call.id, *call.formerly) or record.arguments != call.arguments_digest:
            raise CallRepeated(id=call.id, call=call.call_id, code="call_reused")
        return record


def subject_of(call: Call) -> Subject:
    """Return the subject of a decision on this call."""
    return Subject(call.id, call.digest, call.shape, call.origin.server_id, call.origin.name, call.endpoint)


def _subject(tool: Tool, endpoints: Mapping[str, str]) -> Subject:
    origin = tool.origin
    endpoint = endpoints.get(origin.server_id, "")
    return Subject(tool.id, tool.digest, shape_of(tool), origin.server_id, origin.name, endpoint)


def _ids(call: Call) -> set[ToolId]:
    """Return the ids of the tool under which decisions on a call may be recorded."""
    # A rejection also counts under the id that the tool would have without a digest (`judge`).
    plain = (one.id for one in unfolded(call.id, call.origin))
    return {call.id, *call.formerly, *call.lineage.denied_as, *(id for id in plain if id is not None)}


def _where(call: Call) -> CallKey:
    return CallKey(call.caller.principal, call.caller.session, call.call_id)


def _record(call: Call, state: Literal["seen", "running"]) -> StoredCall:
    return StoredCall(where=_where(call), id=call.id, arguments=call.arguments_digest, state=state, at=present_time())


def _check(scope: str, session: str, texts: Mapping[str, object]) -> None:
    if scope not in SCOPES:
        raise InvalidCall(field="scope", problem=f"is {scope!r}, none of {', '.join(SCOPES)}")
    if scope == "session" and not session:
        raise InvalidCall(field="caller.session", problem="is empty, so there is no session to decide for")
    for name, value in texts.items():
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
            raise InvalidCall(field=name, problem=f"is not a text of at most {_LONGEST_TEXT:,} characters")


def present_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
