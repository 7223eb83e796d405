# mypy: disable-error-code="import-untyped,misc"
"""Token exchange at the authorization server of the tests: RFC 8693 as its sections 2.1 and 2.2 have it, strictly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from authlib.oauth2.rfc6749 import BaseGrant, TokenEndpointMixin
from authlib.oauth2.rfc6749.errors import OAuth2Error
from joserfc import jwt
from joserfc.errors import JoseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.auth.authority import Authority

__all__ = ["GRANT_TYPE", "exchange_grant"]

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
_TYPES = "urn:ietf:params:oauth:token-type:"


class _Refused(OAuth2Error):
    status_code = 400

    def __init__(self, error: str) -> None:
        super().__init__()
        self.error = error


def exchange_grant(one: Authority, kept: Callable[..., Any]) -> type[Any]:
    """Return the grant of one authorization server: for tokens of its own that are good for the gateway."""

    class Exchange(BaseGrant, TokenEndpointMixin):
        GRANT_TYPE = GRANT_TYPE
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

        def validate_token_request(self) -> None:
            client = self.authenticate_token_endpoint_client()
            form = self.request.form
            if any(value.startswith(_TYPES) is False for name, value in form.items() if name.endswith("_token_type")):
                raise _Refused("invalid_request")
            if form.get("subject_token_type") != f"{_TYPES}access_token" or "actor_token" in form:
                raise _Refused("invalid_request")
            self.request.client = client
            self.subject = self._judged(form["subject_token"])
            target = form.get("audience") or form.get("resource")
            if target is None or (one.targets and target not in one.targets):
                raise _Refused("invalid_target")
            self.target = target

        def _judged(self, token: str) -> dict[str, Any]:
            if token in one.revoked:
                raise _Refused("invalid_grant")
            try:
                claims = jwt.decode(token, one.keys[0], algorithms=["RS256"]).claims
            except (JoseError, ValueError) as error:
                raise _Refused("invalid_grant") from error
            if claims["iss"] != one.issuer or claims["exp"] <= time.time() or claims["aud"] != one.gateway:
                raise _Refused("invalid_grant")
            return dict(claims)

        def create_token_response(self) -> Any:
            client, now = self.request.client, int(time.time())
            lasting = min(one.expires_in, self.subject["exp"] - now)
            scope = client.get_allowed_scope(self.request.form.get("scope"))
            user = {"sub": self.subject["sub"]}
            act = {"sub": client.id}
            # How somebody proved who they are goes over to what they get.
            said = {"sub": user["sub"], "aud": self.target, "scope": scope, "act": act, "acr": self.subject.get("acr")}
            token = one.sign(**said, exp=now + lasting, jti=f"{len(one.tokens)}")
            one.tokens.append(kept(token, "", client, scope, user, self.target, lasting, time.time()))
            said = {
                "access_token": token,
                "issued_token_type": self.request.form.get("requested_token_type", f"{_TYPES}access_token"),
                "token_type": "Bearer",
                "expires_in": lasting,
                "scope": scope,
            }
            return 200, said, self.TOKEN_RESPONSE_HEADER

    return Exchange
