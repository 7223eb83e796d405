"""Find references in texts to tools that do not exist."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, check
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
# A name that begins with one of these verbs is a tool's, unless something else of the server has the name.
_VERBS: Final = frozenset({
    "add", "analyze", "archive", "assign", "build", "call", "cancel", "check", "clear", "close", "compare",
    "configure", "copy", "create", "delete", "describe", "disable", "download", "enable", "execute", "explain",
    "export", "fetch", "filter", "find", "generate", "get", "import", "insert", "install", "invoke", "launch",
    "list", "load", "lookup", "move", "open", "query", "read", "refresh", "register", "remove", "rename", "reset",
    "resolve", "restart", "restore", "retrieve", "run", "save", "scan", "search", "select", "send", "set", "show",
    "start", "stop", "submit", "switch", "sync", "track", "update", "upload", "validate", "verify", "view", "write",
})
# fmt: on
# Finding the nearest names is slow, and nobody reads more suggestions.
_MOST_ASKED: Final = 50
# The form of PowerShell commands.
_COMMANDLET: Final = re.compile(r"[A-Z][a-z]{1,20}-[A-Z][A-Za-z0-9-]{0,60}")


@check("TN180", "dead_reference", Severity.WARNING)
def dead_reference(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A description tells the model to use a tool that does not exist.

    Why: The model calls the name; the call fails, or runs another server's tool with that name. Such references remain
    when a tool is renamed.

    Example: "Closes a ticket. Call `get_tickets_list` first", in a server whose tool is called `list_tickets`.

    Instead: Write the name that the tool has now. Names of parameters, values and fields are not reported.
    """
    servers: dict[str, _ServerNames] = {}
    texts_of: defaultdict[str, list[ToolTexts]] = defaultdict(list)
    for one, texts in context.texts:
        texts_of[one.server].append(texts)
    existing = {snake(one.name) for one in context.everything}
    for one, texts, mentioned in context.mentions:
        reported: set[str] = set()
        for mention in mentioned:
            key = snake(mention.name)
            if key in reported or key in existing or not _may_be_tool(mention):
                continue
            reported.add(key)
            if one.server not in servers:
                names = {other.name for other in context.by_server[one.server]}
                servers[one.server] = _ServerNames(sorted(names), texts_of[one.server])
            if servers[one.server].could_have(mention, key):
                fact = f"{texts.describe(mention.at)} mentions the tool {excerpt(mention.name)}, which does not exist."
                yield build_finding(rule, one, fact, servers[one.server].remedy(mention.name))


class _ServerNames:
    """The names of a server's tools, and of everything else in its definitions."""

    def __init__(self, names: Sequence[str], texts: Sequence[ToolTexts]) -> None:
        self._names = names
        self._asked = 0
        self._has_hyphens = any("-" in name for name in names)
        # Parameters, fields and values of enumerations.
        self._others = {snake(name) for one in texts for name in (*one.names, *one.values)}

    @cached_property
    def _suggester(self) -> NameSuggester:
        return NameSuggester(self._names)

    def could_have(self, mention: ToolMention, key: str) -> bool:
        """Return whether a name could be a tool of this server: it is spelled like one, and nothing else has it."""
        is_spelled_so = self._has_hyphens or "-" not in mention.name or mention.is_called_tool
        return key not in self._others and is_spelled_so

    def remedy(self, name: str) -> str:
        """Return a remedy with the nearest name, if one is similar."""
        self._asked += 1
        nearest = self._suggester.nearest(name, 1) if self._asked <= _MOST_ASKED else ()
        return f"Did you mean {excerpt(nearest[0])}?" if nearest else "Write the name of an existing tool."


def _may_be_tool(mention: ToolMention) -> bool:
    parts = words(mention.name)
    is_named_so = mention.is_called_tool or (parts[:1] and parts[0] in _VERBS)
    return len(parts) > 1 and bool(is_named_so) and not _COMMANDLET.fullmatch(mention.name)


CHECKS: Final = (dead_reference,)
