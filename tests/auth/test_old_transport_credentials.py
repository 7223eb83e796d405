"""Servers of the old SSE transport that need a login, or lead elsewhere: told apart as those of the new one are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Route

from tests.conformance.fixture import Everything
from tests.gateway.conftest import connected, text_of
from tests.gateway.old_transport import old_app
from tests.support.auth_client_tokens import SECRET, Guarded
from tests.support.auth_login_questions import TOOL, logs_in
from truename.auth.oauth import TokenResponse
from truename.auth.outbound.logins import Logins
from truename.auth.vault import open_vault
from truename.config import Config, ServerConfig, Settings
from truename.config.credentials import Login
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

    from tests.auth.authority import Authority
    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


async def test_a_call_asks_for_the_login_that_a_server_of_the_old_transport_needs(
    idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    idp.client("truename", secret=SECRET)
    said = Login(issuer=idp.issuer, client_id="truename", client_secret=SECRET)
    app = Guarded(old_app(Everything().server), idp)
    asked: list[str] = []

    async def elicited(_: object, params: Any) -> types.ElicitResult:
        asked.append(params.url)
        await logs_in(params.url)
        return types.ElicitResult(action="accept")

    async with upstreams.app(app) as url:
        address = f"{url}/sse"
        far = ServerConfig(key="far", url=address, type="sse", auth=said, isolation="user")
        config = Config(
            path=tmp_path / "truename.toml", servers=(far,), settings=Settings(state=str(tmp_path / "state.db"))
        )
        with open_vault(config) as vault:
            Logins(said, address, vault).keep("local", TokenResponse("listing", float("inf"), ""))
        app.also.add("Bearer listing")
        async with Gateway(config) as gateway, listening(gateway) as here:
            idp.client("truename", f"{here}/login/callback", secret=SECRET)
            with open_vault(config) as vault:
                Logins(said, address, vault).forget("local")
            async with connected(f"{here}/mcp", "legacy", elicitation_callback=elicited) as client:
                assert text_of(await client.call_tool(TOOL, {})).startswith("This is")
    assert len(asked) == 1


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_why_nothing_is_listed_is_told_whatever_the_transport(
    kind: Any, idp: Authority, lab: Lab, upstreams: Upstreams
) -> None:
    def back(_: Request) -> RedirectResponse:
        return RedirectResponse("http://127.0.0.1:1/elsewhere", 307)

    def away(_: Request) -> RedirectResponse:
        return RedirectResponse(f"{there}/there", 307)

    methods = ["GET", "POST"]
    login: dict[str, Any] = {"auth": Login(issuer=idp.issuer, client_id="truename"), "isolation": "user"}
    async with (
        upstreams.app(Starlette(routes=[Route("/there", back, methods=methods)])) as there,
        upstreams.app(Starlette(routes=[Route("/at", away, methods=methods)])) as url,
    ):
        leading: dict[str, Any] = {"allow_redirects": (there.removeprefix("http://"),)}
        for more, told in ((login, "needs a login"), (leading, "redirects to another address")):
            async with lab.gateway(ServerConfig(key="far", url=f"{url}/at", type=kind, **more)) as gateway:
                assert told in (gateway.status().servers[0].error or "")
