"""Check the platform in a name against the tool's metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import check, listed, of
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]

# What a schema says to people: two parameters that differ in it only take the same values.
_WORDS: Final = frozenset({"description", "title", "examples", "$comment"})
_DEEPEST: Final = 32
_Group = tuple[str, str, str, int]


@check("TN140", "platform_mismatch", Severity.ERROR)
def platform_mismatch(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """The platform in a tool's name is not the one that the tool says it is for, or that is none.

    Why: Tools are shown and run by `platforms`; people and models go by the name. Where the two differ, the tool is
    offered where it can't work. A tool that says nothing is for all platforms and has no mismatch.

    Example: `myapp_ios_scroll` with `platforms=["android"]`

    Instead: `myapp_ios_scroll` with `platforms=["ios"]`
    """
    known = material.convention.platforms
    for one in material.declarations:
        named, said = material.classes[one.name].platform, tuple(word.lower() for word in one.metadata.platforms)
        strange = [word for word in said if word not in known] if known else []
        if named and said and said != (named,):
            fact = f"{excerpt(one.name)} has {named} in its name, and says that it is for {listed(said)}."
        elif strange:
            fact = f"{excerpt(one.name)} says that it is for {listed(strange)}, which is no platform of the convention."
        else:
            continue
        yield of(rule, one, fact, "Make platforms and the name say the same.")


@check("TN141", "needless_platform_split", Severity.WARNING)
def needless_platform_split(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """Tools differ in their platform only: they take exactly the same parameters.

    Why: A tool for each platform is worth its place only where the parameters differ. Otherwise a model
    reads the same thing twice, and can choose the wrong one.

    Example: `myapp_ios_openCart(id)` and `myapp_android_openCart(id)`

    Instead: `myapp_openCart(id)`, which looks at the platform when it runs
    """
    groups: defaultdict[_Group, list[Declaration]] = defaultdict(list)
    for one in material.everything if material.convention.formats else ():
        found = material.classes[one.name]
        if found.platform and found.ok and isinstance(one.definition.get("inputSchema"), Mapping):
            groups[found.category, found.app, found.words, found.version].append(one)
    for group in groups.values():
        yield from _split(rule, material, group)


@check("TN142", "platform_conditional_parameter", Severity.WARNING)
def platform_conditional_parameter(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """A tool for several platforms has parameters that work on some of them only.

    Why: A schema can't say it, so a model fills in what has no effect, or leaves out what is needed. A tool for each
    platform says what it takes.

    Example: `myapp_launchApp(virtualCard?, overlayPermission?)`, the one for iOS and the other for Android

    Instead: `myapp_ios_launchApp(virtualCard)` and `myapp_android_launchApp(overlayPermission)`
    """
    for one in material.declarations:
        named = material.classes[one.name].platform
        tool = [word.lower() for word in one.metadata.platforms] or [named] if named else _platforms(one, material)
        partial = {
            parameter: [word for word in tool if word in {other.lower() for other in platforms}]
            for parameter, platforms in sorted(one.metadata.parameter_platforms.items())
            if platforms and not {other.lower() for other in platforms}.issuperset(tool)
        }
        if partial:
            which = listed([f"{excerpt(name, 48)} ({', '.join(words) or 'none'})" for name, words in partial.items()])
            fact = f"{excerpt(one.name)} has parameters for some of its platforms only: {which}."
            yield of(rule, one, fact, "Make a tool for each platform, with its own parameters.")


CHECKS: Final = (platform_mismatch, needless_platform_split, platform_conditional_parameter)


def _platforms(declaration: Declaration, material: LintContext) -> list[str]:
    said = declaration.metadata.platforms or material.convention.platforms
    return [word.lower() for word in said]


def _split(rule: Rule, material: LintContext, group: list[Declaration]) -> Iterator[Finding]:
    by_parameters: defaultdict[object, list[Declaration]] = defaultdict(list)
    for one in group:
        by_parameters[_shape(one)].append(one)
    for alike in by_parameters.values():
        own = [one for one in alike if id(one) in material.own]
        if len({one.name for one in alike}) < 2 or not own:
            continue
        others = [one for one in alike if one.name != own[0].name]
        names = listed([excerpt(one.name) for one in (own[0], *others)])
        yield of(rule, own[0], f"{names} take the same parameters.", "Make it one tool for all platforms.", *others)


def _shape(declaration: Declaration) -> object:
    schema = declaration.definition["inputSchema"]
    required = schema.get("required")
    needed = frozenset(map(str, required)) if isinstance(required, list) else frozenset()
    return frozenset(
        (str(name), _material(value), str(name) in needed) for name, value in declaration.parameters.items()
    )


def _material(value: Any, depth: int = 0, *, is_named: bool = False) -> object:
    """Return what of a schema has an effect, as a value that can be compared; what is too deep counts as itself."""
    if depth > _DEEPEST:
        return id(value)
    if isinstance(value, Mapping):
        # Below "properties" the keys are names of parameters, whatever word they are.
        return frozenset(
            (str(key), _material(item, depth + 1, is_named=key == "properties" and not is_named))
            for key, item in value.items()
            if is_named or key not in _WORDS
        )
    if isinstance(value, list | tuple):
        return tuple(_material(item, depth + 1) for item in value)
    return type(value).__name__, str(value)
