"""Forwarding: a client's request is sent to one server, under the client's own words for what is asked meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.errors import InvalidCall
from truename.gateway.calls.logins import finish_login, log_in, login_answer, renew_login
from truename.gateway.elicitation.input_requests import INPUT_REQUIRED, attributed_questions, own_answers, with_answers
from truename.gateway.elicitation.owned import StateOwner
from truename.gateway.elicitation.router import Asker
from truename.gateway.elicitation.url_elicitations import is_required, required, without_visits
from truename.gateway.mcp.requests import is_from_app_host
from truename.gateway.protocol.app_capability import with_apps
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import whole
from truename.gateway.protocol.writable import unwritable
from truename.gateway.trust.decisions import behind
from truename.gateway.upstream.logs import own_level, with_level
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from truename.gateway.elicitation.program_runs import ProgramRun
    from truename.gateway.mcp.requests import Request
    from truename.gateway.upstream.known import Before
    from truename.gateway.upstream.upstream import Upstream

    Raw = dict[str, Any]

__all__ = ["forward"]


def forward(
    request: Request,
    upstream: Upstream,
    method: str,
    params: Mapping[str, Any],
    *,
    definition: str = "",
    task: tuple[str, str] | None = None,
    repeatable: bool | None = None,
    before: Before | None = None,
    run: ProgramRun | None = None,
) -> Awaitable[Raw]:
    """Send a request on this client's behalf; awaited, it returns the raw result.

    ``definition`` is a digest of the definition of the tool. ``task`` is the one for whose result it asks: the server's
    own id, and the one that the client knows.
    ``repeatable`` says whether it may be sent again; None leaves that to the server's entry. ``before`` looks at the
    server whenever something is about to be sent to it, and raises what is raised here then. ``run`` is the run of the
    program that it is for, and is told the one that it reached.
    A question of the server meanwhile goes to this client (`asking`); so does a login that the server needs first.
    Raises `UpstreamError`, `InvalidCall` for what no server could read, `MCPError` for errors that the server itself
    sends, and `OtherRunError`.
    """
    sending = _Sending(request, upstream, method, task=task, repeatable=repeatable, before=before)
    sending.definition = definition
    sending.asker.run = run or sending.asker.run
    return sending.forward(params)


class _Sending:
    """One request on its way to a server: whose it is, and over which connection it goes."""

    def __init__(
        self,
        request: Request,
        upstream: Upstream,
        method: str,
        *,
        task: tuple[str, str] | None,
        repeatable: bool | None,
        before: Before | None,
    ) -> None:
        self._request = request
        self._upstream = upstream
        self._method = method
        self._before = before
        self.definition = ""
        self.asker = Asker(request, upstream.settings, upstream.key)
        self.asker.task, self.asker.repeatable = task, repeatable
        self._target = upstream
        self._is_stateless = False

    async def forward(self, params: Mapping[str, Any]) -> Raw:
        """Send the request, after a login if the server needs one first."""
        request, upstream = self._request, self._upstream
        if (problem := unwritable(params, upstream.settings.max_depth)) is not None:
            raise InvalidCall(field="params", problem=problem)
        with upstream.running:
            await upstream.awake()
            answer, params = login_answer(params)
            if answer is not None:
                await finish_login(request, upstream, answer)
            renew_login(request, upstream)
            try:
                return await self.send(params)
            except UpstreamError as error:
                if answer is not None:
                    raise
                # A server that needs a login has run nothing, so the request can be sent again.
                asked = await log_in(request, upstream, self._method, params, error)
            if asked is not None:
                return asked
            renew_login(request, upstream)
            return await self.send(params)

    async def send(self, params: Mapping[str, Any]) -> Raw:
        """Send the request, and as long as its server asks something of a client with a session, send it again."""
        request, upstream, asker = self._request, self._upstream, self.asker
        said = without_visits(upstream.key, params)
        self._target = await _connection(request, upstream, asker)
        session = self._target.session or upstream.session
        self._is_stateless = session is not None and session.modern
        if self._is_stateless:
            said = with_level(request, said)
        # A state is one that the gateway gave: going on with a call must never begin another.
        may_be_suspended = asker.is_modern and bool(asker.able or "requestState" in said)
        try:
            if may_be_suspended and not self._is_stateless and upstream.suspended is not None:
                # Who comes back for the call may write its arguments in another way.
                said = whole(said)
                target = upstream.key, self._method, principal_of(request).key
                return await upstream.suspended.call(asker, target, said, self._sent)
            if asker.is_modern and self._is_stateless:
                owner = self._state_owner()
                return await owner.given(said, await self._sent(await owner.taken_back(said)))
            result = await self._sent(said)
            if asker.is_modern or result.get("resultType") != INPUT_REQUIRED:
                return result
            return await with_answers(request, upstream.key, upstream.settings, said, result=result, send=self._sent)
        except MCPError as error:
            if not is_required(error):
                raise
            return required(upstream.key, self._method, error, asker)

    def _state_owner(self) -> StateOwner:
        upstream = self._upstream
        place = upstream.key, behind(upstream.config), self._method, self.definition
        states, lasts = upstream.states, upstream.settings.answer_timeout
        return StateOwner(states, principal_of(self._request), *place, lasts=lasts)

    async def _sent(self, params: Mapping[str, Any]) -> Raw:
        """Send it once. A suspended call goes on when the client's request is over, so it is counted by itself."""
        asker, target = self.asker, self._target
        wants_progress = "progressToken" in (params.get("_meta") or {})
        with self._upstream.running, target.running:
            result = await target.request(
                self._method,
                own_answers(params),
                capabilities=_declared(self._request, asker),
                on_progress=asker.report_progress if wants_progress else None,
                asker=asker,
                before=self._before,
            )
        return attributed_questions(self._upstream.key, result) if self._is_stateless else result


def _declared(request: Request, asker: Asker) -> Mapping[str, Any]:
    """Return what a server of the stateless era is told of the client, whatever era that is of."""
    return with_apps(asker.able) if not asker.is_modern and is_from_app_host(request) else asker.able


async def _connection(request: Request, upstream: Upstream, asker: Asker) -> Upstream:
    """Return the connection to the server that a request goes over.

    To a server that speaks both eras that is one in the era of a client that can be asked something: many servers can
    ask in the way of that era only.
    """
    asks = upstream.session is not None and upstream.session.modern and not asker.is_modern and asker.may_be_asked
    if upstream.isolation is not None:
        own = await upstream.isolation.of(request, asker, "first" if asks else "last")
        await own_level(request, own.follower)
        return own
    if asks and upstream.second is not None:
        return await upstream.second.of(upstream, is_lasting=request.http is None) or upstream
    return upstream
