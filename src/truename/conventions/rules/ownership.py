"""Check names against the convention's table of owners."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Finding, Location, Severity
from truename.conventions.rules.check import build_finding, check
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions.convention import Convention
    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]

_APP: Final = re.compile(r"[a-z][a-zA-Z0-9]*(?:[_.-][a-zA-Z0-9]+)*")


@check("TN130", "reserved", Severity.ERROR)
def reserved(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A tool has a name that belongs to another team, or that is reserved.

    Why: Common primitives and the prefixes of platforms and apps are owned centrally. A tool that takes such a name
    gets calls and recordings that were meant for the owner's tool. The preset `trailblaze` reserves the names of all
    its categories as soon as a `team` is set: `owners` says which of them belong to that team.

    Example: `tap` declared by the payments team, where `owners` has `tap = "core"`

    Instead: `payments_tap`, or ask the owner
    """
    is_asked = context.convention.owners or context.convention.reserved
    for one in context.declarations if is_asked else ():
        team, owner = one.metadata.owner or context.convention.team, _owner(one, context)
        state = f"belongs to {excerpt(owner)}" if owner else "is reserved"
        if owner and team and team != owner:
            fact = f"{excerpt(one.name)} {state}, but {excerpt(team)} declares it."
        elif (not owner or team != owner) and _is_reserved(one, context):
            fact = f"{excerpt(one.name)} {state}, and the declaration does not name the owner."
        else:
            continue
        yield build_finding(
            rule, one, fact, "Choose another name, let the owner declare it, or set the owner in owners."
        )


@check("TN131", "unowned", Severity.NOTE)
def unowned(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A tool has no owner: no entry of `owners` matches the name, and the tool's metadata has no owner.

    Why: Without an owner nobody can be asked before a tool is renamed or removed, or when it fails. The rule applies
    only if the convention has `owners`.

    Example: `addFunds`, where `owners` has entries for `tap` and `payments` only

    Instead: `payments_addFunds`, `owner="payments-team"` in the tool's metadata, or an entry in `owners`
    """
    if not context.convention.owners:
        return
    for one in context.declarations:
        if not _owner(one, context) and not one.metadata.owner:
            remedy = "Add an entry to owners in the convention, or an owner to the tool's metadata."
            yield build_finding(rule, one, f"{excerpt(one.name)} has no owner.", remedy)


@check("TN132", "clashing_app", Severity.ERROR)
def clashing_app(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """An app id is a platform, a device type or another prefix, contains a separator, or is a duplicate.

    Why: The first part of a name identifies the app or platform. With an app `ios`, the name `ios_scroll` is
    ambiguous; an app `my_app` cannot be recognised, because the first separator ends the part. Ids that differ only in
    capitals count as duplicates, because many clients ignore case.

    Example: `apps = ["ios", "my_app"]`

    Instead: `apps = ["iosapp", "myapp"]`
    """
    convention = context.convention
    seen: dict[str, str] = {}
    for number, app in enumerate(convention.apps or ()):
        problem = _problem(app, convention)
        if not problem and app.lower() in seen:
            twin = seen[app.lower()]
            problem = "is listed twice" if twin == app else f"differs only in capitals from {excerpt(twin)}"
        seen.setdefault(app.lower(), app)
        if problem:
            place = Location(file=convention.file, key=f"convention.apps[{number}]") if convention.file else None
            fact, remedy = f"The app {excerpt(app)} {problem}.", _REMEDY
            yield Finding(rule=rule, fact=fact, remedy=remedy, location=place)
    for one in context.declarations if convention.formats else ():
        if one.metadata.app and (problem := _problem(one.metadata.app, convention)):
            yield build_finding(
                rule,
                one,
                f"{excerpt(one.name)} belongs to the app {excerpt(one.metadata.app)}, which {problem}.",
                _REMEDY,
            )


CHECKS: Final = (reserved, unowned, clashing_app)

_REMEDY: Final = "Give the app a unique id of letters and digits."


def _spellings(declaration: Declaration, context: LintContext) -> tuple[str, ...]:
    """Return the name and its corrected form, so that a misspelt name belongs to the same owner."""
    suggested = context.classes[declaration.name].suggested
    return (declaration.name, suggested) if suggested else (declaration.name,)


def _owner(declaration: Declaration, context: LintContext) -> str:
    category = context.classes[declaration.name].category
    owners = (context.convention.owner(name, category) for name in _spellings(declaration, context))
    return next(filter(None, owners), "")


def _is_reserved(declaration: Declaration, context: LintContext) -> bool:
    found = context.classes[declaration.name]
    names = _spellings(declaration, context)
    return any(context.convention.is_reserved(name, found.category, found.app) for name in names)


def _problem(app: str, convention: Convention) -> str:
    if app.lower() in convention.taken:
        return "is a platform" if app.lower() in convention.platforms else "is another prefix of the convention"
    if app.lower() in convention.device_words:
        return "is a device type"
    is_word = _APP.fullmatch(app) and convention.is_part(app)
    return "" if is_word else "is not one word of letters and digits that begins with a lower-case letter"
