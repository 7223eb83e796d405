"""Test support: addresses, used by tests of several modules."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


class Service:
    """The machine's name service, which answers for one name as it is told."""

    def __init__(self, name: str, asked: Callable[..., Any]) -> None:
        self.name = name
        self.last = "127.0.0.1"
        self._asked = asked

    def __call__(self, host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host not in {self.name, self.name.encode()}:
            return self._asked(host, port, *args, **more)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.last, port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Service:
    service = Service("tools.example", socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", service)
    return service
