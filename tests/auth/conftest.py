"""What the tests of access share: the gateway's bench, and a state directory of each test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.auth.authority import Authority, authority
from tests.gateway.conftest import anyio_backend, connect, era, lab, raw, upstreams  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def idp() -> Iterator[Authority]:
    """An identity provider that knows Ann."""
    with authority() as one:
        one.user = {"sub": "ann", "groups": ["eng"], "email": "Ann@Example.com", "email_verified": True}
        yield one
