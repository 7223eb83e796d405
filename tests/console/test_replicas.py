"""Several consoles: replicas of one state are one console, and two gateways of one host do not disturb each other."""

from __future__ import annotations

import html
import json
from contextlib import asynccontextmanager, closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.console.conftest import Browser, called, serving, sessions_in
from tests.console.decisions import WRITES, form_for, full, state_of
from tests.gateway.conftest import Lab
from tests.support.gateway_audit import records
from tests.support.state_places import new_place
from truename.auth.sealed_values import SealedValues
from truename.config.console import ConsoleAccess
from truename.trust.approval_decisions import ApprovalDecisions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.console.conftest import World

pytestmark = pytest.mark.anyio
# The answers that two people give at once, by the page's write; the revocation has one.
ANSWERS = {
    "/approvals/{key}/decision": ({"answer": "grant"}, {"answer": "deny"}),
    "/approvals/{key}/revocation": ({}, {}),
    "/reviews/{key:path}/decision": ({"answer": "accept"}, {"answer": "reject"}),
    "/reviews/{key:path}/origin": ({"answer": "accept"}, {"answer": "reject"}),
}


@asynccontextmanager
async def another(lab: Lab, world: World) -> AsyncIterator[World]:
    """Serve a second replica with the servers and settings of the first one."""
    config = world.gateway.config
    settings = {name: getattr(config.settings, name) for name in ("policy", "trust", "audit")}
    async with serving(lab, *config.servers, replica_of=world, **settings) as second:
        yield second


@pytest.mark.parametrize("path", WRITES)
@pytest.mark.parametrize("is_other_first", [False, True])
async def test_of_two_who_decide_at_once_at_two_replicas_one_does_and_the_other_is_told(
    lab: Lab, path: str, monkeypatch: pytest.MonkeyPatch, *, is_other_first: bool
) -> None:
    async with (
        full(lab) as first,
        another(lab, first) as second,
        first.browser("op") as ann,
        second.browser("op") as ben,
    ):
        forms = [await form_for(one, path) | said for one, said in zip((ann, ben), ANSWERS[path], strict=True)]
        statuses: list[int] = []

        async def decide(browser: Browser, form: dict[str, str]) -> None:
            statuses.append((await browser.post(**form)).status_code)

        at_once(monkeypatch, first, 2)
        asked = [(ann, forms[0]), (ben, forms[1])]
        async with anyio.create_task_group() as tasks:
            for one in reversed(asked) if is_other_first else asked:
                tasks.start_soon(decide, *one)
        assert sorted(statuses) == [200, 409]
    # The first one is of the scene.
    assert len(decisions_of(lab)) == 2


def at_once(monkeypatch: pytest.MonkeyPatch, world: World, number: int) -> None:
    """Have so many people see what waits before one of them decides, who are let go in the order in which they came."""
    deciding, arrived, gate = type(world.gateway.audit).deciding, [], anyio.Event()

    @asynccontextmanager
    async def together(*args: Any) -> AsyncIterator[None]:
        arrived.append(args)
        if len(arrived) == number:
            gate.set()
        await gate.wait()
        async with deciding(*args):
            yield

    monkeypatch.setattr(type(world.gateway.audit), "deciding", together)


def decisions_of(lab: Lab) -> list[object]:
    """Return the decisions at a console that the audit log has."""
    kinds = ("approval", "definition", "name")
    return [one for kind in kinds for one in records(lab.folder / "audit", kind) if one.get("via") == "console"]


async def test_a_page_of_one_replica_decides_at_another_in_the_same_session(lab: Lab) -> None:
    async with full(lab) as first, another(lab, first) as second, first.browser("op") as browser:
        path = "/approvals/{key}/decision"
        form, before = await form_for(browser, path), state_of(first)
        async with Browser(second.address) as moved:
            moved.forget(browser.cookies)
            assert (await moved.post(**form)).status_code == 200
        assert state_of(first) != before


async def test_what_a_page_hides_cannot_be_found_out_by_trying(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("app") as browser:
        await called(world, "fs_write", pin="1234", password="hunter2")
        page = html.unescape((await browser.get("/console/approvals")).text)
        assert "hunter2" not in page
        form = await form_for(browser, "/approvals/{key}/decision")
        with ApprovalDecisions(world.gateway.config) as found:
            (one,) = found.waiting()
        # All that somebody can know who guesses the hidden argument.
        guessed = [
            *(one.key, one.principal, one.arguments, one.wire_name, one.state),
            *map(str, one.subject),
            *one.scopes,
        ]
        assert form["shown"] != sha256(json.dumps(guessed).encode()).hexdigest()
        with closing(SealedValues(None)) as own:
            own.open()
            forged = own.mark("console form", guessed)
        assert (await browser.post(**{**form, "shown": forged})).status_code == 409
        assert (await browser.post(**form)).status_code == 200


async def test_who_logs_in_to_one_console_of_a_host_stays_logged_in_to_the_other(tmp_path: Path) -> None:
    labs = [Lab(tmp_path / name) for name in ("one", "other")]
    for lab in labs:
        lab.folder.mkdir()
    async with (
        serving(labs[0]) as one,
        serving(labs[1]) as other,
        one.browser("op") as browser,
        Browser(other.address) as elsewhere,
    ):
        # A browser sends what it has of a host to each port.
        elsewhere.forget(browser.cookies)
        await elsewhere.post("/console/login", token=other.tokens["val"])
        browser.forget(elsewhere.cookies)
        assert len(sessions_in(browser.cookies)) == 2
        assert "operator" in (await browser.get("/console/servers")).text
        assert "viewer" in (await elsewhere.get("/console/servers")).text
        await elsewhere.post("/console/logout", csrf=await elsewhere.csrf())
        browser.forget(elsewhere.cookies)
        assert len(sessions_in(browser.cookies)) == 1
        assert "operator" in (await browser.get("/console/servers")).text


async def test_replicas_of_a_state_share_the_sessions(lab: Lab) -> None:
    async with (
        serving(lab) as one,
        serving(lab, replica_of=one) as other,
        one.browser("op") as browser,
        Browser(other.address) as moved,
    ):
        moved.forget(browser.cookies)
        assert "operator" in (await moved.get("/console/servers")).text


async def test_a_session_of_one_scope_of_a_database_is_none_of_another(tmp_path: Path) -> None:
    labs = [Lab(tmp_path / name) for name in ("one", "other")]
    for lab in labs:
        lab.folder.mkdir()
    with new_place() as first, new_place() as second:
        places = [location.address for location in (first, second)]
        async with (
            serving(labs[0], with_tokens=False, state=places[0], console=ConsoleAccess()) as one,
            serving(labs[1], with_tokens=False, state=places[1], console=ConsoleAccess()) as other,
            httpx2.AsyncClient(timeout=20) as http,
        ):
            values = []
            for world in (one, other):
                answer = await http.get(f"{world.address}/console/servers")
                (name,) = sessions_in(answer.cookies)
                values.append((name, answer.cookies[name]))
            (_, foreign), (name, own) = values
            page = f"{other.address}/console/servers"
            http.cookies.clear()
            # Whoever is unknown gets a session of their own, as nobody needs credentials here.
            assert (await http.get(page, headers={"cookie": f"{name}={foreign}"})).status_code == 303
            assert (await http.get(page, headers={"cookie": f"{name}={own}"})).status_code == 200
