"""What openai-agents would have on file about decisions, by agent and text: to look at, not to decide by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.compat.openai_errors import AgentsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.compat.openai_items import AgentCall
    from truename.policy import Call

__all__ = ["QUERY", "Filed", "Record", "filed_under", "record_of", "records_of", "written"]

QUERY: Final = "hosted_mcp_query"
_DECISIONS: Final = ("approved", "rejected")


class Filed(NamedTuple):
    """Where a decision is filed: the agent ("" for none), the texts, and the id of the tool that they stand for."""

    owner: str
    texts: tuple[str, ...]
    tool: str = ""


@dataclass(slots=True)
class Record:
    """What is filed there: decided for always, or the ids of the calls that were decided on."""

    approved: bool | list[str] = field(default_factory=list)
    rejected: bool | list[str] = field(default_factory=list)
    rejection_messages: dict[str, str] = field(default_factory=dict)
    sticky_rejection_message: str | None = None

    def decide(self, call_id: str, *, approve: bool, always: bool, message: str | None = None) -> None:
        """Write a decision down, with what the model is told of a refusal; one for always begins anew."""
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
        """Return what was decided for this very call."""
        if isinstance(self.approved, list) and call_id in self.approved:
            return True
        return False if isinstance(self.rejected, list) and call_id in self.rejected else None

    def message(self, call_id: str) -> str | None:
        """Return what the model is told of a refusal of this call, if anything was said."""
        if self.status(call_id) is not False:
            return None
        said = self.rejection_messages.get(call_id)
        return self.sticky_rejection_message if said is None and self.rejected is True else said

    def status(self, call_id: str) -> bool | None:
        """Return what was decided for this call, or else for always."""
        exact = self.exactly(call_id)
        if exact is not None:
            return exact
        return True if self.approved is True else False if self.rejected is True else None


def filed_under(call: AgentCall, asked: Call, *, always: bool) -> Iterator[tuple[Filed, bool]]:
    """Yield where a decision is filed, and whether it counts for always there."""
    hosted = call.hosted
    if hosted is not None and hosted.persistent_identity is not None:
        yield Filed("", hosted.persistent_identity), always
        yield Filed("", (QUERY, hosted.persistent_identity[-1], asked.call_id)), False
        return
    for text in call.approval_keys[-1:] if always else call.approval_keys:
        yield Filed(asked.caller.agent, (text,), str(asked.id)), always


def _read(item: object) -> tuple[Filed, Record]:
    if not isinstance(item, Mapping):
        raise AgentsError(code="state_invalid", other="records: one of them is no object")
    owner, tool = item.get("owner"), item.get("tool")
    texts = item.get("texts")
    if not isinstance(owner, str) or not isinstance(tool, str) or not isinstance(texts, list):
        raise AgentsError(code="state_invalid", other="records: owner and tool have to be texts, texts a list")
    return Filed(owner, tuple(text for text in texts if isinstance(text, str)), tool), record_of(item)


def records_of(stored: object) -> dict[Filed, Record]:
    """Read what was `written`. Raises `AgentsError` ``state_invalid``."""
    if not isinstance(stored, list):
        raise AgentsError(code="state_invalid", other="records is no list")
    return dict(map(_read, stored))


def written(records: Mapping[Filed, Record]) -> list[dict[str, Any]]:
    """Return what is on file as JSON."""
    return [
        {"owner": where.owner, "texts": list(where.texts), "tool": where.tool, **_plain(record)}
        for where, record in records.items()
    ]


def _plain(record: Record) -> dict[str, Any]:
    """Return a record as that library stores it: what was not said is left out."""
    return {key: value for key, value in asdict(record).items() if key in _DECISIONS or value or value == ""}


def record_of(stored: Mapping[str, Any]) -> Record:
    """Read one record; what is no decision or message in it counts as none."""
    messages, sticky = stored.get("rejection_messages"), stored.get("sticky_rejection_message")
    return Record(
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
