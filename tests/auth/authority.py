# ruff: noqa: ARG002, C901 - Authlib calls these, with all that it has
# mypy: disable-error-code="import-untyped,misc"
"""A real authorization server on loopback: Authlib's, on Flask, in a thread of its own.

It signs access tokens (RFC 9068) or hands out opaque ones, has PKCE, refresh tokens, introspection, revocation,
registration of clients, OpenID Connect, and metadata. Whoever comes is signed in as `Authority.user`, without a page,
or with the page that `Authority.asks`.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeGrant, ClientCredentialsGrant, RefreshTokenGrant
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from authlib.oidc.core import OpenIDCode
from flask import Flask, jsonify, redirect, request
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.auth.exchange_grant import exchange_grant
from tests.auth.registry import Code, OwnClient, OwnToken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Authority", "authority"]


@dataclass
class Authority:
    """One authorization server; what is set here holds from the next request on."""

    issuer: str = ""
    opaque: bool = False
    expires_in: int = 600
    user: dict[str, Any] = field(default_factory=lambda: {"sub": "ann", "groups": ["eng"]})
    clients: dict[str, OwnClient] = field(default_factory=dict)
    audience: str | None = None
    keys: list[Any] = field(default_factory=list)
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: list[OwnToken] = field(default_factory=list)
    refuses: str = ""
    # The page of who comes to sign in: its form is posted here.
    asks: str = ""
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    registered: list[dict[str, Any]] = field(default_factory=list)
    # Reads the document of a client whose id is an address.
    read: Callable[[str], dict[str, Any]] | None = None
    # Token exchange: the audience of the tokens that it takes, for what it gives others, which it takes no more.
    gateway: str = ""
    targets: set[str] = field(default_factory=set)
    revoked: set[str] = field(default_factory=set)
    # While it is not set, nothing is answered at the token endpoint.
    gate: threading.Event = field(default_factory=threading.Event)
    answered: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    def known(self, id: str) -> OwnClient | None:
        if self.read is None or not id.startswith("https://"):
            return self.clients.get(id)
        said = self.read(id)
        assert said["client_id"] == id
        return OwnClient(id, "", tuple(said["redirect_uris"]))

    def client(self, id: str, *redirect_uris: str, secret: str = "") -> OwnClient:
        found = self.clients[id] = OwnClient(id, secret, redirect_uris)
        return found

    def rotate(self) -> None:
        """Sign with another key from now on, and forget the ones before."""
        self.keys = [RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})]

    def sign(self, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """Return a token of any kind; claims that are None are left out."""
        now = int(time.time())
        base = {"iss": self.issuer, "sub": "ann", "iat": now, "exp": now + 600, "client_id": "cli", "jti": "x"}
        said = {name: value for name, value in {**base, **claims}.items() if value is not None}
        head = {"alg": "RS256", "typ": "at+jwt", "kid": self.keys[0].kid, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        return jwt.encode(head, said, key or self.keys[0], algorithms=[head["alg"]], default_type=None)

    def revoke(self, **matching: Any) -> None:
        for token in self.tokens:
            if all(getattr(token, name) == value for name, value in matching.items()):
                token.revoked = True

    def asked(self, path: str) -> list[dict[str, str]]:
        return [form for where, form in self.seen if where == path]


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Say nothing."""


_FIRST = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})


@contextmanager
def authority(**settings: Any) -> Iterator[Authority]:
    """Run one on a port of its own while the block lasts."""
    one = Authority(**settings)
    # Making keys takes long; which one comes first is all the same.
    one.keys = [_FIRST]
    server = make_server("127.0.0.1", 0, _app(one), threaded=True, request_handler=_Quiet)
    one.issuer = f"http://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _app(one: Authority) -> Flask:
    app = Flask("authority")

    def save_token(token: dict[str, Any], asked: Any) -> None:
        code = asked.authorization_code
        before = asked.refresh_token
        resource = code.resource if code else before.resource if before else asked.payload.data.get("resource")
        one.tokens.append(
            OwnToken(
                token["access_token"],
                token.get("refresh_token", ""),
                asked.client,
                token.get("scope") or "",
                asked.user or {"sub": asked.client.id},
                resource,
                one.expires_in,
                time.time(),
            )
        )

    server = AuthorizationServer()
    server.init_app(app, query_client=one.known, save_token=save_token)
    _register(server, one)
    _routes(app, server, one)
    return app


def _register(server: Any, one: Authority) -> None:
    class CodeGrant(AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

        def save_authorization_code(self, code: str, asked: Any) -> None:
            said = asked.payload.data
            one.codes[code] = Code(
                code,
                asked.client.id,
                asked.payload.redirect_uri,
                asked.payload.scope or "",
                dict(one.user),
                said.get("resource"),
                said.get("nonce"),
                said.get("code_challenge"),
                said.get("code_challenge_method"),
            )

        def query_authorization_code(self, code: str, client: OwnClient) -> Code | None:
            found = one.codes.get(code)
            return found if found and found.client_id == client.id else None

        def delete_authorization_code(self, authorization_code: Code) -> None:
            one.codes.pop(authorization_code.code, None)

        def authenticate_user(self, authorization_code: Code) -> dict[str, Any]:
            return authorization_code.user

    class Refresh(RefreshTokenGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, refresh_token: str) -> OwnToken | None:
            found = [token for token in one.tokens if token.refresh_token == refresh_token and not token.revoked]
            return found[-1] if found else None

        def authenticate_user(self, refresh_token: OwnToken) -> dict[str, Any]:
            return dict(one.user)

        def revoke_old_credential(self, refresh_token: OwnToken) -> None:
            refresh_token.revoked = True

    class Signed(JWTBearerTokenGenerator):
        def __init__(self) -> None:
            super().__init__(
                issuer=one.issuer,
                refresh_token_generator=lambda *_, **__: secrets.token_urlsafe(16),
                expires_generator=lambda *_: one.expires_in,
            )

        def get_jwks(self) -> Any:
            return one.keys[0]

        def get_audiences(self, client: OwnClient, user: Any, scope: str) -> Any:
            said = request.form.get("resource")
            return one.audience or said or client.id

        def get_extra_claims(self, client: OwnClient, grant_type: str, user: Any, scope: str) -> dict[str, Any]:
            return {"groups": (user or {}).get("groups", [])}

        def access_token_generator(self, client: Any, grant_type: str, user: Any, scope: str) -> str:
            self.issuer = one.issuer
            user = None if user is None else _User(user)
            found: str = super().access_token_generator(client, grant_type, user, scope)
            return found

    opaque = BearerTokenGenerator(
        lambda *_, **__: secrets.token_urlsafe(24),
        lambda *_, **__: secrets.token_urlsafe(16),
        lambda *_: one.expires_in,
    )
    signed = Signed()

    def generate(*args: Any, **more: Any) -> Any:
        return (opaque if one.opaque else signed)(*args, **more)

    class Identity(OpenIDCode):
        def exists_nonce(self, nonce: str, _: Any) -> bool:
            return False

        def get_client_claims(self, client: OwnClient) -> dict[str, Any]:
            return {"iss": one.issuer, "aud": [client.id]}

        def get_client_algorithm(self, client: OwnClient) -> str:
            return "RS256"

        def get_compatible_claims(self, asked: Any) -> dict[str, Any]:
            now = int(time.time())
            return {"iss": one.issuer, "aud": [asked.client.id], "iat": now, "exp": now + 600}

        def get_encode_header(self, client: OwnClient) -> dict[str, Any]:
            return {"alg": "RS256", "kid": one.keys[0].kid}

        def resolve_client_private_key(self, client: OwnClient) -> Any:
            return one.keys[0]

        def generate_user_info(self, user: dict[str, Any], scope: str) -> dict[str, Any]:
            return dict(user)

    class Introspect(IntrospectionEndpoint):
        def check_permission(self, token: OwnToken, client: OwnClient, _: Any) -> bool:
            return True

        def query_token(self, token_string: str, token_type_hint: str) -> OwnToken | None:
            return next((token for token in one.tokens if token.access_token == token_string), None)

        def introspect_token(self, token: OwnToken) -> dict[str, Any]:
            said = {
                "active": True,
                "client_id": token.client.id,
                "sub": token.user["sub"],
                "groups": token.user.get("groups", []),
                "scope": token.scope,
                "aud": one.audience or token.resource,
                "iss": one.issuer,
                "exp": int(token.made + token.expires_in),
            }
            return {name: value for name, value in said.items() if value is not None}

    class Revoke(RevocationEndpoint):
        CLIENT_AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

        def query_token(self, token_string: str, token_type_hint: str) -> OwnToken | None:
            return next((t for t in one.tokens if token_string in {t.access_token, t.refresh_token}), None)

        def revoke_token(self, token: OwnToken, _: Any) -> None:
            token.revoked = True

    class Issuer(IssuerParameter):
        def get_issuer(self) -> str:
            return one.issuer

    server.register_token_generator("default", generate)
    server.register_grant(CodeGrant, [CodeChallenge(required=False), Identity()])
    server.register_grant(Refresh)
    server.register_grant(ClientCredentialsGrant)
    server.register_grant(exchange_grant(one, OwnToken))
    server.register_endpoint(Introspect)
    server.register_endpoint(Revoke)
    server.register_extension(Issuer())


class _User(dict[str, Any]):
    def get_user_id(self) -> str:
        return str(self["sub"])


def _routes(app: Flask, server: Any, one: Authority) -> None:
    @app.before_request
    def note() -> Any:
        one.seen.append((request.path, {**request.args.to_dict(), **request.form.to_dict()}))
        if request.path == "/token":
            one.gate.wait()
        if one.refuses and request.path == one.refuses:
            return jsonify(error="server_error"), 503
        return None

    @app.teardown_request
    def count(_: BaseException | None) -> None:
        one.answered += 1

    @app.get("/.well-known/oauth-authorization-server")
    @app.get("/.well-known/openid-configuration")
    def metadata() -> Any:
        return jsonify(
            {
                "issuer": one.issuer,
                **{
                    name: one.issuer + path
                    for name, path in (
                        ("authorization_endpoint", "/authorize"),
                        ("token_endpoint", "/token"),
                        ("introspection_endpoint", "/introspect"),
                        ("revocation_endpoint", "/revoke"),
                        ("registration_endpoint", "/register"),
                        ("userinfo_endpoint", "/userinfo"),
                        ("jwks_uri", "/jwks"),
                    )
                },
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
                **one.metadata,
            }
        )

    @app.get("/jwks")
    def jwks() -> Any:
        return jsonify(KeySet(list(one.keys)).as_dict())

    @app.route("/authorize", methods=["GET", "POST"])
    def authorize() -> Any:
        if one.asks and request.method == "GET":
            return one.asks
        grant = server.get_consent_grant(end_user=one.user)
        return server.create_authorization_response(grant_user=one.user, grant=grant)

    @app.post("/token")
    def token() -> Any:
        return server.create_token_response()

    @app.post("/introspect")
    def introspect() -> Any:
        return server.create_endpoint_response("introspection")

    @app.post("/revoke")
    def revoke() -> Any:
        return server.create_endpoint_response("revocation")

    @app.get("/userinfo")
    def userinfo() -> Any:
        value = request.headers.get("authorization", "").removeprefix("Bearer ")
        found = [t for t in one.tokens if t.access_token == value and not t.revoked and not t.is_expired()]
        return jsonify(found[-1].user) if found else (jsonify(error="invalid_token"), 401)

    @app.post("/register")
    def register() -> Any:
        said = request.get_json()
        one.registered.append(said)
        secret = secrets.token_urlsafe(24) if said.get("token_endpoint_auth_method") == "client_secret_basic" else ""
        found = one.client(secrets.token_hex(8), *said["redirect_uris"], secret=secret)
        more = {"client_secret": secret} if secret else {"token_endpoint_auth_method": "none"}
        return jsonify({**said, "client_id": found.id, **more}), 201

    @app.get("/elsewhere")
    def elsewhere() -> Any:
        return redirect(request.args["to"])
