"""Find names that no server may use, or that a client of the team refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename.conventions.classification import classify, respelled
from truename.conventions.clauses import LONGEST
from truename.conventions.findings import Severity
from truename.conventions.rules.check import LENGTH, check, listed, of, renaming
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

# What another rule tells already, by the fault of the spelling: one cause is one finding.
_TOLD: Final = (("separator", "TN120"), ("illegal_name", "TN103"))
_LONGEST_ADVICE: Final = 200
_OTHERWISE: Final = "Give it a short name of letters, digits and underscores."


@check("TN103", "illegal_name", Severity.ERROR)
def illegal_name(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name is empty, or has characters that no name may have.

    Why: The protocol's own rule (SEP-986, in the specification since 2025-11-25) is 1 to 128 of `A-Za-z0-9_.-`.
    Clients drop such a tool, fail on its whole server, or send a name that the model's provider refuses.

    Example: `get weather`, `search/files`

    Instead: `get_weather`, `search_files`
    """
    for declaration, fault in material.faults.get(rule.name, ()):
        fact = f"{excerpt(declaration.name)} {fault.text}."
        yield renaming(rule, declaration, fact, _suggested(declaration, material.convention, ()), _OTHERWISE)


@check("TN104", "illegal_for_client", Severity.ERROR)
def illegal_for_client(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name is refused or respelled by a client that has to accept every name.

    Why: What a client does not take it drops or changes, and a provider fails the whole request: one such name, and
    the model answers nothing at all. Where a client's rule is not known, the strictest that is known
    counts, as a warning.

    Example: `fs.list`, where `anthropic` is one of the convention's clients

    Instead: `fs_list`
    """
    for refusal in material.refusals:
        declaration, refusing = refusal.declaration, refusal.for_spelling
        if not refusing or _is_told(declaration, material):
            continue
        first = next(reason for reason in refusal.reasons[refusing[0].name] if reason.code != LENGTH)
        fact = f"{excerpt(declaration.name)} is not legal for {listed([one.name for one in refusing])}: {first.text}."
        certain = any("chars" not in one.unknown for one in refusing)
        graded = rule if certain else replace(rule, severity=Severity.WARNING)
        suggested = _suggested(declaration, material.convention, refusal.clients)
        found = renaming(graded, declaration, fact, suggested, _OTHERWISE)
        yield replace(found, client=refusing[0].name, confidence="run" if refusing[0].confidence == "run" else "read")


@check("TN105", "too_long", Severity.ERROR)
def too_long(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name is longer than the tightest client takes, or than the convention allows.

    Why: Clients put their own prefix in front and then refuse what is too long, or cut it: and the end of a name is
    what tells tools apart. A convention's own limit leaves room for such prefixes; above it, but below what every
    client takes, is a warning.

    Example: a name of 65 characters, where `openai` is one of the convention's clients

    Instead: the verb, the noun, and the words that tell it from its siblings
    """
    cutting = {id(one.declaration): [client.name for client in one.for_length] for one in material.refusals}
    limit, clients = material.convention.max_length or LONGEST, material.convention.clients
    for declaration in material.declarations:
        cut = cutting.get(id(declaration))
        if not cut and len(declaration.name) <= limit:
            continue
        size = f"{excerpt(declaration.name, 48)} has {len(declaration.name):,} characters"
        fact = f"{size}, too many for {listed(cut)}." if cut else f"{size}, and {limit:,} is the most."
        graded = replace(rule, severity=Severity.WARNING) if clients and not cut else rule
        yield of(graded, declaration, fact, "Leave out what every tool of this server has in its name.")


CHECKS: Final = (illegal_name, illegal_for_client, too_long)


def _is_told(declaration: Declaration, material: LintContext) -> bool:
    faults = {fault.rule for fault in material.classes[declaration.name].faults}
    severities = material.convention.severities
    return any(name in faults and not _is_off(severities, name, code) for name, code in _TOLD)


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
