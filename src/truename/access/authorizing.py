"""One login at an authorization server: where somebody is sent, and the tokens for the answer that they bring back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from truename.access.addresses import AddressRefused, host_of
from truename.access.fetching import FetchFault
from truename.access.granted import Granted, TokenRefused, granted, proven
from truename.access.metadata import endpoint_in
from truename.access.pkce import S256, challenge_of
from truename.access.registering import with_client
from truename.access.site import usable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.access.site import Site
    from truename.config.credentials import Login

__all__ = ["LoginRequest", "login_request"]

_SAYS_WHOSE: Final = "authorization_response_iss_parameter_supported"


@dataclass(frozen=True, kw_only=True)
class LoginRequest:
    """A login that was begun. Who has its ``state`` and its ``verifier`` could finish it."""

    site: Site
    said: Login
    url: str = field(repr=False)
    redirect: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)

    async def tokens(self, answer: Mapping[str, str]) -> Granted:
        """Return the tokens for an answer with this request's state. Raises `FetchFault` and `StoreError`.

        It counts only from the issuer that was asked (RFC 9207).
        """
        said, site = self.said, self.site
        metadata = await site.speaker.metadata()
        code = _code_in(answer, metadata, said.issuer)
        more, headers = proven(said, metadata)
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect}
        form |= {"code_verifier": self.verifier, "resource": said.resource_of(site.kept.address), **more}
        form = {name: value for name, value in form.items() if value}
        try:
            return granted(await site.speaker.ask("token_endpoint", None, form, headers), site.clock())
        except TokenRefused as error:
            if error.error == "invalid_client":
                # The next login is made with another registration.
                site.kept.forget_client(said)
            raise


async def login_request(site: Site, redirect: str) -> LoginRequest:
    """Begin a login whose answer comes to this address. Raises `FetchFault` and `StoreError`."""
    metadata = await usable(site.speaker)
    known = site.kept.said
    if known.client_id and not known.issuer and metadata.get(_SAYS_WHOSE) is not True:
        # One client at all of them: nothing else would tell the answer of one from another's (RFC 9700 section 4.4.2).
        message = f"{site.said.issuer} does not say whose its answers are (RFC 9207); if it is right, set it as issuer"
        raise FetchFault(message)
    said = await with_client(site, redirect)
    base = _readable(endpoint_in(metadata, "authorization_endpoint", said.issuer))
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    asked = {
        "response_type": "code",
        "client_id": said.client_id,
        "redirect_uri": redirect,
        "scope": " ".join(said.scopes),
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": S256,
        "resource": said.resource_of(site.kept.address),
    }
    url = f"{base}{'&' if '?' in base else '?'}{urlencode({k: v for k, v in asked.items() if v})}"
    return LoginRequest(site=site, said=said, url=url, redirect=redirect, state=state, verifier=verifier)


def _readable(url: str) -> str:
    """Return an address that may be shown to somebody, who is to see where it leads. Raises `FetchFault`."""
    try:
        host_of(url)
    except AddressRefused as error:
        raise FetchFault(str(error)) from error
    return url


def _code_in(answer: Mapping[str, str], metadata: Mapping[str, Any], issuer: str) -> str:
    sender = answer.get("iss")
    is_told = metadata.get(_SAYS_WHOSE) is True
    if (sender is None and is_told) or (sender is not None and sender != issuer):
        message = "the answer is another issuer's"
        raise FetchFault(message)
    if code := answer.get("code"):
        return code
    error = answer.get("error", "")
    shown = f" ({error})" if error.isascii() and error.replace("_", "").isalpha() and len(error) <= 40 else ""
    message = f"the authorization server did not let you in{shown}"
    raise FetchFault(message)
