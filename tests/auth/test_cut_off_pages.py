"""Clients that go away within a request to one of the pages that anybody may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.auth.signing import FORM, settings_of
from truename.auth.authentication_setup import http_authentication
from truename.config import Access, Config, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.auth.authority import Authority

pytestmark = pytest.mark.anyio
HERE = "http://127.0.0.1:1"


@pytest.mark.parametrize("path", ["/register", "/token", "/revoke", "/sign-in/consent"])
async def test_who_goes_away_gets_no_answer_and_leaves_no_traceback(path: str, idp: Authority, tmp_path: Path) -> None:
    """Else anybody could fill the log."""
    access = Access(sign_in=settings_of(idp))
    said: list[Any] = [{"type": "http.request", "body": b"a=b", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return said.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:1"), (b"content-type", FORM.encode()), (b"content-length", b"1000")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    config = Config(path=tmp_path / "truename.toml", settings=Settings(state=str(tmp_path / "state.db"), access=access))
    async with http_authentication(config, HERE) as front:
        assert path in front.page_paths or path.startswith("/login/")
        await front.pages(scope, receive, send)
    assert (said, sent) == ([], [])
