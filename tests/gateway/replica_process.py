"""`python -m tests.gateway.replica_process PLACE`: one replica that answers each line on its input with one."""

from __future__ import annotations

import asyncio
import sys

from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.registry import ReplicaRegistry
from truename.storage import StateLocation


async def main() -> None:
    registry = ReplicaRegistry(StateLocation.of(sys.argv[1]), "127.0.0.1:9")
    await in_thread(registry.start)
    held = registry.own
    print(held.id, flush=True)  # noqa: T201
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        word, _, name = line.partition(" ")
        if word == "take":
            print((await in_thread(lambda: registry.take(name))).holder.id, flush=True)  # noqa: B023, T201
        elif word == "check":
            print(await registry.check(held), flush=True)  # noqa: T201
        elif word == "is_current":
            print(registry.is_current(held), flush=True)  # noqa: T201
        else:
            print(registry.own.id, flush=True)  # noqa: T201
    await in_thread(registry.close)


if __name__ == "__main__":
    asyncio.run(main())
