"""Who comes in: bearer tokens, signed ones, and the documents of authorization servers and of clients.

Nobody is let in but by the very token that is good, and what other servers say is either taken or a typed fault.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from joserfc import jws, jwt
from joserfc.jwk import ECKey

from tests.fuzz.judging import must
from tests.fuzz.mutation import changed, mutated, mutated_bytes, text, value
from truename.auth.authorization_server.clients import RegisteredClients, redirect_error
from truename.auth.authorization_server.tokens import TokenIssuer
from truename.auth.inbound.authentication import Authenticated, Authenticators, ProtectedResource
from truename.auth.inbound.issuer_tokens import IssuerAuthenticator
from truename.auth.inbound.static_tokens import StaticTokenStore, digest_of, generate_token
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.oauth import IssuerClient, TokenResponse, parse_token_response
from truename.config import Issuer, KnownToken

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from random import Random

__all__ = ["TARGETS", "Net", "done"]

T = TypeVar("T")
_ISSUER: Final = "https://idp.example"
_HERE: Final = "https://tools.example/mcp"
_NOW: Final = 1_800_000_000


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def done(what: Coroutine[Any, Any, T]) -> T:
    return _loop().run_until_complete(asyncio.wait_for(what, 20.0))


@dataclass
class Net:
    """A network of a few documents; all else is not there."""

    pages: dict[str, bytes] = field(default_factory=dict)
    status: int = 200

    async def __call__(self, url: str, **_: Any) -> FetchedDocument:
        found = self.pages.get(url)
        return FetchedDocument(404, b"") if found is None else FetchedDocument(self.status, found)

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC


@cache
def _known() -> tuple[str, Authenticators]:
    text_, id = generate_token()
    known = KnownToken(name="ann", hash=f"tn1:{id}:{digest_of(text_)}")
    return text_, Authenticators(StaticTokenStore(None, {"ann": known}), token="the-one", token_name="one")


def bearer_tokens(chance: Random) -> None:
    token, doors = _known()
    given = chance.choice((token, "the-one", text(chance)))
    for _ in range(chance.choice((0, 1, 1, 2))):
        given = mutated(chance, given)
    headers = [f"{chance.choice(('Bearer', 'bearer', 'Basic', text(chance)[:20]))} {given}"]
    headers *= chance.choice((1, 1, 1, 0, 2))
    found = done(doors.admit(headers))
    if isinstance(found, Authenticated):
        must(given.strip(" ") in {token, "the-one"}, "nobody comes in by another token")
        must(found.principal.name == ("ann" if given.strip(" ") == token else "one"), "and as nobody else")
        must(len(headers) == 1, "nor by one of several")
    else:
        challenge = ProtectedResource(identifier=_HERE, issuers=(), scopes=(), name="x").challenge(found)
        must(challenge.isascii() and challenge.isprintable(), "what is said of it can stand in a header")


@cache
def _key() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "one", "use": "sig", "alg": "ES256"})


@cache
def _pages() -> dict[str, bytes]:
    told = {"issuer": _ISSUER, "jwks_uri": f"{_ISSUER}/keys", "introspection_endpoint": f"{_ISSUER}/ask"}
    keys = {"keys": [_key().as_dict(private=False)]}
    well_known = f"{_ISSUER}/.well-known/oauth-authorization-server"
    return {well_known: json.dumps(told).encode(), f"{_ISSUER}/keys": json.dumps(keys).encode()}


_CLAIMS: Final[dict[str, Any]] = {
    "iss": _ISSUER,
    "aud": _HERE,
    "sub": "ann",
    "exp": _NOW + 600,
    "iat": _NOW,
    "client_id": "cli",
    "scope": "read write",
    "groups": ["eng"],
    "jti": "x",
}
_HEAD: Final = {"alg": "ES256", "typ": "at+jwt", "kid": "one"}


def _signed(head: Mapping[str, Any], claims: Any) -> str:
    payload = json.dumps(claims).encode("utf-8", "surrogatepass")
    registry = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)
    return jws.serialize_compact(dict(head), payload, _key(), registry=registry)


@cache
def _good() -> str:
    return jwt.encode(_HEAD, _CLAIMS, _key(), algorithms=["ES256"])


def _parts(token: str) -> list[bytes]:
    return [urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")]


def signed_tokens(chance: Random) -> None:
    way = IssuerAuthenticator(Issuer(issuer=_ISSUER), _HERE, Net(_pages()), lambda: float(_NOW))
    forged = chance.choice((_mutated_token, _other_signature, None))
    claims: Any = _CLAIMS
    if forged is None:
        for _ in range(chance.choice((0, 1, 2, 3))):
            claims = changed(chance, claims)
        token = _signed({**_HEAD, **chance.choice(({}, {"typ": text(chance)}, {"x": value(chance)}))}, claims)
    else:
        token = forged(chance)
    found = done(way.admit(token)) if way.knows(token) else None
    if not isinstance(found, Authenticated):
        return
    if forged is not None:
        must(_parts(token)[:2] == _parts(_good())[:2], "nobody comes in by what was not signed")
        return
    must(claims["iss"] == _ISSUER and _HERE in (claims["aud"], *claims["aud"]), "it was for here")
    must(claims["exp"] > _NOW - 31, "it has not expired")
    must(found.principal.name == str(claims["sub"]), "it is whose it says")


def _mutated_token(chance: Random) -> str:
    token = _good()
    for _ in range(chance.choice((1, 1, 2))):
        token = mutated(chance, token)
    return token


def _other_signature(chance: Random) -> str:
    """Sign other claims with what is public, or not at all."""
    algorithm = chance.choice(("HS256", "none", "NONE", "ES256", "", "RS256"))
    head = {**_HEAD, "alg": algorithm, **chance.choice(({}, {"jwk": _key().as_dict()}, {"crit": ["exp"]}))}
    plain = (json.dumps(one).encode() for one in (head, {**_CLAIMS, "sub": "root"}))
    begun = b".".join(urlsafe_b64encode(one).rstrip(b"=") for one in plain)
    mac = hmac.digest(_key().as_pem(private=False), begun, "sha256")
    mac = mac if algorithm == "HS256" else chance.randbytes(chance.choice((0, 64)))
    return (begun + b"." + urlsafe_b64encode(mac).rstrip(b"=")).decode()


_METADATA: Final[dict[str, Any]] = {
    "issuer": _ISSUER,
    "authorization_endpoint": f"{_ISSUER}/authorize",
    "token_endpoint": f"{_ISSUER}/token",
    "jwks_uri": f"{_ISSUER}/keys",
    "introspection_endpoint": f"{_ISSUER}/ask",
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": ["none"],
}
_INTROSPECTED: Final = {**_CLAIMS, "active": True}
_TOKENS: Final = {"access_token": "abc", "token_type": "Bearer", "expires_in": 600, "refresh_token": "r"}


def documents_of_authorities(chance: Random) -> None:
    pages = {
        f"{_ISSUER}/.well-known/oauth-authorization-server": _document(chance, _METADATA),
        f"{_ISSUER}/keys": _document(chance, json.loads(_pages()[f"{_ISSUER}/keys"])),
        f"{_ISSUER}/ask": _document(chance, _INTROSPECTED),
    }
    net = Net(pages, chance.choice((200, 200, 200, 200, 302, 404, 500)))
    issuer = Issuer(issuer=_ISSUER, introspection=chance.choice(("never", "opaque", "always")), client_id="x")
    way = IssuerAuthenticator(issuer, _HERE, net, lambda: float(_NOW))
    token = chance.choice((_good(), "opaque"))
    found = done(way.admit(token))
    if isinstance(found, Authenticated):
        must(found.principal.name.isprintable() and len(found.principal.name) <= 256, "a name is short and printable")
        must(found.until is not None and found.until > _NOW - 31, "it has not expired")
    for name in ("token_endpoint", "jwks_uri"):
        try:
            url = done(IssuerClient(_ISSUER, net, time.time).endpoint(name, None))
        except FetchError as fault:
            must(len(str(fault)) < 2_000, "a fault is short")
        else:
            must(url.startswith("https://"), "it stays with HTTPS")


def _document(chance: Random, content: Any) -> bytes:
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        content = changed(chance, content)
    raw = json.dumps(content).encode()
    return mutated_bytes(chance, raw) if chance.random() < 0.2 else raw


def answers_of_authorities(chance: Random) -> None:
    status = chance.choice((200, 200, 200, 400, 401, 302, 500))
    said = chance.choice((_TOKENS, {"error": chance.choice(("invalid_grant", text(chance)))}))
    try:
        found = parse_token_response(FetchedDocument(status, _document(chance, said)), float(_NOW))
    except FetchError as fault:
        must(str(fault).isascii() and len(str(fault)) < 300, "a refusal is told in short, and repeats nothing")
        return
    must(
        isinstance(found, TokenResponse) and found.token.isascii() and found.token.isprintable(),
        "a token fits a header",
    )
    must(found.until > _NOW - 1, "it is good for a time")


_CLIENT: Final = "https://client.example/id.json"
_DOCUMENT: Final = {
    "client_id": _CLIENT,
    "client_name": "A client",
    "redirect_uris": ["https://client.example/back"],
    "token_endpoint_auth_method": "none",
}


def documents_of_clients(chance: Random) -> None:
    issued = TokenIssuer(b"k" * 32, _HERE, lambda: float(_NOW))
    net = Net({_CLIENT: _document(chance, _DOCUMENT)})
    clients = RegisteredClients(
        issued, net, issuer=_HERE, scopes=("use",), schemes=("cursor",), clock=lambda: float(_NOW)
    )
    found = done(clients.get(chance.choice((_CLIENT, _CLIENT, mutated(chance, _CLIENT), text(chance)))))
    if found is not None:
        uris = [str(uri) for uri in found.redirect_uris or ()]
        must(bool(uris) and all(redirect_error(uri, ("cursor",)) is None for uri in uris), "it leads where it may")
        name = found.client_name or ""
        must(name.isprintable() and len(name) <= 80, "a name can be shown")


TARGETS: Final = (bearer_tokens, signed_tokens, documents_of_authorities, answers_of_authorities, documents_of_clients)
