"""Access tokens that say nothing by themselves: their issuer is asked, and believed for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.support.auth_oauth import RESOURCE, Clock, refused, way_of
from truename.auth.inbound.authentication import Authenticated

if TYPE_CHECKING:
    from tests.auth.authority import Authority


pytestmark = pytest.mark.anyio


class Asked:
    """An issuer with opaque tokens, which the gateway asks."""

    def __init__(self, idp: Authority) -> None:
        idp.opaque = True
        self.idp = idp
        idp.client("gate", secret="s3cret:%/")
        idp.client("robot", secret="r")

    def token(self, resource: str | None = RESOURCE, scope: str = "read") -> str:
        form = {"grant_type": "client_credentials", "scope": scope, **({"resource": resource} if resource else {})}
        found = httpx2.post(f"{self.idp.issuer}/token", data=form, auth=("robot", "r")).json()
        return str(found["access_token"])

    @property
    def settings(self) -> dict[str, Any]:
        return {"introspection": "opaque", "client_id": "gate", "client_secret": "s3cret:%/"}


async def test_opaque_tokens_are_asked_about_and_believed_for_a_while(idp: Authority) -> None:
    asked, clock = Asked(idp), Clock()
    token = asked.token()
    async with way_of(idp, clock, **asked.settings) as way:
        assert way.knows(token)
        for _ in range(3):
            found = await way.admit(token)
            assert isinstance(found, Authenticated)
            assert found.principal.name == "robot"
            assert not found.is_lasting
        assert len(idp.asked("/introspect")) == 1
        idp.revoke(access_token=token)
        clock.now += 31
        refused(await way.admit(token), "reports it as inactive")
        refused(await way.admit("never-was"), "reports it as inactive")


@pytest.mark.parametrize("resource", ["https://other.example/mcp", None])
async def test_opaque_tokens_have_to_be_for_the_gateway(idp: Authority, resource: str | None) -> None:
    asked = Asked(idp)
    async with way_of(idp, **asked.settings) as way:
        refused(await way.admit(asked.token(resource)), "another resource")


async def test_opaque_tokens_expire(idp: Authority) -> None:
    asked, clock = Asked(idp), Clock()
    idp.expires_in = 10
    token = asked.token()
    async with way_of(idp, clock, leeway=1.0, **asked.settings) as way:
        assert isinstance(await way.admit(token), Authenticated)
        clock.now += 12
        refused(await way.admit(token), "expired")


async def test_signed_tokens_can_be_asked_about_too(idp: Authority) -> None:
    asked, clock = Asked(idp), Clock()
    idp.opaque = False
    token = asked.token()
    async with way_of(idp, clock, **{**asked.settings, "introspection": "always"}) as way:
        assert isinstance(await way.admit(token), Authenticated)
        idp.revoke(access_token=token)
        clock.now += 31
        refused(await way.admit(token), "reports it as inactive")
