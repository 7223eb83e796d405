"""Check the platform in a name against the tool's metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, check, listed
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]

# Keys of a schema for people: two parameters that differ only in these accept the same values.
_WORDS: Final = frozenset({"description", "title", "examples", "$comment"})
_DEEPEST: Final = 32
_Group = tuple[str, str, str, int]


@check("TN140", "platform_mismatch", Severity.ERROR)
def platform_mismatch(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A tool's name and metadata have different platforms, or its platform is unknown.

    Why: Tools are listed and run by the `platforms` of their metadata; people and models go by the name. If the two
    differ, the tool is offered where it cannot work. A tool without `platforms` is for all platforms and not reported.

    Example: `myapp_ios_scroll` with `platforms=["android"]`

    Instead: `myapp_ios_scroll` with `platforms=["ios"]`
    """
    known = context.convention.platforms
    for one in context.declarations:
        named, declared = context.classes[one.name].platform, tuple(word.lower() for word in one.metadata.platforms)
        unknown = [word for word in declared if word not in known] if known else []
        if named and declared and declared != (named,):
            fact = f"{excerpt(one.name)} has {named} in its name, but its metadata says {listed(declared)}."
        elif unknown:
            fact = f"The metadata of {excerpt(one.name)} says {listed(unknown)}, which the convention does not know."
        else:
            continue
        yield build_finding(rule, one, fact, "Use the same platform in the metadata and the name.")


@check("TN141", "needless_platform_split", Severity.WARNING)
def needless_platform_split(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """Tools for different platforms have exactly the same parameters.

    Why: Separate tools for platforms are useful only if the parameters differ. Otherwise a model reads the same
    definition twice, and may choose the wrong tool.

    Example: `myapp_ios_openCart(id)` and `myapp_android_openCart(id)`

    Instead: `myapp_openCart(id)`, which checks the platform when it runs
    """
    groups: defaultdict[_Group, list[Declaration]] = defaultdict(list)
    for one in context.everything if context.convention.formats else ():
        found = context.classes[one.name]
        if found.platform and found.ok and isinstance(one.definition.get("inputSchema"), Mapping):
            groups[found.category, found.app, found.words, found.version].append(one)
    for group in groups.values():
        yield from _split(rule, context, group)


@check("TN142", "platform_conditional_parameter", Severity.WARNING)
def platform_conditional_parameter(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A tool for several platforms has parameters that work on some of them only.

    Why: A schema cannot express it, so a model passes arguments without effect, or omits necessary ones. Separate tools
    for the platforms have exact schemas.

    Example: `myapp_launchApp(virtualCard?, overlayPermission?)`, the first for iOS and the second for Android

    Instead: `myapp_ios_launchApp(virtualCard)` and `myapp_android_launchApp(overlayPermission)`
    """
    for one in context.declarations:
        named = context.classes[one.name].platform
        tool = [word.lower() for word in one.metadata.platforms] or [named] if named else _platforms(one, context)
        partial = {
            parameter: [word for word in tool if word in {other.lower() for other in platforms}]
            for parameter, platforms in sorted(one.metadata.parameter_platforms.items())
            if platforms and not {other.lower() for other in platforms}.issuperset(tool)
        }
        if partial:
            which = listed([f"{excerpt(name, 48)} ({', '.join(words) or 'none'})" for name, words in partial.items()])
            fact = f"{excerpt(one.name)} has parameters for some of its platforms only: {which}."
            yield build_finding(rule, one, fact, "Make a tool for each platform, with its own parameters.")


CHECKS: Final = (platform_mismatch, needless_platform_split, platform_conditional_parameter)


def _platforms(declaration: Declaration, context: LintContext) -> list[str]:
    return [word.lower() for word in declaration.metadata.platforms or context.convention.platforms]


def _split(rule: Rule, context: LintContext, group: list[Declaration]) -> Iterator[Finding]:
    by_parameters: defaultdict[object, list[Declaration]] = defaultdict(list)
    for one in group:
        schema = one.definition["inputSchema"]
        required = schema.get("required")
        needed = frozenset(map(str, required)) if isinstance(required, list) else frozenset()
        shape = frozenset(
            (str(name), _effective_schema(value), str(name) in needed) for name, value in one.parameters.items()
        )
        by_parameters[shape].append(one)
    for alike in by_parameters.values():
        own = [one for one in alike if id(one) in context.own]
        if len({one.name for one in alike}) < 2 or not own:
            continue
        others = [one for one in alike if one.name != own[0].name]
        names = listed([excerpt(one.name) for one in (own[0], *others)])
        yield build_finding(
            rule, own[0], f"{names} take the same parameters.", "Make it one tool for all platforms.", *others
        )


def _effective_schema(value: object, depth: int = 0, *, is_named: bool = False) -> object:
    """Return the parts of a schema that restrict values, in a comparable form; too deep parts equal only themselves."""
    if depth > _DEEPEST:
        return id(value)
    if isinstance(value, Mapping):
        # Directly below "properties" the keys are names of parameters, so none of them is skipped.
        return frozenset(
            (str(key), _effective_schema(item, depth + 1, is_named=key == "properties" and not is_named))
            for key, item in value.items()
            if is_named or key not in _WORDS
        )
    if isinstance(value, list | tuple):
        return tuple(_effective_schema(item, depth + 1) for item in value)
    return type(value).__name__, str(value)
