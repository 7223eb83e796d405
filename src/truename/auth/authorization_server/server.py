"""Implement the grants, codes and sessions behind the SDK's authorization endpoints.

Authorization codes live for minutes, in this process. The state of an authorization at the provider is sealed into the
request; the browser carries it. Sessions are stored in a file, the provider's tokens sealed in the vault. Clients
never receive the provider's tokens: they get the gateway's own.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from truename.auth.authorization_server.clients import RegisteredClient, digest_of_client, printable_name
from truename.auth.authorization_server.pending import IssuedCode, IssuedRefreshToken, SecretTTLCache
from truename.auth.authorization_server.provider import NotAllowedIn
from truename.auth.authorization_server.sessions import PLACE, SignInSession
from truename.auth.inbound.authentication import AccessEvent, ignore_access
from truename.auth.jwt import Invalid
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.auth.authorization_server.clients import RegisteredClients
    from truename.auth.authorization_server.pending import ConsentGiven
    from truename.auth.authorization_server.provider import AuthorizationStates, IdentityProvider, ProviderLogin
    from truename.auth.authorization_server.sessions import SignInSessions
    from truename.auth.authorization_server.tokens import Kind, TokenIssuer
    from truename.auth.inbound.authentication import OnAccess
    from truename.auth.vault import Vault
    from truename.config import SignIn

__all__ = ["CONSENT", "AuthorizationServer"]

log: Final = logging.getLogger("truename.auth")

CONSENT: Final = "/sign-in/consent"
_REQUEST_SECONDS: Final = 600.0
_CODE_SECONDS: Final = 60.0
_UNASKED_SECONDS: Final = 12 * 3_600.0


class AuthorizationServer(OAuthAuthorizationServerProvider[IssuedCode, IssuedRefreshToken, AccessToken]):
    """What the SDK's handlers ask for."""

    def __init__(
        self,
        settings: SignIn,
        *,
        issuer: str,
        resource: str,
        clients: RegisteredClients,
        issued: TokenIssuer,
        provider: IdentityProvider,
        authorizations: AuthorizationStates,
        sessions: SignInSessions,
        vault: Vault,
        clock: Callable[[], float] = time.time,
        tell: OnAccess = ignore_access,
    ) -> None:
        self.settings = settings
        self.issuer = issuer
        self.resource = resource
        self.clients = clients
        self.issued = issued
        self.provider = provider
        self.authorizations = authorizations
        self._sessions = sessions
        self._vault = vault
        self._codes: SecretTTLCache[IssuedCode] = SecretTTLCache(_CODE_SECONDS, clock)
        self._spent: SecretTTLCache[str] = SecretTTLCache(settings.access_seconds, clock)
        self._clock = clock
        self._tell = tell

    # Clients

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client by its id."""
        return await self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register a client under a new id. Raises `RegistrationError`."""
        self.clients.register(client_info)

    # The way there

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return where a person is asked whether this client may act for them; nothing is kept of it until they agree.

        Raises `AuthorizeError`.
        """
        if params.resource is not None and not self.is_here(params.resource):
            raise AuthorizeError("invalid_target", "That resource is not here.")
        if not 43 <= len(params.code_challenge) <= 128:
            raise AuthorizeError("invalid_request", "code_challenge has the wrong length.")
        asked = {"client": client.client_id, "params": params.model_dump(mode="json")}
        token = self.issued.sign("request+jwt", self.issuer, asked, _REQUEST_SECONDS)
        return f"{self.issuer}{CONSENT}?request={token}"

    def is_here(self, resource: str) -> bool:
        """Tell whether a resource is this gateway, or one of its addresses."""
        return resource.rstrip("/") in {self.resource, self.issuer} or resource.startswith(self.resource + "/")

    async def asked(self, token: str) -> tuple[RegisteredClient, AuthorizationParams]:
        """Return what a request to consent is about. Raises `Invalid`."""
        said = self.issued.read("request+jwt", self.issuer, token)
        client, params = await self.clients.get(str(said["client"])), AuthorizationParams.model_validate(said["params"])
        if client is None:
            message = "its client is not known any more"
            raise Invalid(message)
        client.validate_redirect_uri(params.redirect_uri)
        return client, params

    # The way back

    def _seconds(self, proof: ProviderLogin) -> float:
        """Return how long they stay signed in: not for long where the provider can't be asked about them again."""
        longest = self.settings.session_seconds
        return longest if proof.refresh_token else min(longest, _UNASKED_SECONDS)

    def code_for(self, agreed: ConsentGiven, proof: ProviderLogin) -> str:
        """Return a code for somebody who came back from the provider."""
        now, who, code = int(self._clock()), proof.principal, secrets.token_urlsafe(32)
        session = SignInSession(
            id=secrets.token_hex(16),
            name=who.name,
            issuer=who.issuer,
            client=agreed.client,
            groups=who.groups,
            scopes=frozenset(agreed.params.scopes or ()),
            made=now,
            until=now + int(self._seconds(proof)),
        )
        params = agreed.params
        self._codes.put(
            code,
            IssuedCode(
                code=code,
                scopes=list(params.scopes or ()),
                expires_at=now + _CODE_SECONDS,
                client_id=agreed.client,
                code_challenge=params.code_challenge,
                redirect_uri=params.redirect_uri,
                redirect_uri_provided_explicitly=True,
                resource=self.resource,
                session=session,
                refresh_token=proof.refresh_token,
            ),
            whose=who.key,
        )
        return code

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> IssuedCode | None:
        """Return what a code is for. One that is shown a second time was stolen, or is: what it gave ends."""
        if (spent := self._spent.take(authorization_code)) is not None:
            self._end(spent, "a code was used again")
            return None
        found = self._codes.look(authorization_code)
        if found is None or found.client_id != digest_of_client(client.client_id):
            return None
        return found.model_copy(update={"client_id": client.client_id})

    async def exchange_authorization_code(
        self,
        client: OAuthClientInformationFull,
        authorization_code: IssuedCode,
    ) -> OAuthToken:
        """Begin a session, and return its first tokens. Raises `TokenError`."""
        code = self._codes.take(authorization_code.code)
        if code is None:
            raise TokenError("invalid_grant", "The code was used already.")
        session: SignInSession = replace(code.session, client_name=printable_name(client.client_name))
        for ended in self._sessions.begin(session):
            self._vault.remove(PLACE, ended)
        self._tell(AccessEvent(what="signed_in", principal=session.principal.key, client=session.client))
        if code.refresh_token:
            self._keep(session.id, code.refresh_token)
        self._spent.put(code.code, session.id, whose=session.principal.key)
        return self._tokens(session)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> IssuedRefreshToken | None:
        """Return what a refresh token is for. One that was used before ends its session: somebody has a copy."""
        try:
            said = self.issued.read("rt+jwt", self.issuer, refresh_token)
        except Invalid:
            return None
        session = self._sessions.get(str(said["session"]))
        if session is None or said["client"] != digest_of_client(client.client_id):
            return None
        if said["turn"] != session.turn:
            self._end(session.id, "a refresh token was used again")
            return None
        return IssuedRefreshToken(
            token=refresh_token, client_id=client.client_id, scopes=sorted(session.scopes), session=session
        )

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - as the SDK asks
        refresh_token: IssuedRefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        """Ask the provider whether they may still come in, and return the next tokens. Raises `TokenError`."""
        session: SignInSession = refresh_token.session
        kept = self._vault.get(PLACE, session.id)
        proof: ProviderLogin | None = None
        if kept is not None:
            try:
                proof = await self.provider.again(str(json.loads(kept)["refresh_token"]), session.principal)
            except (NotAllowedIn, Invalid) as problem:
                self._end(session.id, str(problem))
                raise TokenError("invalid_grant", "The sign-in has ended. Sign in again.") from problem
            session = replace(session, groups=proof.principal.groups)
        after = self._sessions.turn(session)
        if after is None:
            self._end(session.id, "a refresh token was used twice at once")
            raise TokenError("invalid_grant", "The refresh token was used already; the sign-in has ended.")
        if proof is not None and proof.refresh_token:
            self._keep(session.id, proof.refresh_token)
        return self._tokens(after, [scope for scope in scopes if scope in session.scopes])

    def _tokens(self, session: SignInSession, scopes: list[str] | None = None) -> OAuthToken:
        granted = sorted(session.scopes) if scopes is None else scopes
        seconds = min(self.settings.access_seconds, session.until - self._clock())
        access = {"sub": session.name, "session": session.id, "scope": " ".join(granted)}
        refresh = {"session": session.id, "turn": session.turn, "client": session.client}
        return OAuthToken(
            access_token=self.issued.sign("at+jwt", self.resource, access, seconds),
            expires_in=int(seconds),
            scope=" ".join(granted) or None,
            refresh_token=self.issued.sign("rt+jwt", self.issuer, refresh, session.until - self._clock()),
        )

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return nothing: the SDK asks for it, and authenticators check access tokens instead."""
        raise NotImplementedError

    async def revoke_token(self, token: AccessToken | IssuedRefreshToken) -> None:
        """Is in the SDK's protocol and called by nothing here: `revoke` ends sessions."""
        raise NotImplementedError

    def revoke(self, token: str, client_id: str) -> None:
        """End the session of a token, of either kind, that was issued to this client (RFC 7009)."""
        kinds: tuple[tuple[Kind, str], ...] = (("rt+jwt", self.issuer), ("at+jwt", self.resource))
        for kind, audience in kinds:
            try:
                said = self.issued.read(kind, audience, token)
            except Invalid:
                continue
            session = self._sessions.get(str(said["session"]))
            if session is not None and session.client == digest_of_client(client_id):
                self._end(session.id, "its client revoked it")

    def _keep(self, id: str, refresh_token: str) -> None:
        """Keep the provider's token; a session that can't be asked about again is none. Raises `StoreError`."""
        try:
            self._vault.put(PLACE, id, json.dumps({"refresh_token": refresh_token}).encode())
        except StoreError:
            self._sessions.end(id)
            raise

    def refused(self, agreed: ConsentGiven, problem: Exception) -> None:
        """Note that somebody came back who may not come in."""
        log.warning("sign-in with %s refused: %s", agreed.client, problem)
        self._tell(AccessEvent(what="sign_in_refused", client=agreed.client, why=str(problem)))

    def _end(self, id: str, why: str) -> None:
        session = self._sessions.get(id)
        self._vault.remove(PLACE, id)
        if self._sessions.end(id) and session is not None:
            log.warning("a sign-in with %s has ended: %s", session.client, why)
            key = session.principal.key
            self._tell(AccessEvent(what="sign_in_ended", principal=key, client=session.client, why=why))
