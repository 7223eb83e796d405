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

    def decide(self, call_id: str, *, approve: bool, always: bool) -> None:
        """Write a decision down; one for always begins anew."""
        if always:
            self.approved, self.rejected = approve, ([] if approve else True)
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
        {"owner": where.owner, "texts": list(where.texts), "tool": where.tool, **asdict(record)}
        for where, record in records.items()
    ]


def record_of(stored: Mapping[str, Any]) -> Record:
    """Read one record; what is no decision in it counts as none."""
    return Record(_decided(stored.get("approved")), _decided(stored.get("rejected")))


def _decided(value: object) -> bool | list[str]:
    if isinstance(value, bool):
        return value
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
