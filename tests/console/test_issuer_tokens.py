"""People log in to the console with tokens of an OAuth issuer: claims give the role, and nothing else does."""

from __future__ import annotations

import re
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from joserfc.jwk import RSAKey

from tests.auth.authority import Authority, authority
from tests.console.conftest import Browser, sessions_in
from truename.config import Access, Issuer
from truename.config.console import ConsoleAccess
from truename.console import console_routes
from truename.gateway import listening
from truename.policy.principal_selector import PrincipalSelector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio
ROLE = re.compile(r"<small>(viewer|approver|operator)</small>")
CLAIMS: dict[str, tuple[dict[str, Any], str | None]] = {
    "a group": ({"groups": ["approvers"]}, "approver"),
    "several groups": ({"groups": ["viewers", "approvers"]}, "approver"),
    "a scope": ({"scope": "read console.operate"}, "operator"),
    "a group and a scope": ({"groups": ["viewers"], "scope": "console.operate"}, "operator"),
    "nothing": ({}, None),
    "a group that is a scope": ({"scope": "approvers"}, None),
    "a scope that is a group": ({"groups": ["console.operate"]}, None),
    "a part of a group": ({"groups": ["approver", "approvers2", "Approvers", " approvers"]}, None),
    "no list": ({"groups": {"approvers": True}}, None),
    "a list in a list": ({"groups": [["approvers"]]}, None),
    "a role": ({"role": "operator", "roles": ["operator"]}, None),
    "a name of this gateway's tokens": ({"sub": "op"}, None),
    "the name of its one user": ({"sub": "local"}, None),
}


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        yield one


@asynccontextmanager
async def serving_for(idp: Authority, lab: Lab) -> AsyncIterator[str]:
    """Serve a gateway whose clients have tokens of an issuer; give its address."""
    roles = ConsoleAccess(
        viewer=PrincipalSelector(groups=("viewers",), principals=("local",)),
        approver=PrincipalSelector(groups=("approvers",)),
        operator=PrincipalSelector(scopes=("console.operate",), principals=("op",)),
    )
    state, access = str(lab.folder / "state.db"), Access(oauth={"idp": Issuer(issuer=idp.issuer)})
    async with (
        lab.gateway(lab.normal("fs", "write"), state=state, access=access, console=roles) as gateway,
        listening(gateway, more=partial(console_routes, gateway)) as address,
    ):
        yield address


async def test_claims_give_a_role(idp: Authority, lab: Lab) -> None:
    async with serving_for(idp, lab) as address:
        for what, (claims, role) in CLAIMS.items():
            async with Browser(address) as browser:
                page = await browser.post("/console/login", token=idp.sign(aud=f"{address}/mcp", **claims))
                found = ROLE.search(page.text)
                assert (what, found and found[1], page.status_code) == (what, role, 403 if role is None else 200)
                assert ("fs@1" in (await browser.get("/console/tools")).text) is (role is not None), what


async def test_a_token_that_does_not_count_at_the_gateway_begins_no_session(idp: Authority, lab: Lab) -> None:
    async with serving_for(idp, lab) as address:
        good: dict[str, Any] = {"aud": f"{address}/mcp", "groups": ["approvers"]}
        other = RSAKey.generate_key(2048, {"kid": idp.keys[0].kid})
        tokens = {
            "of another resource": idp.sign(**{**good, "aud": "https://other.example/mcp"}),
            "of the console alone": idp.sign(**{**good, "aud": f"{address}/console"}),
            "expired": idp.sign(**good, exp=int(time.time()) - 3_600),
            "of another issuer": idp.sign(**good, iss="https://evil.example"),
            "with another key": idp.sign(key=other, **good),
            "not signed": f"{idp.sign(**good).rpartition('.')[0]}.",
            "an ID token": idp.sign(**good, at_hash="x"),
        }
        for what, token in tokens.items():
            async with Browser(address) as browser:
                answer = await browser.post("/console/login", token=token)
                assert (what, answer.status_code, sessions_in(browser.cookies)) == (what, 403, [])


async def test_a_session_ends_with_the_token_of_the_issuer(idp: Authority, lab: Lab) -> None:
    async with serving_for(idp, lab) as address, Browser(address) as browser:
        # Clocks may differ by the leeway of the issuer.
        ends = int(time.time()) - int(Issuer(issuer=idp.issuer).leeway) + 3
        token = idp.sign(aud=f"{address}/mcp", groups=["approvers"], exp=ends)
        assert (await browser.post("/console/login", token=token)).status_code == 200
        kept = browser.cookies
        with anyio.fail_after(20):
            while "fs@1" in (await browser.get("/console/tools")).text:
                await anyio.sleep(0.1)
        # Not only the browser forgot it.
        browser.forget(kept)
        assert "fs@1" not in (await browser.get("/console/tools")).text
