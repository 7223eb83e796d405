"""Find names in a text that refer to no tool."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import check, of
from truename.errors import excerpt
from truename.naming.suggest import NameSuggester
from truename.naming.words import snake, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext
    from truename.conventions.rules.texts import ToolMention, ToolTexts

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
# Each question looks at many names of the server, and nobody reads more answers.
_MOST_ASKED: Final = 50
# The way in which PowerShell writes its commands.
_COMMANDLET: Final = re.compile(r"[A-Z][a-z]{1,20}-[A-Z][A-Za-z0-9-]{0,60}")


@check("TN180", "dead_reference", Severity.WARNING)
def dead_reference(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """Find descriptions that tell the model to use a tool which is not there.

    Why: The model calls what it reads; the call fails, or another server answers to the name. Such names are left
    behind when a tool is renamed.

    Example: "Closes a ticket. Call `get_tickets_list` first", in a server whose tool is called `list_tickets`.

    Instead: Write the name that the tool has now. Names of parameters, values and fields are not reported.
    """
    servers: dict[str, _ServerNames] = {}
    texts_of: defaultdict[str, list[ToolTexts]] = defaultdict(list)
    for one, texts in material.texts:
        texts_of[one.server].append(texts)
    there = {snake(one.name) for one in material.everything}
    for one, texts, mentioned in material.mentions:
        told: set[str] = set()
        for mention in mentioned:
            key = snake(mention.name)
            if key in told or key in there or not _may_be_tool(mention):
                continue
            told.add(key)
            if one.server not in servers:
                names = {other.name for other in material.by_server[one.server]}
                servers[one.server] = _ServerNames(sorted(names), texts_of[one.server])
            if servers[one.server].could_have(mention, key):
                fact = f"{texts.called(mention.at)} speaks of the tool {excerpt(mention.name)}, which is not there."
                yield of(rule, one, fact, servers[one.server].remedy(mention.name))


class _ServerNames:
    """The names that a server's tools have, and those of everything else in it; made at first need."""

    def __init__(self, names: Sequence[str], texts: Sequence[ToolTexts]) -> None:
        self._names = names
        self._asked = 0
        self._has_hyphens = any("-" in name for name in names)
        # Parameters, fields and what enumerations allow.
        self._others = {snake(name) for one in texts for name in (*one.names, *one.values)}

    @cached_property
    def _suggester(self) -> NameSuggester:
        return NameSuggester(self._names)

    def could_have(self, mention: ToolMention, key: str) -> bool:
        """Whether a name could be that of a tool here: nothing else has it, and names are written in this way."""
        is_spelled_so = self._has_hyphens or "-" not in mention.name or mention.is_called_tool
        return key not in self._others and is_spelled_so

    def remedy(self, name: str) -> str:
        """Return the nearest name as a question, if one is near."""
        self._asked += 1
        nearest = self._suggester.nearest(name, 1) if self._asked <= _MOST_ASKED else ()
        return f"Did you mean {excerpt(nearest[0])}?" if nearest else "Write the name of a tool that is there."


def _may_be_tool(mention: ToolMention) -> bool:
    parts = words(mention.name)
    is_named_so = mention.is_called_tool or (parts[:1] and parts[0] in _VERBS)
    return len(parts) > 1 and bool(is_named_so) and not _COMMANDLET.fullmatch(mention.name)


CHECKS: Final = (dead_reference,)
