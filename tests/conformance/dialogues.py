"""Tools and prompts that ask the client something before they answer, in whichever way its era has for that.

In the handshake eras a question is a request from the server to the client while the call runs. In the stateless era
it is an ``input_required`` result, and the client calls again with the answers; what was answered in earlier rounds
comes back in ``requestState``, which the server's middleware seals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.conformance.contents import text

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, GetPromptRequestParams

__all__ = ["Answers", "Dialogue", "Round", "answer_text", "elicit", "roots", "sample"]

Question = ElicitRequest | CreateMessageRequest | ListRootsRequest
Round = Mapping[str, Question]
Answers = Mapping[str, dict[str, Any]]

# Which capability a question needs, and what its answer is.
_NEEDS: Final[Mapping[type[Question], str]] = {
    ElicitRequest: "elicitation",
    CreateMessageRequest: "sampling",
    ListRootsRequest: "roots",
}
_ANSWER: Final[Mapping[type[Question], type[ElicitResult | CreateMessageResult | ListRootsResult]]] = {
    ElicitRequest: ElicitResult,
    CreateMessageRequest: CreateMessageResult,
    ListRootsRequest: ListRootsResult,
}


def elicit(message: str, required: tuple[str, ...] = (), **properties: Any) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str, max_tokens: int = 100) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text(prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))


def roots() -> ListRootsRequest:
    return ListRootsRequest()


def answer_text(answer: Mapping[str, Any]) -> str:
    """What was answered, whatever was asked."""
    if "action" in answer:
        return f"action={answer['action']}, content={json.dumps(answer.get('content') or {})}"
    if "roots" in answer:
        return ", ".join(root["uri"] for root in answer["roots"])
    content = answer.get("content")
    return content["text"] if isinstance(content, dict) and "text" in content else json.dumps(content)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Questions in rounds, told by the arguments, and what is made of the answers.

    A dialogue with ``state`` takes answers only together with the state that it gave out.
    """

    ask: Callable[[Mapping[str, Any]], tuple[Round, ...]]
    conclude: Callable[[Answers], str]
    state: bool = False

    async def hold(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams | GetPromptRequestParams
    ) -> str | InputRequiredResult:
        """Return the conclusion, or what the client has to answer first.

        Raises `MCPError` for a client that can answer nothing of a round.
        """
        rounds = tuple(_answerable(one, _capabilities(context)) for one in self.ask(params.arguments or {}))
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._continue(rounds, params)
        return self.conclude(await _asked_now(context, rounds))

    def _continue(
        self, rounds: tuple[Round, ...], params: CallToolRequestParams | GetPromptRequestParams
    ) -> str | InputRequiredResult:
        answers: dict[str, dict[str, Any]] = json.loads(params.request_state) if params.request_state else {}
        given = (params.input_responses or {}) if params.request_state or not self.state else {}
        for one in rounds:
            for key, question in one.items():
                if isinstance(answer := given.get(key), _ANSWER[type(question)]):
                    answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
            if missing := {key: question for key, question in one.items() if key not in answers}:
                return InputRequiredResult(
                    input_requests=dict(missing), request_state=json.dumps(answers) if self.state else None
                )
        return self.conclude(answers)


async def _asked_now(context: ServerRequestContext[Any, Any], rounds: tuple[Round, ...]) -> Answers:
    related = ServerMessageMetadata(related_request_id=context.request_id)
    return {
        key: (await context.session.send_request(question, _ANSWER[type(question)], metadata=related)).model_dump(
            by_alias=True, mode="json", exclude_none=True
        )
        for one in rounds
        for key, question in one.items()
    }


def _capabilities(context: ServerRequestContext[Any, Any]) -> ClientCapabilities:
    return context.session.client_capabilities or ClientCapabilities()


def _answerable(one: Round, capabilities: ClientCapabilities) -> Round:
    able = {key: question for key, question in one.items() if getattr(capabilities, _NEEDS[type(question)]) is not None}
    if able:
        return able
    needed: dict[str, dict[str, Any]] = {_NEEDS[type(question)]: {} for question in one.values()}
    raise MCPError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"This needs a client with {' and '.join(needed)}.",
        {"requiredCapabilities": needed},
    )
