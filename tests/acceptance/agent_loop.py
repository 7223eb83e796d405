"""An agent loop with a scripted model, over the public API: the proof that the layers of identity work together.

A turn: the tools are listed and named, the model calls, each call is resolved by its key, identified by its id, decided
on, and run once. A pause saves what is pending; a resume reads it, perhaps with other tools.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.agents import call_of, shown_key, tools_of
from truename.catalog import Origin
from truename.compat import openai_agents as compat
from truename.compat.openai_approvals import AgentApprovals
from truename.compat.openai_calls import AgentCall, tool_invocation_identity
from truename.compat.openai_mcp import held_by, prefixed_names, reserved_names, unprefixed_names
from truename.compat.openai_tools import AgentsError, AgentTool
from truename.identity import LookupKey, ToolNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.compat.openai_mcp import Held

__all__ = ["Loop"]

# What a tool answers here: an agent's own, and one of an MCP server.
_OWN: Final = "ran {}"
_SERVED: Final = "{'type': 'text', 'text': 'ok'}"
_ONE_HANDOFF: Final = "Multiple handoffs detected, ignoring this one."
_REJECTED: Final = "Tool execution was not approved."
# Since which state that library saves fingerprints of calls, and whose decisions and whose tools they are.
_FINGERPRINTS: Final = "1.15"
_OWNERS: Final = "1.18"


@dataclass
class Loop:
    """One run of one agent, and everything that can be seen of it."""

    given: Mapping[str, Any]
    approvals: AgentApprovals = field(default_factory=AgentApprovals)
    agent: str = "ag"
    seen: dict[str, Any] = field(default_factory=dict)
    spans: list[dict[str, Any]] = field(default_factory=list)
    executed: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, str]] = field(default_factory=list)
    # The tools of this turn, by the keys that dispatch to them; which of them ask; the names that were shown before.
    tools: list[AgentTool] = field(default_factory=list)
    handoffs: list[AgentTool] = field(default_factory=list)
    keys: dict[LookupKey, AgentTool] = field(default_factory=dict)
    asking: list[AgentTool] = field(default_factory=list)
    held: Held = field(default_factory=dict)
    # What waits for a decision, and which handoff comes after it.
    pending: list[AgentCall] = field(default_factory=list)
    # The calls that somebody decided on, and what a trace says of each that ran.
    decided: list[AgentCall] = field(default_factory=list)
    traced: list[Mapping[str, Any]] = field(default_factory=list)
    handoff: AgentTool | None = None

    def observed(self) -> dict[str, Any]:
        """Return what was seen, also if the run ended in an error."""
        listed = {"executed": self.executed, "spans": self.spans, "tool_outputs": self.outputs}
        return {"model_called": False, **listed, **self.seen}

    def run(self) -> None:
        """Run from the first word of the model to its last, through all pauses."""
        self.script = iter([self.given["calls"], *([call] for call in self.given.get("later_calls", []))])
        self.segment(self.given["tools"], self.given["servers"], [])
        self.seen["interruptions"] = [_interruption(call) for call in self.pending]
        at = self.given.get("swap_at_resume_number", 0)
        for number, decisions in enumerate(self.given["decisions"]):
            now = {word: self.given.get(f"{word}_at_resume", self.given[word]) for word in ("tools", "servers")}
            then = now if number >= at else self.given
            self.decide(decisions)
            self.segment(then["tools"], then["servers"], self.saved())
            self.seen.setdefault("later_interruptions", []).append([call.call_id for call in self.pending])
        self.seen["final_agent"] = self.agent

    def segment(self, tools: Any, servers: Any, saved: Sequence[Mapping[str, Any]]) -> None:
        """Run until the model is done or somebody has to decide; begin with the calls that were saved."""
        try:
            self.offer(tools, servers)
            self.settle([self.reread(one) for one in saved], asked_before=True)
            while not self.pending and (calls := self.model()) is not None:
                self.settle(calls, asked_before=False)
        finally:
            self.end_agent()

    def offer(self, tools: Any, servers: Any) -> None:
        """List all tools under their names, and settle or refuse collisions."""
        own, handoffs = tools_of(tools), tools_of(self.given["handoffs"])
        served = list(self.served(servers, reserved_names(own, handoffs)))
        kept, self.handoffs = compat.resolve_tool_name_collisions(
            [*served, *own], handoffs, collision_policy=self.given["collision_policy"]
        )
        self.tools, self.keys = kept, compat.build_function_tool_lookup_map(kept)
        asking = {server.get("id", server["name"]) for server in servers if server.get("require_approval") == "always"}
        self.asking = [tool for tool in served if tool.owner in asking]
        self.asking += [tool for tool, row in zip(own, tools, strict=True) if row.get("needs_approval")]
        shown = {
            "tools": [tool.names.qualified_name for tool in kept],
            "handoffs": [h.names.name for h in self.handoffs],
        }
        self.seen.setdefault("exposed", shown)

    def served(self, servers: Any, reserved: frozenset[str]) -> Iterator[AgentTool]:
        """Yield the tools of MCP servers: each with the name that is shown, and where it comes from."""
        listed = [(server["name"], list(dict.fromkeys(server["tools"]))) for server in servers]
        if self.given["include_server_in_tool_names"]:
            names = prefixed_names(listed, reserved, self.held)
            self.held |= held_by(listed, names)
            placed = [(name.server, name.original, name.public) for name in names]
        else:
            unprefixed_names(listed)
            placed = [(place, name, name) for place, (_, tools) in enumerate(listed) for name in tools]
        for place, original, public in placed:
            label, owner = servers[place]["name"], servers[place].get("id", servers[place]["name"])
            yield AgentTool(ToolNames(name=public), owner=owner, origin=Origin(label, original, owner))

    def model(self) -> list[AgentCall] | None:
        """Return what the model calls next; None if it is done."""
        self.seen["model_called"] = True
        raw = next(self.script, None)
        return None if raw is None else [self.called(call_of(call)) for call in raw]

    def called(self, raw: dict[str, Any]) -> AgentCall:
        """Return a call with what it is for: a handoff, a tool, or neither."""
        plain = AgentCall(raw)
        for handoff in self.handoffs:
            if plain.tool_namespace is None and handoff.names.name == plain.tool_name:
                return AgentCall(raw, handoff, self.agent)
        key = compat.get_function_tool_lookup_key_for_call(raw)
        tool = self.keys.get(key) if key else None
        if tool is not None:
            alias = compat.should_allow_bare_name_approval_alias(tool, self.tools)
            return AgentCall(raw, tool, self.agent, alias)
        if self.given["tool_not_found"] == "raise_error":
            raise AgentsError(code="tool_not_found", name=plain.qualified_name or "", other=self.agent)
        return AgentCall(raw, None, self.agent)

    def settle(self, calls: Sequence[AgentCall], *, asked_before: bool) -> None:
        """Decide on the calls of one response and run what may run; ids are checked before anything runs."""
        self.pending = []
        for call in self.approvals.admitted(calls):
            if call.tool is None:
                self.answer(call, compat.tool_not_found_message(call.raw, self.tools))
                continue
            if call.tool.kind == "handoff":
                if self.handoff is not None:
                    self.answer(call, _ONE_HANDOFF)
                self.handoff = self.handoff or call.tool
                continue
            asks = asked_before or any(call.tool is tool for tool in self.asking)
            allowed = self.approvals.get_approval_status(call) if asks else True
            if allowed is None:
                self.pending.append(call)
            if allowed or (allowed is None and not asked_before):
                self.spans.append({"type": "function", "name": call.qualified_name})
            if allowed:
                self.execute(call)
            elif allowed is False:
                self.answer(call, self.approvals.get_rejection_message(call) or _REJECTED)
        if self.handoff is not None and not self.pending:
            self.hand_over(self.handoff)

    def execute(self, call: AgentCall) -> None:
        """Run a tool, once."""
        tool = call.tool
        assert tool is not None
        self.traced.append(call.trace)
        with self.approvals.once(call):
            if tool.origin is not None:
                self.executed.append({"server": tool.origin.server_id, "server_tool_name": tool.origin.name})
            else:
                assert not tool.names.is_deferred_top_level or "namespace" not in call.for_tool
                self.executed.append(_context(call, tool))
        self.answer(call, _SERVED if tool.origin else _OWN.format(tool.owner))

    def answer(self, call: AgentCall, text: str) -> None:
        """Tell the model what became of a call, once."""
        if all(output["call_id"] != call.call_id for output in self.outputs):
            self.outputs.append({"call_id": call.call_id or "", "output": text})

    def hand_over(self, handoff: AgentTool) -> None:
        """Let another agent go on, which has no tools here and has its last word at once."""
        self.spans.append({"type": "handoff", "name": handoff.agent})
        self.end_agent()
        self.agent, self.handoff, self.script = handoff.agent, None, iter([])
        self.tools, self.handoffs, self.keys = [], [], {}

    def end_agent(self) -> None:
        names = [tool.names.trace_name for tool in self.tools]
        agents = [handoff.agent for handoff in self.handoffs]
        self.spans.append({"type": "agent", "agent": self.agent, "tools": names, "handoffs": agents})

    def decide(self, decisions: Mapping[str, Mapping[str, Any]]) -> None:
        """Do what a person decides on the calls that wait."""
        for call in self.pending:
            decision = decisions.get(call.call_id or "")
            self.decided += [] if decision is None else [call]
            if decision is not None and decision["do"] == "approve":
                self.approvals.approve_tool(call, decision.get("always", False))
            elif decision is not None:
                self.approvals.reject_tool(call, decision.get("always", False), decision.get("message"))

    def saved(self) -> list[dict[str, Any]]:
        """Save the pause, and read it again as asked: as JSON, or as what an older version of the library wrote."""
        older = self.given.get("state_rewritten_as_schema")
        if older is not None and _number(older) < _number(_OWNERS):
            self.approvals = self.rewritten(older)
        elif self.given["json_roundtrip"]:
            self.approvals = AgentApprovals.restored(json.loads(json.dumps(self.approvals.saved())))
        bound = older is None or _number(older) >= _number(_OWNERS)
        return [_saved(call, bound=bound) for call in self.pending]

    def rewritten(self, schema: str) -> AgentApprovals:
        texts = {filed.texts[0]: _decided(record) for filed, record in self.approvals.records.items()}
        found = {call.call_id or "": _fingerprint(call) for call in self.pending}
        prints = found if _number(schema) >= _number(_FINGERPRINTS) else {}
        return AgentApprovals.of_older(schema, texts, self.pending, prints)

    def reread(self, saved: Mapping[str, Any]) -> AgentCall:
        """Return a saved call for the tool that its key leads to now, if that comes from where it did."""
        key = LookupKey.parse(saved["key"])
        raw = compat.restore_tool_call_routing_identity(saved["raw"], key)
        tool = self.keys.get(key) if key else None
        if tool is None:
            raise AgentsError(code="tool_not_found", name=AgentCall(raw).qualified_name or "", other=self.agent)
        if saved["origin"] != _origin(tool):
            raise AgentsError(code="mcp_binding_changed", name=tool.names.name)
        return AgentCall(raw, tool, self.agent, saved["bare_alias"])


def _saved(call: AgentCall, *, bound: bool) -> dict[str, Any]:
    key = call.lookup_key
    assert call.tool is not None
    return {
        "raw": call.raw,
        "key": key.plain() if key else None,
        "bare_alias": call.bare_alias,
        "origin": _origin(call.tool) if bound else None,
    }


def _origin(tool: AgentTool) -> list[str] | None:
    return None if tool.origin is None else [tool.origin.server_id, tool.origin.name]


def _fingerprint(call: AgentCall) -> str:
    found = tool_invocation_identity(call.raw, tool_lookup_key=call.lookup_key)
    return found.fingerprint if found else ""


def _number(schema: str) -> int:
    return int(schema.rpartition(".")[2])


def _decided(record: Any) -> dict[str, Any]:
    return {"approved": record.approved, "rejected": record.rejected}


def _interruption(call: AgentCall) -> dict[str, Any]:
    return {
        "tool_name": call.tool_name,
        "namespace": call.tool_namespace,
        "qualified_name": call.qualified_name,
        "lookup_key": shown_key(call.lookup_key),
        "call_id": call.call_id,
        "bare_alias": call.bare_alias,
    }


def _context(call: AgentCall, tool: AgentTool) -> dict[str, Any]:
    return {
        "tool": tool.owner,
        "tool_name": call.tool_name,
        "tool_namespace": call.tool_namespace,
        "qualified_tool_name": call.qualified_name,
        "call_id": call.call_id,
        "call_namespace": call.tool_namespace,
    }
