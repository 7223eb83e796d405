"""What a client hears without having asked."""

from __future__ import annotations

from typing import Any

import anyio

from tests.gateway.conftest import PATIENCE


class Ear:
    """Notes the notifications that a client gets."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self._more = anyio.Event()

    async def __call__(self, message: object) -> None:
        self.heard.append(message)
        self._more.set()
        self._more = anyio.Event()

    def all(self, kind: type[Any]) -> list[Any]:
        return [message.params for message in self.heard if isinstance(message, kind)]

    async def hears(self, kind: type[Any], times: int = 1) -> list[Any]:
        with anyio.fail_after(PATIENCE):
            while len(self.all(kind)) < times:
                await self._more.wait()
        return self.all(kind)
