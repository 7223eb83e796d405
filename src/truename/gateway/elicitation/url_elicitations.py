"""Servers that refuse a call until their user has opened an address (error -32042, which 2025-11-25 alone has).

A client that can open addresses gets the error, or in 2026-07-28, which has it no more, a question. Any other gets a
text that its model can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.gateway.elicitation.attribution import attributed, refusal, shown
from truename.gateway.elicitation.input_requests import INPUT_REQUIRED, can_answer
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import URL_ELICITATION_REQUIRED
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.elicitation.router import Asker

__all__ = ["is_required", "required", "without_visits"]

_QUESTION: Final = "elicitation/create"
_KEY: Final = "dev.truename/url-"
_ANSWERS: Final = "inputResponses"
_MOST: Final = 8
# What may be answered with a question (2026-07-28).
_ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


def is_required(error: MCPError) -> bool:
    """Tell whether a server refuses a request until an address was opened."""
    return error.code == URL_ELICITATION_REQUIRED


def required(server: str, method: str, error: MCPError, asker: Asker) -> dict[str, Any]:
    """Return the question for a client of the stateless era.

    Raises `MCPError` for a client of the handshake eras that can open addresses, and `UpstreamError` (question) for one
    that cannot, and for addresses that nobody is sent to.
    """
    pages = _pages(error)
    for page in pages:
        if (problem := refusal(_QUESTION, page)) is not None:
            raise _refused(server, problem)
    asked = [attributed(server, _QUESTION, page) or {} for page in pages]
    if (
        not asked
        or not can_answer(asker.able, _QUESTION, {"mode": "url"})
        or (asker.is_modern and method not in _ASKING)
    ):
        raise _unable(server, error, pages)
    if not asker.is_modern:
        raise MCPError(error.code, error.message, {**error.data, "elicitations": asked}) from error
    # What completes there is told to nobody in 2026-07-28.
    questions = [{key: one for key, one in page.items() if key != "elicitationId"} for page in asked]
    requests = {f"{_KEY}{number}": {"method": _QUESTION, "params": one} for number, one in enumerate(questions, 1)}
    return {"resultType": INPUT_REQUIRED, "inputRequests": requests}


def without_visits(server: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a call that is made again, without what the client says of addresses.

    Raises `UpstreamError` (question) where the user did not want to open one.
    """
    answers = params.get(_ANSWERS)
    if not isinstance(answers, dict) or not any(str(key).startswith(_KEY) for key in answers):
        return params
    own = {key: one for key, one in answers.items() if str(key).startswith(_KEY)}
    if any(not isinstance(one, dict) or one.get("action") != "accept" for one in own.values()):
        raise _refused(server, "needs the user to open an address first, which the user declined")
    others = {key: one for key, one in answers.items() if key not in own}
    rest = {key: one for key, one in params.items() if key != _ANSWERS}
    return {**rest, _ANSWERS: others} if others else rest


def _pages(error: MCPError) -> list[dict[str, Any]]:
    found = error.data.get("elicitations") if isinstance(error.data, dict) else None
    pages = found[:_MOST] if isinstance(found, list) else []
    return [{"mode": "url", **page} for page in pages if isinstance(page, dict)]


def _unable(server: str, error: MCPError, pages: list[dict[str, Any]]) -> UpstreamError:
    told = "; ".join(f"{page['url']} ({printable(page['message'], 200)})" for page in pages)
    if not told:
        return _refused(
            server, f"needs the user to open an address first, but sent none ({printable(error.message, 200)})"
        )
    return UpstreamError(
        server=server,
        kind="question",
        problem=f"needs the user to open an address first, which this client does not support: {told}",
        remedy=f"Nothing was run. Tell the user that server {shown(server)} asks for it, and call again afterwards.",
    )


def _refused(server: str, problem: str) -> UpstreamError:
    return UpstreamError(server=server, kind="question", problem=problem, remedy="Nothing was run.")
