"""Reading a policy from a configuration: strictly, for a rule that is not understood must not be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from truename.errors import excerpt
from truename.policy.call_rules import CallRule
from truename.policy.gathering import Faults, nearest
from truename.policy.policy import Policy
from truename.policy.terms import TERMS

__all__ = ["plain_policy", "read_policy", "read_rules"]

_MOST: Final = 1_000
_TABLE: Final = ("default", "rules")
# How a configuration writes it: "but" is a plainer word in Python, where "except" is taken.
_WRITTEN: Final = {"except" if term == "but" else term: term for term in TERMS}
_REMEDY: Final = "Mend it; a policy that can't be read whole is not used."


def read_policy(table: object, file: str = "policy") -> Policy:
    """Read the ``policy`` table of a configuration: ``default`` (allow, ask, deny) and ``rules``.

    Where ``default`` is left out, a call that no rule is about is allowed, as without a policy. If a rule allows
    something it is asked about: such a rule says what is free, and would say nothing if all else were. Adding a rule
    that denies or asks changes nothing for other tools.

    Raises `ConfigError` with the file and the key, or an `ExceptionGroup` of them.

    >>> gate, free = {"outcome": "ask", "tools": ["git/push"]}, {"outcome": "allow", "tools": ["git/log"]}
    >>> read_policy({"rules": [gate]}).default, read_policy({"rules": [gate, free]}).default
    ('allow', 'ask')

    >>> read_policy({"default": "deny", "rules": [{"outcome": "allow", "tools": ["git/*"]}]}).default
    'deny'
    """
    faults = Faults(file, _REMEDY)
    if not isinstance(table, Mapping):
        faults.add("policy", "it is no object")
        table = {}
    for key in table:
        if key not in _TABLE:
            faults.add(f"policy.{_shown(key)}", "it is no field of a policy", nearest(key, _TABLE))
    default = table.get("default", "allow")
    try:
        TERMS["outcome"](default)
    except ValueError as error:
        faults.add("policy.default", str(error))
    rules = _rules(table.get("rules", []), faults)
    faults.raise_any()
    if "default" not in table and any(rule.outcome == "allow" for rule in rules):
        default = "ask"
    return Policy(rules=rules, default=default)


def plain_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy's table as a configuration writes it; checks in Python and approvals have no place there.

    >>> plain_policy(read_policy({"rules": [{"outcome": "deny", "tools": ["git/*"], "except": ["git/log"]}]}))["rules"]
    [{'name': 'policy.rules[0]', 'outcome': 'deny', 'tools': ('git/*',), 'except': ('git/log',)}]
    """
    rules = ({key: value for key, term in _WRITTEN.items() if (value := getattr(rule, term))} for rule in policy.rules)
    return {"default": policy.default, "rules": list(rules)}


def read_rules(entries: object, file: str = "policy") -> tuple[CallRule, ...]:
    """Read the ``[[policy.rules]]`` of a configuration.

    A rule has ``outcome``, perhaps ``name`` and ``reason``, and what it is about: see `CallRule`; ``except`` is its
    ``but``. Raises `ConfigError` with the key, or an `ExceptionGroup` of them, for a field that is not known, an
    empty list (is it about nothing, or all?), a glob that could fit nothing.

    >>> read_rules([{"outcome": "deny", "tools": ["git/push"]}])[0].name
    'policy.rules[0]'
    >>> read_rules([{"outcome": "deny", "tool": "git/push"}])
    Traceback (most recent call last):
        ...
    truename.errors.ConfigError: policy: policy.rules[0].tool: it is no field of a rule. Did you mean 'tools'?
    """
    faults = Faults(file, _REMEDY)
    rules = _rules(entries, faults)
    faults.raise_any()
    return rules


def _rules(entries: object, faults: Faults) -> tuple[CallRule, ...]:
    if not isinstance(entries, list | tuple) or len(entries) > _MOST:
        faults.add("policy.rules", f"it is no list of at most {_MOST:,}")
        return ()
    names: set[str] = set()
    rules = []
    for number, entry in enumerate(entries):
        where = f"policy.rules[{number}]"
        found = _terms(entry, where, faults)
        if found is None:
            continue
        if found["name"] in names:
            faults.add(f"{where}.name", "an earlier rule has this name")
        names.add(found["name"])
        rules.append(CallRule(**found))
    return tuple(rules)


def _terms(entry: object, where: str, faults: Faults) -> dict[str, Any] | None:
    """Return what a rule is built with, or None after noting all that is wrong with it."""
    if not isinstance(entry, Mapping):
        faults.add(where, "it is no object")
        return None
    before = len(faults)
    found: dict[str, Any] = {"name": where}
    for key, value in entry.items():
        term = _WRITTEN.get(key)
        if term is None:
            faults.add(f"{where}.{_shown(key)}", "it is no field of a rule", nearest(key, _WRITTEN))
            continue
        try:
            found[term] = TERMS[term](value)
        except ValueError as error:
            faults.add(f"{where}.{key}", str(error))
    if "outcome" not in entry:
        faults.add(f"{where}.outcome", "it is missing")
    return found if len(faults) == before else None


def _shown(key: object) -> str:
    return excerpt(str(key))[1:-1]
