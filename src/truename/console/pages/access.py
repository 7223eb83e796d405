"""The page of access: who sees which tools, by profile and by context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.config.addresses import path_of
from truename.console.page import Page, PageRoute
from truename.console.refusals import RefusedError
from truename.console.withheld_tools import withheld_tools
from truename.gateway.views.profiled import Limits
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.console.page import PageRequest
    from truename.gateway import Gateway
    from truename.naming import NameTable
    from truename.policy import Context, Exposure
    from truename.policy.profiles import Profile

__all__ = ["ROUTES"]

_LONGEST: Final = 300
_MOST: Final = 1_000
_WHOM: Final = ("groups", "scopes", "principals")


@dataclass(frozen=True, kw_only=True)
class ProfileRow:
    """A profile: its address, for whom it is, and how many tools it has now."""

    name: str
    address: str
    audience: str
    tools: int


@dataclass(frozen=True, kw_only=True)
class ContextRow:
    """A named context, and the tools that are not available in it, with the reasons."""

    name: str
    address: str
    platform: str
    app: str
    refused: int
    reasons: Mapping[str, int]


async def _show(asked: PageRequest) -> Page:
    name, groups = asked.query.get("principal", "")[:_LONGEST], asked.query.get("groups", "")[:_LONGEST]
    profile = asked.query.get("profile", "")
    values = await asked.computed(lambda: _values(asked.gateway, name, groups, profile))
    return Page(template="access.html", title="Access", values=values)


def _values(gateway: Gateway, name: str, groups: str, profile: str) -> dict[str, object]:
    settings, table = gateway.config.settings, gateway.table()
    profiles, withheld = settings.profiles, withheld_tools(gateway)
    rows = [
        ProfileRow(
            name=key,
            address=path_of(profile=key),
            audience=_audience(one),
            tools=len(_seen(gateway, table, (key,)).keys() - withheld),
        )
        for key, one in profiles.items()
    ]
    shown: NameTable | None = None
    whose = ""
    if profile:
        if profile not in profiles:
            raise RefusedError(404, f"There is no profile {profile!r}.")
        shown, whose = _seen(gateway, table, (profile,)), f"Profile {profile}"
    elif name:
        somebody = Principal(name=name, groups=frozenset(filter(None, map(str.strip, groups.split(",")))))
        names = profiles.of(somebody)
        by = "there are no profiles" if names is None else f"by {', '.join(names)}" if names else "in no profile"
        shown, whose = _seen(gateway, table, names), f"{somebody.key} ({by})"
    names_of = [] if shown is None else [(str(id), one) for id, one in shown.items() if id not in withheld]
    exposure = gateway.registry.access.exposure
    return {
        "profiles": rows,
        "contexts": [_context(gateway, exposure, key, one) for key, one in settings.contexts.items()],
        "principal": name,
        "groups": groups,
        "whose": whose,
        "shown": None if shown is None else names_of[:_MOST],
        "count": len(names_of),
        "all": len(table),
        "withheld": len(withheld),
        "most": _MOST,
    }


def _seen(gateway: Gateway, table: NameTable, names: tuple[str, ...] | None) -> NameTable:
    return gateway.registry.sight(Limits(names, None)).part(table, "tools")


def _audience(profile: Profile) -> str:
    said = [f"{word} {', '.join(getattr(profile, word))}" for word in _WHOM if getattr(profile, word)]
    said += ["everyone"] if profile.everyone else []
    return "; ".join([*said, *(["everybody in no other profile"] if profile.default else [])])


def _context(gateway: Gateway, exposure: Exposure, name: str, context: Context) -> ContextRow:
    reasons: dict[str, int] = {}
    for tool in gateway.catalog.values():
        refusal = exposure.refusal(tool, context)
        if refusal is not None:
            reasons[refusal.reason] = reasons.get(refusal.reason, 0) + 1
    return ContextRow(
        name=name,
        address=path_of(context=name),
        platform=context.platform,
        app=context.app,
        refused=sum(reasons.values()),
        reasons=reasons,
    )


ROUTES: Final = (PageRoute("GET", "/access", "viewer", _show),)
