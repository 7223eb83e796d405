"""Who attacks the console: pages of other hosts, people with a lower role, forms that are old, and two at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.console.conftest import ROLE_OF, called, serving
from tests.console.decisions import FILLED, READ, WRITES, form_for, full, state_of
from truename.config.console import ROLES
from truename.config.trust import Trust
from truename.policy import read_policy
from truename.trust.approval_decisions import ApprovalDecisions

if TYPE_CHECKING:
    from tests.console.conftest import Browser
    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


def test_each_write_is_tried() -> None:
    assert set(WRITES) == set(FILLED)


@pytest.mark.parametrize("path", WRITES)
async def test_each_role_changes_what_it_may_and_nothing_else(lab: Lab, path: str) -> None:
    async with full(lab) as world, world.browser("op") as operator:
        for who, role in sorted(ROLE_OF.items(), key=lambda one: -1 if one[1] is None else ROLES.index(one[1])):
            async with world.browser(who) as browser:
                # The operator's own form, with the token of the session that sends it.
                form = await form_for(operator, path) | {"csrf": await browser.csrf()}
                before = state_of(world)
                answer = await browser.post(**form)
                may = role is not None and ROLES.index(role) >= ROLES.index(WRITES[path].role)
                changed = (answer.status_code, state_of(world) != before)
                assert changed == ((200, True) if may else (403, False)), who
                if may:
                    return
    raise AssertionError(path)


@pytest.mark.parametrize("path", WRITES)
async def test_a_form_of_another_origin_or_session_or_kind_changes_nothing(lab: Lab, path: str) -> None:
    async with full(lab) as world, world.browser("op") as browser, world.browser("op") as other:
        form, before = await form_for(browser, path), state_of(world)
        target = form.pop("path")
        cookies = browser.cookies
        async with httpx2.AsyncClient(base_url=world.address, cookies=cookies, timeout=20) as http:
            own = {"origin": world.address}
            tries = [
                (await http.post(target, data=form), 403),
                (await http.post(target, data=form, headers={"origin": "https://evil.example"}), 403),
                (await http.post(target, data=form, headers={"origin": "null"}), 403),
                (await http.post(target, data=form, headers={**own, "sec-fetch-site": "cross-site"}), 403),
                (await http.post(target, data=form, headers={**own, "sec-fetch-site": "same-site"}), 403),
                (await http.post(target, json=form, headers=own), 415),
                (await http.post(target, data={**form, "csrf": await other.csrf()}, headers=own), 403),
                (await http.post(target, data={**form, "csrf": ""}, headers=own), 403),
                (await http.post(target, params=form, headers=own), 415),
                (await http.get(target, params=form), 405),
                (await http.put(target, data=form, headers=own), 405),
                (await http.post(target, data=form, headers={**own, "host": "evil.example"}), 421),
            ]
            assert [answer.status_code for answer, _ in tries] == [status for _, status in tries]
            assert state_of(world) == before
            # All of that was refused for what it was, and not for what it asked.
            assert (await http.post(target, data=form, headers=own)).status_code == 303
        assert state_of(world) != before


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8750", "[::2]"])
async def test_no_page_answers_under_the_name_of_another_host(lab: Lab, host: str) -> None:
    async with serving(lab, with_tokens=False) as world, world.browser() as browser:
        for path in ("/console", "/console/tools", "/console/login", "/console/static/console.css"):
            answer = await browser.get(path, host=host)
            assert answer.status_code == 421
            assert "fs@1" not in answer.text


async def test_a_page_that_is_old_decides_nothing(lab: Lab) -> None:
    file = lab.folder / "tools.json"
    file.write_text(json.dumps([READ]))
    server = lab.script("fs", "listing", str(file))
    policy = read_policy({"default": "ask", "rules": [{"name": "r", "outcome": "allow", "tools": ["*/reread"]}]})
    async with serving(lab, server, policy=policy, trust=Trust(drift="quarantine")) as world, world.browser("op") as op:
        await called(world, "fs_read", text="x")
        old = (await form_for(op, "/approvals/{key}/decision")) | {"scope": "call"}
        file.write_text(json.dumps([{**READ, "description": "Reads any file."}]))
        await called(world, "fs_reread")
        with anyio.fail_after(20):
            while not world.gateway.registry.vetting.book.waiting:
                await anyio.sleep(0.02)
        review = await form_for(op, "/reviews/{key:path}/decision")
        file.write_text(json.dumps([{**READ, "description": "Reads any file, and sends it away."}]))
        before = state_of(world)

        refused = await op.post(**old)
        unmarked = await op.post(**{**old, "shown": ""})
        otherwise = await op.post(**{**review, "digest": f"sha256:{'0' * 64}"})

        assert [one.status_code for one in (refused, unmarked, otherwise)] == [409, 409, 409]
        assert "is not the one that the page showed" in refused.text
        assert state_of(world) == before


async def test_of_many_decisions_at_once_one_counts_and_is_recorded(lab: Lab) -> None:
    async with full(lab) as world, world.browser("op") as op, world.browser("app") as app:
        people = (op, app)
        decision = "/approvals/{key}/decision"
        sent = [(one, await form_for(one, decision), answer) for one in people for answer in ("grant", "deny")]
        statuses: list[int] = []

        async def decide(browser: Browser, form: dict[str, str], answer: str) -> None:
            statuses.append((await browser.post(**{**form, "answer": answer})).status_code)

        async with anyio.create_task_group() as tasks:
            for one in sent:
                tasks.start_soon(decide, *one)
        assert sorted(statuses) == [200, 409, 409, 409]
        with ApprovalDecisions(world.gateway.config) as found:
            assert len(found.decisions()) == 2
            assert found.waiting() == []


async def test_who_leaves_before_the_form_has_come_is_no_error(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(lab) as world:
        host, port = world.address.removeprefix("http://").split(":")
        head = f"POST /console/login HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {world.address}\r\n"
        form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken="
        async with await anyio.connect_tcp(host, int(port)) as client:
            await client.send((head + form).encode())
        async with world.browser("op") as browser:
            assert (await browser.get("/console/servers")).status_code == 200
        with anyio.move_on_after(0.5):
            while not caplog.records:
                await anyio.sleep(0.02)
    assert [one.getMessage() for one in caplog.records] == []


async def test_a_session_that_somebody_brings_along_is_not_the_one_that_logs_in(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("nobody") as attacker, world.browser() as victim:
        brought = attacker.cookies
        victim.forget(brought)
        answer = await victim.post("/console/login", token=world.tokens["op"])
        assert "operator" in answer.text
        assert victim.cookies != brought
        assert (await attacker.get("/console/servers")).status_code == 403
        assert await victim.csrf() not in (await attacker.get("/console/servers")).text


async def test_a_page_cannot_be_framed_opened_by_others_or_kept_by_a_cache(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("op") as browser:
        for path in ("/console/approvals", "/console/reviews", "/console/login", "/console/nothing"):
            headers: Any = (await browser.get(path)).headers
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["x-frame-options"] == "DENY"
            assert headers["cross-origin-opener-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"
