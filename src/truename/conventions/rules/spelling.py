"""Report the spelling errors that `classify` finds in names, one rule for each kind."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, build_renaming, check, listed
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]


@check("TN120", "separator", Severity.ERROR)
def separator(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name has another separator than the convention's, or repeated separators.

    Why: OpenAI and Anthropic refuse dots, so one such name makes every request fail; and a part with another separator
    is not recognised as an app or a platform.

    Example: `myapp.ios.scroll`, `myapp-ios-scroll`, `myapp__scroll`

    Instead: `myapp_ios_scroll`
    """
    refused = {
        id(one.declaration): f" Refused by {listed([client.name for client in one.for_spelling])}."
        for one in context.refusals
        if one.for_spelling
    }
    return _findings(rule, context, "Use the convention's separator.", refused)


@check("TN121", "casing", Severity.ERROR)
def casing(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """The words of a name do not have the convention's casing.

    Why: Some clients distinguish capitals and others don't, and a model that knows `inputText` from other names will
    not call `InputText`. With one casing, names differ only in their words.

    Example: `InputText`, `IOS_scroll`

    Instead: `inputText`, `ios_scroll`
    """
    return _findings(rule, context, "Use the casing of the convention.")


@check("TN122", "unknown_prefix", Severity.ERROR)
def unknown_prefix(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name begins with a part that is not an app, a platform or another prefix of the convention.

    Why: The first part identifies the owner of a tool. An unknown part is a typing error, an app that is missing in the
    convention, or words that were joined by the separator instead of capitals.

    Example: `input_text`, where no app is called `input`

    Instead: `inputText` for every app, `myapp_inputText` for one, or add the app to `apps`
    """
    nearest = cache(context.convention.near_parts.nearest)
    for declaration, fault in context.errors.get(rule.name, ()):
        near = nearest(context.classes[declaration.name].base.partition(context.convention.separator)[0])
        suggestion = f"Did you mean {listed(near, 'or')}? If not, add" if near else "Add"
        remedy = f"{suggestion} it to apps in the convention, or write the words together."
        yield build_finding(rule, declaration, f"{excerpt(declaration.name)} {fault.text}.", remedy)


@check("TN123", "device_type", Severity.ERROR)
def device_type(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name contains a device type.

    Why: The device is known from the execution context when the tool runs. With the device in names, there is one tool
    per device, and a model must guess which one to call. As the last word after "on" or "for" (`scrollOnPhone`) it is
    only a warning; within the tool's own words (`addPhoneNumber`) it is not reported.

    Example: `myapp_ios_phone_scroll`

    Instead: `myapp_ios_scroll`
    """
    return _findings(rule, context, "Remove it, and read the device from the context of the call.")


@check("TN124", "version_suffix", Severity.ERROR)
def version_suffix(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name ends with a number that is not the convention's suffix for breaking changes.

    Why: A breaking change is `_v2`, then `_v3`. There is no `_v1`, because the first version has no number; and `_2`
    distinguishes two tools with one name, which does not say which of them is newer.

    Example: `scroll_v1`, `scroll_v02`, `scroll_2`

    Instead: `scroll`, `scroll_v2`
    """
    return _findings(rule, context, "Number only breaking changes, beginning with 2.")


@check("TN125", "verb_first", Severity.WARNING)
def verb_first(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """The own words of a name do not begin with one of the convention's verbs.

    Why: A model selects tools by name, and a name should begin with the action. The list of verbs is the team's own, so
    a missing verb is only a warning.

    Example: `cartOpen`

    Instead: `openCart`, or add the verb to `verbs`
    """
    return _findings(rule, context, "Begin with a verb, or add it to verbs in the convention.")


@check("TN126", "platform_in_name", Severity.WARNING)
def platform_in_name(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name has a platform in another position than the convention's.

    Why: Tools are listed by platform, which is read from its own part of the name (and from `platforms`). A platform
    within or after the tool's own words is not recognised: the tool is offered on every platform, and fails on most.

    Example: `iosScroll`, `clearKeychain_ios`

    Instead: `ios_scroll`, `ios_clearKeychain`
    """
    return _findings(
        rule, context, "Make the platform a part at the start, or set it in platforms and remove it from the name."
    )


@check("TN127", "no_category", Severity.ERROR)
def no_category(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name matches the format of none of the convention's categories.

    Why: The category determines the owner of a name and where the tool is listed. A name without a category has no
    owner, and its parts are ambiguous.

    Example: `ios`, `scroll_myapp_ios`

    Instead: `ios_scroll`, `myapp_ios_scroll`
    """
    return _findings(rule, context, "Use the format of one of the categories.")


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


def _findings(
    rule: Rule, context: LintContext, otherwise: str, more: Mapping[int, str] = MappingProxyType({})
) -> Iterator[Finding]:
    for declaration, fault in context.errors.get(rule.name, ()):
        severity = Severity.WARNING if fault.is_hint else Severity.ERROR
        found = rule if rule.severity == severity else replace(rule, severity=severity)
        fact = f"{excerpt(declaration.name)} {fault.text}.{more.get(id(declaration), '')}"
        yield build_renaming(found, declaration, fact, context.classes[declaration.name].suggested, otherwise)
