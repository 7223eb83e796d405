"""Token exchange: for the token that somebody came in with, one for the server; and never that token itself."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from joserfc.jws import extract_compact

from tests.auth.authority import Authority, authority
from tests.auth.exchange_grant import GRANT_TYPE
from tests.conformance.fixture import Everything
from tests.gateway.conftest import connected, text_of
from tests.support.auth_client_tokens import Clock, Guarded, Said
from truename.auth.inbound.authentication import Authenticated
from truename.auth.inbound.static_tokens import create_token, digest_of, token_id
from truename.auth.network.web import web
from truename.auth.outbound.tokens import CallerTokenNeeded, NoCredential, TokenExchanges
from truename.config import Access, Issuer, KnownToken
from truename.config.audit import Audit
from truename.config.credentials import TokenExchange
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
SECRET = "exch4nge-canary"
ADDRESS = "https://far.example/mcp"
GATEWAY = "https://tools.example/mcp"


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority(gateway=GATEWAY) as one:
        one.client("truename", secret=SECRET)
        yield one


def _said(idp: Authority, **more: Any) -> TokenExchange:
    return TokenExchange(**{"client_id": "truename", "client_secret": SECRET, "issuer": idp.issuer, **more})


def _access(idp: Authority) -> Access:
    return Access(public_url="https://tools.example", oauth={"idp": Issuer(issuer=idp.issuer)})


def _admitted(token: str, issuer: str, name: str = "ann", **more: Any) -> Authenticated:
    return Authenticated(principal=Principal(name=name, issuer=issuer), token=token, **more)


def _exchanges_of(idp: Authority) -> list[dict[str, str]]:
    return [form for form in idp.asked("/token") if form["grant_type"] == GRANT_TYPE]


async def test_each_caller_is_shown_by_a_token_of_their_own_and_their_first_one_reaches_no_server(
    idp: Authority, lab: Lab, upstreams: Upstreams, raw: Callable[[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    app = Guarded(Everything().server.streamable_http_app(), idp)
    shown = {name: idp.sign(sub=name, aud=GATEWAY, jti=f"c4nary-{name}") for name in ("ann", "bob")}
    async with upstreams.app(app) as url:
        address = f"{url}/mcp"
        idp.targets = {address}
        far = lab.at("far", address, auth=_said(idp, scopes=("read",)), isolation="user")

        async def call(name: str, token: str) -> str:
            before = len(app.calls)
            headers = {"authorization": f"Bearer {token}"}
            params = {"name": "test_simple_text", "arguments": {}}
            result = await http.result("tools/call", params, headers=headers)
            sent = app.calls[before:]
            given = {one.access_token for one in idp.tokens if one.user["sub"] == name and one.resource == address}
            assert all(one.removeprefix("Bearer ") in given for one in sent)
            return str(result["content"][0]["text"])

        audit = Audit(path=str(lab.folder / "audit"), arguments="redacted")
        async with lab.serving(far, access=_access(idp), audit=audit) as here, raw(here) as http:
            for name in ("ann", "bob", "ann", "bob"):
                assert (await call(name, shown[name])).startswith("This is")
            # Once for each of them, for this very server.
            asked = _exchanges_of(idp)
            assert [form["subject_token"] for form in asked] == [shown["ann"], shown["bob"]]
            assert {(form["resource"], form["scope"]) for form in asked} == {(address, "read")}
            # What is revoked there is not exchanged again once the server refuses what was given for it.
            idp.revoked.add(shown["ann"])
            idp.revoke(user={"sub": "ann"})
            calls = len(app.calls)
            assert "cannot exchange" in await call("ann", shown["ann"])
            assert "invalid_grant" in await call("ann", shown["ann"])
            assert all(not one.startswith("This is") for one in app.calls[calls:])
            assert (await call("bob", shown["bob"])).startswith("This is")
    everything = "\n".join(app.shown) + repr(lab.events)
    everything += "\n".join(one.getMessage() for one in caplog.records if not one.name.startswith("authlib"))
    for token in (*shown.values(), SECRET):
        assert token not in everything
    kept = b"".join(one.read_bytes() for one in lab.folder.rglob("*") if one.is_file())
    assert b"test_simple_text" in kept
    assert not any(token.encode() in kept for token in (*shown.values(), *(one.access_token for one in idp.tokens)))


class Paired:
    """A server that keeps whose call it was told by the arguments, and whose by the token; and how those logged in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.pairs: list[tuple[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (b"mcp-method", b"tools/call") not in scope.get("headers", ()):
            await self._app(scope, receive, send)
            return
        first = await receive()
        said = dict(scope["headers"])[b"authorization"].decode().removeprefix("Bearer ")
        claims = json.loads(extract_compact(said.encode()).payload or b"")
        whose = f"{claims['sub']} {claims['acr']}"
        self.pairs.append((json.loads(first["body"])["params"]["arguments"]["who"], whose))
        await self._app(scope, beginning_with(first, receive), send)


def beginning_with(first: Any, receive: Receive) -> Receive:
    waiting = [first]

    async def again() -> Any:
        return waiting.pop() if waiting else await receive()

    return again


async def test_each_of_many_calls_at_once_is_shown_by_what_was_given_for_its_own_token(
    idp: Authority, lab: Lab, upstreams: Upstreams, raw: Callable[[str], Any]
) -> None:
    names = ("ann", "bob", "eve")
    app = Paired(Everything().server.streamable_http_app())
    async with upstreams.app(app) as url:
        far = lab.at("far", f"{url}/mcp", auth=_said(idp), isolation="user")
        async with lab.serving(far, access=_access(idp)) as here, raw(here) as http:

            async def call(who: str, number: int) -> None:
                # Two of one person, for whom the gateway has one connection.
                token = idp.sign(sub=who, aud=GATEWAY, acr=f"{number % 2}")
                params = {"name": "test_simple_text", "arguments": {"who": f"{who} {number % 2}"}}
                await http.result("tools/call", params, headers={"authorization": f"Bearer {token}"})

            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    for who in names:
                        tasks.start_soon(call, who, number)
    calls = [f"{who} {number % 2}" for who in names for number in range(10)]
    assert sorted(app.pairs) == sorted(zip(calls, calls, strict=True))
    # However many at once: no token was exchanged twice.
    exchanged = [form["subject_token"] for form in _exchanges_of(idp)]
    assert len(set(exchanged)) == len(exchanged) >= 3


async def test_a_client_that_renews_its_token_goes_on_with_what_the_new_one_gives(
    idp: Authority, lab: Lab, upstreams: Upstreams, raw: Callable[[str], Any]
) -> None:
    app = Guarded(Everything().server.streamable_http_app(), idp)
    async with upstreams.app(app) as url:
        far = lab.at("far", f"{url}/mcp", auth=_said(idp), isolation="user")
        params = {"name": "test_simple_text", "arguments": {}}
        async with lab.serving(far, access=_access(idp)) as here, raw(here) as http:
            tokens = [
                idp.sign(aud=GATEWAY, jti=jti, scope=scope) for jti, scope in (("1", ""), ("2", ""), ("3", "write"))
            ]
            for token in (*tokens, tokens[0]):
                await http.result("tools/call", params, headers={"authorization": f"Bearer {token}"})
    assert len(set(app.calls)) == len(_exchanges_of(idp)) == 3
    # Who comes with few scopes is not shown by what was given for many.
    assert app.calls[3] == app.calls[0]


async def test_who_came_in_without_such_a_token_is_told_and_the_server_is_not_called(
    idp: Authority, lab: Lab, upstreams: Upstreams, raw: Callable[[str], Any]
) -> None:
    app = Guarded(Everything().server.streamable_http_app(), idp)
    static, _ = create_token("ann", groups=(), scopes=(), expires=None)
    known = KnownToken(name="ann", hash=f"tn1:{token_id(static)}:{digest_of(static)}")
    with authority() as other:
        issuers = {"idp": Issuer(issuer=idp.issuer), "other": Issuer(issuer=other.issuer)}
        access = Access(public_url="https://tools.example", oauth=issuers, tokens={"ann": known})
        foreign = other.sign(aud=GATEWAY, sub="ann")
        async with upstreams.app(app) as url:
            far = lab.at("far", f"{url}/mcp", auth=_said(idp), isolation="user")
            async with lab.serving(far, access=access) as here, raw(here) as http:
                for token, told in (
                    (static, "did not authenticate with an access token"),
                    (foreign, "tokens are not exchanged for this server"),
                ):
                    params = {"name": "test_simple_text", "arguments": {}}
                    result = await http.result("tools/call", params, headers={"authorization": f"Bearer {token}"})
                    text = result["content"][0]["text"]
                    assert told in text
                    assert "Authenticate with an access token of the authorization server" in text
            assert app.calls == []
            async with lab.serving(far) as here, connected(here + "/mcp", "2026-07-28") as local:
                assert "did not authenticate with an access token" in text_of(
                    await local.call_tool("test_simple_text", {})
                )
    assert app.calls == []
    assert foreign not in str(idp.seen)


async def test_without_a_token_of_the_gateways_own_nobody_lists_and_the_reason_is_told(
    idp: Authority, lab: Lab, upstreams: Upstreams
) -> None:
    idp.clients["truename"].check_grant_type = GRANT_TYPE.__eq__  # type: ignore[method-assign, assignment]
    app = Guarded(Everything().server.streamable_http_app(), idp)
    async with upstreams.app(app) as url:
        far = lab.at("far", f"{url}/mcp", auth=_said(idp), isolation="user")
        async with lab.gateway(far) as gateway:
            told = gateway.status().servers[0].error or ""
    assert "could not be sent an access token" in told
    assert "unauthorized_client" in told
    assert app.shown == []


async def test_no_exchange_is_sent_twice_and_none_outlives_the_token_that_it_was_for(idp: Authority) -> None:
    clock, stands = Clock(), [True]
    clock.now = time.time()
    idp.expires_in = 3_600
    token = idp.sign(aud=GATEWAY, exp=int(clock.now) + 7_200)
    admission = _admitted(token, idp.issuer, until=clock.now + 900, stands=lambda: stands[0])
    async with web() as fetch:
        exchanges = TokenExchanges(_said(idp), ADDRESS, fetch, clock)
        found: set[str] = set()

        async def take() -> None:
            found.add(await exchanges.token(admission))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(take)
        assert len(found) == len(_exchanges_of(idp)) == 1
        assert token not in repr(vars(exchanges)) + repr(admission)
        assert not any(one in repr(vars(exchanges)) for one in found)
        # The server did not take it: the next one is another, once for all that were told so.
        (first,) = found
        exchanges.refused(admission, first)
        second = await exchanges.token(admission)
        exchanges.refused(admission, first)
        assert second not in {first, token}
        assert await exchanges.token(admission) == second
        clock.now += 901
        with pytest.raises(CallerTokenNeeded, match="has expired or was revoked"):
            await exchanges.token(admission)
        later = _admitted(token, idp.issuer, until=clock.now + 900, stands=lambda: stands[0])
        assert await exchanges.token(later) == second
        stands[0] = False
        with pytest.raises(CallerTokenNeeded, match="has expired or was revoked"):
            await exchanges.token(later)


async def test_one_that_expires_is_exchanged_anew_a_tenth_of_its_life_before(idp: Authority) -> None:
    clock = Clock()
    clock.now = time.time()
    idp.expires_in = 100
    admission = _admitted(idp.sign(aud=GATEWAY), idp.issuer)
    async with web() as fetch:
        exchanges = TokenExchanges(_said(idp), ADDRESS, fetch, clock)
        first = await exchanges.token(admission)
        clock.now += 89
        assert await exchanges.token(admission) == first
        clock.now += 2
        assert await exchanges.token(admission) != first


@pytest.mark.parametrize(
    ("target", "claims", "error"),
    [
        ("https://other.example/mcp", {}, "invalid_target"),
        (ADDRESS, {"aud": "https://elsewhere.example"}, "invalid_grant"),
        (ADDRESS, {"exp": 1}, "invalid_grant"),
        (ADDRESS, {"iss": "https://evil.example"}, "invalid_grant"),
    ],
)
async def test_what_the_authorization_server_refuses_is_told_and_not_asked_for_by_each_call(
    target: str, claims: dict[str, Any], error: str, idp: Authority
) -> None:
    clock = Clock()
    clock.now = time.time()
    idp.targets = {target}
    token = idp.sign(**{"aud": GATEWAY, **claims})
    async with web() as fetch:
        exchanges = TokenExchanges(_said(idp), ADDRESS, fetch, clock)
        for _ in range(3):
            with pytest.raises(NoCredential, match=error) as caught:
                await exchanges.token(_admitted(token, idp.issuer))
            assert token not in str(caught.value)
        assert len(_exchanges_of(idp)) == 1
        # Another caller is nobody's failure.
        idp.targets = set()
        assert await exchanges.token(_admitted(idp.sign(aud=GATEWAY, sub="bob"), idp.issuer, "bob"))


GOOD: dict[str, Any] = {
    "access_token": "t",
    "token_type": "Bearer",
    "expires_in": 60,
    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({**GOOD, "issued_token_type": None}, "does not declare the issued token"),
        (
            {**GOOD, "issued_token_type": "urn:ietf:params:oauth:token-type:id_token"},
            "does not declare the issued token",
        ),
        (
            {**GOOD, "issued_token_type": ["urn:ietf:params:oauth:token-type:access_token"]},
            "does not declare the issued token",
        ),
        ({**GOOD, "token_type": "N_A"}, "not a bearer token"),
        ({**GOOD, "access_token": "the-callers-own"}, "returns the same token"),
        ({**GOOD, "access_token": "a b"}, "no usable access token"),
    ],
)
async def test_what_is_no_answer_to_an_exchange_is_shown_to_no_server(answer: dict[str, Any], problem: str) -> None:
    said = TokenExchange(
        client_id="c", client_secret=SECRET, token_url="https://idp.example/t", subject_issuers=("https://a.example",)
    )
    with pytest.raises(NoCredential, match=problem):
        await TokenExchanges(said, ADDRESS, Said(answer)).token(_admitted("the-callers-own", "https://a.example"))


async def test_the_gateways_own_words_for_what_is_asked_for() -> None:
    said = TokenExchange(
        client_id="c",
        client_secret=SECRET,
        token_url="https://idp.example/t",
        subject_issuers=("https://a.example",),
        resource="",
        audience="crm",
        requested_token_type="jwt",
        scopes=("a", "b"),
    )
    fetch = Said(GOOD)
    exchanges = TokenExchanges(said, ADDRESS, fetch)
    assert await exchanges.token(_admitted("x", "https://a.example")) == "t"
    (asked,) = fetch.forms
    assert asked["url"] == "https://idp.example/t"
    assert asked["form"] == {
        "grant_type": GRANT_TYPE,
        "subject_token": "x",
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "scope": "a b",
        "audience": "crm",
    }
    others = [_admitted("x", issuer) for issuer in ("", "https://b.example", "https://idp.example")]
    # Over standard input nobody is let in by anything.
    for nobody in (None, _admitted("", "https://a.example"), *others):
        with pytest.raises(CallerTokenNeeded):
            await exchanges.token(nobody)
    assert len(fetch.forms) == 1
