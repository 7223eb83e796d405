"""A gateway with one of each thing to decide on at the console, and the forms that decide."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from tests.console.conftest import called, forms, serving
from truename.config.audit import Audit
from truename.config.trust import Trust
from truename.console import ROUTES
from truename.policy import read_policy
from truename.trust.approval_decisions import ApprovalDecisions
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.console.conftest import Browser, World
    from tests.gateway.conftest import Lab

__all__ = ["FILLED", "READ", "WRITES", "form_for", "full", "state_of"]

WRITES: Final = {route.path: route for route in ROUTES if route.method == "POST"}
# How each write is tried: the page with its form, and what is filled in.
FILLED: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "/approvals/{key}/decision": ("/console/approvals", {"answer": "grant", "scope": "always"}),
    "/approvals/{key}/revocation": ("/console/approvals", {}),
    "/reviews/{key:path}/decision": ("/console/reviews", {"answer": "accept"}),
    "/reviews/{key:path}/origin": ("/console/reviews", {"answer": "accept"}),
}
READ: Final = {"name": "read", "description": "Reads a file.", "inputSchema": {"type": "object"}}
VIEW: Final = {**READ, "name": "view", "description": "Shows one picture of the album."}


@asynccontextmanager
async def full(lab: Lab) -> AsyncIterator[World]:
    """Serve a gateway with a call that waits, a decision, a definition that waits, and a tool that was renamed."""
    file = lab.folder / "tools.json"
    file.write_text(json.dumps([READ, {**READ, "name": "write"}, VIEW]))
    policy = read_policy({"default": "ask", "rules": [{"name": "r", "outcome": "allow", "tools": ["*/reread"]}]})
    trust, audit = Trust(drift="quarantine"), Audit(path=str(lab.folder / "audit"))
    server = lab.script("fs", "listing", str(file))
    async with serving(lab, server, policy=policy, trust=trust, audit=audit) as world:
        await called(world, "fs_write", text="decided")
        async with world.browser("op") as browser:
            (form,) = forms((await browser.get("/console/approvals")).text)
            await browser.post(**form, answer="deny", scope="always")
        await called(world, "fs_read", text="waits")
        changed = {**READ, "name": "write", "description": "Writes elsewhere."}
        file.write_text(json.dumps([READ, changed, {**VIEW, "name": "look"}]))
        await called(world, "fs_reread")
        with anyio.fail_after(20):
            while not (world.gateway.registry.vetting.book.waiting and world.gateway.registry.renames.book.proposals):
                await anyio.sleep(0.02)
        yield world


def state_of(world: World) -> tuple[object, ...]:
    """Return what can be decided on, as it is in the state."""
    world.gateway.registry.vetting.book.refresh()
    with ApprovalDecisions(world.gateway.config) as found:
        approvals = [(one.key, one.scope, one.by) for one in found.all()]
    with RenameStore(world.gateway.config.state_location()) as book:
        renames = [(one.id, one.word, one.by) for one in book.arrived.values()]
    return approvals, sorted(world.gateway.registry.vetting.book.seen()), renames


async def form_for(browser: Browser, path: str) -> dict[str, str]:
    page, filled = FILLED[path]
    wanted = path.rpartition("/")[2]
    found = [one for one in forms((await browser.get(page)).text) if one["path"].endswith(wanted)]
    return {**found[0], **filled}
