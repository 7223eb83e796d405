"""What a person is shown who decides on a call, and how the answer is read; all of it is a server's or model's text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.conventions.characters import INVISIBLE
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.policy.approval_validity import Scope
    from truename.trust.approval_queue import PendingCall

__all__ = ["DECISIONS", "QUESTION", "Answer", "answer_in", "form_of", "shown_arguments"]

QUESTION: Final = "elicitation/create"
_DENY: Final = "deny"
DECISIONS: Final[Mapping[Scope, str]] = {
    "call": "allow once",
    "arguments": "allow with these arguments",
    "session": "allow for this session",
    "always": "always allow",
}
_SCOPES: Final[Mapping[str, Scope]] = {text: scope for scope, text in DECISIONS.items()}
_PLAIN: Final = re.compile(r"[\w.$-]+")
_MOST_LINES: Final = 30
_LONGEST_KEY: Final = 60
_LONGEST_VALUE: Final = 400
_LONGEST: Final = 4_000


class Answer(NamedTuple):
    """What somebody answered: yes for a scope, or no (``scope`` is ``call`` then)."""

    approved: bool
    scope: Scope


def shown_arguments(arguments: Mapping[str, Any]) -> str:
    r"""Return arguments for a person, one a line: nothing in them can break out of its line, or hide.

    What is cut is said, at the end of its line and of the text: who reads knows that there is more.

    >>> shown_arguments({"to": "a\u202eb", "n": [1, 2.5]})
    'to: "a\\u202eb"\nn: [1, 2.5]'
    >>> shown_arguments({})
    'none'
    """
    lines: list[str] = []
    room = _LONGEST
    for key, value in arguments.items():
        line = f"{_cut(_name(key), _LONGEST_KEY)}: {_cut(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)}"
        if len(lines) >= _MOST_LINES or len(line) > room:
            lines.append(f"... {len(arguments) - len(lines):,} more of {len(arguments):,} arguments are not shown.")
            break
        lines.append(line)
        room -= len(line)
    return "\n".join(lines) or "none"


def _name(key: str) -> str:
    """Return a key as it is, or in quotes where it could be read as a key with its value, or not be seen."""
    return key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _written(text: str, limit: int) -> str:
    """Return text in which what nobody sees is written out: also letters that are blank, and selectors."""
    return INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], printable(text, limit))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return _written(text, limit)
    # The end counts as much as the beginning: what matters may be moved out of sight.
    head, tail = text[: limit * 2 // 3], text[-limit // 3 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{_written(head, limit)} [... {left_out:,} characters are not shown ...] {_written(tail, limit)}"


def form_of(one: PendingCall) -> dict[str, Any]:
    """Return the parameters of the elicitation: what is called, of which server, with what, and why it is asked."""
    about = one.subject
    why = f"\nReason: {printable(one.reason, 300)}" if one.reason else ""
    rule = f" (rule {printable(one.rule, 100)})" if one.rule else ""
    message = (
        f"A call needs your decision: {about.id}\n"
        f"Server: {_written(about.server, 100)}, tool: {_written(about.name, 200)}{rule}{why}\n"
        f"Arguments:\n{one.arguments}"
    )
    return {"message": message, "requestedSchema": _schema(one.scopes)}


def _schema(scopes: Sequence[Scope]) -> dict[str, Any]:
    words = [*(DECISIONS[scope] for scope in scopes), _DENY]
    decision = {"type": "string", "title": "Decision", "description": "The decision on the call.", "enum": words}
    return {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}


def answer_in(answer: object, scopes: Sequence[Scope]) -> Answer | None:
    """Read what a client answered; None where that decides nothing: it was closed, or says what was not offered.

    >>> answer_in({"action": "accept", "content": {"decision": "allow once"}}, ["call", "always"])
    Answer(approved=True, scope='call')
    >>> answer_in({"action": "decline"}, ["call"])
    Answer(approved=False, scope='call')
    >>> answer_in({"action": "accept", "content": {"decision": "allow for this session"}}, ["call", "always"])
    """
    if not isinstance(answer, Mapping):
        return None
    if answer.get("action") == "decline":
        return Answer(approved=False, scope="call")
    content = answer.get("content")
    word = content.get("decision") if isinstance(content, Mapping) and answer.get("action") == "accept" else None
    if word == _DENY:
        return Answer(approved=False, scope="call")
    scope = _SCOPES.get(word) if isinstance(word, str) else None
    return Answer(approved=True, scope=scope) if scope in scopes and scope is not None else None
