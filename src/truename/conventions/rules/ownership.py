"""Check names against the convention's table of owners."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Finding, Location, Severity
from truename.conventions.rules.check import check, of
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
def reserved(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A tool has a name that belongs to another team, or that is reserved.

    Why: The primitives that everybody uses, the prefixes of platforms and apps are owned centrally. Who
    takes such a name takes the calls and recordings that were meant for its owner. The preset `trailblaze` reserves
    the names of all its categories as soon as a `team` is named: `owners` says which of them are that team's.

    Example: `tap` declared by the payments team, where `owners` has `tap = "core"`

    Instead: `payments_tap`, or ask the owner
    """
    is_asked = material.convention.owners or material.convention.reserved
    for one in material.declarations if is_asked else ():
        team, owner = _team(one, material.convention), _owner(one, material)
        whose = f"belongs to {excerpt(owner)}" if owner else "is reserved"
        if owner and team and team != owner:
            fact = f"{excerpt(one.name)} {whose}, and is declared by {excerpt(team)}."
        elif (not owner or team != owner) and _is_reserved(one, material):
            fact = f"{excerpt(one.name)} {whose}, and nothing says that its owner declares it."
        else:
            continue
        yield of(rule, one, fact, "Take a name of your own, have its owner declare it, or name its owner in owners.")


@check("TN131", "unowned", Severity.NOTE)
def unowned(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A tool belongs to nobody: no entry of `owners` fits its name, and it names no owner itself.

    Why: Somebody has to be asked before a tool is renamed or removed, and when it fails. It is looked for only where
    the convention names owners at all.

    Example: `addFunds`, where `owners` has entries for `tap` and `payments` only

    Instead: `payments_addFunds`, `owner="payments-team"` at the tool, or an entry in `owners`
    """
    if not material.convention.owners:
        return
    for one in material.declarations:
        if not _owner(one, material) and not one.metadata.owner:
            remedy = "Add an entry to owners in the convention, or an owner to the tool."
            yield of(rule, one, f"{excerpt(one.name)} belongs to nobody.", remedy)


@check("TN132", "clashing_app", Severity.ERROR)
def clashing_app(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """An app's id is a platform, a kind of device or another prefix, has a separator in it, or is listed twice.

    Why: The first part of a name says what it is. An app called `ios` makes `ios_scroll` two things at once, and one
    called `my_app` is cut in the middle, because the first separator ends the part. Ids that differ in
    capitals only are one, for many clients tell no capitals apart.

    Example: `apps = ["ios", "my_app"]`

    Instead: `apps = ["iosapp", "myapp"]`
    """
    convention = material.convention
    seen: dict[str, str] = {}
    for number, app in enumerate(convention.apps or ()):
        problem = _problem(app, convention)
        if not problem and app.lower() in seen:
            twin = seen[app.lower()]
            problem = "stands in the list twice" if twin == app else f"is the same as {excerpt(twin)} but for capitals"
        seen.setdefault(app.lower(), app)
        if problem:
            place = Location(file=convention.file, key=f"convention.apps[{number}]") if convention.file else None
            fact, remedy = f"The app {excerpt(app)} {problem}.", _REMEDY
            yield Finding(rule=rule, fact=fact, remedy=remedy, location=place)
    for one in material.declarations if convention.formats else ():
        if one.metadata.app and (problem := _problem(one.metadata.app, convention)):
            yield of(
                rule, one, f"{excerpt(one.name)} is of the app {excerpt(one.metadata.app)}, which {problem}.", _REMEDY
            )


CHECKS: Final = (reserved, unowned, clashing_app)

_REMEDY: Final = "Give the app an id of letters and digits that nothing else has."


def _team(declaration: Declaration, convention: Convention) -> str:
    return declaration.metadata.owner or convention.team


def _spellings(declaration: Declaration, material: LintContext) -> tuple[str, ...]:
    """Return the name as it is and as it should be: who misspells a name does not own it."""
    suggested = material.classes[declaration.name].suggested
    return (declaration.name, suggested) if suggested else (declaration.name,)


def _owner(declaration: Declaration, material: LintContext) -> str:
    category = material.classes[declaration.name].category
    owners = (material.convention.owner(name, category) for name in _spellings(declaration, material))
    return next(filter(None, owners), "")


def _is_reserved(declaration: Declaration, material: LintContext) -> bool:
    found = material.classes[declaration.name]
    names = _spellings(declaration, material)
    return any(material.convention.is_reserved(name, found.category, found.app) for name in names)


def _problem(app: str, convention: Convention) -> str:
    if app.lower() in convention.taken:
        return "is a platform" if app.lower() in convention.platforms else "is another prefix of the convention"
    if app.lower() in convention.device_words:
        return "is a kind of device"
    is_word = _APP.fullmatch(app) and convention.is_part(app)
    return "" if is_word else "is not one word of letters and digits that begins in lower case"
