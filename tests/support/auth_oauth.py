"""Test support: oauth, used by tests of several modules."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure
from truename.auth.inbound.issuer_tokens import IssuerAuthenticator
from truename.auth.network.web import web
from truename.config import Issuer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.auth.authority import Authority


RESOURCE = "https://tools.example.com/mcp"


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def way_of(idp: Authority, clock: Clock | None = None, **more: Any) -> AsyncIterator[IssuerAuthenticator]:
    async with web() as fetch:
        yield IssuerAuthenticator(Issuer(issuer=idp.issuer, **more), RESOURCE, fetch, clock or time.time)


def refused(found: Authenticated | AuthenticationFailure, text: str, status: int = 401) -> None:
    assert isinstance(found, AuthenticationFailure)
    assert (found.status, text in found.text) == (status, True), found
