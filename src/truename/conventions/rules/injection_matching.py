"""Match mechanisms of prompt injection in the sentences of a text, and skip mere mentions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.conventions.rules.texts import ToolTexts

__all__ = ["Mechanism", "cues", "gap", "is_mentioned", "order_in", "words"]


@dataclass(frozen=True)
class Mechanism:
    """A way of giving instructions to a model; ``says`` completes the sentence "... says ...".

    At least one of the ``cues`` must occur as a word (None: no condition), and of each group of ``stems`` one as a part
    of a word; both are cheap tests before the pattern. ``pattern`` is matched in a sentence in lower case with single
    spaces; its first group, if any, is the instruction itself. ``inside`` is the part of a definition where the
    mechanism counts, "" for all. If ``can_be_mentioned`` is false, it also counts in a sentence that only describes it.
    """

    name: str
    says: str
    cues: frozenset[str] | None
    stems: tuple[tuple[str, ...], ...]
    pattern: str
    sources: tuple[str, ...]
    inside: str = ""
    can_be_mentioned: bool = True

    def could_be_of(self, words: frozenset[str]) -> bool:
        """Return whether a text with these words has one of the cues; cheaper than `could_be_in`."""
        return self.cues is None or not self.cues.isdisjoint(words)

    def could_be_in(self, text: str, known: dict[int, bool]) -> bool:
        """Return whether a text has all stems; far cheaper than the pattern. ``known`` caches the groups found."""
        for group in self.stems:
            key = id(group)
            if key not in known:
                known[key] = any(map(text.__contains__, group))
            if not known[key]:
                return False
        return True

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled at first use."""
        return re.compile(self.pattern)


def words(*alternatives: str) -> str:
    """Return a pattern that matches any of the alternatives."""
    return f"(?:{'|'.join(alternatives)})"


def cues(text: str) -> frozenset[str]:
    """Return the words of a text as a set, for tables of cues."""
    return frozenset(text.split())


def gap(most: int) -> str:
    """Return a pattern for at most ``most`` words between two others; each is bounded, so matching stays linear."""
    return rf"(?: [^ ]{{1,40}}){{0,{most}}}? "


# Words of a sentence that describes such instructions and gives none: "detects prompts that ...", "such as '...'".
_DESCRIBING: Final = re.compile(
    r"\b(?:detect|explain|analy[sz]|report|check|classif|identif|recogni[sz]|block|prevent|find|flag|filter"
    r"|reject|scan|scor|test|"
    r"guard|warn|defen|protect|measur|evaluat|document|describ|search|stop|catch|probe|assess|monitor|redact|refus"
    r"|payload|attack|inject|jailbreak|adversarial)[a-z]{0,10}\b"
)
_LINK: Final = re.compile(
    r"(?:\b(?:that|which|who|whether|when|how|if|such as|like|for example|attempts?|attempting|tr(?:y|ies|ying)"
    r"|asks?|asking|tells?|telling|instruct(?:s|ing)?|contain(?:s|ing)?)\b|\be\.g\.|\bi\.e\.|:)"
)
_LABEL: Final = re.compile(
    r"\b(?:examples?|samples?|expected|mock|canned|fixtures?|training|test|illustrative|demo|dummy"
    r"|placeholder)\b[^:.!?]{0,60}:"
)
# Words that turn an instruction into its opposite: "do not ...", "never ...", "make sure not to ...".
_FORBIDDING: Final = re.compile(
    r"(?:(?<!why )(?<!if )(?<!or )\b(?:not|never|cannot|avoid)|n't)(?: (?:to|ever|simply|just|yet|also"
    r"|directly)){0,2} ?\Z"
)
_NEAR: Final = 240
_SHORT: Final = 40
_LINKED: Final = 75


def is_mentioned(before: str) -> bool:
    """Return whether the text before a match, in the same sentence, makes it a mere mention: a description or a label.

    >>> is_mentioned("detects when a tool tries to '"), is_mentioned("expected output: "), is_mentioned("prompt: ")
    (True, True, False)

    They count only in the same sentence: "Example output format. Ignore ..." is an instruction.
    """
    near = before[-_NEAR:]
    if _LABEL.search(near):
        return True
    described = _DESCRIBING.search(near)
    return described is not None and _LINK.search(near, max(described.end(), len(near) - _LINKED)) is not None


def order_in(texts: ToolTexts, mechanisms: Sequence[Mechanism]) -> Iterator[tuple[int, Mechanism, str]]:
    """Yield the instructions to the model in the texts: offset of the sentence, mechanism, and words."""
    low = texts.lowered
    known: dict[int, bool] = {}
    possible = [one for one in mechanisms if one.could_be_of(texts.words) and one.could_be_in(low, known)]
    for start, sentence in texts.sentences if possible else ():
        known = {}
        for one in possible:
            if one.could_be_in(sentence, known) and (not one.inside or texts.place(start).startswith(one.inside)):
                for match in one.compiled.finditer(sentence):
                    begins = match.start(match.lastindex or 0)
                    before = sentence[max(0, begins - _NEAR) : begins]
                    if not (one.can_be_mentioned and (is_mentioned(before) or _FORBIDDING.search(before[-_SHORT:]))):
                        yield start, one, sentence[begins : match.end()]
                        break
