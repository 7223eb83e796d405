"""Two gateway processes on one state, each as on a machine of its own: who is killed takes no answer with it."""

from __future__ import annotations

import base64
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.restarts import free_port, served
from tests.support.gateway_holding import ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from tests.support.gateway_replicas import WRITE, at_both, decision, outcome
from truename.trust.approval_queue import ApprovalQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from anyio.abc import Process

    from tests.gateway.conftest import Lab, Raw, Upstreams
    from truename.storage import StateLocation

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


@pytest.fixture(autouse=True)
def key_of_all_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUENAME_VAULT_KEY", base64.b64encode(b"k" * 32).decode())


@asynccontextmanager
async def machines(raw: Callable[[str], Any], config: Path, folder: Path) -> AsyncIterator[list[tuple[Process, Raw]]]:
    """Run two gateways, with nothing in common but the configuration and its state."""
    async with AsyncExitStack() as stack:
        found = []
        for name in ("first", "second"):
            port = free_port()
            process = await stack.enter_async_context(served(config, port, folder / name))
            found.append((process, await stack.enter_async_context(raw(f"http://127.0.0.1:{port}"))))
        yield found


async def test_forms_are_answered_where_the_asking_process_was_killed_and_by_two_at_once(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    server = lab.script("fs", "journal", str(ran), "write")
    config = lab.config_file(server, state=place.address, policy={"default": "ask"})
    async with machines(raw, config, tmp_path) as ((process, first), (_, second)):
        calls = [{**WRITE, "arguments": {"text": text}} for text in "abc"]
        answers = [
            {**call, "requestState": asked["requestState"], "inputResponses": decision("allow with these arguments")}
            for call in calls
            for asked in [await first.result("tools/call", call)]
        ]
        with ApprovalQueue(place) as queue:
            assert [one.arguments for one in queue.all()] == ['text: "a"', 'text: "b"', 'text: "c"']
        for count, answer in enumerate(answers[:2], 1):
            refused, done = await at_both(first, second, answer)
            assert ("was already answered" in refused, done) == (True, "ran")
            assert len(ran.read_text().splitlines()) == count
        process.kill()
        await process.wait()
        assert outcome(await second.post("tools/call", answers[2])) == "ran"


async def test_a_call_that_waits_in_one_process_is_met_by_another(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation, tmp_path: Path
) -> None:
    async with upstreams.serve(Handshaking().server) as url:
        config = lab.config_file(state=place.address)
        config.write_text(config.read_text().replace("{}", json.dumps({"far": {"url": url}}), 1))
        async with machines(raw, config, tmp_path) as ((_, first), (_, second)):
            asked = await first.result("tools/call", ASK)
            done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
            with anyio.fail_after(20):
                assert (await second.result("tools/call", done))["structuredContent"] == ANSWER["q1"]
