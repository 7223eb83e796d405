"""Check the casing of server keys, if the convention's ``casing`` is ``canonical``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from truename.conventions.classification import respelled
from truename.conventions.findings import Finding, Severity
from truename.conventions.rules.check import check
from truename.errors import excerpt
from truename.identity import is_kebab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]

_CANONICAL: Final = "canonical"
_KEBAB: Final = "kebab"


@check("TN128", "integration_casing", Severity.ERROR)
def integration_casing(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A server key is not in lower case with hyphens between words, the form of integrations.

    Why: The key becomes the integration of every canonical id of the server. `data_grout@1/ask@1` and
    `data-grout@1/ask@1` are two tools, and a call with one spelling does not reach the other. The rule applies if the
    convention's `casing` is `canonical`.

    Example: the servers `data_grout` and `dataGrout`

    Instead: `data-grout`
    """
    if context.convention.casing != _CANONICAL:
        return
    keys = {key: first for key, tools in context.by_server.items() if _is_key(key, first := tools[0])}
    corrected = {key: key if is_kebab(key) else respelled(key, _KEBAB) for key in keys}
    claims = Counter(corrected.values())
    for key, first in keys.items():
        if is_kebab(key) or id(first) not in context.own:
            continue
        suggested = corrected[key] if claims[corrected[key]] == 1 else ""
        yield Finding(
            rule=rule,
            fact=f"The server {excerpt(key)} is not written like data-grout.",
            remedy=f"Call it {excerpt(suggested)}." if suggested else "Give it a key of lower-case words with hyphens.",
            location=first.location,
            server=key,
        )


CHECKS: Final = (integration_casing,)


def _is_key(key: str, tool: Declaration) -> bool:
    """Return whether this is the key of a configured server; a server in a source file only has a label."""
    return bool(key) and (tool.location is None or tool.location.key == key)
