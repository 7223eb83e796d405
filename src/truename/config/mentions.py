"""Which tools settings name, and which of these there are not: a rule with a slip in it holds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.errors import excerpt
from truename.policy.globs import strays
from truename.policy.grants import former_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.catalog import Catalog
    from truename.config.model import Settings
    from truename.ledger import Ledger

__all__ = ["idle"]


def idle(settings: Settings, catalog: Catalog, ledger: Ledger | None = None) -> tuple[str, ...]:
    """Return the places of settings that are about no tool, each with what stands there, once all servers are there.

    A rule is about a tool under its former ids, too (``ledger``).

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
        missing = set(strays((glob for _, glob in mentions), (one for id in catalog for one in (id, *former(id)))))
        found += [(where, glob) for where, glob in mentions if glob in missing]
    return tuple(f"{where} {excerpt(glob)}" for where, glob in found)


def _mentions(settings: Settings) -> Iterator[tuple[str, tuple[str, ...]]]:
    for rule in () if settings.policy is None else settings.policy.rules:
        yield f"rule {excerpt(rule.name)}:", (*rule.tools, *rule.but)
    for name, profile in settings.profiles.items():
        yield f"profile {excerpt(name)}:", (*profile.tools, *profile.excluded)
    yield "[metadata]", tuple(settings.metadata)
    yield "pinned:", settings.pinned
