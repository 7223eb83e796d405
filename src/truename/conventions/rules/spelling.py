"""Report, rule by rule, what `classify` finds wrong with a name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import check, listed, of, renaming
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]


@check("TN120", "separator", Severity.ERROR)
def separator(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name separates its parts with another character than the convention's, or with too many of them.

    Why: Dots are refused by OpenAI and Anthropic, so one such name makes every request fail; and a part that is not
    separated as all others are is not recognised as an app or a platform.

    Example: `myapp.ios.scroll`, `myapp-ios-scroll`, `myapp__scroll`

    Instead: `myapp_ios_scroll`
    """
    refused = {
        id(one.declaration): f" It is refused by {listed([client.name for client in one.for_spelling])}."
        for one in material.refusals
        if one.for_spelling
    }
    return _told(rule, material, "Use the convention's separator.", refused)


@check("TN121", "casing", Severity.ERROR)
def casing(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """The words of a name are not written as the convention has them.

    Why: Some clients tell capitals apart and others don't, and a model that has seen `inputText` everywhere will not
    call `InputText`. Names that are all written alike can be told apart by their words.

    Example: `InputText`, `IOS_scroll`

    Instead: `inputText`, `ios_scroll`
    """
    return _told(rule, material, "Write it as the convention does.")


@check("TN122", "unknown_prefix", Severity.ERROR)
def unknown_prefix(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name begins with a part that is no app, no platform and no other prefix of the convention.

    Why: The first part says whose tool it is. What nobody has claimed is a typing error, an app that is missing in the
    convention, or words that were joined by the separator instead of capitals.

    Example: `input_text`, where no app is called `input`

    Instead: `inputText` for every app, `myapp_inputText` for one, or add the app to `apps`
    """
    nearest = cache(material.convention.near_parts.nearest)
    for declaration, fault in material.faults.get(rule.name, ()):
        near = nearest(material.classes[declaration.name].base.partition(material.convention.separator)[0])
        meant = f"Did you mean {listed(near, 'or')}? If not, add" if near else "Add"
        remedy = f"{meant} it to apps in the convention, or write the words together."
        yield of(rule, declaration, f"{excerpt(declaration.name)} {fault.text}.", remedy)


@check("TN123", "device_type", Severity.ERROR)
def device_type(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name says for which kind of device it is.

    Why: The device is known when the tool runs, from the execution context. In a name it doubles every
    tool, and a model has to guess which of the two it is on. As the last words of a name (`scrollOnPhone`) it is only
    a warning, and inside of other words (`addPhoneNumber`) it is nothing.

    Example: `myapp_ios_phone_scroll`

    Instead: `myapp_ios_scroll`
    """
    return _told(rule, material, "Leave it out, and read the device from the context of the call.")


@check("TN124", "version_suffix", Severity.ERROR)
def version_suffix(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name ends with a number that is not written as the convention writes breaking changes.

    Why: A breaking change is `_v2`, then `_v3`. There is no `_v1`, because the first version has no
    number; and `_2` is what tells two tools of one name apart, which says nothing about which of them is newer.

    Example: `scroll_v1`, `scroll_v02`, `scroll_2`

    Instead: `scroll`, `scroll_v2`
    """
    return _told(rule, material, "Number only breaking changes, beginning with 2.")


@check("TN125", "verb_first", Severity.WARNING)
def verb_first(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """The tool's own words do not begin with one of the convention's verbs.

    Why: A model chooses by the name, and a name says what is done before it says to what. The list of verbs is a
    team's own, so a word that is missing there is no more than a warning.

    Example: `cartOpen`

    Instead: `openCart`, or add the verb to `verbs`
    """
    return _told(rule, material, "Begin with a verb, or add it to verbs in the convention.")


@check("TN126", "platform_in_name", Severity.WARNING)
def platform_in_name(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name says for which platform it is, but not in the place where the convention has it.

    Why: Tools are shown by platform, and the platform is read from its own part of the name (and from `platforms`).
    Hidden in the words, or behind them, it is not seen: the tool is offered on every platform, and fails on most.

    Example: `iosScroll`, `clearKeychain_ios`

    Instead: `ios_scroll`, `ios_clearKeychain`
    """
    return _told(rule, material, "Put the platform in front as a part, or say it in platforms and leave it out.")


@check("TN127", "no_category", Severity.ERROR)
def no_category(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A name has the form of none of the convention's categories.

    Why: The category says who owns a name and where the tool is shown. A name of none belongs to nobody, and may mean
    one thing to its author and another one to the next.

    Example: `ios`, `scroll_myapp_ios`

    Instead: `ios_scroll`, `myapp_ios_scroll`
    """
    return _told(rule, material, "Give it the form of one of the categories.")


CHECKS: Final = (
    separator,
    casing,
    unknown_prefix,
    device_type,
    version_suffix,
    verb_first,
    platform_in_name,
    no_category,
)


def _told(
    rule: Rule, material: LintContext, otherwise: str, more: Mapping[int, str] = MappingProxyType({})
) -> Iterator[Finding]:
    for declaration, fault in material.faults.get(rule.name, ()):
        severity = Severity.WARNING if fault.is_hint else Severity.ERROR
        found = rule if rule.severity == severity else replace(rule, severity=severity)
        fact = f"{excerpt(declaration.name)} {fault.text}.{more.get(id(declaration), '')}"
        yield renaming(found, declaration, fact, material.classes[declaration.name].suggested, otherwise)
