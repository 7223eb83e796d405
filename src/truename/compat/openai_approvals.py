"""Provide approvals with the method names of openai-agents, decided by `truename.policy.Approvals`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.compat.openai_calls import tool_invocation_identity
from truename.compat.openai_tools import AgentsError
from truename.errors import CallRepeated, StoreError
from truename.policy import Approvals, CallKey, MemoryRecords, StoredCall
from truename.policy.approvals_json import read_book, written_book

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from truename.compat.openai_calls import AgentCall
    from truename.policy import ApprovalRecords, Call, Scope, Verdict

__all__ = ["AgentApprovals", "DecisionRecord", "FiledDecisions"]

QUERY: Final = "hosted_mcp_query"
_DECISIONS: Final = ("approved", "rejected")


class FiledDecisions(NamedTuple):
    """The key of a decision: the agent ("" for none), the texts, and the id of the tool."""

    owner: str
    texts: tuple[str, ...]
    tool: str = ""


@dataclass(slots=True)
class DecisionRecord:
    """The decisions under one key: a permanent one, or the ids of the calls that were decided."""

    approved: bool | list[str] = field(default_factory=list)
    rejected: bool | list[str] = field(default_factory=list)
    rejection_messages: dict[str, str] = field(default_factory=dict)
    sticky_rejection_message: str | None = None

    def decide(self, call_id: str, *, approve: bool, always: bool, message: str | None = None) -> None:
        """Record a decision, with the text for the model if it is a refusal; a permanent one replaces the others."""
        if approve or message is None:
            self.rejection_messages.pop(call_id, None)
        else:
            self.rejection_messages[call_id] = message
        if always:
            self.approved, self.rejected = approve, ([] if approve else True)
            self.sticky_rejection_message = None if approve else message
            if approve:
                self.rejection_messages.clear()
            return
        target, opposite = ("approved", "rejected") if approve else ("rejected", "approved")
        other = getattr(self, opposite)
        if isinstance(other, list) and call_id in other:
            other.remove(call_id)
        decided = getattr(self, target)
        if decided is not True:
            kept = decided if isinstance(decided, list) else []
            setattr(self, target, kept if call_id in kept else [*kept, call_id])

    def exactly(self, call_id: str) -> bool | None:
        """Return the decision about exactly this call."""
        if isinstance(self.approved, list) and call_id in self.approved:
            return True
        return False if isinstance(self.rejected, list) and call_id in self.rejected else None

    def message(self, call_id: str) -> str | None:
        """Return the text for the model about the refusal of this call; None without one."""
        if self.status(call_id) is not False:
            return None
        said = self.rejection_messages.get(call_id)
        return self.sticky_rejection_message if said is None and self.rejected is True else said

    def status(self, call_id: str) -> bool | None:
        """Return the decision about this call, else the permanent one."""
        exact = self.exactly(call_id)
        if exact is not None:
            return exact
        return True if self.approved is True else False if self.rejected is True else None


def filed_under(call: AgentCall, asked: Call, *, always: bool) -> Iterator[tuple[FiledDecisions, bool]]:
    """Yield the keys of a decision, each with whether it is permanent there."""
    hosted = call.hosted
    if hosted is not None and hosted.persistent_identity is not None:
        yield FiledDecisions("", hosted.persistent_identity), always
        yield FiledDecisions("", (QUERY, hosted.persistent_identity[-1], asked.call_id)), False
        return
    for text in call.approval_keys[-1:] if always else call.approval_keys:
        yield FiledDecisions(asked.caller.agent, (text,), str(asked.id)), always


def _read(item: object) -> tuple[FiledDecisions, DecisionRecord]:
    if not isinstance(item, Mapping):
        raise AgentsError(code="state_invalid", other="records: one of them is not an object")
    owner, tool = item.get("owner"), item.get("tool")
    texts = item.get("texts")
    if not isinstance(owner, str) or not isinstance(tool, str) or not isinstance(texts, list):
        raise AgentsError(code="state_invalid", other="records: owner and tool must be texts, texts a list")
    return FiledDecisions(owner, tuple(text for text in texts if isinstance(text, str)), tool), record_of(item)


def records_of(stored: object) -> dict[FiledDecisions, DecisionRecord]:
    """Read records that `written` produced. Raises `AgentsError` ``state_invalid``."""
    if not isinstance(stored, list):
        raise AgentsError(code="state_invalid", other="records is not a list")
    return dict(map(_read, stored))


def written(records: Mapping[FiledDecisions, DecisionRecord]) -> list[dict[str, object]]:
    """Return the records as JSON."""
    return [
        {"owner": where.owner, "texts": list(where.texts), "tool": where.tool, **_plain(record)}
        for where, record in records.items()
    ]


def _plain(record: DecisionRecord) -> dict[str, object]:
    """Return a record as the library stores it, without empty fields."""
    return {key: value for key, value in asdict(record).items() if key in _DECISIONS or value or value == ""}


def record_of(stored: Mapping[str, object]) -> DecisionRecord:
    """Read one record; invalid decisions and messages are ignored."""
    messages, sticky = stored.get("rejection_messages"), stored.get("sticky_rejection_message")
    return DecisionRecord(
        _decided(stored.get("approved")),
        _decided(stored.get("rejected")),
        {id: said for id, said in messages.items() if isinstance(id, str) and isinstance(said, str)}
        if isinstance(messages, Mapping)
        else {},
        sticky if isinstance(sticky, str) else None,
    )


def _decided(value: object) -> bool | list[str]:
    if isinstance(value, bool):
        return value
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


SCHEMA: Final = 1
_WHAT: Final = "truename-agents"
_STATE: Final = "the saved state"
# The library's states: from 1.0 to the newest known version; since 1.15 they have a fingerprint for each call id.
_SCHEMA: Final = re.compile(r"1\.([0-9]{1,3})")
_NEWEST: Final = 21
_FINGERPRINTED: Final = 15
_REPEATED: Final[Mapping[str, str]] = {"call_reused": "call_id_reused", "call_repeated": "call_repeated"}
_STATES: Final[Mapping[str, bool]] = {"approved": True, "rejected": False}


class AgentApprovals:
    """Decisions about calls of agents.

    If the library would transfer a grant to another tool that now has the name, `get_approval_status` returns None, so
    that the user is asked.

    >>> from truename.compat.openai_agents import AgentTool
    >>> from truename.compat.openai_calls import AgentCall
    >>> from truename.identity import ToolNames
    >>> docs, evil = (AgentTool(ToolNames(name="search"), owner=owner) for owner in ("docs", "evil"))
    >>> def call(tool: AgentTool, id: str) -> AgentCall:
    ...     return AgentCall({"type": "function_call", "name": "search", "call_id": id, "arguments": "{}"}, tool)
    >>> approvals = AgentApprovals()
    >>> approvals.approve_tool(call(docs, "1"), always_approve=True)
    >>> approvals.get_approval_status(call(docs, "2")), approvals.get_approval_status(call(evil, "3"))
    (True, None)
    """

    def __init__(self, book: MemoryRecords | None = None) -> None:
        self._store = _BookStore(MemoryRecords() if book is None else book)
        self._approvals = Approvals(self._store)
        self.records: dict[FiledDecisions, DecisionRecord] = {}

    def approve_tool(self, call: AgentCall, always_approve: bool = False) -> None:
        """Approve a call, or with ``always_approve`` all calls of this tool by this agent. Raises `AgentsError`."""
        self._decide(call, approve=True, always=always_approve)

    def reject_tool(self, call: AgentCall, always_reject: bool = False, rejection_message: str | None = None) -> None:
        """Reject a call, or all; the message is for the model. Raises `AgentsError`."""
        self._decide(call, approve=False, always=always_reject, message=rejection_message)

    def get_approval_status(self, call: AgentCall) -> bool | None:
        """Return whether a call is approved (True), rejected (False), or pending (None).

        Raises `AgentsError`. A hosted request that reuses the id of another one is pending, and deciding about it
        raises.
        """
        try:
            status = _STATES.get(self.verdict(call).state)
        except AgentsError as error:
            if error.code == "call_id_reused" and call.hosted is not None:
                return None
            raise
        if status is not None:
            self._note(call.policy_call())
        return status

    def _note(self, asked: Call) -> StoredCall:
        """Record a call, so that its id cannot be reused for another one; return its record."""
        where = CallKey(asked.caller.principal, asked.caller.session, asked.call_id)
        with self._store.change() as book:
            if (known := book.call(where)) is None:
                known = StoredCall(where=where, id=asked.id, arguments=asked.arguments_digest)
                book.put(known)
        return known

    def get_rejection_message(self, call: AgentCall) -> str | None:
        """Return the text for the model about a rejected call; None without one."""
        verdict = self.verdict(call)
        return verdict.grant.message or None if verdict.state == "rejected" and verdict.grant else None

    def is_tool_approved(self, tool_name: str, call_id: str) -> bool | None:
        """Return the filed decision for a name, for display; None if several agents decided differently."""
        filed = {where: record for where, record in self.records.items() if where.texts == (tool_name,)}
        owned = [record for where, record in filed.items() if where.owner]
        if len(owned) > 1:
            owned = [record for record in owned if record.exactly(call_id) is not None]
        hosted = self.records.get(FiledDecisions("", (QUERY, tool_name, call_id)))
        asked = [*([hosted] if hosted else []), *(owned if len(owned) == 1 else [])]
        asked += [record for where, record in filed.items() if not where.owner]
        return next((status for record in asked if (status := record.status(call_id)) is not None), None)

    def admitted(self, calls: Iterable[AgentCall]) -> list[AgentCall]:
        """Return the calls of one response that should run, each once, and reserve their ids.

        A call that already ran is left out. Include calls that match no tool. Raises `AgentsError`; ``call_id_reused``
        before any id is reserved.
        """
        found: dict[str, tuple[Call, AgentCall]] = {}
        for call in calls:
            self.verdict(call)
            asked = call.policy_call()
            first, _ = found.setdefault(asked.call_id, (asked, call))
            if first.fingerprint != asked.fingerprint:
                raise AgentsError(code="call_id_reused", name=asked.call_id)
        return [call for asked, call in found.values() if self._note(asked).state == "seen"]

    @contextmanager
    def once(self, call: AgentCall) -> Iterator[None]:
        """Run the block for a call, once at most, also after a pause. Raises `AgentsError` ``call_repeated``."""
        with _known(), self._approvals.once(call.policy_call()):
            yield

    def verdict(self, call: AgentCall) -> Verdict:
        """Return the verdict on a call, with the reason if a grant does not apply now. Raises `AgentsError`."""
        asked = call.policy_call()
        with _known():
            return self._approvals.status(asked)

    def saved(self) -> dict[str, Any]:
        """Return the approvals as JSON, for `restored`."""
        book = json.loads(written_book(self._store.book, _STATE))
        return {_WHAT: SCHEMA, "book": book, "records": written(self.records)}

    @classmethod
    def restored(cls, state: object) -> Self:
        """Restore `saved` approvals, of any known version. Raises `AgentsError` ``newer``, ``state_invalid``."""
        schema = state.get(_WHAT) if isinstance(state, Mapping) else None
        if not isinstance(state, Mapping) or type(schema) is not int or schema < 1:
            raise AgentsError(code="state_invalid", other="it contains no approvals of agents")
        if schema > SCHEMA:
            raise AgentsError(code="newer", name=str(schema))
        try:
            found = cls(read_book(json.dumps(state.get("book")).encode(), _STATE))
        except (StoreError, TypeError, ValueError, RecursionError) as error:
            raise AgentsError(code="state_invalid", other=f"book: {error}") from error
        found.records = records_of(state.get("records"))
        return found

    @classmethod
    def of_older(
        cls,
        schema: str,
        approvals: Mapping[str, object],
        pending: Iterable[AgentCall] = (),
        fingerprints: Mapping[str, str] | None = None,
    ) -> Self:
        """Restore the decisions of a state of the library itself, which files them by text, without an agent.

        They are kept for display. Only a decision on one call counts, and only for the same call in ``pending`` (the
        state's interruptions): before 1.15 compared by id, since then also by fingerprint (``fingerprints``, from the
        state's ``tool_invocations``). Permanent decisions must be made again, since their agent is unknown. Raises
        `AgentsError` like `restored`.
        """
        number, known = _version(schema), fingerprints or {}
        found = cls()
        for text, stored in approvals.items():
            if isinstance(stored, Mapping):
                found.records[FiledDecisions("", (text,))] = record_of(stored)
        for call in pending:
            if number < _FINGERPRINTED:
                found._adopt(call, call.approval_keys)
                continue
            same = tool_invocation_identity(call.raw, tool_lookup_key=call.lookup_key, tool_name=call.tool_name)
            if same is not None and known.get(same.call_id) == same.fingerprint:
                found._adopt(call, (*call.approval_keys, *call.older_keys))
        return found

    def _adopt(self, call: AgentCall, texts: Iterable[str]) -> None:
        for text in texts:
            record = self.records.get(FiledDecisions("", (text,)))
            decided = record.exactly(call.call_id or "") if record else None
            if record is not None and decided:
                self._approvals.approve(call.policy_call())
            elif record is not None and decided is False:
                self._approvals.reject(call.policy_call(), message=record.message(call.call_id or "") or "")

    def _decide(self, call: AgentCall, *, approve: bool, always: bool, message: str | None = None) -> None:
        hosted = call.hosted
        if always and hosted is not None and hosted.persistent_identity is None:
            raise AgentsError(code="hosted_identity_missing", name=hosted.request_id or "")
        asked = call.policy_call()
        scope: Scope = "always" if always else "call"
        with _known():
            if approve:
                self._approvals.approve(asked, scope)
            else:
                self._approvals.reject(asked, scope, message=message or "")
        for filed, sticky in filed_under(call, asked, always=always):
            record = self.records.setdefault(filed, DecisionRecord())
            record.decide(asked.call_id, approve=approve, always=sticky, message=message)


@contextmanager
def _known() -> Iterator[None]:
    try:
        yield
    except CallRepeated as error:
        raise AgentsError(code=_REPEATED[error.code], name=error.call, other=error.state) from error


class _BookStore:
    """A store in memory, which is saved with the rest of a state."""

    def __init__(self, book: MemoryRecords) -> None:
        self.book = book

    def read(self) -> ApprovalRecords:
        return self.book

    @contextmanager
    def change(self) -> Iterator[ApprovalRecords]:
        draft = self.book.copy()
        yield draft
        self.book = draft


def _version(schema: object) -> int:
    """Return the minor version of a state's schema, which may be any known one from 1.0 on."""
    matched = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if matched is None:
        raise AgentsError(code="state_invalid", other=f"schema {schema!r:.40} is unknown")
    if int(matched[1]) > _NEWEST:
        raise AgentsError(code="newer", name=matched[0])
    return int(matched[1])
