"""Where one logs in at a server: the issuer that its entry says, or that it names itself, and never another later."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from truename.access.fetching import FetchFault
from truename.access.finding import Found, found_at
from truename.access.keys import Speaker
from truename.access.metadata import endpoint_in
from truename.access.pkce import S256

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.access.arrangements import Arrangements
    from truename.access.fetching import Fetch
    from truename.config.credentials import Login

__all__ = ["Site", "site_of", "usable"]


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where one logs in at a server: ``said`` has an issuer, which ``speaker`` speaks for; ``fetch`` leads there."""

    said: Login
    kept: Arrangements
    speaker: Speaker
    fetch: Fetch
    clock: Callable[[], float]


async def site_of(
    kept: Arrangements, fetch: Fetch, *, may_move: bool = False, clock: Callable[[], float] = time.time
) -> Site:
    """Find out where one logs in. Raises `FetchFault` and `StoreError`.

    Of several issuers that a server names, the first that works is taken, and stays it: a server that names others
    after the first login sends nobody there, unless whoever asks ``may_move`` it.
    """
    said = kept.said
    if said.issuer:
        return Site(said=said, kept=kept, speaker=Speaker(said.issuer, fetch, clock), fetch=fetch, clock=clock)
    within = kept.within(fetch)
    pinned = kept.pinned()
    found = await _found(kept.address, within, pinned, may_move=may_move)
    problem = ""
    for issuer in found.issuers:
        speaker = Speaker(issuer, within, clock)
        try:
            await usable(speaker)
        except FetchFault as fault:
            problem = problem or str(fault)
            continue
        resource = found.resource if said.resource is None else said.resource
        whole = replace(said, issuer=issuer, resource=resource, scopes=said.scopes or found.scopes)
        return Site(said=whole, kept=kept, speaker=speaker, fetch=within, clock=clock)
    raise FetchFault(problem)


async def _found(address: str, fetch: Fetch, pinned: Found | None, *, may_move: bool) -> Found:
    try:
        found = await found_at(address, fetch)
    except FetchFault:
        # A server that is silent now names no other.
        if pinned is None:
            raise
        return pinned
    if pinned is None or (may_move and not set(pinned.issuers) & set(found.issuers)):
        return found
    if set(pinned.issuers) & set(found.issuers):
        return replace(found, issuers=pinned.issuers)
    message = (
        f"the server sends people to {found.issuers[0]} now, and sent them to {pinned.issuers[0]} at the first login; "
        "if that is right, `truename login --new-issuer` takes the new one"
    )
    raise FetchFault(message)


async def usable(speaker: Speaker) -> dict[str, Any]:
    """Return the metadata of an issuer at which one can log in. Raises `FetchFault`."""
    metadata = await speaker.metadata()
    methods = metadata.get("code_challenge_methods_supported")
    if not isinstance(methods, list) or S256 not in methods:
        message = f"{speaker.issuer} does not say that it takes PKCE ({S256}), without which codes can be stolen"
        raise FetchFault(message)
    for name in ("authorization_endpoint", "token_endpoint"):
        endpoint_in(metadata, name, speaker.issuer)
    return metadata
