"""What a client asks the model in one request, and what the model may do next, whatever the API."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Offered", "Reply", "Step", "Turn", "marked", "plain_text"]

_MARK: Final = re.compile(r"\[lab:(\d+)\]")


def marked(number: int) -> str:
    """Return the mark that a tool's description carries, by which its shown name is led back to the tool."""
    return f"[lab:{number}]"


@dataclass(frozen=True, kw_only=True)
class Offered:
    """One tool as a client offers it to the model. ``namespace``: only OpenAI Responses has it."""

    name: str
    namespace: str | None = None
    description: str = ""
    deferred: bool = False

    @property
    def mark(self) -> int | None:
        """The number in the description; None for the client's own tools."""
        found = _MARK.search(self.description)
        return None if found is None else int(found[1])

    @property
    def shown(self) -> str:
        """Namespace and name with a dot between, as the dialect table writes it."""
        return self.name if self.namespace is None else f"{self.namespace}.{self.name}"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One request of a client, read from its API's own form.

    ``results`` are what the client reports of earlier calls, in order; ``history`` the names of those calls as the
    client repeats them; ``text`` everything else that the model would read.
    """

    model: str = ""
    tools: tuple[Offered, ...] = ()
    results: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    text: str = ""
    streaming: bool = False


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that the model does: a tool call, a search in deferred tools, or a program (Codex's code mode).

    ``mark``: the tool that is meant; ``probe``: what a wrong name tries. ``number`` is its place in the plan. Where a
    call goes through another tool or a program, ``means`` is the name inside it.
    """

    kind: Literal["call", "search", "code"] = "call"
    name: str
    namespace: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    mark: int | None = None
    probe: str | None = None
    means: str | None = None
    number: int = 0

    @property
    def sent_name(self) -> str:
        """The name that is called, as `Offered.shown` has it."""
        return self.name if self.namespace is None else f"{self.namespace}.{self.name}"

    @property
    def shown(self) -> str:
        """The name of the tool that is meant."""
        return self.means or self.sent_name

    def numbered(self, number: int) -> Step:
        """Return the step with its place in the plan, also where its arguments or program say ``NUMBER``."""
        arguments = json.loads(json.dumps(dict(self.arguments)).replace("NUMBER", str(number)))
        return replace(self, number=number, arguments=arguments, code=self.code.replace("NUMBER", str(number)))

    @property
    def sent(self) -> Mapping[str, Any]:
        """The arguments of the call: unless the step has its own, the number by which servers' notes are matched."""
        return self.arguments or {"q": f"k{self.number}"}

    @property
    def call_id(self) -> str:
        """The id of the call; the same when a client repeats a request."""
        return f"call_lab{self.number}"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer: one JSON document, or the events of a stream as (event name or "", content)."""

    document: Mapping[str, Any] | None = None
    events: tuple[tuple[str, Mapping[str, Any] | str], ...] = ()


def plain_text(content: Any) -> str:
    """Return the text of what the APIs call content: a text, a list of parts, or anything else as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return json.dumps(content, ensure_ascii=False)


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    text = part.get("text") or part.get("output")
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)
