"""Decide whether a call may run, by the resolved identity of its tool; read policies from configurations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from truename.catalog import unfolded
from truename.catalog.globs import fits_all, fits_id
from truename.conventions.findings import Finding, Rule, Severity
from truename.conventions.metadata import declared_metadata
from truename.errors import ApprovalRequired, ConfigError, ConfigErrors, NotAllowed, excerpt, spelling_remedy
from truename.policy.call import annotations_of, claims_of
from truename.policy.lineage import NO_LINEAGE
from truename.policy.rules import HINTS, STRICTNESS, TERMS, CallRule, Decision, Outcome, hint

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from truename.catalog import Catalog, Origin, Tool, Unfolded
    from truename.identity import ToolId
    from truename.policy.approval_validity import Verdict
    from truename.policy.approvals import Approvals
    from truename.policy.call import Call, Caller
    from truename.policy.exposure import Exposure
    from truename.policy.lineage import Lineage

__all__ = [
    "NAMES_NOTHING",
    "UNGUARDED",
    "Check",
    "Policy",
    "parity",
    "plain_policy",
    "read_policy",
    "read_rules",
    "table_parity",
]

Check = Callable[["Call"], "Outcome | Decision | None"]
_DEFAULT: Final = "default"
_MOST_KNOWN: Final = 10_000
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_log = logging.getLogger("truename.policy")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy: rules, checks in Python, a default, and the decisions of people.

    **The strictest outcome wins**: deny before ask before allow, whatever the order of the rules. No rule can disable
    another, and adding a rule that denies or asks never allows anything. Exceptions are part of a rule (``except``).

    A person's decision counts if the rules say ask. A rejection also counts if they allow, and a suspended rejection
    then turns allow into ask. Nothing overrides deny. A check that raises, or returns anything but a decision, denies.
    ``exposure`` says which tools a session may see and call; calls of other tools are denied. ``recorder`` is called
    with each call that is about to run; an exception in it does not stop the call. ``registered`` has the servers'
    names in the MCP registry by server id, for rules with ``registry_names``; `truename.config.Config` takes them from
    its servers.

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
    registered: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    _hints: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _known: dict[Hashable, Decision | None] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(map(self._bound, self.rules)))
        object.__setattr__(self, "checks", tuple(self.checks))
        object.__setattr__(self, "_hints", tuple(sorted({name for rule in self.rules for name in rule.annotations})))
        if self.default not in _OUTCOMES:
            problem, remedy = f"{self.default!r} is not an outcome", f"Use one of: {', '.join(_OUTCOMES)}."
            raise ConfigError(file="policy", key="default", problem=problem, remedy=remedy)

    def _bound(self, rule: CallRule) -> CallRule:
        # What a rule had before is of another policy.
        return replace(rule, registered=self.registered) if rule.registry_names else rule

    def decide(self, call: Call) -> Decision:
        """Decide whether a call may run.

        Raises `CallRepeated` (``call_reused``) if its id was used for another call.
        """
        ruled = self._ruled_as_all(call)
        if ruled.outcome == "deny" or self.approvals is None:
            return ruled
        return _with_verdict(ruled, self.approvals.status(call))

    def enforce(self, call: Call) -> Decision:
        """Return the decision if it allows the call; else raise `NotAllowed` or `ApprovalRequired`."""
        decision = self.decide(call)
        if decision.outcome == "deny":
            raise NotAllowed(id=call.id, rule=decision.rule, decision=decision.reason)
        if decision.outcome == "ask":
            raise ApprovalRequired(id=call.id, approval_key=str(call.id), call=call.call_id, decision=decision.reason)
        return decision

    @contextmanager
    def running(self, call: Call) -> Iterator[Decision]:
        """Run the block at most once, if the call is allowed. Raises the errors of `enforce`, and `CallRepeated`."""
        decision = self.enforce(call)
        with nullcontext() if self.approvals is None else self.approvals.once(call, decision.grant):
            try:
                if self.recorder is not None:
                    self.recorder(call.copied())
            except Exception:  # noqa: BLE001 - an error of the recorder must not stop the call
                _log.exception("the recorder failed on %s; the call is made nevertheless", call.id)
            yield decision

    def visible(self, tool: Tool, caller: Caller, formerly: tuple[ToolId, ...] = ()) -> bool:
        """Return whether a tool is listed for a caller: it is not hidden, and is available in the caller's context.

        ``formerly`` are ids that were redirected to the tool (`truename.policy.former_ids.formerly`).
        """
        if self.hides(tool, caller, formerly):
            return False
        return self.exposure is None or self.exposure.visible(tool, caller.context, formerly)

    def hides(
        self,
        tool: Tool,
        caller: Caller,
        formerly: tuple[ToolId, ...] = (),
        lineage: Lineage = NO_LINEAGE,
        *,
        whoever_calls: bool = False,
    ) -> bool:
        """Return whether a tool is hidden from a caller, because the rules deny every call of it.

        Checks are not run, since they need a call. A hidden tool is unknown to callers, as if it did not exist; a tool
        that is only unavailable in the context is unsupported. With ``whoever_calls``, rules about principals or agents
        are ignored, for a list that several callers share. A tool that perhaps is another one of its server
        (``lineage``) is hidden where that one is.
        """
        before = tuple(one for one in formerly if one not in lineage.same)
        for one in lineage.judged_as:
            as_former, once = lineage.of_former(one, tool.id), (*before, *lineage.formerly(one))
            if self.hides(one, caller, once, as_former, whoever_calls=whoever_calls):
                return True
        about = tool.id, tool.origin, claims_of(tool)
        return any(
            rule.outcome == "deny" and _applies(rule, *about, caller=caller, formerly=formerly, same=lineage.same)
            for rule in self.rules
            if not (whoever_calls and (rule.principals or rule.agents))
        )

    def decisions(self, call: Call) -> list[tuple[ToolId, Decision]]:
        """Return the decision of the rules on a call of its tool, and as if it were one of each tool that it may be.

        The first is about the tool itself; of the others there is one of each kind that rules tell apart.
        """
        others = ((one.id, self._ruled(_as_other(call, one))) for one in call.lineage.judged_as)
        return [(call.id, self._ruled(call)), *others]

    def _ruled_as_all(self, call: Call) -> Decision:
        """Return the strictest decision on a call, as its tool and as each one that it perhaps is."""
        if not call.lineage.judged_as:
            return self._ruled(call)
        ruled, *others = (decision for _, decision in self.decisions(call))
        strictest = _strictest([ruled, *others])
        return ruled if strictest is ruled else replace(strictest, reason=_inherited(strictest.reason))

    def _ruled(self, call: Call) -> Decision:
        strictest = self._by_rules(call)
        found = [] if strictest is None else [strictest]
        if self.exposure is not None and (refusal := self.exposure.refusal(call, call.caller.context)):
            found.append(refusal)
        found += [decision for check in self.checks if (decision := _checked(check, call)) is not None]
        if not found:
            return Decision(outcome=self.default, rule=_DEFAULT, reason="no rule applies to it")
        return found[0] if len(found) == 1 else _strictest(found)

    def _by_rules(self, call: Call) -> Decision | None:
        """Return the decision of the rules on a call; cached, since rules do not depend on the arguments."""
        hints = tuple(hint(name, annotations) for annotations in call.claims for name in self._hints)
        same = call.lineage.same
        key = call.id, call.origin, call.caller, call.formerly, same, hints
        try:
            return self._known[key]
        except KeyError:
            tool = call.id, call.origin, call.claims
            caller: Any = {"caller": call.caller, "formerly": call.formerly, "same": same}
            found = [rule.decision for rule in self.rules if _applies(rule, *tool, **caller)]
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            decision = self._known[key] = _strictest(found) if found else None
            return decision


def _applies(
    rule: CallRule,
    id: ToolId,
    origin: Origin,
    claims: tuple[Mapping[str, object], ...],
    *,
    caller: Caller,
    formerly: tuple[ToolId, ...],
    same: tuple[ToolId, ...],
) -> bool:
    """Return whether a rule applies to a tool: an allowing rule must match all its annotations, any other rule some."""
    fit = all if rule.outcome == "allow" else any
    return fit(rule.applies(id, origin, annotations, caller, formerly, same) for annotations in claims)


def _as_other(call: Call, tool: Tool) -> Call:
    """Return a call as if it were one of another tool of the same server."""
    shown, *offered = claims_of(tool)
    said: Any = {"annotations": dict(shown), "offered": dict(offered[0]) if offered else None}
    before = (one for one in call.formerly if one not in call.lineage.same)
    return replace(
        call,
        id=tool.id,
        origin=tool.origin,
        declared=declared_metadata(tool),
        # A rule that excepts the present id is judged by `same`, and does not deny by the former one.
        formerly=tuple(dict.fromkeys((*before, *call.lineage.formerly(tool)))),
        lineage=call.lineage.of_former(tool, call.id),
        **said,
    )


def _inherited(reason: str) -> str:
    return f"its server may have renamed it{': ' if reason else ''}{reason}"


def _strictest(found: list[Decision]) -> Decision:
    # max returns the first of equal items, so the first of the strictest rules is reported.
    return max(found, key=lambda decision: STRICTNESS[decision.outcome])


def _checked(check: Check, call: Call) -> Decision | None:
    name = getattr(check, "__name__", type(check).__name__)
    try:
        # A check that changes its copy affects neither the call nor the next check.
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
    return Decision(
        outcome="deny", rule=name, reason=f"the check returned {type(answer).__name__}, which is not a decision"
    )


def _with_verdict(ruled: Decision, verdict: Verdict) -> Decision:
    """Combine the decision of the rules, allow or ask, with the verdict of people's decisions."""
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


_MOST: Final = 1_000
_TABLE: Final = ("default", "rules")
# The fields of rules by their keys in configurations.
_WRITTEN: Final = {about.key or term: term for term, about in TERMS.items()}
_REMEDY: Final = "Correct it; an invalid policy is not used."


def read_policy(table: object, file: str = "policy") -> Policy:
    """Read the ``policy`` table of a configuration: ``default`` (allow, ask, deny) and ``rules``.

    If ``default`` is omitted, calls to which no rule applies are allowed, as without a policy. If a rule allows
    something, they need an approval instead, since that rule would have no effect if everything else were allowed.
    Adding a rule that denies or asks changes nothing for other tools.

    Raises `ConfigError` with the file and the key, or an `ExceptionGroup` of them.

    >>> gate, free = {"outcome": "ask", "tools": ["git/push"]}, {"outcome": "allow", "tools": ["git/log"]}
    >>> read_policy({"rules": [gate]}).default, read_policy({"rules": [gate, free]}).default
    ('allow', 'ask')

    >>> read_policy({"default": "deny", "rules": [{"outcome": "allow", "tools": ["git/*"]}]}).default
    'deny'
    """
    errors = ConfigErrors(file, _REMEDY)
    if not isinstance(table, Mapping):
        errors.add("policy", "it is not an object")
        table = {}
    for key in table:
        if key not in _TABLE:
            errors.add(f"policy.{_shown(key)}", "it is not a field of a policy", spelling_remedy(key, _TABLE))
    default = table.get("default", "allow")
    try:
        TERMS["outcome"].read(default)
    except ValueError as error:
        errors.add("policy.default", str(error))
    rules = _rules(table.get("rules", []), errors)
    errors.raise_any()
    if "default" not in table and any(rule.outcome == "allow" for rule in rules):
        default = "ask"
    return Policy(rules=rules, default=default)


def plain_policy(policy: Policy) -> dict[str, Any]:
    """Return the table of a policy as in a configuration, without checks in Python and approvals.

    >>> plain_policy(read_policy({"rules": [{"outcome": "deny", "tools": ["git/*"], "except": ["git/log"]}]}))["rules"]
    [{'name': 'policy.rules[0]', 'outcome': 'deny', 'tools': ('git/*',), 'except': ('git/log',)}]
    """
    rules = ({key: value for key, term in _WRITTEN.items() if (value := getattr(rule, term))} for rule in policy.rules)
    return {"default": policy.default, "rules": list(rules)}


def read_rules(entries: object, file: str = "policy") -> tuple[CallRule, ...]:
    """Read the ``[[policy.rules]]`` of a configuration.

    A rule has ``outcome``, optionally ``name`` and ``reason``, and the conditions of `CallRule` (its ``but`` is
    written ``except``). Raises `ConfigError` with the key of the error, or an `ExceptionGroup` of such errors, for an
    unknown field, an empty list (which could mean nothing or everything), and a glob that cannot match anything.

    >>> read_rules([{"outcome": "deny", "tools": ["git/push"]}])[0].name
    'policy.rules[0]'
    >>> read_rules([{"outcome": "deny", "tool": "git/push"}])
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: policy: policy.rules[0].tool: it is not a field of a rule. Did you mean 'tools'?
    """
    errors = ConfigErrors(file, _REMEDY)
    rules = _rules(entries, errors)
    errors.raise_any()
    return rules


def _rules(entries: object, errors: ConfigErrors) -> tuple[CallRule, ...]:
    if not isinstance(entries, list | tuple) or len(entries) > _MOST:
        errors.add("policy.rules", f"it is not a list of at most {_MOST:,} rules")
        return ()
    names: set[str] = set()
    rules = []
    for number, entry in enumerate(entries):
        where = f"policy.rules[{number}]"
        found = _terms(entry, where, errors)
        if found is None:
            continue
        if found["name"] in names:
            errors.add(f"{where}.name", "an earlier rule has this name")
        names.add(found["name"])
        rules.append(CallRule(**found))
    return tuple(rules)


def _terms(entry: object, where: str, errors: ConfigErrors) -> dict[str, Any] | None:
    """Read the fields of a rule; return None after adding all errors found."""
    if not isinstance(entry, Mapping):
        errors.add(where, "it is not an object")
        return None
    before = len(errors)
    found: dict[str, object] = {"name": where}
    for key, value in entry.items():
        term = _WRITTEN.get(key)
        if term is None:
            errors.add(f"{where}.{_shown(key)}", "it is not a field of a rule", spelling_remedy(key, _WRITTEN))
            continue
        hints = value if term == "annotations" and isinstance(value, Mapping) else {}
        unknown = [name for name in hints if name not in HINTS]
        for name in unknown:
            errors.add(f"{where}.{key}.{_shown(name)}", "it is not an annotation", spelling_remedy(name, HINTS))
        if unknown:
            continue
        try:
            found[term] = TERMS[term].read(value)
        except ValueError as error:
            errors.add(f"{where}.{key}", str(error))
    if "outcome" not in entry:
        errors.add(f"{where}.outcome", "it is missing")
    return found if len(errors) == before else None


def _shown(key: object) -> str:
    return excerpt(str(key))[1:-1]


NAMES_NOTHING: Final = Rule(
    code="TN101",
    name="policy_names_nothing",
    severity=Severity.ERROR,
    what="A policy names a tool that no catalogue has.",
    why="The tool was renamed or removed, and the rule does not apply to the tool that replaced it.",
)
UNGUARDED: Final = Rule(
    code="TN102",
    name="mutating_tool_unguarded",
    severity=Severity.ERROR,
    what="No rule names a tool that may change things: not marked as read-only, or marked as destructive.",
    why="Nobody decided whether the tool may change things without an approval.",
)


def parity(policy: Policy, *catalogs: Catalog) -> tuple[Finding, ...]:
    """Compare a policy with the existing tools; return the findings, for use in a build.

    A glob that matches no tool of any catalogue is a finding, and so is a mutating tool that no rule names. A tool is
    mutating unless it has ``readOnlyHint: true`` and not ``destructiveHint: true``. A rule for all tools (``*``, or
    without ``tools``) names none of them, and neither does the default.

    >>> from truename import Catalog
    >>> from truename.policy import CallRule, Policy
    >>> rules = [CallRule(name="gate", outcome="ask", tools=("fs.list/x", "fs/write"))]
    >>> [finding.rule.code for finding in parity(Policy(rules=rules), Catalog.of("fs/write", "fs/delete"))]
    ['TN101', 'TN102']
    """
    tools = _tools(catalogs)
    rules = tuple(policy.rules)
    named = [
        _names_nothing(glob, f"Rule {rule.name!r}")
        for rule in rules
        for glob in (*rule.tools, *rule.but)
        if not fits_all(glob) and not any(fits_id(glob, id) for tool in tools for id in _ids(tool, rule))
    ]
    return (*named, *_unguarded(tool for tool in tools if not _is_named(tool, rules)))


def table_parity(table: Iterable[str], *catalogs: Catalog, name: str = "The table") -> tuple[Finding, ...]:
    """Compare a plain table of ids, or globs on ids, with the existing tools; return the findings, like `parity`.

    Use it for tables outside a `Policy`: a hook's allow list, a dispatcher's table of mutating tools.
    """
    tools, globs = _tools(catalogs), tuple(glob for glob in table if not fits_all(glob))
    named = [_names_nothing(glob, name) for glob in globs if not any(fits_id(glob, tool.id) for tool in tools)]
    return (*named, *_unguarded(tool for tool in tools if not any(fits_id(glob, tool.id) for glob in globs)))


def is_mutating(tool: Tool) -> bool:
    """Return whether a tool may change something: it is not marked read-only, or it is marked destructive."""
    annotations = annotations_of(tool)
    return not hint("readOnlyHint", annotations) or hint("destructiveHint", annotations)


def _tools(catalogs: Sequence[Catalog]) -> list[Tool]:
    return [tool for catalog in catalogs for tool in catalog.values()]


def _ids(tool: Tool, rule: CallRule) -> tuple[ToolId | Unfolded, ...]:
    return (tool.id,) if rule.outcome == "allow" else (tool.id, *unfolded(tool.id, tool.origin))


def _is_named(tool: Tool, rules: Iterable[CallRule]) -> bool:
    return any(not any(map(fits_all, rule.tools)) and rule.names(tool.id) for rule in rules)


def _names_nothing(glob: str, where: str) -> Finding:
    return Finding(
        rule=NAMES_NOTHING,
        fact=f"{where} names {glob!r}, and no catalogue has such a tool.",
        remedy="Write its present id, or remove it.",
    )


def _unguarded(unnamed: Iterable[Tool]) -> Iterable[Finding]:
    # A tool in two catalogues is reported once, if it is mutating in one of them.
    for tool in {tool.id: tool for tool in unnamed if is_mutating(tool)}.values():
        yield Finding(
            rule=UNGUARDED,
            fact=f"{tool.id} may change something, and no rule names it.",
            remedy="Name it in a rule (allow, ask or deny), or mark it with readOnlyHint: true.",
            server=tool.origin.server,
            tools=(tool.origin.name,),
        )
