"""Find settings that name no existing tool: a misspelt rule restricts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.catalog import unfolded
from truename.catalog.globs import fits_id, unmatched_globs
from truename.errors import excerpt
from truename.identity import component
from truename.policy.former_ids import former_ids
from truename.policy.registry_names import names_registered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.catalog import Catalog
    from truename.config.settings import Settings
    from truename.identity import ToolId
    from truename.ledger import Ledger

__all__ = ["idle", "mentions_changed"]


def idle(settings: Settings, catalog: Catalog, ledger: Ledger | None = None) -> tuple[str, ...]:
    """Return settings that match no tool, each as its place and glob; call it when all servers have listed theirs.

    A rule matches a tool under its former ids too (``ledger``).

    >>> from truename import Catalog
    >>> from truename.config import Settings
    >>> from truename.policy import CallRule, Policy
    >>> rules = [CallRule(name="careful", outcome="deny", tools=("gti/push", "git/delete_*", "*/drop*"))]
    >>> idle(Settings(policy=Policy(rules=rules)), Catalog.from_mcp({"git": ["push"]}))
    ("rule 'careful': 'gti/push'",)
    """
    if settings.tools.is_partial:
        return ()
    found = [("[tools]", key) for key in settings.tools.idle(catalog)]
    if mentions := [(where, glob) for where, globs in _mentions(settings) for glob in globs]:
        former = former_ids(ledger)
        ids = [one for id in catalog for one in (id, *former(id))]
        missing = set(unmatched_globs((glob for _, glob in mentions), ids))
        # A restriction also matches a tool under the id that it would have without a digest.
        plain = [one for tool in catalog.values() for one in unfolded(tool.id, tool.origin)]
        restricting = [glob for glob in _restricting(settings) if glob in missing]
        missing -= {*restricting} - {*unmatched_globs(restricting, plain)}
        found += [(where, glob) for where, glob in mentions if glob in missing]
    found += _unregistered(settings)
    return tuple(f"{where} {excerpt(glob)}" for where, glob in found)


def _unregistered(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield globs on names in the MCP registry that no configured server has."""
    for rule in () if settings.policy is None else settings.policy.rules:
        for glob in rule.registry_names:
            if not any(names_registered([glob], name) for name in rule.registered.values()):
                yield f"rule {excerpt(rule.name)}:", glob


def _restricting(settings: Settings) -> Iterator[str]:
    for rule in () if settings.policy is None else settings.policy.rules:
        yield from () if rule.outcome == "allow" else rule.tools
    for profile in settings.profiles.values():
        yield from profile.excluded
    yield from settings.metadata


def mentions_changed(settings: Settings, moves: Iterable[tuple[ToolId, ToolId]]) -> tuple[str, ...]:
    """Return settings that match only one id of a pair of old and new ids, each as its place and glob.

    >>> from truename import ToolId
    >>> from truename.config import Settings
    >>> old, new = ToolId.parse("sf2/get"), ToolId.parse("salesforce@2/get")
    >>> mentions_changed(Settings(pinned=("sf2/*", "*/get"), overrides={"universal": {"sf2/get": "x"}}), [(old, new)])
    ("pinned: 'sf2/*'", "[overrides.universal] 'sf2/get'")
    """
    pairs = tuple(moves)
    globs = [(where, glob) for where, several in _mentions(settings) for glob in several]
    globs += [("[tools]", glob) for glob in settings.tools.table]
    globs += [(f"[overrides.{dialect}]", id) for dialect, declared in settings.overrides.items() for id in declared]
    found = [
        f"{where} {excerpt(glob)}"
        for where, glob in globs
        if any(fits_id(glob, old) != fits_id(glob, new) for old, new in pairs)
    ]
    old = {one.integration for one, _ in pairs} - {one.integration for _, one in pairs}
    found += [f"[aliases] {excerpt(key)}" for key in settings.aliases or () if component(key).name in old]
    return tuple(dict.fromkeys(found))


def _mentions(settings: Settings) -> Iterator[tuple[str, tuple[str, ...]]]:
    for rule in () if settings.policy is None else settings.policy.rules:
        yield f"rule {excerpt(rule.name)}:", (*rule.tools, *rule.but)
    for name, profile in settings.profiles.items():
        yield f"profile {excerpt(name)}:", (*profile.tools, *profile.excluded)
    yield "[metadata]", tuple(settings.metadata)
    yield "pinned:", settings.pinned
