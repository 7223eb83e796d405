"""`python -m tests.gateway.replica_process PLACE`: one replica that answers each line on its input with one."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.registry import ReplicaRegistry
from truename.storage import StateLocation

if TYPE_CHECKING:
    from truename.gateway.replicas.liveness import Replica


def say(answer: object) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


async def answer(registry: ReplicaRegistry, held: Replica, line: str) -> object:
    word, _, name = line.partition(" ")
    if word == "take":
        return (await in_thread(partial(registry.take, name))).holder.id
    if word == "check":
        return await registry.check(held)
    return registry.is_current(held) if word == "is_current" else registry.own.id


async def main() -> None:
    registry = ReplicaRegistry(StateLocation.of(sys.argv[1]), "127.0.0.1:9")
    await in_thread(registry.start)
    held = registry.own
    say(held.id)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        say(await answer(registry, held, line))
    await in_thread(registry.close)


if __name__ == "__main__":
    asyncio.run(main())
