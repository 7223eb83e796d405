"""Which view an address leads somebody to: what its path asks for, by the profiles that they are in."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from truename.gateway.protocol.callers import principal_of
from truename.gateway.views.choice import UNIVERSAL, fixed_view, main_view
from truename.gateway.views.view import MAIN, Asked, profile_in, read_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.views.profiled import Names
    from truename.gateway.views.view import ViewSpec
    from truename.policy.principal import Principal

    Choose = Callable[[Request], ViewSpec]

__all__ = ["address_of", "asked_by", "choosing"]


def asked_by(registry: Registry, path: str, principal: Principal | None = None) -> Asked:
    """Return what a path asks for, for somebody, or for the operator, who may see by any profile.

    Raises `UnknownView`, for what there is only for others as for what there is not.
    """
    mine = None if principal is None else registry.profiled.of(principal)
    if path == MAIN:
        return Asked(profiles=mine)
    known = tuple(registry.settings.profiles if principal is None else mine or ())
    if (profile := profile_in(path)) is not None:
        mine = (profile,) if profile in known else ()
    return read_path(path, _servers(registry, mine), registry.settings.contexts, known)._replace(profiles=mine)


def address_of(asked: Asked) -> str:
    """Return one text for what a path asks for, whatever its spelling.

    What is not asked for is left out: another version of the gateway may know more to ask for.
    """
    return json.dumps({key: one for key, one in asked._asdict().items() if one is not None and one is not False})


def choosing(registry: Registry, asked: Asked) -> Choose:
    """Return what tells the view of a request that came to this address."""
    spec = fixed_view(asked, registry.settings)
    is_fixed = asked.client is not None or asked.server is not None
    choose = partial(_always, spec) if is_fixed else partial(main_view, settings=registry.settings, asked=asked)
    return partial(_seen_by, registry, asked.profile, choose)


def _servers(registry: Registry, profiles: Names) -> Collection[str]:
    return registry.pool if profiles is None else registry.servers_in(replace(UNIVERSAL, profiles=profiles))


def _seen_by(registry: Registry, profile: str | None, choose: Choose, request: Request) -> ViewSpec:
    # Who is in which profile may have changed since somebody came to this address.
    spec, profiles = choose(request), registry.profiled.of(principal_of(request), profile)
    return spec if spec.profiles == profiles else replace(spec, profiles=profiles)


def _always(spec: ViewSpec, _: Request) -> ViewSpec:
    return spec
