# ruff: noqa: ARG002 - Authlib calls these, with all that it has
# mypy: disable-error-code="import-untyped,misc"
"""What the tests' authorization server keeps: its clients, the codes that it gave, and its tokens."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

from authlib.oauth2.rfc6749 import TokenMixin
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin

from tests.auth.exchange_grant import GRANT_TYPE

__all__ = ["Code", "OwnClient", "OwnToken"]


@dataclass
class OwnClient(ClientMixin):
    """A client, confidential if it has a secret."""

    id: str
    secret: str = ""
    redirect_uris: tuple[str, ...] = ()
    scopes: frozenset[str] = frozenset({"openid", "email", "read", "write"})

    def get_client_id(self) -> str:
        return self.id

    def get_default_redirect_uri(self) -> str | None:
        return self.redirect_uris[0] if self.redirect_uris else None

    def get_allowed_scope(self, scope: str | None) -> str:
        return " ".join(word for word in (scope or "").split() if word in self.scopes)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(self.secret, client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method != "none" if self.secret else method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in {"authorization_code", "refresh_token", "client_credentials", GRANT_TYPE}


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    client_id: str
    redirect_uri: str
    scope: str
    user: dict[str, Any]
    resource: str | None
    nonce: str | None
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> int:
        return int(time.time())

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


@dataclass
class OwnToken(TokenMixin):
    access_token: str
    refresh_token: str
    client: OwnClient
    scope: str
    user: dict[str, Any]
    resource: str | None
    expires_in: int
    made: float
    revoked: bool = False

    def check_client(self, client: OwnClient) -> bool:
        return client.id == self.client.id

    def get_scope(self) -> str:
        return self.scope

    def get_expires_in(self) -> int:
        return self.expires_in

    def is_expired(self) -> bool:
        return time.time() > self.made + self.expires_in

    def is_revoked(self) -> bool:
        return self.revoked

    def get_user(self) -> dict[str, Any]:
        return self.user

    def get_client(self) -> OwnClient:
        return self.client
