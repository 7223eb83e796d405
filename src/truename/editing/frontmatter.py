r"""The YAML at the head of a Markdown file, between two lines of three hyphens: found, read, and changed in place.

Nothing of it is constructed or evaluated, and aliases are refused: a few of them can repeat a text a million times.

>>> text = "---\nname: pdf\nallowed-tools: Read search # both\n---\n# PDF\n"
>>> found = find_frontmatter(text)
>>> found.read(), text[found.body :]
({'name': 'pdf', 'allowed-tools': 'Read search'}, '# PDF\n')
>>> found.put("allowed-tools", "Read docs_search")
'---\nname: pdf\nallowed-tools: "Read docs_search" # both\n---\n# PDF\n'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.editing.merge import is_same_value
from truename.editing.syntax import InvalidSyntax, apply_splices
from truename.editing.yaml import YAML

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.editing.syntax import ParsedText

__all__ = ["MAX_FRONTMATTER", "Frontmatter", "find_frontmatter"]

MAX_FRONTMATTER: Final = 16 * 1024
"""Characters that a frontmatter may have; a longer one is none. To read these takes up to 0.2 seconds."""
_OPENING: Final = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSING: Final = re.compile(r"(?<=\n)---[ \t]*(?:\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """Where the YAML of a text starts and ends, and where its body starts."""

    text: str
    start: int
    end: int
    body: int

    def read(self) -> Mapping[str, Any]:
        """Return the frontmatter as it reads. Raises `InvalidSyntax` for what is no YAML, no object, or has aliases."""
        return self._parsed()[1]

    def put(self, key: str, value: object) -> str | None:
        """Return the text with another value of a key that is there; None if nothing but it cannot be changed.

        Raises what `read` raises.
        """
        parsed, found = self._parsed()
        wanted = {**found, key: value}
        try:
            for splices in YAML.put(parsed, (key,), value):
                changed = apply_splices(parsed.text, splices)
                is_open = changed and not changed.endswith("\n")
                if not is_open and not _CLOSING.search(changed) and is_same_value(YAML.read(changed).value, wanted):
                    return self.text[: self.start] + changed + self.text[self.end :]
        except InvalidSyntax:
            return None
        return None

    def _parsed(self) -> tuple[ParsedText, Mapping[str, Any]]:
        parsed = YAML.read(self.text[self.start : self.end])
        if not isinstance(parsed.value, dict):
            raise InvalidSyntax("it is not an object")
        waiting = [parsed.tree] if parsed.tree is not None else []
        while waiting:
            node = waiting.pop()
            if node.kind == "alias":
                raise InvalidSyntax("it has an alias", node.start)
            waiting += [pair.node for pair in node.pairs]
        return parsed, parsed.value


def find_frontmatter(text: str) -> Frontmatter | None:
    """Return the frontmatter of a text; None if there is none at its very beginning, or it is too long."""
    opening = _OPENING.match(text)
    closing = None if opening is None else _CLOSING.search(text, opening.end())
    if opening is None or closing is None or closing.start() - opening.end() > MAX_FRONTMATTER:
        return None
    return Frontmatter(text, opening.end(), closing.start(), closing.end())
