"""Tasks: calls that go on at their server while the client asks for them by an id."""

from __future__ import annotations

import json
import logging
import math
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.errors import StoreError, TruenameError
from truename.gateway.calls.forward import forward
from truename.gateway.elicitation.program_runs import OtherRunError, ProgramRun
from truename.gateway.mcp.requests import declared_by
from truename.gateway.protocol import tasks as shapes
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.routing_headers import decode_value
from truename.gateway.protocol.specification import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NAME_HEADER,
    REQUEST_TIMEOUT,
    TASKS_EXTENSION,
)
from truename.gateway.trust.decisions import behind
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.task_record import FOR_EVER, RecordedTask
from truename.gateway.views.tasks import LONGEST_ID, TaskPlace
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.app_links import AppLinks
    from truename.gateway.views.tasks import Task
    from truename.gateway.views.view import ViewSpec

__all__ = ["TaskRequests"]

log: Final = logging.getLogger("truename.gateway")

Raw = dict[str, Any]

# Who asks over HTTP in the stateless era without having signed in: the one user that there is.
_ANYBODY: Final = "anybody"
_NOTED: Final = "truename.tasks"
_PAGE: Final = 20
_CURSOR: Final = "after-"
_STATUS: Final = "notifications/tasks/status"
_OTHER_RUN: Final = (
    "This task belongs to another run of its server's program: that has ended, and the task with it, or another "
    "gateway runs it. Nothing was sent to the program that runs here."
)
_UNREAD: Final = "The gateway cannot use its state now, so it is unknown whose task this is. Try again later."
_UNSURE: Final = "Whether it takes effect is unknown; check before you repeat the call."


class TaskRequests:
    """The tasks of one endpoint's clients; ``spec`` says which servers there are for them, ``choose`` for a request.

    ``links`` returns what is shown of a server's apps.
    Tasks are announced to a client if a server has them in the way of the client's version, and no others are begun.
    """

    def __init__(
        self,
        registry: Registry,
        spec: ViewSpec,
        choose: Callable[[Request], ViewSpec],
        links: Callable[[Request, str], AppLinks],
    ) -> None:
        self._registry = registry
        self._links = links
        self._spec = spec
        self._choose = choose

    def announced(self, request: Request, said: Mapping[str, Any]) -> Raw:
        """Return what the SDK says of the gateway with the tasks that its servers have."""
        modern = shapes.way_of(str(said.get("protocolVersion", request.protocol_version)))
        having = [] if modern is None else self._having(modern=modern)
        if not having:
            return dict(said)
        capabilities = dict(said.get("capabilities") or {})
        if modern:
            capabilities["extensions"] = {**(capabilities.get("extensions") or {}), TASKS_EXTENSION: {}}
        else:
            capabilities["tasks"] = _merged(*having)
        return {**said, "capabilities": capabilities}

    def _having(self, *, modern: bool) -> list[Mapping[str, Any]]:
        """Return what the servers here say of tasks, those that have any in this way."""
        found = (_tasks_of(one, modern=modern) for one in self._registry.servers_in(self._spec).values())
        return [said for said in found if said is not None]

    def asked(self, request: Request, upstream: Upstream, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters of a call without what its server would take for a client's wish, and is none.

        Raises `MCPError` where a task is asked for that its server cannot begin: the client would wait for one.
        """
        if shapes.ASKED_FOR not in params:
            return params
        said = _tasks_of(upstream, modern=False)
        if shapes.way_of(request.protocol_version) is False and self._having(modern=False):
            if not _begins(said or {}):
                raise MCPError(METHOD_NOT_FOUND, "This tool cannot be run as a task: call it without a task.")
            return params
        # One that speaks both eras may be called in the other, in which no tasks of it were announced.
        is_unknown = said is None and not (upstream.session is not None and upstream.session.modern)
        return params if is_unknown else {key: one for key, one in params.items() if key != shapes.ASKED_FOR}

    async def begun(
        self, request: Request, upstream: Upstream, params: Mapping[str, Any], result: Raw, run: str
    ) -> Raw:
        """Return the result of a call; a task that it began is the client's from now on, and nobody else's.

        ``run`` is the run of the program that the result came from. Raises `UpstreamError` for a task that this client
        cannot follow.
        """
        modern = upstream.session is not None and upstream.session.modern
        found = shapes.begun_in(result, modern=modern)
        if found is None or not (modern or shapes.ASKED_FOR in params):
            return result
        if modern and not (request.connection.is_modern and shapes.follows(declared_by(request))):
            raise _unfollowed(upstream, "answered with a task, which this client does not support")
        if len(found.id) > LONGEST_ID:
            raise _unfollowed(upstream, f"gave a task an id of more than {LONGEST_ID:,} characters")
        owner = self._owner(request)
        self._end_with_session(request, owner)
        connection = None if upstream.isolation is None else owner
        place = TaskPlace(upstream.key, behind(upstream.config), run, connection, found.id)
        task = await self._begun(owner, place, found.ttl)
        self._listen(request, upstream, task)
        return shapes.renamed(result, found.id, task.shown)

    async def _begun(self, owner: Hashable, place: TaskPlace, ttl: float | None) -> Task:
        """Note a task that was begun, in the record too where it may outlive its connection."""
        tasks, record, name = self._registry.tasks, self._registry.task_record, _recorded_owner(owner)
        if name is None or not record.is_kept:
            return tasks.begin(owner, place, ttl)
        is_taken = tasks.is_shown(place.id, except_at=place)
        # Others read that before the answer leaves.
        found = await record.begin(_recorded(name, place), ttl, is_taken=is_taken)
        return tasks.begin(owner, place, ttl) if found is None else tasks.adopt(owner, place, found, found.begun)

    async def _found(self, owner: Hashable, shown: str) -> Task | None:
        """Return the task that an id means to somebody, also one that another gateway, or an earlier one, noted.

        What is in memory counts as long as no other gateway changed the record. Where word of that takes time, this
        holds for tasks of programs alone: a server that several gateways reach may give an id anew at another one.

        Raises `MCPError` while the record cannot be read: the id may be another's by now.
        """
        tasks, record, name = self._registry.tasks, self._registry.task_record, _recorded_owner(owner)
        task = tasks.find(owner, shown)
        if name is None or not record.is_kept:
            return task
        try:
            changes = await record.changes()
            if task is not None and task.seen == changes and (record.hears_at_once or task.place.run):
                return task
            if task is None or task.is_recorded:
                recorded = await record.find(name, shown)
                is_over = recorded is None
            else:
                recorded, is_over = None, await record.is_anothers(_recorded(name, task.place))
        except StoreError as error:
            raise _unread(error) from error
        if is_over and task is not None:
            tasks.forget(task)
        if recorded is not None:
            task = self._adopted(owner, recorded)
        if is_over or task is None:
            return None
        task.seen = changes
        return task

    def _adopted(self, owner: Hashable, recorded: RecordedTask) -> Task:
        connection = owner if recorded.is_isolated else None
        place = TaskPlace(recorded.server, recorded.address, recorded.run, connection, recorded.id)
        return self._registry.tasks.adopt(owner, place, recorded, time.time())

    async def _all_of(self, owner: Hashable) -> tuple[Task, ...]:
        """Return somebody's tasks, as they were begun. Raises `MCPError` while the record cannot be read."""
        tasks, record, name = self._registry.tasks, self._registry.task_record, _recorded_owner(owner)
        if name is None or not record.is_kept:
            return tasks.of(owner)
        try:
            changes = await record.changes()
            found = {recorded.shown: self._adopted(owner, recorded) for recorded in await record.of(name)}
        except StoreError as error:
            raise _unread(error) from error
        for task in found.values():
            task.seen = changes
        others = [task.shown for task in tasks.of(owner) if task.shown not in found]
        beside = [await self._found(owner, shown) for shown in others]
        known = [*found.values(), *(task for task in beside if task is not None)]
        return tuple(sorted(known, key=lambda task: task.number))

    async def _forget(self, task: Task) -> None:
        self._registry.tasks.forget(task)
        if (name := _recorded_owner(task.owner)) is not None:
            await self._registry.task_record.forget(name, task.shown)

    async def _keep(self, task: Task, ttl: float | None) -> None:
        """Keep a task for so many milliseconds from its beginning, as its server says now."""
        before = task.until
        self._registry.tasks.keep(task, ttl)
        if task.until != before and (name := _recorded_owner(task.owner)) is not None:
            until = FOR_EVER if task.until == math.inf else task.until + time.time() - time.monotonic()
            await self._registry.task_record.keep(name, task.shown, until)

    @staticmethod
    def _owner(request: Request) -> Hashable:
        if (principal := principal_of(request)) is not LOCAL:
            return ("principal", principal.key)
        # A client of the stateless era has a pipe for itself, or nothing that lasts.
        return (request.connection.pipe or _ANYBODY) if request.connection.is_modern else request.connection

    def _end_with_session(self, request: Request, owner: Hashable) -> None:
        connection = request.connection
        if owner is connection and not connection.state.setdefault(_NOTED, False):
            connection.state[_NOTED] = True
            connection.exit_stack.callback(self._registry.tasks.forget_all, owner)

    def _listen(self, request: Request, upstream: Upstream, task: Task) -> None:
        """Have the session told what the server tells of its task; in the stateless era clients ask."""
        if not request.connection.is_modern:
            task.told = partial(request.connection.notify, _STATUS)
            upstream.follower.on_task = self._stands

    async def _stands(self, server: str, state: Mapping[str, Any]) -> None:
        """Tell whose task it is how it stands."""
        upstream, id = self._registry.pool.get(server), str(state.get(shapes.TASK_ID))
        if upstream is None:
            return
        task = self._registry.tasks.at(TaskPlace(server, behind(upstream.config), upstream.program_run, None, id))
        if task is None or task.told is None:
            return
        with suppress(MCPError):
            if await self._found(task.owner, task.shown) is task:
                await task.told(shapes.renamed(state, task.place.id, task.shown))

    def answers(self, request: Request) -> bool:
        """Tell whether a request is about tasks, in the way of its version, and a server here has such."""
        modern = shapes.way_of(request.protocol_version)
        if modern is None or request.method not in shapes.METHODS[modern]:
            return False
        return request.connection.may_request and bool(self._having(modern=modern))

    async def answer(self, request: Request) -> Raw:
        """Return the raw result of a request about tasks. Raises `MCPError`."""
        params, method = request.params or {}, request.method
        _check(request, params)
        if method == "tasks/list":
            return await self._listed(request, params.get("cursor"))
        task = await self._found(self._owner(request), str(params.get(shapes.TASK_ID)))
        if task is None or not self._is_here(request, task):
            raise shapes.unknown()
        try:
            return await self._told(request, task, method, params)
        except UpstreamError as error:
            if method == "tasks/result" and error.kind == "timeout":
                text = "The task is still running. Request its result again, or its state (tasks/get)."
                raise MCPError(REQUEST_TIMEOUT, text) from error
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        except TruenameError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error

    def check_listening(self, request: Request) -> None:
        """Raise `MCPError` for a stream of tasks that is asked for without saying that the client follows tasks.

        Else they are left out of what is acknowledged: servers need not tell of tasks on a stream.
        """
        wanted = (request.params or {}).get("notifications") or {}
        if "taskIds" in wanted and self._having(modern=True) and not shapes.follows(declared_by(request)):
            raise shapes.undeclared()

    def _is_here(self, request: Request, task: Task) -> bool:
        """Whether the task's server is shown to who asks now, and is still there."""
        upstream = self._registry.servers_in(self._choose(request)).get(task.place.server)
        return upstream is not None and behind(upstream.config) == task.place.address

    async def _told(self, request: Request, task: Task, method: str, params: Mapping[str, Any]) -> Raw:
        """Ask the server of a task for it, under the server's own id."""
        upstream, own = self._registry.pool[task.place.server], task.place.id
        self._listen(request, upstream, task)
        asked = shapes.renamed(params, task.shown, own)
        waits = (own, task.shown) if method == "tasks/result" else None
        try:
            answering = forward(request, upstream, method, asked, task=waits, run=ProgramRun(task.place.run))
            result = await self._registry.vetting.answers.over(upstream.key, answering)
        except OtherRunError as error:
            raise MCPError(INVALID_PARAMS, _OTHER_RUN) from error
        except MCPError as error:
            if method == "tasks/get" and error.code == INVALID_PARAMS:
                await self._forget(task)
            raise
        modern = request.connection.is_modern
        if shapes.is_state(result, modern=modern):
            await self._keep(task, shapes.time_to_live(result, modern=modern))
        return shapes.renamed(self._links(request, upstream.key).result(result), own, task.shown)

    async def _listed(self, request: Request, cursor: object) -> Raw:
        """Return a page of the client's own tasks, each as its server tells it now.

        A server's own list has the tasks of all its clients, so each is asked for by itself.
        """
        after = _after(cursor)
        later = (task for task in await self._all_of(self._owner(request)) if task.number > after)
        own = [task for task in later if self._is_here(request, task)]
        page, states = own[:_PAGE], dict[int, Raw]()

        async def ask(task: Task) -> None:
            try:
                states[task.number] = await self._told(request, task, "tasks/get", {shapes.TASK_ID: task.shown})
            except (MCPError, TruenameError):
                # What is over is forgotten; one server that is away must not take the others' tasks with it.
                return

        async with anyio.create_task_group() as asking:
            for task in page:
                asking.start_soon(ask, task)
        listed = [states[task.number] for task in page if task.number in states]
        body: Raw = {"tasks": [{key: one for key, one in state.items() if key != "_meta"} for state in listed]}
        return body if len(own) <= _PAGE else {**body, "nextCursor": f"{_CURSOR}{page[-1].number}"}


def _tasks_of(upstream: Upstream, *, modern: bool) -> Mapping[str, Any] | None:
    session = upstream.session
    return None if session is None or session.modern != modern else session.tasks


def _recorded_owner(owner: Hashable) -> str | None:
    """Return what stands for an owner in the record; None for a connection, whose tasks end with it."""
    match owner:
        case ("principal", str(key)):
            return json.dumps(["principal", key])
        case str():
            return json.dumps([owner])
    return None


def _recorded(owner: str, place: TaskPlace) -> RecordedTask:
    """Return what stands in the record for a task that is shown under the server's own id."""
    return RecordedTask(
        shown=place.id,
        owner=owner,
        server=place.server,
        address=place.address,
        run=place.run,
        id=place.id,
        is_isolated=place.connection is not None,
    )


def _unread(error: StoreError) -> MCPError:
    log.warning("Tasks cannot be found. %s", error)
    return MCPError(INTERNAL_ERROR, _UNREAD)


def _begins(said: Mapping[str, Any]) -> bool:
    return ((said.get("requests") or {}).get("tools") or {}).get("call") is not None


def _merged(*said: Mapping[str, Any]) -> Raw:
    """Return all that one of several says, level by level."""
    keys = dict.fromkeys(key for one in said for key in one)
    return {key: _merged(*(one[key] for one in said if isinstance(one.get(key), dict))) for key in keys}


def _check(request: Request, params: Mapping[str, Any]) -> None:
    if not request.connection.is_modern:
        return
    if not shapes.follows(declared_by(request)):
        raise shapes.undeclared()
    http = request.http
    if http is not None and decode_value(http.headers.get(NAME_HEADER)) != params.get(shapes.TASK_ID):
        raise shapes.mismatch()


def _after(cursor: object) -> int:
    if cursor is None:
        return 0
    number = cursor.removeprefix(_CURSOR) if isinstance(cursor, str) else ""
    if not (number.isascii() and number.isdigit() and len(number) <= 18 and cursor == f"{_CURSOR}{number}"):
        raise MCPError(INVALID_PARAMS, "Unknown cursor. List the tasks without one.")
    return int(number)


def _unfollowed(upstream: Upstream, problem: str) -> UpstreamError:
    return UpstreamError(server=upstream.key, kind="protocol", problem=problem, remedy=_UNSURE)
