"""Continue recorded conversations after a rename, or with another provider."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from truename import ToolId, dialects, resolve
from truename.adapters import anthropic, bedrock, gemini, openai_chat, openai_responses
from truename.adapters.layout import NamespaceLayout
from truename.adapters.openai_chat import flat
from truename.adapters.reading import JsonObject, PayloadPlace, plain
from truename.adapters.turns import ConversationTurn, Text, ToolCall, ToolResult, as_text, merge_turns
from truename.errors import InvalidPayload, ResolutionError, excerpt
from truename.identity import LookupKey, digest_of, fold, lookup_key, qualified_name, required_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from truename import NameTable
    from truename.adapters.turns import HistoryMention, Part, Role

__all__ = ["CALL_IDS", "CallIds", "RewrittenHistory", "rewrite"]

# OpenAI's chat refused ids of more than 40 characters, its other APIs of more than 64 (error "string too long").
# Anthropic and Bedrock document their patterns; Bedrock's own pattern (with "." and ":") is wider than that of its
# models.
CALL_IDS: Final[Mapping[str, re.Pattern[str]]] = {
    "openai_chat": re.compile(r"[\x20-\x7e]{1,40}"),
    "openai_responses": re.compile(r"[\x20-\x7e]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "gemini": re.compile(r"[\x20-\x7e]{1,128}"),
    "bedrock": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
}
_SPELLED: Final = "tn-e-"
_DIGEST: Final = "tn-h-"
_CALL_IDS_OUTSIDE: Final = re.compile(rb"[^a-zA-Z0-9-]")
_ESCAPE: Final = re.compile(rb"_(_|[0-9a-f]{2})")
_ESCAPED: Final = re.compile(r"(?:[a-zA-Z0-9-]|__|_[0-9a-f]{2})+")


class CallIds:
    """The call ids of one conversation, converted for one API; ``record`` maps each changed id to the original.

    >>> CallIds("anthropic").carried("functions.get:0")
    'tn-e-functions_2eget_3a0'
    """

    def __init__(self, api: str, record: Mapping[str, str] | None = None) -> None:
        """Bind to an API; ``record`` is that of an earlier conversion, which is reversed if possible."""
        self._legal = CALL_IDS[api].fullmatch
        self._former = dict(record or {})
        self.record: dict[str, str] = {}

    def carried(self, call_id: str) -> str:
        """Return the id of the call in this API; different ids stay different."""
        carried = self._carried(call_id)
        if carried != call_id:
            self.record[carried] = call_id
        return carried

    def _carried(self, call_id: str) -> str:
        former = self._former.get(call_id) or _read(call_id)
        if former is not None and self._legal(former) and not former.startswith((_SPELLED, _DIGEST)):
            return former
        if self._legal(call_id):
            return call_id
        raw = call_id.encode("utf-8", "surrogatepass")
        escaped = _CALL_IDS_OUTSIDE.sub(lambda found: b"__" if found[0] == b"_" else b"_%02x" % found[0][0], raw)
        spelled = _SPELLED + escaped.decode()
        return spelled if self._legal(spelled) else _DIGEST + hashlib.sha256(raw).hexdigest()[:32]


def _read(call_id: str) -> str | None:
    """Decode an id that this module encoded; None for any other id."""
    text = call_id.removeprefix(_SPELLED)
    if text == call_id or not _ESCAPED.fullmatch(text):
        return None
    plain = _ESCAPE.sub(lambda found: b"_" if found[1] == b"_" else bytes((int(found[1], 16),)), text.encode())
    try:
        return plain.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


_GONE: Final = re.compile(r"gone_[0-9a-f]{10,64}(?:_[a-z0-9_]+)?")
_RENAMING_OUTSIDE: Final = re.compile(r"[^a-z0-9_]+")
_DIGITS: Final = (10, 16, 24)
_TAIL: Final = 24


class HistoryRenaming:
    """A mapping from the key of a recorded call to its tool, and from the tool to its key now."""

    def __init__(self, then: NamespaceLayout, now: NamespaceLayout, dialect: str) -> None:
        self._then, self._now = then, now
        self._rules = dialects.get(dialect)

    def tool(self, name: str, namespace: str | None) -> ToolId | None:
        """Return the tool of a recorded call; None if its name belonged to no tool."""
        key = lookup_key(name, namespace)
        if key is not None and (found := self._then.ids.get(key)) is not None:
            return found
        if key is None or key.kind == "namespaced":
            return None
        try:
            found = resolve(name, self._then.names).id
            return found if found is not None and self._then.is_meant(name, found) else None
        except ResolutionError as error:
            # A tool that existed and left is known by its id, which the ledger keeps.
            absent: ToolId | None = getattr(error, "id", None)
            return absent

    def key(self, id: ToolId | None, name: str, namespace: str | None) -> LookupKey:
        """Return the tool's key now, or a legal name for the recorded call that no other tool ever has."""
        if id is not None and id in self._now.keys:
            return self._now.keys[id]
        return required_key(self._held(id) or self._kept(id, name, namespace))

    def is_present(self, id: ToolId | None) -> bool:
        """Return whether the tool can be called now."""
        return id is not None and id in self._now.keys

    def _held(self, id: ToolId | None) -> str | None:
        """Return the name that the ledger holds for the tool and gives to no other."""
        table = self._now.names
        if id is None or table.ledger is None:
            return None
        # Any table will do: a name belongs to its tool in all of them.
        shown = (table.ledger.held(names.dialect.name).get(id) for names in (table, self._then.names))
        return next((name for name in shown if name and name not in table.exact and not self._rules.check(name)), None)

    def _kept(self, id: ToolId | None, name: str, namespace: str | None) -> str:
        taken = self._now.names.exact
        if _GONE.fullmatch(name) and not self._rules.check(name) and name not in taken:
            return name
        tail = _RENAMING_OUTSIDE.sub("_", fold(name))[:_TAIL].strip("_")
        text = str(id) if id is not None else f"{namespace or ''}\0{name}"
        made = (f"gone_{digest_of(text, digits)}{tail and '_'}{tail}" for digits in _DIGITS)
        return next((one for one in made if one not in taken), f"gone_{digest_of(text, 40)}")


def display_name(name: str, namespace: str | None) -> str:
    """Return the key of a recorded call as a text for people."""
    return qualified_name(name, namespace) or name


ApiName = Literal["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"]


class _Recorded(NamedTuple):
    module: ModuleType
    dialect: str
    has_system: bool
    joined: tuple[Role, ...]


# The key of a call to a tool of another kind, whose name is not changed.
_OTHER: Final = required_key("other")
_ALTERNATING: Final[tuple[Role, ...]] = ("user", "assistant")
APIS: Final[Mapping[str, _Recorded]] = MappingProxyType(
    {
        "openai_chat": _Recorded(openai_chat, openai_chat.DIALECT, has_system=True, joined=("assistant",)),
        "openai_responses": _Recorded(
            openai_responses, openai_responses.DIALECT, has_system=True, joined=("assistant",)
        ),
        "anthropic": _Recorded(anthropic, anthropic.DIALECT, has_system=False, joined=_ALTERNATING),
        "gemini": _Recorded(gemini, gemini.DIALECT, has_system=False, joined=_ALTERNATING),
        "bedrock": _Recorded(bedrock, bedrock.DIALECT, has_system=False, joined=_ALTERNATING),
    }
)


@dataclass(frozen=True, slots=True)
class HistoryNotice:
    """A warning about a part of the conversation that changed.

    ``absent``: the tool does not exist now; ``unknown``: the name belonged to no tool; ``open``: a call without a
    result; ``dropped``: content that only the former API has; ``moved``: a system text that was not at the beginning.
    """

    code: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call of the conversation: its id now and before, its tool (None if unknown), and whether it has a result."""

    call_id: str
    former_id: str
    id: ToolId | None
    key: LookupKey
    is_answered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenHistory:
    """The rewritten conversation.

    ``system`` is the system text for APIs that have a separate field for it. ``ids`` maps changed call ids to the
    former ones: pass it to `rewrite` on the way back to restore ids that cannot be decoded.
    """

    messages: list[JsonObject]
    system: str | None = None
    calls: tuple[PastCall, ...] = ()
    ids: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[HistoryNotice, ...] = ()


def rewrite(
    messages: object,
    from_api: ApiName,
    to_api: ApiName,
    names_then: NameTable | NamespaceLayout,
    names_now: NameTable | NamespaceLayout,
    *,
    system: str | None = None,
    ids: Mapping[str, str] | None = None,
) -> RewrittenHistory:
    """Rewrite a recorded conversation with current names, and with the ids and message formats of the target API.

    ``messages`` is the value of ``messages``, ``input`` or ``contents``: dictionaries or the provider's own typed
    objects, which are copied and never changed. A call whose tool no longer exists, or whose name never belonged to a
    tool, gets a legal name that no tool has, and a notice.

    Raises `InvalidPayload` with the path to a part that is missing, of the wrong type, repeated, unknown or not
    supported by the other API. Raises `KeyError` for an unknown API.

    >>> from truename import Catalog, project
    >>> then = project(Catalog.of("fs@1/list@1"), "openai", style="dotted-double")
    >>> now = project(Catalog.of("fs@1/list@1"), "bedrock-converse")
    >>> call = {"id": "call:1", "type": "function", "function": {"name": "list", "arguments": "{}"}}
    >>> told = rewrite([{"role": "assistant", "tool_calls": [call]}], "openai_chat", "bedrock", then, now)
    >>> told.messages[0]["content"]
    [{'toolUse': {'toolUseId': 'tn-e-call_3a1', 'name': 'fs_list', 'input': {}}}]
    """
    now = NamespaceLayout.of(names_now) if to_api == "openai_responses" else flat(names_now)
    run = _Run(APIS[from_api], APIS[to_api], HistoryRenaming(NamespaceLayout.of(names_then), now, APIS[to_api].dialect))
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    if not isinstance(given, list | tuple):
        raise InvalidPayload(field="messages", problem=f"is of type {type(given).__name__}, not a list")
    copies = plain(given, InvalidPayload, "messages")
    places = [PayloadPlace.of(copy, f"messages[{number}]", InvalidPayload) for number, copy in enumerate(copies)]
    if from_api == "gemini":
        gemini.add_missing_ids(places)
    calls = run.bind(list(run.source.module.history_mentions(places)), CallIds(to_api, ids))
    if from_api == to_api:
        if from_api == "gemini":
            gemini.remove_made_ids(places)
        made, text = [place.value for place in places], system
    else:
        made, text = run.translate(places, system)
    changed = {call.call_id: call.former_id for call in calls if call.call_id != call.former_id}
    return RewrittenHistory(messages=made, system=text, calls=calls, ids=changed, notices=tuple(run.notices))


class _Run:
    """The state of one rewriting: the calls found so far, and the notices."""

    def __init__(self, source: _Recorded, target: _Recorded, renaming: HistoryRenaming) -> None:
        self.source, self.target = source, target
        self.notices: list[HistoryNotice] = []
        self._renaming = renaming
        self._calls: dict[str, PastCall] = {}

    def tell(self, code: str, where: str, text: str) -> None:
        """Add a notice."""
        self.notices.append(HistoryNotice(code, where, f"{where} {text}"))

    def bind(self, mentions: Sequence[HistoryMention], ids: CallIds) -> tuple[PastCall, ...]:
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

    def _answered(self, mentions: Sequence[HistoryMention]) -> set[str]:
        asked, answered = set[str](), set[str]()
        for mention in mentions:
            if mention.kind == "reference":
                continue
            seen = asked if mention.kind == "call" else answered
            if mention.call_id in seen:
                mention.place.wrong(mention.id_key, f"is {excerpt(mention.call_id)}, which is repeated")
            if mention.kind == "result" and mention.call_id not in asked:
                mention.place.wrong(
                    mention.id_key, f"is {excerpt(mention.call_id)}, which is not the id of an earlier call"
                )
            seen.add(mention.call_id)
        return answered

    def _bind_call(self, mention: HistoryMention, ids: CallIds, taken: dict[str, str], is_answered: bool) -> None:
        former = mention.call_id
        carried = ids.carried(former)
        if taken.setdefault(carried, former) != former:
            mention.place.wrong(
                mention.id_key, f"is {excerpt(former)}, which becomes the same id as {excerpt(taken[carried])}"
            )
        id, key = self._rename(mention)
        self._calls[former] = PastCall(call_id=carried, former_id=former, id=id, key=key, is_answered=is_answered)
        mention.put_id(carried)
        if not is_answered:
            self.tell("open", mention.place.where, "has no result yet; APIs require one before the next message")

    def _rename(self, mention: HistoryMention) -> tuple[ToolId | None, LookupKey]:
        name, namespace = mention.name or "", mention.namespace
        if mention.named is None:
            return None, _OTHER
        id = self._renaming.tool(name, namespace)
        key = self._renaming.key(id, name, namespace)
        if not self._renaming.is_present(id):
            text = f"names {excerpt(display_name(name, namespace))}, which " + (
                "is not the name of a tool" if id is None else f"is {id}, which does not exist now"
            )
            self.tell("unknown" if id is None else "absent", mention.place.where, f"{text}; it is kept as {key.name}")
        mention.put_key(key)
        return id, key

    def translate(self, places: Sequence[PayloadPlace], system: str | None) -> tuple[list[JsonObject], str | None]:
        """Return the messages in the format of the other API, and the system text if that API has a separate field."""
        told = [ConversationTurn("system", (Text(system),), "system")] if system else []
        turns = [
            replace(turn, parts=tuple(map(self._named, turn.parts)))
            for turn in (*told, *self.source.module.read_history(places, self.tell))
        ]
        text = None if self.target.has_system else self._system(turns)
        kept = [turn for turn in turns if self.target.has_system or turn.role != "system"]
        made = [message for turn in merge_turns(kept, self.target.joined) for message in self._written(turn)]
        return made, text

    def _named(self, part: Part) -> Part:
        # The copies already have the new ids and names; flat formats have no namespace field.
        if isinstance(part, ToolCall):
            key = self._calls[part.call_id].key
            return replace(part, name=key.name, namespace=key.call_namespace)
        if isinstance(part, ToolResult):
            return replace(part, name=self._calls[part.call_id].key.name)
        return part

    def _system(self, turns: Sequence[ConversationTurn]) -> str | None:
        begun = False
        texts: list[str] = []
        for turn in turns:
            if turn.role != "system":
                begun = True
                continue
            if begun:
                self.tell("moved", turn.where, "is a system text that was moved to the beginning")
            texts += (as_text(part) for part in turn.parts if isinstance(part, Text))
        return "\n\n".join(texts) or None

    def _written(self, turn: ConversationTurn) -> Iterator[JsonObject]:
        try:
            yield from self.target.module.write_turn(turn)
        except InvalidPayload as error:
            raise InvalidPayload(
                field=turn.where, problem=f"has content that this API does not support: it {error.problem}"
            ) from error
