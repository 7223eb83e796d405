"""Give an agent framework the tools of several servers under unique names, and gate their calls.

The adapters for frameworks differ in how a tool is registered, and how a run pauses and resumes. This module has
everything else. An agent framework without an adapter can use it directly (`docs/frameworks/adapters.md`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from truename import Catalog, Ledger, project
from truename.adapters.wire import NOBODY, OfferedTool, offered_tools
from truename.catalog import ServerIdentity, identity_changes, identity_mismatch
from truename.errors import ApprovalRequired, NotAllowed, PolicyError, TruenameError, UnknownTool
from truename.identity import required_key
from truename.naming import listing, renamed, utc_today
from truename.policy import Approvals, Call, Caller, Policy, bound_call
from truename.policy.former_ids import former_ids, formerly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import date

    from truename import NameTable, Style, ToolId
    from truename.policy import Decision, Grant, Scope

__all__ = ["ASK_ALL", "NAMING", "Toolbox", "ToolboxNames", "error_text"]

ASK_ALL: Final = Policy()


@dataclass(frozen=True, kw_only=True)
class ToolboxNames:
    """The naming of a toolbox: the arguments of `project`, used whenever servers list their tools.

    Without a ledger the names depend on the set of tools alone; with one they never change. ``identities`` are the
    declared identities of servers, by key.
    """

    dialect: str = "universal"
    style: str | Style = "prefixed"
    ledger: Ledger | None = None
    aliases: Mapping[str, str] | None = None
    overrides: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    identities: Mapping[str, ServerIdentity] = field(default_factory=dict)

    def table(self, listings: Mapping[str, Iterable[object]]) -> NameTable:
        """Return the names of the tools that these servers list (by server key, as in a tools/list result).

        A tool that cannot be admitted is skipped, with an entry in the catalog's ``notices``. Raises the errors of
        `project`, and `LedgerError` (``identity_mismatch``).
        """
        known = Ledger.memory() if self.ledger is None else self.ledger
        if changes := identity_changes(known.bindings(), self.identities):
            raise identity_mismatch(changes)
        pairs = {key: list(listing) for key, listing in listings.items()}
        catalog = Catalog.from_mcp(
            pairs,
            self.aliases,
            known.bindings(),
            owners=known.origins(),
            identities=self.identities,
            strict=False,
        )
        return project(catalog, self.dialect, style=self.style, ledger=self.ledger, overrides=self.overrides)


NAMING: Final = ToolboxNames()


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """The names, the policy and the caller. A policy without approvals gets some in memory: calls run once.

    >>> names = ToolboxNames().table({"docs": ["search"], "crm": ["search"]})
    >>> box = Toolbox(names=names, policy=Policy(default="allow"))
    >>> [offer.key.name for offer in box.offered]
    ['docs_search', 'crm_search']
    >>> call = box.call("docs_search", "call_1", "{}")
    >>> with box.running(call):
    ...     call.origin.name
    'search'
    >>> with box.running(call):
    ...     print("a second time")
    Traceback (most recent call last):
        ...
    truename.errors.CallRepeated: The call 'call_1' of docs@1/search@1 was already started (it is done); ...
    """

    names: NameTable
    policy: Policy = ASK_ALL
    caller: Caller = NOBODY
    endpoints: Mapping[str, str] = field(default_factory=dict)
    today: Callable[[], date] = utc_today
    # The store of people's decisions.
    approvals: Approvals = field(init=False)

    def __post_init__(self) -> None:
        approvals = _approvals_of(self.policy)
        object.__setattr__(self, "approvals", approvals)
        object.__setattr__(self, "policy", replace(self.policy, approvals=approvals))

    @cached_property
    def offered(self) -> tuple[OfferedTool, ...]:
        """The tools that this caller may see, under their names, and for a time under their former names.

        A former name is listed until the day that its redirect has in the ledger (`Ledger.redirect`); its description
        names the new one.
        """
        former, offered = former_ids(self.names.ledger), offered_tools(self.names, self.names.dialect.name)
        visible = {
            offer.id: offer for offer in offered if self.policy.visible(offer.tool, self.caller, former(offer.id))
        }
        found: list[OfferedTool] = []
        for listed in listing(self.names, self.today()):
            if (offer := visible.get(listed.id)) is None:
                continue
            if listed.now:
                description = str(renamed(offer.tool.shown, listed)["description"])
                offer = offer._replace(key=required_key(listed.name), description=description)
            found.append(offer)
        return tuple(found)

    def call(self, name: object, call_id: object, arguments: object) -> Call:
        """Return the call that a framework reports. No value is converted, and no id is invented.

        Raises `InvalidCall` that names the field, or the errors of `resolve`; a tool that a rule hides from the caller
        is unknown. A tool outside the caller's context gives a call, which `decide` denies.
        """
        call = bound_call(
            name=name,
            call_id=call_id,
            arguments=arguments,
            names=self.names,
            caller=self.caller,
            endpoints=self.endpoints,
        )
        if self.policy.hides(self.names.catalog[call.id], self.caller, call.formerly):
            raise UnknownTool(text=call.wire_name)
        return call

    def refused(self, id: ToolId) -> TruenameError | None:
        """Return why a tool of the catalog is not offered to this caller; None if it is."""
        tool, before = self.names.catalog[id], formerly(id, self.names.ledger)
        if self.policy.hides(tool, self.caller, before):
            return UnknownTool(text=self.names[id])
        refusal = self.policy.exposure and self.policy.exposure.refusal(tool, self.caller.context, before)
        return NotAllowed(id=id, rule=refusal.rule, decision=refusal.reason) if refusal else None

    def decide(self, call: Call) -> Decision:
        """Return the policy's decision about the call."""
        return self.policy.decide(call)

    @contextmanager
    def running(self, call: Call) -> Iterator[Decision]:
        """Run the block if the policy allows the call; a call that already ran is refused.

        Raises `PolicyError` before the block is entered.
        """
        with self.policy.running(call) as decision:
            yield decision

    def approve(self, call: Call, scope: Scope = "call", *, by: str = "") -> Grant:
        """Record that a person approved the call."""
        return self.approvals.approve(call, scope, by=by)

    def reject(self, call: Call, scope: Scope = "call", *, message: str = "", by: str = "") -> Grant:
        """Record that a person rejected the call."""
        return self.approvals.reject(call, scope, message=message, by=by)


def with_approvals(policy: Policy) -> Policy:
    """Return the policy with approvals, which also keep a call from running twice."""
    return replace(policy, approvals=_approvals_of(policy))


def _approvals_of(policy: Policy) -> Approvals:
    return Approvals() if policy.approvals is None else policy.approvals


def error_text(error: Exception) -> str:
    """Return the text for the model about a call that was refused or failed.

    A person's message is passed on; the key of an approval is omitted, since it is useless to a model.
    """
    match error:
        case NotAllowed(rule="rejected") if error.decision:
            return f"{error.id} was rejected: {error.decision}. Nothing was run."
        case ApprovalRequired():
            why = f" ({error.decision})" if error.decision else ""
            return f"{error.id} needs an approval{why}. Nothing was run. A person has to allow it first."
        case PolicyError():
            return str(error)
    return str(error) or type(error).__name__
