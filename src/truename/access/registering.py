"""Who the gateway is at an authorization server where it was not set up: by a document of its own, or registered."""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.access.arrangements import Registered
from truename.access.fetching import FetchFault
from truename.access.granted import proven
from truename.access.sign_in.clients import is_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.access.fetching import Fetched
    from truename.access.keys import Speaker
    from truename.access.site import Site
    from truename.config.credentials import Login

__all__ = ["client_document", "way_back", "with_client"]

_NAME: Final = "Truename"
_GRANTS: Final = ("authorization_code", "refresh_token")
_LONGEST: Final = 2_048
# In the order in which they are taken: what need not be kept secret can't be stolen.
_PROOFS: Final = ("none", "client_secret_basic", "client_secret_post")


def way_back(said: Login, issuer: str, address: str) -> str:
    """Return where an issuer's answers come to: below that address, or there, for a client that you set up.

    Each issuer has one of its own, which says whose an answer is (RFC 9700 section 4.4.2): one that has people log in
    at another is sent no code of that other one.
    """
    return address if said.client_id else f"{address}/{hashlib.sha256(issuer.encode()).hexdigest()[:16]}"


def client_document(client_id: str, redirects: tuple[str, ...], name: str = _NAME) -> dict[str, Any]:
    """Return what the gateway says of itself as a client: at its ``client_id`` (SEP-991), or to register (RFC 7591)."""
    return {
        **({"client_id": client_id} if client_id else {}),
        "client_name": name,
        "redirect_uris": list(redirects),
        "grant_types": list(_GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native" if all(urlsplit(one).scheme == "http" for one in redirects) else "web",
    }


async def with_client(site: Site, redirect: str) -> Login:
    """Return the login with the gateway's client at its issuer. Raises `FetchFault` and `StoreError`.

    A client that you set up is what it is. One whose id is the address of a document is taken where the issuer reads
    such documents. Else the gateway registers itself, once for each issuer and redirect URI, and again when that
    client is not known there any more.
    """
    said, kept = site.said, site.kept
    if said.client_id and not _registers(said, await site.speaker.metadata()):
        return said
    one = kept.client(said.issuer, redirect)
    if one is None or one.until <= site.clock() or not await _is_known(_as(said, one), redirect, site.speaker):
        one = await _registered(site, redirect)
        kept.keep_client(said.issuer, redirect, one)
    return _as(said, one)


def _registers(said: Login, metadata: Mapping[str, Any]) -> bool:
    """Tell whether the issuer needs a registration instead of the id that there is."""
    is_read = metadata.get("client_id_metadata_document_supported") is True
    is_set_up = bool(said.client_secret) or not is_document(said.client_id)
    return not is_set_up and not is_read and "registration_endpoint" in metadata


def _as(said: Login, one: Registered) -> Login:
    return replace(said, client_id=one.client_id, client_secret=one.client_secret)


async def _is_known(client: Login, redirect: str, speaker: Speaker) -> bool:
    """Ask whether a client is known still, with a code that is none.

    A person would be shown an error there, and nobody would come back (RFC 6749 section 4.1.2.1).
    """
    more, headers = proven(client, await speaker.metadata())
    code, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
    try:
        answer = await speaker.ask("token_endpoint", None, {**form, **more}, headers)
        return bool(answer.document().get("error") != "invalid_client")
    except FetchFault:
        return True


async def _registered(site: Site, redirect: str) -> Registered:
    said, metadata = site.said, await site.speaker.metadata()
    if "registration_endpoint" not in metadata:
        message = f"{said.issuer} lets no client register; set up a client there, and say its client_id"
        raise FetchFault(message)
    url = await site.speaker.endpoint("registration_endpoint", None)
    ways = metadata.get("token_endpoint_auth_methods_supported")
    ways = ways if isinstance(ways, list) else ["client_secret_basic"]
    asked = {
        **client_document("", (redirect,)),
        "token_endpoint_auth_method": next((way for way in _PROOFS if way in ways), "none"),
        **({"scope": " ".join(said.scopes)} if said.scopes else {}),
    }
    near = await site.fetch.nearness(said.issuer)
    return _read(await site.fetch(url, named_by=near, document=asked), said.issuer)


def _read(answer: Fetched, issuer: str) -> Registered:
    said = answer.document()
    id, secret, until = (said.get(name) for name in ("client_id", "client_secret", "client_secret_expires_at"))
    if answer.status not in {200, 201} or not _is_word(id):
        message = f"{issuer} does not register the gateway (HTTP {answer.status})"
        raise FetchFault(message)
    if not _is_word(secret) or said.get("token_endpoint_auth_method") == "none":
        return Registered(client_id=str(id))
    ends = until if isinstance(until, int | float) and not isinstance(until, bool) and until > 0 else math.inf
    return Registered(client_id=str(id), client_secret=str(secret), until=ends)


def _is_word(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isascii() and text.isprintable()
