"""The law of tasks at replicas: an id that somebody was given leads to that very task, or to an error.

Two persons begin tasks, ask for them, answer and cancel them at two gateways of one state, while their server restarts
and counts its tasks anew. Each answer that is given has a number of its own, so a task is known by what it was told.
"""

from __future__ import annotations

import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import children
from tests.gateway.servers.tasking import Tasking
from tests.gateway.taskers import V2, refused_by
from tests.support.gateway_tasks import begun_anew, persons

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams
    from tests.gateway.taskers import New
    from tests.support.gateway_tasks import Persons
    from truename.storage import StateLocation

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs the table of processes of Linux"),
]

STEPS = 30
MOST_RESTARTS = 2
ACTIONS = ("begin", "begin", "get", "get", "get", "answer", "cancel", "restart")
# Who runs a program that counts anew: each gateway, all of them together, or somebody else, whom both reach by HTTP.
KINDS = ("gateway", "single", "http")


@dataclass
class Begun:
    """A task as its owner knows it."""

    where: int
    run: int
    status: str = "input_required"
    answer: dict[str, Any] = field(default_factory=dict)


class Model:
    """What each person was given, and what it has to be at each gateway."""

    def __init__(self, kind: str, at: Persons, chance: Random, restart: Callable[[], None]) -> None:
        self.kind = kind
        self.clients: dict[str, list[New]] = {"ann": at.ann, "bob": at.bob}
        self.chance = chance
        self.restart_server = restart
        self.run = 0
        self.count = 0
        self.reached = 0
        self.given: dict[tuple[str, str], Begun] = {}
        self.ids: list[str] = []
        # Whose the ids of an HTTP server are, as it counts: the last owner's.
        self.last: dict[str, tuple[str, str]] = {}

    async def step(self) -> None:
        who, where = self.chance.choice(("ann", "bob")), self.chance.randrange(2)
        client, action = self.clients[who][where], self.chance.choice(ACTIONS)
        if action == "restart":
            # A program that ends again and again is started less and less often.
            if self.kind == "http" or self.run < MOST_RESTARTS:
                self.restart_server()
                self.run += 1
                self.last.clear()
        elif action == "begin" or not self.ids:
            await self._begin(who, where, client)
        else:
            await self._ask(who, where, self.chance.choice(self.ids), action)

    async def _begin(self, who: str, where: int, client: New) -> None:
        id = await begun_anew(client, "confirm_delete")
        self.ids.append(id)
        self.given[who, id] = Begun(where, self.run)
        number = id.split("-")[1]
        self.last[number] = who, id

    async def _ask(self, who: str, where: int, id: str, action: str) -> None:
        client, task = self.clients[who][where], self.given.get((who, id))
        self.count += 1
        answer = {"q0": {"action": "accept", "content": {"ok": True, "number": self.count}}}
        try:
            if action == "answer":
                await client.ask("tasks/update", taskId=id, inputResponses=answer)
                if task is not None and task.status == "input_required":
                    task.status, task.answer = "completed", answer
            elif action == "cancel":
                await client.ask("tasks/cancel", taskId=id)
                if task is not None and task.status == "input_required":
                    task.status = "cancelled"
            said = await client.ask("tasks/get", taskId=id)
        except MCPError:
            assert not self._is_reachable_by(who, where, id), (who, where, id, action)
            return
        self.reached += 1
        assert task is not None, (who, where, id, action)
        assert self._is_reachable_by(who, where, id), (who, where, id, action)
        assert said["taskId"] == id
        assert said["status"] == task.status
        assert said.get("result", {}).get("structuredContent", {}) == task.answer

    def _is_reachable_by(self, who: str, where: int, id: str) -> bool:
        """Return whether an id leads to its task there: else it leads to an error."""
        task = self.given.get((who, id))
        if task is None or task.run != self.run:
            return False
        if self.kind == "http":
            return self.last.get(id.split("-")[1]) == (who, id)
        return self.kind == "single" or task.where == where


@pytest.mark.parametrize("kind", KINDS)
async def test_an_id_leads_to_the_task_that_it_was_given_for_or_to_an_error(
    kind: str, lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    before = children()
    far = Tasking("far", refuses=refused_by(V2))

    def restart() -> None:
        far.tasks.clear()
        for program in children() - before if kind != "http" else ():
            os.kill(int(program), signal.SIGKILL)

    async with AsyncExitStack() as stack:
        if kind == "http":
            server = lab.at("far", await stack.enter_async_context(upstreams.serve(far.server)))
        else:
            server = lab.script("far", "tasking", "far")
        at = await stack.enter_async_context(persons(lab, raw, place, server, shared=kind == "single"))
        model = Model(kind, at, Random(kind), restart)
        for _ in range(STEPS):
            await model.step()
        assert model.reached
