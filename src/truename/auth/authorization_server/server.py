"""Implement the grants, codes and sessions behind the SDK's authorization endpoints.

Authorization codes live for a minute, in the state database, so that any gateway redeems them. The state of an
authorization at the provider is sealed into the request; the browser carries it. Sessions are in the state database,
the provider's tokens sealed in the vault. Clients never receive the provider's tokens: they get the gateway's own.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from anyio import to_thread
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from truename.auth.authorization_server.clients import RegisteredClient, digest_of_client, printable_name
from truename.auth.authorization_server.codes import SECONDS
from truename.auth.authorization_server.pending import IssuedCode, IssuedRefreshToken
from truename.auth.authorization_server.provider import NotAllowedIn
from truename.auth.authorization_server.sessions import PLACE, SignInSession
from truename.auth.inbound.authentication import AccessEvent, ignore_access
from truename.auth.jwt import Invalid
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.auth.authorization_server.clients import RegisteredClients
    from truename.auth.authorization_server.codes import AuthorizationCodes
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
_UNASKED_SECONDS: Final = 12 * 3_600.0


class AuthorizationServer(OAuthAuthorizationServerProvider[IssuedCode, IssuedRefreshToken, AccessToken]):
    """The provider of the SDK's OAuth handlers: clients, codes, tokens and sessions."""

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
        codes: AuthorizationCodes,
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
        self._codes = codes
        self._clock = clock
        self._tell = tell

    # Clients

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return the client with this id."""
        return await self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register a client under a new id. Raises `RegistrationError`."""
        self.clients.register(client_info)

    # Start of an authorization

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return the URL of the consent page. Nothing is stored before the person consents.

        Raises `AuthorizeError`.
        """
        if params.resource is not None and not self.is_here(params.resource):
            raise AuthorizeError("invalid_target", "This server does not serve that resource.")
        if not 43 <= len(params.code_challenge) <= 128:
            raise AuthorizeError("invalid_request", "code_challenge has the wrong length.")
        asked = {"client": client.client_id, "params": params.model_dump(mode="json")}
        token = self.issued.sign("request+jwt", self.issuer, asked, _REQUEST_SECONDS)
        return f"{self.issuer}{CONSENT}?request={token}"

    def is_here(self, resource: str) -> bool:
        """Return whether a resource identifier is this gateway or one of its endpoints."""
        return resource.rstrip("/") in {self.resource, self.issuer} or resource.startswith(self.resource + "/")

    async def asked(self, token: str) -> tuple[RegisteredClient, AuthorizationParams]:
        """Return the client and the parameters of a consent request. Raises `Invalid`."""
        said = self.issued.read("request+jwt", self.issuer, token)
        client, params = await self.clients.get(str(said["client"])), AuthorizationParams.model_validate(said["params"])
        if client is None:
            message = "its client is no longer registered"
            raise Invalid(message)
        client.validate_redirect_uri(params.redirect_uri)
        return client, params

    # End of an authorization

    async def code_for(self, agreed: ConsentGiven, proof: ProviderLogin) -> str:
        """Issue an authorization code for a person who returned from the provider."""
        now, who, code = int(self._clock()), proof.principal, secrets.token_urlsafe(32)
        # A session is short if the provider cannot be asked about the person again.
        longest = self.settings.session_seconds
        session = SignInSession(
            id=secrets.token_hex(16),
            name=who.name,
            issuer=who.issuer,
            client=agreed.client,
            groups=who.groups,
            scopes=frozenset(agreed.params.scopes or ()),
            made=now,
            until=now + int(longest if proof.refresh_token else min(longest, _UNASKED_SECONDS)),
        )
        content = {
            "client": agreed.client,
            "scopes": list(agreed.params.scopes or ()),
            "challenge": agreed.params.code_challenge,
            "redirect": str(agreed.params.redirect_uri),
            "until": now + SECONDS,
            "session": {**asdict(session), "groups": sorted(session.groups), "scopes": sorted(session.scopes)},
            "refresh_token": proof.refresh_token,
        }
        await to_thread.run_sync(lambda: self._codes.put(code, content, whose=who.key))
        return code

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> IssuedCode | None:
        """Return the data of a code. A code that is shown twice may be stolen: the session that it started ends."""
        found = await to_thread.run_sync(self._codes.find, authorization_code)
        if found is None:
            return None
        if found.session:
            await self._end(found.session, "a code was used again")
            return None
        said = found.content
        if client.client_id is None or said["client"] != digest_of_client(client.client_id):
            return None
        groups, scopes = (frozenset(said["session"][name]) for name in ("groups", "scopes"))
        return IssuedCode(
            code=authorization_code,
            scopes=said["scopes"],
            expires_at=said["until"],
            client_id=client.client_id,
            code_challenge=said["challenge"],
            redirect_uri=said["redirect"],
            redirect_uri_provided_explicitly=True,
            resource=self.resource,
            session=SignInSession(**{**said["session"], "groups": groups, "scopes": scopes}),
            refresh_token=said["refresh_token"],
        )

    async def exchange_authorization_code(
        self,
        client: OAuthClientInformationFull,
        authorization_code: IssuedCode,
    ) -> OAuthToken:
        """Start a session, and return its first tokens. Raises `TokenError`."""
        code = authorization_code
        session: SignInSession = replace(code.session, client_name=printable_name(client.client_name))
        if not await to_thread.run_sync(self._codes.redeem, code.code, session.id):
            raise TokenError("invalid_grant", "The code was already used.")
        await to_thread.run_sync(self._begin, session, code.refresh_token)
        self._tell(AccessEvent(what="signed_in", principal=session.principal.key, client=session.client))
        return self._tokens(session)

    def _begin(self, session: SignInSession, refresh_token: str) -> None:
        for ended in self._sessions.begin(session):
            self._vault.remove(PLACE, ended)
        if refresh_token:
            self._keep(session.id, refresh_token)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> IssuedRefreshToken | None:
        """Return the data of a refresh token. One that was already used ends its session, since somebody has a copy."""
        try:
            said = self.issued.read("rt+jwt", self.issuer, refresh_token)
        except Invalid:
            return None
        session = await to_thread.run_sync(self._sessions.get, str(said["session"]))
        if session is None or said["client"] != digest_of_client(client.client_id):
            return None
        if said["turn"] != session.turn:
            await self._end(session.id, "a refresh token was used again")
            return None
        return IssuedRefreshToken(
            token=refresh_token, client_id=client.client_id, scopes=sorted(session.scopes), session=session
        )

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,  # noqa: ARG002 - required by the SDK
        refresh_token: IssuedRefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        """Confirm the sign-in at the provider, and return the next tokens. Raises `TokenError`."""
        session: SignInSession = refresh_token.session
        kept = await to_thread.run_sync(self._vault.get, PLACE, session.id)
        proof: ProviderLogin | None = None
        if kept is not None:
            try:
                proof = await self.provider.again(str(json.loads(kept)["refresh_token"]), session.principal)
            except (NotAllowedIn, Invalid) as problem:
                await self._end(session.id, str(problem))
                raise TokenError("invalid_grant", "The sign-in has ended. Sign in again.") from problem
            session = replace(session, groups=proof.principal.groups)
        after = await to_thread.run_sync(self._sessions.turn, session)
        if after is None:
            await self._end(session.id, "a refresh token was used twice at once")
            raise TokenError(
                "invalid_grant", "The refresh token was already used; the sign-in has ended. Sign in again."
            )
        if proof is not None and proof.refresh_token:
            await to_thread.run_sync(self._keep, session.id, proof.refresh_token)
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
        """Raise `NotImplementedError`: the SDK requires this method; authenticators check access tokens instead."""
        raise NotImplementedError

    async def revoke_token(self, token: AccessToken | IssuedRefreshToken) -> None:
        """Raise `NotImplementedError`: the SDK requires this method; `revoke` ends sessions instead."""
        raise NotImplementedError

    async def revoke(self, token: str, client_id: str) -> None:
        """End the session of an access or refresh token that was issued to this client (RFC 7009)."""
        kinds: tuple[tuple[Kind, str], ...] = (("rt+jwt", self.issuer), ("at+jwt", self.resource))
        for kind, audience in kinds:
            try:
                said = self.issued.read(kind, audience, token)
            except Invalid:
                continue
            session = await to_thread.run_sync(self._sessions.get, str(said["session"]))
            if session is not None and session.client == digest_of_client(client_id):
                await self._end(session.id, "its client revoked it")

    def _keep(self, id: str, refresh_token: str) -> None:
        """Store the provider's refresh token; end the session if that fails. Raises `StoreError`."""
        try:
            self._vault.put(PLACE, id, json.dumps({"refresh_token": refresh_token}).encode())
        except StoreError:
            self._sessions.end(id)
            raise

    def refused(self, agreed: ConsentGiven, problem: Exception) -> None:
        """Log and report a sign-in that was refused."""
        log.warning("sign-in with %s refused: %s", agreed.client, problem)
        self._tell(AccessEvent(what="sign_in_refused", client=agreed.client, why=str(problem)))

    async def _end(self, id: str, why: str) -> None:
        session = await to_thread.run_sync(self._ended, id)
        if session is not None:
            log.warning("a sign-in with %s has ended: %s", session.client, why)
            key = session.principal.key
            self._tell(AccessEvent(what="sign_in_ended", principal=key, client=session.client, why=why))

    def _ended(self, id: str) -> SignInSession | None:
        """End a session; return it if it was good until now."""
        session = self._sessions.get(id)
        self._vault.remove(PLACE, id)
        return session if self._sessions.end(id) else None
