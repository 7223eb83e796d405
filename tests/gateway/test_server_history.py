"""What is kept of a server's past: its last errors, how often it was restarted, and what its program wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from tests.gateway.conftest import raw_client
from truename.gateway import listening
from truename.gateway.upstream.server_history import ServerHistory
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab


def error(problem: str) -> UpstreamError:
    return UpstreamError(server="w", kind="ended", problem=problem, remedy="It is being restarted.")


def test_the_same_failure_again_is_one_row_and_ten_rows_are_kept() -> None:
    times = iter(range(100))
    history = ServerHistory(lambda: next(times))
    for problem in ("a", "a", "b", "a"):
        history.failed(error(problem), was_ready=False)
    assert [(one.at, one.error.problem, one.times) for one in history.failures] == [
        (3, "a", 1),
        (2, "b", 1),
        (1, "a", 2),
    ]
    for number in range(20):
        history.failed(error(f"{number}"), was_ready=False)
    assert [one.error.problem for one in history.failures] == [str(number) for number in range(19, 9, -1)]


def test_a_restart_is_a_connection_after_one_that_was_lost() -> None:
    history = ServerHistory()
    history.failed(error("not yet"), was_ready=False)
    history.started()
    assert history.restarts == 0
    history.failed(error("gone"), was_ready=True)
    history.failed(error("gone"), was_ready=False)
    history.started()
    assert history.restarts == 1
    # One that rested on purpose has not failed.
    history.started()
    assert history.restarts == 1


@pytest.mark.anyio
async def test_a_program_that_ends_is_restarted_and_its_last_words_are_kept(lab: Lab) -> None:
    async with (
        lab.gateway(lab.normal("w", "get", "die")) as gateway,
        listening(gateway) as address,
        raw_client(address) as raw,
    ):
        history = gateway.registry.pool["w"].history
        assert (history.restarts, history.failures) == (0, ())
        await raw.post("tools/call", {"name": "die", "arguments": {}})
        await lab.saw("ready", "w", times=2)
        assert history.restarts == 1
        (failure,) = history.failures
        assert "exited with status 3" in str(failure.error)
        assert "about to die" in str(failure.error)


@pytest.mark.anyio
async def test_what_a_program_writes_while_it_runs_is_kept(lab: Lab) -> None:
    (lab.folder / "tools.json").write_text('[{"name": "say", "inputSchema": {"type": "object"}}]')
    async with (
        lab.gateway(lab.script("w", "answering", str(lab.folder / "tools.json"))) as gateway,
        listening(gateway) as address,
        raw_client(address) as raw,
    ):
        await raw.post("tools/call", {"name": "say", "arguments": {}})
        history = gateway.registry.pool["w"].history
        with anyio.fail_after(20):
            while history.tail.lines() != ("called say",):
                await anyio.sleep(0.01)
