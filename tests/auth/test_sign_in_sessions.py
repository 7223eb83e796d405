"""After somebody signed in: tokens are renewed, taken back, stolen, and outlive the gateway."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from joserfc.jws import extract_compact

from tests.auth.signing import Flow, close_all, fresh, is_let_in, settings_of, signing_in
from truename.config import Access, Config, Settings
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.auth.authority import Authority


pytestmark = [pytest.mark.slow, pytest.mark.anyio]


async def test_a_refresh_token_is_good_once_and_its_thief_ends_the_session(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        second = (await flow.renew(first["refresh_token"])).json()
        assert is_let_in(await flow.status(second["access_token"]))
        other = Flow(address)
        await other.register(client_name="another")
        assert (await other.renew(second["refresh_token"])).json()["error"] == "invalid_grant"
        assert (await flow.renew(second["access_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(second["refresh_token"]) == 401
        assert is_let_in(await flow.status(second["access_token"]))
        assert (await flow.renew(first["refresh_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(second["access_token"]) == 401
        assert (await flow.renew(second["refresh_token"])).json()["error"] == "invalid_grant"


async def test_two_who_renew_at_once_are_one_too_many(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        statuses: list[int] = []

        async def renew() -> None:
            statuses.append((await flow.renew(first["refresh_token"])).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(renew)
        assert 400 in statuses
        assert await flow.status(first["access_token"]) == 401


async def test_the_provider_is_asked_again_whether_somebody_may(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        idp.refuses = "/token"
        assert (await flow.renew(first["refresh_token"])).status_code == 503
        idp.refuses = ""
        second = (await flow.renew(first["refresh_token"])).json()
        assert is_let_in(await flow.status(second["access_token"]))
        idp.revoke()
        assert (await flow.renew(second["refresh_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(second["access_token"]) == 401


async def test_who_is_no_longer_allowed_is_out_at_the_next_renewal(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        idp.user = {**idp.user, "email": "ann@elsewhere.example"}
        assert (await flow.renew(first["refresh_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(first["access_token"]) == 401


async def test_a_client_can_sign_out(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        for kind in ("access_token", "refresh_token"):
            flow = Flow(address)
            await flow.register()
            tokens = (await flow.exchange(await flow.code())).json()
            other = {"token": tokens[kind], "client_id": "another"}
            assert (await flow.http.post(f"{address}/revoke", data=other)).status_code == 200
            assert is_let_in(await flow.status(tokens["access_token"]))
            own = {"token": tokens[kind], "client_id": flow.client_id}
            assert (await flow.http.post(f"{address}/revoke", data=own)).status_code == 200
            assert await flow.status(tokens["access_token"]) == 401
        assert (await flow.http.post(f"{address}/revoke", data={"token": "x", "client_id": "y"})).status_code == 200


async def test_tokens_of_the_provider_are_no_tokens_here(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        tokens = (await flow.exchange(await flow.code())).json()
        for theirs in idp.tokens:
            assert await flow.status(theirs.access_token) == 401
        claims = json.loads(_decoded(tokens["access_token"]))
        assert (claims["aud"], claims["iss"]) == (f"{address}/mcp", address)
        forged = idp.sign(**{**claims, "alg": None})
        assert await flow.status(forged) == 401


def _decoded(token: str) -> bytes:
    return extract_compact(token.encode()).payload


async def test_sign_ins_outlive_the_gateway(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        port = int(address.rpartition(":")[2])
        flow = Flow(address)
        await flow.register()
        tokens = (await flow.exchange(await flow.code())).json()
    access = Access(sign_in=settings_of(idp))
    config = Config(path=tmp_path / "truename.toml", settings=Settings(state=str(tmp_path / "state.db"), access=access))
    flow.http = fresh()
    async with Gateway(config) as gateway, listening(gateway, port=port):
        assert is_let_in(await flow.status(tokens["access_token"]))
        assert (await flow.renew(tokens["refresh_token"])).status_code == 200
        await close_all()
