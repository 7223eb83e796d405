r"""The names of tools in a skill: what its file says in its server's own names, under the names that a client sees.

Two things change. In ``allowed-tools`` an entry that is exactly one of the server's own names becomes the name that is
shown; one of a tool that is not shown is left out, for its name may be another server's here. Behind the frontmatter
stands a note that says how the tools are called here that the text names. The text itself is the author's.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.naming.mentions import TextMentions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["AS_SERVED", "MOST_REWRITTEN", "RewrittenSkill", "SkillNames", "with_allowed_tools"]

MOST_REWRITTEN: Final = 256 * 1024
"""Bytes of a file that is rewritten; a longer one passes as it is."""
_ALLOWED: Final = "allowed-tools"
_MOST_NOTED: Final = 200
_TITLE: Final = "> **Note of the gateway, not a part of this skill.** Tools of its server have other names here:"
_LINE: Final = "> - `{own}` is `{shown}` here."
_MORE: Final = "> - More tools have other names; look at the list of tools."
_WRITABLE: Final = re.compile(r"[^`\s]{1,256}")
# What stands between two entries, and an entry: its parentheses may hold anything, blanks and commas too. Where they
# do not match, all that follows is one entry: a part of one is no name.
_ENTRY: Final = re.compile(r"([\s,]*)((?:[^\s,()]|\([^()]*\))++(?![()])|.+)", re.DOTALL)
_MOST_ENTRIES: Final = 64 * 1024


class RewrittenSkill(NamedTuple):
    """A file of a skill as a client reads it, and whether its ``allowed-tools`` are rewritten."""

    raw: bytes
    has_tools: bool = False


class SkillNames:
    """The names of one server's tools for one client: ``shown`` by own name, and the own names that are ``absent``."""

    def __init__(self, shown: Mapping[str, str], absent: Collection[str] = ()) -> None:
        self._shown: Final = {own: name for own, name in shown.items() if own != name}
        self._absent: Final = frozenset(absent) - shown.keys()

    @cached_property
    def changes(self) -> bool:
        """Whether any file can read otherwise under these names."""
        return bool(self._shown or self._absent)

    @cached_property
    def key(self) -> str:
        """A text that only the same names have."""
        said = json.dumps([sorted(self._shown.items()), sorted(self._absent)])
        return hashlib.sha256(said.encode()).hexdigest()

    @cached_property
    def _mentions(self) -> TextMentions:
        return TextMentions(self._shown)

    def file(self, raw: bytes) -> RewrittenSkill:
        """Return a file as it reads under these names; as it is without a frontmatter, too long, or not UTF-8."""
        if len(raw) > MOST_REWRITTEN or not self.changes:
            return RewrittenSkill(raw)
        from truename.editing.frontmatter import find_frontmatter  # noqa: PLC0415 - YAML, for served skills only
        from truename.editing.syntax import InvalidSyntax, newline_of  # noqa: PLC0415 - YAML, for served skills only

        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return RewrittenSkill(raw)
        if (found := find_frontmatter(text)) is None:
            return RewrittenSkill(raw)
        body = text[found.body :]
        head = None
        description: object = ""
        try:
            said = found.read()
            description = said.get("description")
            if (wanted := self.tools(said.get(_ALLOWED))) is not None:
                head = found.put(_ALLOWED, wanted)
        except InvalidSyntax:
            # Hosts read it in their own way, or refuse it: nothing of it is certain.
            pass
        start = text[: found.body] if head is None else head[: len(head) - len(body)]
        note = self._note(f"{description}\n{body}", newline_of(text))
        if note and not start.endswith("\n"):
            note = newline_of(text) + note
        return RewrittenSkill((start + note + body).encode(), head is not None)

    def _note(self, text: str, newline: str) -> str:
        """Return the note about the tools that a text names, "" if it needs none."""
        named = sorted(self._mentions.named(text))
        lines = [
            _LINE.format(own=own, shown=self._shown[own])
            for own in named
            if _WRITABLE.fullmatch(self._shown[own]) and self._shown[own].isprintable()
        ]
        if not lines:
            return ""
        more = [_MORE] if len(lines) > _MOST_NOTED else []
        # A blank line: what follows a quotation directly is read as a part of it.
        return newline.join([_TITLE, ">", *lines[:_MOST_NOTED], *more, "", ""])

    def tools(self, value: object) -> object | None:
        """Return ``allowed-tools``, a text or a list, under these names; None where they stay as they are.

        >>> SkillNames({"search": "docs_search"}, {"drop"}).tools("Read, Bash(search drop) search drop search(x)")
        'Read, Bash(search drop) docs_search search(x)'
        """
        if not isinstance(value, str | list) or len(value) > _MOST_ENTRIES:
            return None
        if isinstance(value, str):
            changed: object = self._text(value)
        else:
            known = [self._entry(one) if isinstance(one, str) else one for one in value]
            changed = [one for one, said in zip(known, value, strict=True) if one is not None or said is None]
        return None if changed == value else changed

    def _text(self, text: str) -> str:
        parts: list[str] = []
        end = 0
        for match in _ENTRY.finditer(text):
            between, entry = match[1], self._entry(match[2])
            if entry is not None:
                parts += (between if parts or not end else "", entry)
            end = match.end()
        return "".join(parts) + text[end:]

    def _entry(self, entry: str) -> str | None:
        """Return an entry under these names; None for a tool that has none here."""
        return None if entry in self._absent else self._shown.get(entry, entry)


AS_SERVED: Final = SkillNames({})
"""The names where nothing is rewritten."""


def with_allowed_tools(frontmatter: Mapping[str, Any], names: SkillNames) -> Mapping[str, Any]:
    """Return the frontmatter of an entry whose file's ``allowed-tools`` are rewritten."""
    wanted = names.tools(frontmatter.get(_ALLOWED))
    return frontmatter if wanted is None else {**frontmatter, _ALLOWED: wanted}
