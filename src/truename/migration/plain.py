"""Where a name may stand without quotes: keys and plain values of YAML, bare keys of TOML. Nowhere else."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final

__all__ = ["KINDS", "Surroundings", "kind_of"]

# File endings whose texts have names without quotes.
KINDS: Final = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
_LOOK: Final = 400
_YAML_LEAD: Final = re.compile(
    r"[ \t]*(?P<dash>(?:-[ \t]{1,20}){0,9})(?P<key>(?:[\w.-]{1,80}|\"[^\"]{1,80}\"|'[^']{1,80}'):[ \t]{1,20})?"
)
_YAML_FLOW: Final = re.compile(r"\[(?:[^\[\]{}\"'#]{0,300},)?[ \t]{0,20}\Z")
_YAML_KEY_TAIL: Final = re.compile(r":(?=\s|\Z)")
_YAML_END: Final = re.compile(r"[ \t]{0,80}(?:[ \t]#[^\n]*)?(?=\r?\n|\Z)")
_YAML_FLOW_END: Final = re.compile(r"[ \t]{0,20}[,\]]")
_YAML_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_YAML_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_BLOCK: Final = re.compile(r"(?:^|[ \t:-])[|>][+-]?[0-9]?[+-]?[ \t]*(?:[ \t]#[^\n]*)?\r?", re.MULTILINE)
_TOML_KEY: Final = re.compile(r"[ \t]*")
_TOML_KEY_TAIL: Final = re.compile(r"[ \t]{0,80}=")
_TOML_HEAD: Final = re.compile(r"[ \t]*(?P<open>\[{1,2})[ \t]{0,20}")
_TOML_SAFE: Final = re.compile(r"[A-Za-z0-9_-]+")


def kind_of(file: str) -> str:
    """Return which language a file's name says it is: ``yaml``, ``toml``, "" for all others.

    >>> kind_of("agents/tools.YML"), kind_of("tools.json")
    ('yaml', '')
    """
    return next((kind for ending, kind in KINDS.items() if file.lower().endswith(ending)), "")


@dataclass(frozen=True)
class Surroundings:
    """A text and its kind, asked about places in it."""

    text: str
    kind: str

    def is_plain(self, start: int, end: int) -> bool:
        """Tell whether this span is a key or a value of its own that stands without quotes."""
        if not self.kind:
            return False
        lead = self.text[max(self.text.rfind("\n", max(0, start - _LOOK), start) + 1, start - _LOOK) : start]
        return self._in_yaml(lead, start, end) if self.kind == "yaml" else self._in_toml(lead, end)

    def allows(self, old: str, new: str) -> bool:
        """Tell whether both names mean themselves there without quotes."""
        if self.kind == "toml":
            return bool(_TOML_SAFE.fullmatch(old) and _TOML_SAFE.fullmatch(new))
        return _YAML_SAFE.fullmatch(new) is not None and new.lower() not in _YAML_WORDS

    def _in_yaml(self, lead: str, start: int, end: int) -> bool:
        if self._is_in_block(start):
            return False
        flow = _YAML_FLOW.search(lead)
        found = _YAML_LEAD.fullmatch(lead[: flow.start()] if flow else lead)
        if found is None:
            return False
        if flow is not None:
            return _YAML_FLOW_END.match(self.text, end) is not None
        if found["key"] is None and _YAML_KEY_TAIL.match(self.text, end):
            return True
        return bool(found["key"] or found["dash"]) and _YAML_END.match(self.text, end) is not None

    def _in_toml(self, lead: str, end: int) -> bool:
        if self._has_long_strings:
            return False
        if _TOML_KEY.fullmatch(lead):
            return _TOML_KEY_TAIL.match(self.text, end) is not None
        head = _TOML_HEAD.fullmatch(lead)
        closing = self.text[end : end + _LOOK].lstrip(" \t")
        return head is not None and closing.startswith("]" * len(head["open"]))

    @cached_property
    def _has_long_strings(self) -> bool:
        # Lines inside them look like keys, and are none.
        return '"""' in self.text or "'''" in self.text

    def _is_in_block(self, offset: int) -> bool:
        place = bisect_right(self._blocks, (offset, len(self.text) + 1)) - 1
        return place >= 0 and offset < self._blocks[place][1]

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        """The spans of literal and folded texts, in which nothing is a key."""
        found: list[tuple[int, int]] = []
        indent, begun, at = -1, 0, 0
        for line in self.text.splitlines(keepends=True):
            content = line.lstrip(" ")
            if indent >= 0 and content.strip() and len(line) - len(content) <= indent:
                found.append((begun, at))
                indent = -1
            at += len(line)
            if indent < 0 and _BLOCK.search(line.rstrip("\n")) and line.rstrip().endswith(("|", ">", "+", "-")):
                indent, begun = len(line) - len(content), at
        return [*found, (begun, at)] if indent >= 0 else found
