"""Names in a text that lead nowhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.identity import fold
from truename.naming.suggest import Suggester
from truename.naming.words import words
from truename.policy.finding import Severity
from truename.policy.rules.check import check, of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.policy.finding import Finding, Rule
    from truename.policy.rules.material import Material

__all__ = ["CHECKS"]

# fmt: off
# A name of this beginning is that of a tool, unless something else of the server is called so.
_VERBS: Final = frozenset({
    "add", "analyze", "archive", "assign", "build", "call", "cancel", "check", "clear", "close", "compare",
    "configure", "copy", "create", "delete", "describe", "disable", "download", "enable", "execute", "explain",
    "export", "fetch", "filter", "find", "generate", "get", "import", "insert", "install", "invoke", "launch",
    "list", "load", "lookup", "move", "open", "query", "read", "refresh", "register", "remove", "rename", "reset",
    "resolve", "restart", "restore", "retrieve", "run", "save", "scan", "search", "select", "send", "set", "show",
    "start", "stop", "submit", "switch", "sync", "track", "update", "upload", "validate", "verify", "view", "write",
})
# fmt: on
# The way in which PowerShell writes its commands.
_COMMANDLET: Final = re.compile(r"[A-Z][a-z]{1,20}-[A-Z][A-Za-z0-9-]{0,60}")


@check("TN180", "dead_reference", Severity.WARNING)
def dead_reference(rule: Rule, material: Material) -> Iterator[Finding]:
    """Find descriptions that tell the model to use a tool which is not there.

    Why: The model calls what it reads; the call fails, or another server answers to the name. Such names are left
    behind when a tool is renamed.

    Example: "Closes a ticket. Call `get_tickets_list` first", in a server whose tool is called `list_tickets`.

    Instead: Write the name that the tool has now. Names of parameters, values and fields are not reported.
    """
    suggesters: dict[str, Suggester] = {}
    other_words = _Known(material)
    for one, texts, mentioned in material.mentions:
        told: set[str] = set()
        for mention in mentioned:
            folded = fold(mention.name)
            if folded in told or folded in material.alike or not _is_tool(mention.name, said=mention.is_called_tool):
                continue
            if folded in other_words.of(one.server):
                continue
            told.add(folded)
            nearest = suggesters.setdefault(
                one.server, Suggester(sorted({other.name for other in material.by_server[one.server]}))
            ).nearest(mention.name, 1)
            remedy = f"Did you mean {excerpt(nearest[0])}?" if nearest else "Write the name of a tool that is there."
            fact = f"{texts.called(mention.at)} speaks of the tool {excerpt(mention.name)}, which is not there."
            yield of(rule, one, fact, remedy)


class _Known:
    """What else has a name in a server: parameters, fields, values of enumerations."""

    def __init__(self, material: Material) -> None:
        self._texts = material.texts
        self._found: dict[str, frozenset[str]] = {}

    def of(self, server: str) -> frozenset[str]:
        """Return those names, folded."""
        if not self._found:
            by_server: dict[str, set[str]] = {}
            for one, texts in self._texts:
                by_server.setdefault(one.server, set()).update(map(fold, texts.names + texts.values))
            self._found = {key: frozenset(names) for key, names in by_server.items()}
        return self._found.get(server, frozenset())


def _is_tool(name: str, *, said: bool) -> bool:
    parts = words(name)
    return len(parts) > 1 and (said or parts[0] in _VERBS) and not _COMMANDLET.fullmatch(name)


CHECKS: Final = (dead_reference,)
