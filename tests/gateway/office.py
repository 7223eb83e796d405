"""The operator's office and a client's user: who decides in the tests of approvals."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types

from truename.config.approvals import Asking
from truename.policy import Approvals, read_policy
from truename.storage import StateLocation
from truename.trust.approval_queue import ApprovalQueue, decided

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab
    from truename.policy import Grant
    from truename.trust.approval_queue import PendingCall


ASK = read_policy({"default": "ask"})


class User:
    """A client's user, who decides in this order, and closes the form when there is nothing left to say."""

    def __init__(self, *decisions: str) -> None:
        self.decisions = list(decisions)
        self.asked: list[Any] = []

    async def elicited(self, _: object, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        if not self.decisions:
            return types.ElicitResult(action="cancel")
        word = self.decisions.pop(0)
        if word == "decline":
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"decision": word})


class Office:
    """The operator, at the files that the gateway and the command line share."""

    def __init__(self, folder: Path) -> None:
        self.place = StateLocation(folder / "state.db")

    def settings(self, **more: Any) -> Asking:
        return Asking(**more)

    @property
    def state(self) -> str:
        """The setting that has a gateway keep its state where the operator looks."""
        assert self.place.address is not None
        return self.place.address

    @property
    def path(self) -> Path:
        """The file, for who damages it."""
        assert self.place.path is not None
        return self.place.path

    def waiting(self) -> list[PendingCall]:
        with ApprovalQueue(self.place) as book:
            return [one for one in book.all() if one.is_open]

    def decides(self, approved: bool = True, scope: Any = "call", **more: Any) -> Grant:
        (one,) = self.waiting()
        with ApprovalQueue(self.place) as book:
            return decided(one, scope, Approvals.open(self.place), book, approved=approved, lasts=60.0, **more)

    async def sees(self, count: int) -> None:
        with anyio.fail_after(15):
            while len(self.waiting()) != count:
                await anyio.sleep(0.02)


@asynccontextmanager
async def gateway(lab: Lab, office: Office, *servers: Any, **more: Any) -> AsyncIterator[str]:
    asking = {key: more.pop(key) for key in ("ask", "wait", "max_pending", "expiry", "grant_expiry") if key in more}
    approvals = office.settings(**asking)
    running = lab.serving(
        *(servers or (lab.normal("fs", "write"),)), policy=ASK, approvals=approvals, state=office.state, **more
    )
    async with running as address:
        yield address + "/mcp"


async def ran(client: Client, name: str = "write", **arguments: Any) -> bool:
    result = await client.call_tool(name, arguments)
    if not result.is_error:
        return True
    assert result.meta is not None
    assert result.meta["dev.truename/error"] in {"approval_required", "unsupported"}, result
    return False
