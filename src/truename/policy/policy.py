"""Policy: what may happen, decided on a tool's identity after every alias is resolved."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from truename.errors import ApprovalRequired, ConfigError, NotAllowed
from truename.policy.call import claims_of
from truename.policy.decision import STRICTNESS, Decision, Outcome
from truename.policy.terms import hint

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from truename.catalog import Origin, Tool
    from truename.identity import ToolId
    from truename.policy.approvals import Approvals
    from truename.policy.call import Call, Caller
    from truename.policy.call_rules import CallRule
    from truename.policy.exposure import Exposure
    from truename.policy.grants import Verdict

__all__ = ["Check", "Policy"]

Check = Callable[["Call"], "Outcome | Decision | None"]
_DEFAULT: Final = "default"
_MOST_KNOWN: Final = 10_000
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_log = logging.getLogger("truename.policy")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules, checks in Python, what holds where none of them says anything, and the decisions of people.

    **The strictest wins**: deny before ask before allow, whatever the order of the rules, so that none can be
    outrun by one that stands before it, and adding a rule that denies or asks never allows anything. What a rule is
    not meant for is said in the rule (``except``).

    A person's decision counts where the rules ask; a rejection counts where they allow, too, and one that is
    suspended has somebody asked there. Nothing counts against a deny. A check that fails, or answers with something
    else than a decision, denies. ``exposure`` says which tools are for which session; what is not for it is denied.
    ``recorder`` is told of each call that is about to be run; that it fails stops no call.

    >>> from truename import Catalog, project
    >>> from truename.policy import CallRule, bound_call
    >>> names = project(Catalog.of("git@1/push@1"), "openai")
    >>> call = bound_call(name="git/push", call_id="c1", arguments={}, names=names)
    >>> everything = CallRule(name="everything", outcome="allow")
    >>> gate = CallRule(name="no pushing", outcome="deny", tools=("git/push",))
    >>> Policy(rules=[everything, gate]).decide(call).rule, Policy().decide(call).outcome
    ('no pushing', 'ask')
    """

    rules: Iterable[CallRule] = ()
    checks: Iterable[Check] = ()
    default: Outcome = "ask"
    approvals: Approvals | None = None
    exposure: Exposure | None = None
    recorder: Callable[[Call], object] | None = None
    _hints: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _known: dict[Hashable, Decision | None] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "checks", tuple(self.checks))
        object.__setattr__(self, "_hints", tuple(sorted({name for rule in self.rules for name in rule.annotations})))
        if self.default not in _OUTCOMES:
            problem, remedy = f"{self.default!r} is no decision", f"Use one of: {', '.join(_OUTCOMES)}."
            raise ConfigError(file="policy", key="default", problem=problem, remedy=remedy)

    def decide(self, call: Call) -> Decision:
        """Return what may happen with this call.

        Raises `CallRepeated` (``call_reused``) if its id was used for another call.
        """
        ruled = self._ruled(call)
        if ruled.outcome == "deny" or self.approvals is None:
            return ruled
        return _with_verdict(ruled, self.approvals.status(call))

    def enforce(self, call: Call) -> Decision:
        """Return the decision if it allows the call. Raises `NotAllowed` or `ApprovalRequired` if not."""
        decision = self.decide(call)
        if decision.outcome == "deny":
            raise NotAllowed(id=call.id, rule=decision.rule, decision=decision.reason)
        if decision.outcome == "ask":
            raise ApprovalRequired(id=call.id, approval_key=str(call.id), call=call.call_id, decision=decision.reason)
        return decision

    @contextmanager
    def running(self, call: Call) -> Iterator[Decision]:
        """Run the block if the call is allowed, and once at most. Raises as `enforce`, and `CallRepeated`."""
        decision = self.enforce(call)
        with nullcontext() if self.approvals is None else self.approvals.once(call, decision.grant):
            self._record(call)
            yield decision

    def visible(self, tool: Tool, caller: Caller, formerly: tuple[ToolId, ...] = ()) -> bool:
        """Tell whether a tool is listed for a caller: it is not hidden from them, and is for their context.

        ``formerly`` are ids that were redirected to the tool (`truename.policy.grants.formerly`).
        """
        if self.hides(tool, caller, formerly):
            return False
        return self.exposure is None or self.exposure.visible(tool, caller.context, formerly)

    def hides(
        self, tool: Tool, caller: Caller, formerly: tuple[ToolId, ...] = (), *, whoever_calls: bool = False
    ) -> bool:
        """Tell whether a tool does not exist for a caller: the rules deny every call of it. Checks see calls only.

        What is hidden is answered as unknown; what is only for another context, as unsupported. With
        ``whoever_calls``, rules about principals or agents hide nothing: for a list that several callers share.
        """
        about = tool.id, tool.origin, claims_of(tool)
        return any(
            rule.outcome == "deny" and _applies(rule, *about, caller=caller, formerly=formerly)
            for rule in self.rules
            if not (whoever_calls and (rule.principals or rule.agents))
        )

    def _record(self, call: Call) -> None:
        try:
            if self.recorder is not None:
                self.recorder(call.copied())
        except Exception:  # noqa: BLE001 - who only writes down what happens must not keep it from happening
            _log.exception("the recorder failed on %s; the call is made all the same", call.id)

    def _ruled(self, call: Call) -> Decision:
        strictest = self._said(call)
        found = [] if strictest is None else [strictest]
        found += self._exposed(call)
        found += [decision for check in self.checks if (decision := _checked(check, call)) is not None]
        if not found:
            return Decision(outcome=self.default, rule=_DEFAULT, reason="no rule is about it")
        return found[0] if len(found) == 1 else _strictest(found)

    def _said(self, call: Call) -> Decision | None:
        """Return what the rules say of a call: the same of many calls, for they see all of it but its arguments."""
        hints = tuple(hint(name, said) for said in call.claims for name in self._hints)
        key = call.id, call.origin, call.caller, call.formerly, hints
        try:
            return self._known[key]
        except KeyError:
            about = call.id, call.origin, call.claims
            whose: Any = {"caller": call.caller, "formerly": call.formerly}
            found = [rule.decision for rule in self.rules if _applies(rule, *about, **whose)]
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            said = self._known[key] = _strictest(found) if found else None
            return said

    def _exposed(self, call: Call) -> Iterator[Decision]:
        if self.exposure is not None and (refusal := self.exposure.refusal(call, call.caller.context)):
            yield refusal


def _applies(
    rule: CallRule,
    id: ToolId,
    origin: Origin,
    claims: tuple[Mapping[str, Any], ...],
    *,
    caller: Caller,
    formerly: tuple[ToolId, ...],
) -> bool:
    """Tell whether a rule is about a tool: one that allows has to fit by all of its annotations, others by some."""
    fit = all if rule.outcome == "allow" else any
    return fit(rule.applies(id, origin, annotations, caller, formerly) for annotations in claims)


def _strictest(found: list[Decision]) -> Decision:
    # max keeps the first of equals: the earliest of the strictest is the one that is told.
    return max(found, key=lambda decision: STRICTNESS[decision.outcome])


def _checked(check: Check, call: Call) -> Decision | None:
    name = getattr(check, "__name__", type(check).__name__)
    try:
        # What it does to its copy is done neither to the call that is run nor to what the next check sees.
        answer = check(call.copied())
    except Exception as error:  # noqa: BLE001 - a check that fails, however it does, denies
        _log.exception("the check %s failed on %s", name, call.id)
        return Decision(outcome="deny", rule=name, reason=f"the check failed ({type(error).__name__})")
    if answer is None:
        return None
    if isinstance(answer, Decision) and answer.outcome in _OUTCOMES:
        return answer if answer.rule else replace(answer, rule=name)
    if isinstance(answer, str) and answer in _OUTCOMES:
        return Decision(outcome=answer, rule=name)
    return Decision(outcome="deny", rule=name, reason=f"the check gave {type(answer).__name__}, which is no decision")


def _with_verdict(ruled: Decision, verdict: Verdict) -> Decision:
    """Return what a person's decision makes of what the rules say: allow or ask."""
    grant = verdict.grant
    if verdict.state == "rejected":
        reason = grant.message if grant and grant.message else "it was rejected"
        return Decision(outcome="deny", rule="rejected", reason=reason, grant=grant)
    if verdict.state == "suspended" and (ruled.outcome == "ask" or (grant and not grant.approved)):
        return Decision(
            outcome="ask", rule=ruled.rule, reason=f"the earlier decision is suspended: {verdict.reason}", grant=grant
        )
    if verdict.state == "approved" and ruled.outcome == "ask":
        return Decision(
            outcome="allow", rule=ruled.rule, reason=f"approved ({grant.scope if grant else ''})", grant=grant
        )
    return ruled
