"""A check: one rule and the function that finds what breaks it. The function's docstring is the rule's page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.policy.finding import Finding, Rule, Severity

if TYPE_CHECKING:
    from truename.policy.declaration import Declaration
    from truename.policy.rules.material import Material

__all__ = ["Check", "check", "of", "renaming"]

Finder = Callable[["Material"], Iterator[Finding]]

_HEADINGS: Final = ("Why", "Example", "Instead")
_PART: Final = re.compile(rf"^({'|'.join(_HEADINGS)}): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, and the function that looks for what breaks it in all that is linted together."""

    rule: Rule
    find: Finder


def check(code: str, name: str, severity: Severity) -> Callable[[Callable[..., Iterator[Finding]]], Check]:
    """Make a check of a function that is given the rule and the material.

    Its docstring is the rule's page: a sentence of what is found, then paragraphs that begin with ``Why:``,
    ``Example:`` and ``Instead:``. Raises `ValueError` for one that lacks any of them.
    """

    def made(function: Callable[..., Iterator[Finding]]) -> Check:
        what, *parts = _PART.split(inspect.getdoc(function) or "")
        told = {heading.lower(): _joined(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}
        if not what.strip() or len(told) != len(_HEADINGS):
            message = f"the docstring of {code} has to say what, {', '.join(_HEADINGS)}"
            raise ValueError(message)
        rule = Rule(code=code, name=name, severity=severity, what=_joined(what), **told)
        return Check(rule, lambda material: function(rule, material))

    return made


def of(rule: Rule, declaration: Declaration, fact: str, remedy: str, *others: Declaration) -> Finding:
    """Return the finding that a declaration breaks a rule, together with others."""
    return Finding(
        rule=rule,
        fact=fact,
        remedy=remedy,
        location=declaration.location,
        server=declaration.server,
        tools=(declaration.name, *(other.name for other in others)),
    )


def renaming(rule: Rule, declaration: Declaration, fact: str, suggested: str, otherwise: str) -> Finding:
    """Return the finding that a tool needs another name: the suggested one, or ("") what else there is to do."""
    remedy = f"Write {excerpt(suggested)}." if suggested else otherwise
    return replace(of(rule, declaration, fact, remedy), suggested=suggested)


def _joined(text: str) -> str:
    return " ".join(text.split())
