"""Find names that no server may use, or that a client of the team refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename.conventions.classification import classify, respelled
from truename.conventions.clauses import LONGEST
from truename.conventions.findings import Severity
from truename.conventions.rules.check import LENGTH, build_finding, build_renaming, check, listed
from truename.dialects.dialect import DEFAULT_SERVER
from truename.errors import excerpt
from truename.naming.words import snake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.conventions.convention import Convention
    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext
    from truename.dialects import Dialect

__all__ = ["CHECKS"]

# Spelling errors that another rule reports, so that one cause gives one finding.
_REPORTED: Final = (("separator", "TN120"), ("illegal_name", "TN103"))
_LONGEST_ADVICE: Final = 200
_OTHERWISE: Final = "Give it a short name of letters, digits and underscores."


@check("TN103", "illegal_name", Severity.ERROR)
def illegal_name(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name is empty or has illegal characters.

    Why: The protocol's own rule (SEP-986, in the specification since 2025-11-25) is 1 to 128 of `A-Za-z0-9_.-`.
    Clients drop such a tool, fail on its whole server, or send a name that the model's provider refuses.

    Example: `get weather`, `search/files`

    Instead: `get_weather`, `search_files`
    """
    for declaration, fault in context.errors.get(rule.name, ()):
        fact = f"{excerpt(declaration.name)} {fault.text}."
        yield build_renaming(rule, declaration, fact, _suggested(declaration, context.convention, ()), _OTHERWISE)


@check("TN104", "illegal_for_client", Severity.ERROR)
def illegal_for_client(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A client that must accept every name refuses or changes this one.

    Why: Clients drop or change a name that they do not accept, and a provider fails the whole request because of one.
    If a client's rule is unknown, the strictest known rule is checked, and a finding is a warning.

    Example: `fs.list`, where `anthropic` is one of the convention's clients

    Instead: `fs_list`
    """
    for refusal in context.refusals:
        declaration, refusing = refusal.declaration, refusal.for_spelling
        if not refusing:
            continue
        errors = {fault.rule for fault in context.classes[declaration.name].errors}
        severities = context.convention.severities
        if any(name in errors and not _is_off(severities, name, code) for name, code in _REPORTED):
            continue
        first = next(reason for reason in refusal.reasons[refusing[0].name] if reason.code != LENGTH)
        fact = f"{excerpt(declaration.name)} is not legal for {listed([one.name for one in refusing])}: {first.text}."
        certain = any("chars" not in one.unknown for one in refusing)
        graded = rule if certain else replace(rule, severity=Severity.WARNING)
        suggested = _suggested(declaration, context.convention, refusal.clients)
        found = build_renaming(graded, declaration, fact, suggested, _OTHERWISE)
        yield replace(found, client=refusing[0].name, confidence="run" if refusing[0].confidence == "run" else "read")


@check("TN105", "too_long", Severity.ERROR)
def too_long(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name is longer than a client accepts, or than the convention allows.

    Why: Clients add their own prefix, and then refuse or cut names that are too long; but tools often differ only at
    the end of their names. A convention's own limit leaves room for such prefixes; a name above it that every client
    accepts is a warning.

    Example: a name of 65 characters, where `openai` is one of the convention's clients

    Instead: the verb, the noun, and the words that distinguish it from similar tools
    """
    cutting = {id(one.declaration): [client.name for client in one.for_length] for one in context.refusals}
    limit, clients = context.convention.max_length or LONGEST, context.convention.clients
    for declaration in context.declarations:
        cut = cutting.get(id(declaration))
        if not cut and len(declaration.name) <= limit:
            continue
        size = f"{excerpt(declaration.name, 48)} has {len(declaration.name):,} characters"
        fact = f"{size}, too many for {listed(cut)}." if cut else f"{size}, and the limit is {limit:,}."
        graded = replace(rule, severity=Severity.WARNING) if clients and not cut else rule
        yield build_finding(graded, declaration, fact, "Omit the words that all tools of this server share.")


CHECKS: Final = (illegal_name, illegal_for_client, too_long)


def _is_off(severities: Mapping[str, Severity | None], name: str, code: str) -> bool:
    word = code if code in severities else name
    return severities.get(word, Severity.ERROR) is None


def _suggested(declaration: Declaration, convention: Convention, clients: Sequence[Dialect]) -> str:
    name, casing = declaration.name, convention.word_casing
    if len(name) > _LONGEST_ADVICE:
        return ""
    proposals = (classify(name, convention).suggested, respelled(name, casing) if casing else "", snake(name))
    return next((one for one in proposals if one and _is_legal(one, declaration, convention, clients)), "")


def _is_legal(name: str, declaration: Declaration, convention: Convention, clients: Sequence[Dialect]) -> bool:
    server = declaration.server or DEFAULT_SERVER
    return classify(name, convention).ok and not any(one.check(name, server) for one in clients)
