"""Run recorded calls again: start the servers, and send each call to the server of its tool."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread

from truename.cli._logs import log_to_stderr
from truename.cli._progress import Progress
from truename.gateway import Gateway
from truename.gateway.protocol.json_text import whole
from truename.migration.recordings import ReplayedCall, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from truename.config import Config
    from truename.gateway import OnEvent
    from truename.migration.recordings import BrokenLine, RecordedCall
    from truename.policy import Call, Context, Policy

__all__ = ["run_again"]


class ToolFailed(Exception):
    """A tool returned an error result; the text is its own."""


def run_again(
    config: Config,
    entries: Sequence[RecordedCall | BrokenLine],
    *,
    policy: Policy,
    context: Context | None,
    go_on: bool,
) -> tuple[list[ReplayedCall], tuple[str, ...]]:
    """Run the calls; return their outcomes, and the keys of the servers that could not be started."""
    log_to_stderr()
    with Progress([server.key for server in config.enabled]) as progress:
        again = partial(replay, policy=policy, context=context, go_on=go_on)
        found = anyio.run(_rerun, config, entries, again, progress.on_event)
    return found, tuple(progress.failed)


async def _rerun(
    config: Config,
    entries: Sequence[RecordedCall | BrokenLine],
    again: Callable[..., Iterator[ReplayedCall]],
    on_event: OnEvent,
) -> list[ReplayedCall]:
    async with Gateway(config, on_event=on_event) as gateway:
        await gateway.settle()
        names = gateway.table()

        def run(call: Call) -> object:
            return anyio.from_thread.run(_asked, gateway, call)

        return await anyio.to_thread.run_sync(lambda: list(again(entries, names, run)))


async def _asked(gateway: Gateway, call: Call) -> dict[str, object]:
    upstream = gateway.registry.pool[call.origin.server]
    params = {"name": call.origin.name, "arguments": dict(call.arguments)}
    answer = whole(await upstream.request("tools/call", params, capabilities={}, on_progress=None))
    if answer.get("isError"):
        raise ToolFailed(_text(answer))
    return answer


def _text(answer: dict[str, object]) -> str:
    blocks = answer.get("content")
    texts = [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return " ".join(text for text in texts if isinstance(text, str)) or "the tool failed without a message"
