"""Recorded conversations go on: after a rename, and under another provider.

Providers check what they are sent again: names in past calls have to be legal, ids have to fit, results have to stand
behind their calls. Under one API, names, namespaces and call ids are changed and nothing else is touched; on the way to
another API the messages are translated as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truename.adapters import anthropic as anthropic_api
from truename.adapters import bedrock as bedrock_api
from truename.adapters import gemini as gemini_api
from truename.adapters import openai_chat as chat_api
from truename.adapters import openai_responses as responses_api
from truename.adapters.call_ids import CallIds
from truename.adapters.layout import Layout
from truename.adapters.openai_chat import flat
from truename.adapters.reading import Place, plain
from truename.adapters.recorded import anthropic, bedrock, gemini, openai_chat, openai_responses
from truename.adapters.recorded.grouping import grouped
from truename.adapters.renaming import Renaming, shown_as
from truename.adapters.turns import Text, ToolCall, ToolResult, Turn, as_text
from truename.errors import InvalidPayload, excerpt
from truename.identity import LookupKey, required_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from truename import NameTable, ToolId
    from truename.adapters.recorded.mentions import Mention
    from truename.adapters.turns import Part, Role

__all__ = ["APIS", "ApiName", "Notice", "PastCall", "Rewritten", "rewrite"]

ApiName = Literal["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"]


class _Recorded(NamedTuple):
    module: ModuleType
    dialect: str
    has_system: bool
    joined: tuple[Role, ...]


# Stands in for the key of a call of a tool that is not ours: its name is not changed.
_OTHER: Final = required_key("other")
_ALTERNATING: Final[tuple[Role, ...]] = ("user", "assistant")
APIS: Final[Mapping[str, _Recorded]] = MappingProxyType(
    {
        "openai_chat": _Recorded(openai_chat, chat_api.DIALECT, has_system=True, joined=("assistant",)),
        "openai_responses": _Recorded(openai_responses, responses_api.DIALECT, has_system=True, joined=("assistant",)),
        "anthropic": _Recorded(anthropic, anthropic_api.DIALECT, has_system=False, joined=_ALTERNATING),
        "gemini": _Recorded(gemini, gemini_api.DIALECT, has_system=False, joined=_ALTERNATING),
        "bedrock": _Recorded(bedrock, bedrock_api.DIALECT, has_system=False, joined=_ALTERNATING),
    }
)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the rewriting could not carry as it was.

    ``absent``: the tool is not here now; ``unknown``: the name was no tool's; ``open``: a call without a result;
    ``dropped``: only the former API has it; ``moved``: a system text that did not stand at the beginning.
    """

    code: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call of the conversation: its id now and before, its tool (None: it was none), and whether it has a result."""

    call_id: str
    former_id: str
    id: ToolId | None
    key: LookupKey
    is_answered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The conversation as it goes on.

    ``system`` is the system text for APIs that have a field of their own for it. ``ids`` are the changed call ids, new
    to old: given to `rewrite` on the way back, they undo what can't be read off the ids themselves.
    """

    messages: list[dict[str, Any]]
    system: str | None = None
    calls: tuple[PastCall, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def rewrite(
    messages: object,
    from_api: ApiName,
    to_api: ApiName,
    names_then: NameTable | Layout,
    names_now: NameTable | Layout,
    *,
    system: str | None = None,
    ids: Mapping[str, str] | None = None,
) -> Rewritten:
    """Return a recorded conversation under the names, ids and message shapes with which it can go on.

    ``messages`` is what the API calls ``messages``, ``input`` or ``contents``: dictionaries or the provider's own typed
    objects, which are copied and never changed. A call of a tool that is gone, or of a name that never was a tool's,
    keeps a legal name that no other tool has, and is told.

    Raises `InvalidPayload` with the path to what is missing, of the wrong type, there twice or unknown, and for what
    the other API can't have. An API of another name is a `KeyError`.

    >>> from truename import Catalog, project
    >>> then = project(Catalog.of("fs@1/list@1"), "openai", style="dotted-double")
    >>> now = project(Catalog.of("fs@1/list@1"), "bedrock-converse")
    >>> call = {"id": "call:1", "type": "function", "function": {"name": "list", "arguments": "{}"}}
    >>> told = rewrite([{"role": "assistant", "tool_calls": [call]}], "openai_chat", "bedrock", then, now)
    >>> told.messages[0]["content"]
    [{'toolUse': {'toolUseId': 'tn-e-call_3a1', 'name': 'fs_list', 'input': {}}}]
    """
    now = Layout.of(names_now) if to_api == "openai_responses" else flat(names_now)
    run = _Run(APIS[from_api], APIS[to_api], Renaming(Layout.of(names_then), now, APIS[to_api].dialect))
    places = _places(messages)
    if from_api == "gemini":
        gemini.with_ids(places)
    calls = run.bind(list(run.source.module.mentions(places)), CallIds(to_api, ids))
    if from_api == to_api:
        if from_api == "gemini":
            gemini.without_made_ids(places)
        made, text = [place.value for place in places], system
    else:
        made, text = run.translate(places, system)
    changed = {call.call_id: call.former_id for call in calls if call.call_id != call.former_id}
    return Rewritten(messages=made, system=text, calls=calls, ids=changed, notices=tuple(run.notices))


def _places(messages: object) -> list[Place]:
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    if not isinstance(given, list | tuple):
        raise InvalidPayload(field="messages", problem=f"is of type {type(given).__name__}, not a list")
    copies = plain(given, InvalidPayload, "messages")
    return [Place.of(copy, f"messages[{number}]", InvalidPayload) for number, copy in enumerate(copies)]


class _Run:
    """One rewriting: what was found, and what is to be told."""

    def __init__(self, source: _Recorded, target: _Recorded, renaming: Renaming) -> None:
        self.source, self.target = source, target
        self.notices: list[Notice] = []
        self._renaming = renaming
        self._calls: dict[str, PastCall] = {}

    def tell(self, code: str, where: str, text: str) -> None:
        """Note something for the caller."""
        self.notices.append(Notice(code, where, f"{where} {text}"))

    def bind(self, mentions: Sequence[Mention], ids: CallIds) -> tuple[PastCall, ...]:
        """Bind each result to its call and each call to its tool; write the new names and ids into the copies."""
        answered = self._answered(mentions)
        taken: dict[str, str] = {}
        for mention in mentions:
            if mention.kind == "call":
                self._bind_call(mention, ids, taken, mention.call_id in answered)
            elif mention.kind == "reference":
                self._rename(mention)
        for mention in mentions:
            if mention.kind == "result":
                call = self._calls[mention.call_id]
                mention.put_id(call.call_id)
                mention.put_key(call.key)
        by_new_id = {call.call_id: call for call in self._calls.values()}
        self._calls = by_new_id
        return tuple(by_new_id.values())

    def _answered(self, mentions: Sequence[Mention]) -> set[str]:
        asked, answered = set[str](), set[str]()
        for mention in mentions:
            if mention.kind == "reference":
                continue
            seen = asked if mention.kind == "call" else answered
            if mention.call_id in seen:
                mention.place.wrong(mention.id_key, f"is {excerpt(mention.call_id)}, which stands there twice")
            if mention.kind == "result" and mention.call_id not in asked:
                mention.place.wrong(
                    mention.id_key, f"is {excerpt(mention.call_id)}, which is the id of no call before it"
                )
            seen.add(mention.call_id)
        return answered

    def _bind_call(self, mention: Mention, ids: CallIds, taken: dict[str, str], is_answered: bool) -> None:
        former = mention.call_id
        carried = ids.carried(former)
        if taken.setdefault(carried, former) != former:
            mention.place.wrong(mention.id_key, f"is {excerpt(former)}, which reads like {excerpt(taken[carried])}")
        id, key = self._rename(mention)
        self._calls[former] = PastCall(call_id=carried, former_id=former, id=id, key=key, is_answered=is_answered)
        mention.put_id(carried)
        if not is_answered:
            self.tell("open", mention.place.where, "has no result yet; an API wants one before anything else is said")

    def _rename(self, mention: Mention) -> tuple[ToolId | None, LookupKey]:
        name, namespace = mention.name or "", mention.namespace
        if mention.named is None:
            return None, _OTHER
        id = self._renaming.tool(name, namespace)
        key = self._renaming.key(id, name, namespace)
        if not self._renaming.is_present(id):
            text = f"names {excerpt(shown_as(name, namespace))}, which " + (
                "is no tool's name" if id is None else f"is {id}, and that is not here now"
            )
            self.tell("unknown" if id is None else "absent", mention.place.where, f"{text}; it stays as {key.name}")
        mention.put_key(key)
        return id, key

    def translate(self, places: Sequence[Place], system: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Return the messages in the shape of the other API, and the system text if it stands apart there."""
        told = [Turn("system", (Text(system),), "system")] if system else []
        turns = [self._complete(turn) for turn in (*told, *self.source.module.read(places, self.tell))]
        text = None if self.target.has_system else self._system(turns)
        kept = [turn for turn in turns if self.target.has_system or turn.role != "system"]
        made = [message for turn in grouped(kept, self.target.joined) for message in self._written(turn)]
        return made, text

    def _complete(self, turn: Turn) -> Turn:
        return replace(turn, parts=tuple(map(self._named, turn.parts)))

    def _named(self, part: Part) -> Part:
        # The copies already have the new ids and names; the namespace stands in none of the flat shapes.
        if isinstance(part, ToolCall):
            key = self._calls[part.call_id].key
            return replace(part, name=key.name, namespace=key.call_namespace)
        if isinstance(part, ToolResult):
            return replace(part, name=self._calls[part.call_id].key.name)
        return part

    def _system(self, turns: Sequence[Turn]) -> str | None:
        begun = False
        texts: list[str] = []
        for turn in turns:
            if turn.role != "system":
                begun = True
                continue
            if begun:
                self.tell("moved", turn.where, "is a system text that stands at the beginning now")
            texts += (as_text(part) for part in turn.parts if isinstance(part, Text))
        return "\n\n".join(texts) or None

    def _written(self, turn: Turn) -> Iterator[dict[str, Any]]:
        try:
            yield from self.target.module.write(turn)
        except InvalidPayload as error:
            raise InvalidPayload(
                field=turn.where, problem=f"has something that can't be carried: it {error.problem}"
            ) from error
