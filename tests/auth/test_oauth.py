"""Access tokens of an authorization server: which are good, where to get one, and how keys are changed."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OKPKey, RSAKey

from tests.auth.authority import authority
from tests.auth.person import Person
from tests.support.auth_oauth import RESOURCE, Clock, refused, way_of
from truename.auth.authentication_setup import http_authentication
from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure, ProtectedResource
from truename.auth.jwt import Invalid as InvalidToken
from truename.auth.jwt import KeySet, claimed_issuer, header_of, import_keys, is_signed, verify_token
from truename.config import Access, Config, Issuer, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.auth.authority import Authority
    from tests.gateway.conftest import Lab


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        yield one


pytestmark = pytest.mark.anyio


async def test_a_good_token_says_who_comes(idp: Authority) -> None:
    token = idp.sign(aud=RESOURCE, scope="read write", groups=["eng", 7, "x" * 300])
    async with way_of(idp, scopes=("read",)) as way:
        assert way.knows(token)
        found = await way.admit(token)
    assert isinstance(found, Authenticated)
    who = found.principal
    assert (who.name, who.issuer, who.client) == ("ann", idp.issuer, "cli")
    assert (who.groups, who.scopes) == (frozenset({"eng"}), frozenset({"read", "write"}))
    assert json.loads(who.key) == [idp.issuer, "ann"]


NOW = int(time.time())
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "expired": ({"exp": NOW - 3600}, "expired"),
    "never expires": ({"exp": None}, "expired"),
    "an end that is no time": ({"exp": 10**400}, "times are not valid"),
    "a text as its end": ({"exp": "2099"}, "expired"),
    "true as its end": ({"exp": True}, "expired"),
    "not yet": ({"nbf": NOW + 3600}, "not valid yet"),
    "from the future": ({"iat": NOW + 3600}, "issued in the future"),
    "another resource's": ({"aud": "https://other.example/mcp"}, "another resource"),
    "a part of our name": ({"aud": RESOURCE[:-1]}, "another resource"),
    "our name with more behind": ({"aud": RESOURCE + "/x"}, "another resource"),
    "for nobody": ({"aud": None}, "another resource"),
    "for an empty list": ({"aud": []}, "another resource"),
    "for a number": ({"aud": 7}, "another resource"),
    "nobody's": ({"sub": None}, "is not a usable name"),
    "an object's": ({"sub": {"a": 1}}, "or a claim is not valid"),
    "a control character's": ({"sub": "a\nb"}, "is not a usable name"),
    "endless name": ({"sub": "a" * 300}, "is not a usable name"),
    "an ID token": ({"at_hash": "x"}, "ID token"),
    "an ID token that came beside a code": ({"c_hash": "x"}, "ID token"),
    "a logout token under another type": ({"events": {}}, "logout token"),
    "an ID token of Keycloak's": ({"typ": "ID"}, "not an access token"),
    "a refresh token of Keycloak's": ({"typ": "Offline"}, "not an access token"),
    "an ID token of Cognito's": ({"token_use": "id"}, "not an access token"),
    "a refresh token that was asked about": ({"token_use": "refresh_token"}, "not an access token"),
    "a refresh token by its type": ({"token_type": "Refresh_Token"}, "not an access token"),
    "bound to a key": ({"cnf": {"jkt": "x"}}, "bound to a key"),
    "a client of no kind": ({"client_id": ["x"]}, "is not a usable name"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_token_with_wrong_claims_is_refused(idp: Authority, what: str) -> None:
    claims, text = WRONG[what]
    async with way_of(idp) as way:
        refused(await way.admit(idp.sign(**{"aud": RESOURCE, **claims})), text)


async def test_an_address_that_its_issuer_calls_not_verified_is_nobodys_name(idp: Authority) -> None:
    said: dict[str, Any] = {"aud": RESOURCE, "email": "ann@example.com"}
    async with way_of(idp, name_claim="email") as way:
        for yes in (None, True):
            assert isinstance(await way.admit(idp.sign(**said, email_verified=yes)), Authenticated)
        for no in (False, "false"):
            refused(await way.admit(idp.sign(**said, email_verified=no)), "not verified")


async def test_another_issuers_token_is_nobodys_here(idp: Authority) -> None:
    async with way_of(idp) as way:
        assert not way.knows(idp.sign(aud=RESOURCE, iss="https://evil.example"))
        assert not way.knows(idp.sign(aud=RESOURCE, iss=idp.issuer + "/"))
        assert not way.knows(idp.sign(aud=RESOURCE, iss=None))
        refused(await way.admit(idp.sign(aud=RESOURCE, iss="https://evil.example")), "another issuer")


async def test_signatures_that_prove_nothing_are_refused(idp: Authority) -> None:
    key, other = idp.keys[0], RSAKey.generate_key(2048, {"kid": idp.keys[0].kid})
    # joserfc would not do it: an attacker does it by hand.
    secret = key.as_pem(private=False)
    good = idp.sign(aud=RESOURCE)
    head, body, signature = good.split(".")
    forged = {
        "HMAC with the public key as its secret": _by_hand({"alg": "HS256", "kid": key.kid}, body, secret),
        "another key under the same name": idp.sign(key=other, aud=RESOURCE),
        "a key that it brings along": idp.sign({"jwk": other.as_dict(private=False)}, other, aud=RESOURCE),
        "a key from an address of its own": idp.sign({"jku": "https://evil.example/jwks"}, other, aud=RESOURCE),
        "a curve that it has not": idp.sign({"alg": "ES256"}, ECKey.generate_key("P-256"), aud=RESOURCE),
        "no signature": f"{head}.{body}.",
        "another's claims": f"{head}.{idp.sign(aud=RESOURCE, sub='root').split('.')[1]}.{signature}",
        "a kind of its own": idp.sign({"typ": "logout+jwt"}, aud=RESOURCE),
        "a number for a key": idp.sign({"kid": None}, other, aud=RESOURCE),
    }
    none = _unsigned({"alg": "none"}, {"iss": idp.issuer, "sub": "root", "aud": RESOURCE, "exp": NOW + 600})
    forged |= {"none": none, "None": none.replace(none.split(".")[0], _part({"alg": "NoNe"}))}
    forged |= {"critical": _unsigned({"alg": "RS256", "crit": ["x"], "x": 1}, {"iss": idp.issuer}) + signature}
    odd: tuple[Any, ...] = ([], {}, 7)
    forged |= {f"{kind!r} as its kind": _unsigned({"alg": "RS256", "typ": kind}, {}) + "x" for kind in odd}
    async with way_of(idp) as way:
        assert isinstance(await way.admit(good), Authenticated)
        for what, token in forged.items():
            found = await way.admit(token)
            assert (what, isinstance(found, AuthenticationFailure)) == (what, True)


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _part(content: dict[str, Any]) -> str:
    return _encoded(json.dumps(content).encode())


def _by_hand(head: dict[str, Any], body: str, secret: bytes) -> str:
    signed = f"{_part(head)}.{body}"
    return f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _unsigned(head: dict[str, Any], claims: dict[str, Any]) -> str:
    return f"{_part(head)}.{_part(claims)}."


@pytest.mark.parametrize(
    "row",
    [
        {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA", "kid": "a"},
        {"kty": "RSA", "kid": "a"},
        {"kty": "RSA", "n": 7, "e": "AQAB", "kid": "a"},
        {"kty": ["RSA"]},
        {**ECKey.generate_key("P-256").as_dict(private=False), "use": "enc"},
        {**ECKey.generate_key("P-256").as_dict(private=False), "key_ops": ["encrypt"]},
        {**ECKey.generate_key("P-256").as_dict(private=False), "kid": 7},
        ECKey.generate_key("P-256").as_dict(private=True),
        None,
        "key",
    ],
)
def test_what_is_no_public_key_for_signatures_is_left_out(row: Any) -> None:
    good = OKPKey.generate_key("Ed25519", {"kid": "good"}).as_dict(private=False)
    assert [key.kid for key in import_keys({"keys": [row, good]}).keys] == ["good"]
    assert import_keys({"keys": row}).keys == ()


@given(
    st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("latin-1")), st.from_regex(r"ey[!-~]*\.[!-~]*\.[!-~]*"))
)
def test_no_text_breaks_the_reader(text: str) -> None:
    claimed_issuer(text)
    if is_signed(text) and text.isascii():
        with pytest.raises(InvalidToken):
            verify_token(text, KeySet(), Issuer(issuer="x"), ("y",), 0.0)
        with pytest.raises(InvalidToken):
            header_of(text + "!")


async def test_a_new_key_is_looked_for_once(idp: Authority) -> None:
    clock = Clock()
    async with way_of(idp, clock) as way:
        old = idp.sign(aud=RESOURCE)
        assert isinstance(await way.admit(old), Authenticated)
        idp.rotate()
        new = idp.sign(aud=RESOURCE)
        # Just asked: anybody can send keys that nobody has.
        refused(await way.admit(new), "not among")
        clock.now += 11
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(way.admit, new)
        assert isinstance(await way.admit(new), Authenticated)
        # What was good under the old keys is looked at again, and is not any more.
        refused(await way.admit(old), "not among")
    assert len(idp.asked("/jwks")) == 2


async def test_keys_without_names_are_looked_for_too(idp: Authority) -> None:
    clock = Clock()
    async with way_of(idp, clock) as way:
        assert isinstance(await way.admit(idp.sign({"kid": None}, aud=RESOURCE)), Authenticated)
        idp.rotate()
        clock.now += 11
        assert isinstance(await way.admit(idp.sign({"kid": None}, aud=RESOURCE)), Authenticated)


async def test_an_issuer_that_is_down_is_believed_for_an_hour(idp: Authority) -> None:
    clock = Clock()
    async with way_of(idp, clock) as way:
        token = idp.sign(aud=RESOURCE, exp=NOW + 100_000)
        assert isinstance(await way.admit(token), Authenticated)
        idp.refuses = "/jwks"
        clock.now += 3_000
        assert isinstance(await way.admit(token), Authenticated)
        clock.now += 700
        refused(await way.admit(token), "cannot be checked", 503)
        idp.refuses = ""
        clock.now += 11
        assert isinstance(await way.admit(token), Authenticated)


async def test_metadata_of_another_issuer_is_not_believed(idp: Authority) -> None:
    idp.metadata = {"issuer": "https://evil.example"}
    async with way_of(idp) as way:
        refused(await way.admit(idp.sign(aud=RESOURCE)), "cannot be checked", 503)
    assert idp.asked("/jwks") == []


async def test_metadata_leads_to_no_metadata_service(idp: Authority) -> None:
    idp.metadata = {"jwks_uri": "http://169.254.169.254/latest/meta-data"}
    async with way_of(idp) as way:
        refused(await way.admit(idp.sign(aud=RESOURCE)), "cannot be checked", 503)


async def test_a_redirect_is_not_followed(idp: Authority) -> None:
    idp.metadata = {"jwks_uri": f"{idp.issuer}/elsewhere?to={idp.issuer}/jwks"}
    async with way_of(idp) as way:
        refused(await way.admit(idp.sign(aud=RESOURCE)), "cannot be checked", 503)
    assert idp.asked("/jwks") == []


async def test_too_few_scopes_are_told(idp: Authority) -> None:
    async with way_of(idp, scopes=("read", "write")) as way:
        found = await way.admit(idp.sign(aud=RESOURCE, scope="read"))
    refused(found, "lacks the scope write", 403)
    assert isinstance(found, AuthenticationFailure)
    assert found.scopes == ("read", "write")


async def test_only_clients_that_are_named_may_act(idp: Authority) -> None:
    async with way_of(idp, clients=("good",)) as way:
        assert isinstance(await way.admit(idp.sign(aud=RESOURCE, client_id="good")), Authenticated)
        assert isinstance(await way.admit(idp.sign(aud=RESOURCE, client_id=None, azp="good")), Authenticated)
        refused(await way.admit(idp.sign(aud=RESOURCE, client_id="bad")), "client is not allowed")
        refused(await way.admit(idp.sign(aud=RESOURCE, client_id=None)), "client is not allowed")


def test_the_resource_says_where_tokens_are() -> None:
    resource = ProtectedResource(identifier=RESOURCE, issuers=("https://idp.example",), scopes=("read",))
    told = resource.challenge(
        AuthenticationFailure(error="insufficient_scope", text='a "quoted" ťext\n', scopes=("read", "write"))
    )
    assert told == (
        'Bearer error="insufficient_scope", error_description="a quoted ext", '
        'resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp", scope="read write"'
    )
    assert resource.challenge(AuthenticationFailure()).startswith("Bearer resource_metadata=")
    assert ProtectedResource(identifier=RESOURCE).challenge(AuthenticationFailure()) == "Bearer"
    root = "/.well-known/oauth-protected-resource"
    assert resource.metadata_paths == (root, f"{root}/mcp", f"{root}/mcp/*")
    assert ProtectedResource(identifier=RESOURCE).metadata_paths == ()


async def test_a_real_client_signs_in_and_calls(lab: Lab, idp: Authority, era: str) -> None:
    access = Access(oauth={"idp": Issuer(issuer=idp.issuer, scopes=("read",))})
    async with lab.serving(lab.normal("w", "get"), access=access) as address:
        person = Person()
        with anyio.fail_after(30):
            async with person.connected(f"{address}/mcp", era) as client:
                done = await client.call_tool("w_get", {})
    assert not done.is_error
    assert len(person.visited) == 1
    asked = httpx2.URL(person.visited[0]).params
    assert (asked["resource"], asked["scope"], asked["code_challenge_method"]) == (f"{address}/mcp", "read", "S256")


async def test_a_client_that_is_let_in_no_more_renews_its_token(lab: Lab, idp: Authority) -> None:
    access = Access(oauth={"idp": Issuer(issuer=idp.issuer, scopes=("read",))})
    async with lab.serving(lab.normal("w", "get"), access=access) as address:
        person = Person()
        async with person.connected(f"{address}/mcp", "2026-07-28") as client:
            await client.call_tool("w_get", {})
        assert person.pocket.tokens is not None
        before = person.pocket.tokens.access_token
        person.pocket.tokens = person.pocket.tokens.model_copy(update={"access_token": idp.sign(aud="elsewhere")})
        async with person.connected(f"{address}/mcp", "2026-07-28") as client:
            assert not (await client.call_tool("w_get", {})).is_error
        assert person.pocket.tokens.access_token != before


async def test_what_is_answered_to_whom_is_not_let_in(lab: Lab, idp: Authority, raw: Callable[[str], Any]) -> None:
    access = Access(oauth={"idp": Issuer(issuer=idp.issuer, scopes=("read",))})
    async with lab.serving(lab.normal("w", "get"), access=access) as address, raw(address) as http:
        where = f"{address}/.well-known/oauth-protected-resource"
        cases = [
            (None, 401, f'Bearer resource_metadata="{where}/mcp", scope="read"'),
            (idp.sign(aud=f"{address}/mcp", exp=NOW - 900, scope="read"), 401, 'error="invalid_token"'),
            (idp.sign(aud="https://other.example", scope="read"), 401, 'error="invalid_token"'),
            (idp.sign(aud=f"{address}/mcp", scope="other"), 403, 'error="insufficient_scope"'),
            (idp.sign(aud=f"{address}/mcp", iss="https://evil.example"), 401, 'error="invalid_token"'),
            ("x" * 20_000, 401, 'error="invalid_token"'),
            (idp.sign(aud=f"{address}/mcp", scope="read"), 200, None),
        ]
        for token, status, told in cases:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            answer = await http.post("tools/list", {}, headers=headers)
            assert answer.status_code == status
            assert (told or "") in answer.headers.get("www-authenticate", "")
            assert token is None or token not in str(answer.headers) + (answer.text if status != 200 else "")
        in_query = await http.http.post(f"{address}/mcp?access_token={cases[-1][0]}", json={})
        assert in_query.status_code == 401
        for path in ("", "/mcp", "/mcp/for/cursor"):
            said = (await http.http.get(where + path)).json()
            assert said == {
                "resource": f"{address}/mcp",
                "authorization_servers": [idp.issuer],
                "bearer_methods_supported": ["header"],
                "resource_name": "truename",
                "scopes_supported": ["read"],
            }


async def test_the_public_url_is_the_resource(idp: Authority) -> None:
    access = Access(public_url="https://tools.example.com", oauth={"idp": Issuer(issuer=idp.issuer)})
    async with http_authentication(Config(settings=Settings(access=access)), "http://127.0.0.1:1") as front:
        found = await front.authenticators.admit([f"Bearer {idp.sign(aud=RESOURCE)}"])
        other = await front.authenticators.admit([f"Bearer {idp.sign(aud='http://127.0.0.1:1/mcp')}"])
    assert isinstance(found, Authenticated)
    assert isinstance(other, AuthenticationFailure)
