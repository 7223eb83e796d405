"""Parameters that ask for what is the caller's and no business of the tool: its model, talk, orders, tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.naming.words import words as words_of
from truename.policy.rules.mechanisms import cues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.policy.declaration import Declaration
    from truename.policy.rules.texts import Texts

__all__ = ["Foreign", "Parameter", "foreign_in"]

# Bounds for hostile schemas.
_MOST_PARAMETERS: Final = 2_000
_LONGEST_NAME: Final = 100
_READ: Final = 2_000
_ABOUT: Final = 300
_OF_ITS_OWN: Final = re.compile(
    r"\b(?:for|of|to|by|with) (?:the |an? )?(?:llm|model|agent|assistant|ai)\b(?! (?:that|which|you))"
)
# Of these one at least is in a name, or in a text, that asks for any of it.
_NAMED: Final = re.compile(
    r"llm|(?<![a-z])ai[ _a]|model|conversation|chat|dialog|message|prompt|instruction|tool|available|installed"
    r"|connected"
    r"|reasoning|thought|scratchpad|password|cookie|credential|secret|api_?key"
)
_SAID: Final = cues(
    "model llm prompt message instructions guidelines conversation conversations chat chats dialog dialogs dialogue"
    " dialogues history transcript everything tools functions servers reasoning thought thoughts scratchpad credential"
    " credentials password passwords cookies keys tokens secrets"
)
_WORD: Final = re.compile(r"[a-z]{2,40}")
_WHOLE: Final = (
    r"(?:full|entire|whole|complete|raw|verbatim|current|previous|prior|recent|all(?: of)? (?:the|this|your|our))"
)
_TALK: Final = (
    r"(?:conversations?|chats?|dialog(?:ue)?s?|(?:chat |conversation |message )(?:history|transcripts?|logs?|context))"
)


class Parameter(NamedTuple):
    """A parameter of a tool: its path in the schema, its name, and what is said of it."""

    path: tuple[str, ...]
    name: str
    said: str


@dataclass(frozen=True)
class Foreign:
    """One thing that is the caller's. ``asks`` completes the sentence "... asks for ...".

    ``name`` is matched with all words of a parameter's name, joined by single spaces, ``said`` in its description.
    ``about``: a tool whose name or first words have one of these has to do with such things.
    """

    asks: str
    name: re.Pattern[str]
    said: re.Pattern[str]
    about: frozenset[str]

    def is_asked_by(self, name: str, said: str) -> bool:
        """Whether a parameter of this name (its words), of which this is said (in lower case), asks for it."""
        if said and self.said.search(said):
            return True
        # "The system prompt for the LLM that extracts" is one that the tool gives to a model of its own.
        return self.name.fullmatch(name) is not None and _OF_ITS_OWN.search(said) is None


def _foreign(asks: str, name: str, said: str, about: str) -> Foreign:
    return Foreign(asks, re.compile(name), re.compile(said), cues(about))


_FOREIGN: Final = (
    _foreign(
        "the model that calls it",
        r"(?:(?:your|calling|caller|current|client|my) )?(?:llm|language model|ai (?:model|agent|assistant))"
        r"(?: model)?(?: (?:name|version|vendor|provider))|(?:your|calling|caller) model(?: name)?",
        r"\b(?:your (?:own )?(?:model|llm) (?:name|version|identity)|(?:name|version) of (?:the |your )(?:llm|ai"
        r"|(?:language )?model)"
        r" (?:that is|which is|you are|calling|making|currently|in use)|which (?:llm|ai|model) you are)\b",
        "llm llms model models agent agents completion inference prompt chatbot assistant assistants",
    ),
    _foreign(
        "the conversation",
        r"(?:(?:full|entire|whole|complete|previous|recent|prior|raw|user) )?(?:conversation|chat|dialog|dialogue"
        r"|message)"
        r" (?:history|transcript|log|logs|context)|(?:full|entire|whole|complete|raw) (?:conversation|chat|dialog"
        r"|dialogue)"
        r"|(?:previous|prior|all|earlier) (?:user )?messages",
        rf"\b(?:{_WHOLE} {_TALK}(?: (?:so far|up to|until|between|with the user|history))?"
        rf"|(?:summary|transcript|copy|contents?|text) of (?:the |this |your |our )(?:{_WHOLE} )?{_TALK}"
        rf"|everything the user (?:has )?(?:said|wrote|typed|asked))\b",
        "conversation conversations chat chats message messages dialog dialogue thread threads transcript transcripts"
        " messaging inbox history channel channels meeting llm completion completions bot chatbot assistant call calls",
    ),
    _foreign(
        "the orders that the model was given",
        r"(?:(?:your|full|initial|original|current) )?(?:system|developer) (?:prompt|message|instructions?)"
        r"|(?:your|initial|original|hidden) (?:instructions?|prompt)",
        r"\byour (?:own )?(?:(?:full|initial|original|hidden|current) )?(?:system (?:prompt|message)|instructions"
        r"|guidelines)\b"
        r"|\b(?:system|developer) (?:prompt|message) (?:you were given|of this (?:conversation|session)|verbatim|in"
        r" full)\b",
        "llm llms model models agent agents prompt prompts completion completions generate assistant assistants"
        " chatbot gpt"
        " claude gemini chat",
    ),
    _foreign(
        "the tools of others",
        r"(?:all |your )?(?:available|other|known|installed|accessible|connected|remaining) (?:mcp )?(?:tools?"
        r"|functions?|servers?)"
        r"(?: (?:names?|list))?|(?:tool|tools|mcp servers?) (?:list|names)",
        r"\b(?:(?:all|other|names? of|list of) (?:the |all |your )*(?:other )?(?:mcp )?(?:tools|functions|servers)"
        r" (?:that )?(?:you (?:have|can|know)|available to you|at your disposal|you are connected to))\b",
        "tool tools function functions mcp server servers agent agents plugin plugins workflow workflows assistant"
        " skill skills",
    ),
    _foreign(
        "what the model thinks",
        r"(?:your |model |internal |hidden )(?:reasoning|thoughts?|chain of thought|scratchpad)|chain of thought"
        r"|scratchpad",
        r"\byour (?:own )?(?:(?:full|internal|hidden|private|step-by-step|complete) )+(?:reasoning|thoughts?|chain"
        r" of thought"
        r"|scratchpad)\b",
        "think thinking thought thoughts reasoning reason plan planning reflect reflection agent draft mind steps",
    ),
    _foreign(
        "credentials that are somebody else's",
        r"(?:other|user|users|all|saved|stored|browser|your) (?:[a-z]+ )?(?:passwords|cookies|credentials|secrets"
        r"|api keys|tokens)",
        r"\b(?:credentials?|passwords?|api[ -]?keys?|tokens?|secrets?|cookies) (?:of|for|from|to) (?:(?:any|all"
        r"|every|each) )?"
        r"(?:other|another) (?:[a-z]{1,20} )?(?:tools?|servers?|services?|accounts?|users?)\b",
        "password passwords vault secret secrets credential credentials cookie cookies keychain login auth browser"
        " session",
    ),
)


def foreign_in(declaration: Declaration, texts: Texts) -> Iterator[tuple[Parameter, Foreign]]:
    """Yield the parameters of a tool that ask for what is not its business, each with what that is.

    A tool that has to do with such things may ask: a chat's history is the business of a messenger.
    """
    if _SAID.isdisjoint(texts.words) and _NAMED.search(" ".join(texts.names[1:]).lower()) is None:
        return
    about = _about(declaration)
    kinds = [one for one in _FOREIGN if one.about.isdisjoint(about)]
    for parameter in _parameters(declaration.definition.get("inputSchema")) if kinds else ():
        name = " ".join(words_of(parameter.name[:_LONGEST_NAME]))
        said = " ".join(parameter.said[:_READ].lower().split())
        found = next((one for one in kinds if one.is_asked_by(name, said)), None)
        if found is not None:
            yield parameter, found


def _about(declaration: Declaration) -> frozenset[str]:
    """Return what a tool has to do with: the words of its name, and of how its description begins."""
    name, said = words_of(declaration.name[:_LONGEST_NAME]), declaration.description[:_ABOUT].lower()
    return frozenset((*name, *_WORD.findall(said.split("\n\n", 1)[0])))


def _parameters(schema: Any) -> Iterator[Parameter]:
    left: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    room = _MOST_PARAMETERS
    while left and room > 0:
        path, value = left.pop()
        properties = value.get("properties") if isinstance(value, Mapping) else None
        if not isinstance(properties, Mapping):
            continue
        for name, one in islice(properties.items(), room):
            room -= 1
            said = one.get("description") if isinstance(one, Mapping) else None
            place = (*path, str(name)) if len(path) < 8 else path
            yield Parameter(place, str(name), said if isinstance(said, str) else "")
            if isinstance(one, Mapping):
                left += ((place, inner) for inner in (one, one.get("items")) if isinstance(inner, Mapping))
