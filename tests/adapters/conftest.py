"""What the tests of all adapters share: the event loop, and clients that are closed behind a test."""

from __future__ import annotations

import pytest

from tests.adapters.agents_sdk import closing

__all__ = ["anyio_backend", "closing"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
