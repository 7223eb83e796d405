"""Define profiles: the tools, prompts and resources that a principal sees.

A profile is a set of tools for an audience. A principal with several profiles sees everything that any of them
contains; a principal without a profile sees nothing. Anything else does not exist for the principal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog import unfolded
from truename.catalog.globs import fits, fits_id
from truename.policy.call import claims_of
from truename.policy.lineage import NO_LINEAGE
from truename.policy.principal_selector import PrincipalSelector
from truename.policy.rules import hint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.catalog import Tool, Unfolded
    from truename.conventions.metadata import Metadata
    from truename.identity import ToolId
    from truename.policy.lineage import Lineage
    from truename.policy.principal import Principal

__all__ = ["Choice", "Profile", "Profiles"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A set of tools for an audience.

    It contains the tools that match ``tools`` (globs on ids) or ``servers`` (globs on keys). ``annotations``,
    ``families`` and ``owners``, where set, restrict these tools further; if neither ``tools`` nor ``servers`` is set,
    they select from all tools. Tools that match ``excluded`` (``except``), also by a former id, are not in it. Prompts
    and resources are those of the servers in ``prompts`` and ``resources`` (globs on keys; default: ``servers``).

    The audience are principals with one of the ``groups`` or ``scopes``, principals that match ``principals`` (globs on
    `Principal.key`), or ``everyone``. A ``default`` profile is for those who have no other.

    >>> from truename.policy.principal import Principal
    >>> readers = Profile(tools=("files/read_*",), groups=("staff",))
    >>> readers.is_for(Principal(name="ann", groups=frozenset({"staff"}))), readers.is_for(Principal(name="staff"))
    (True, False)
    """

    tools: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    annotations: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    families: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    prompts: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    everyone: bool = False
    default: bool = False

    def is_for(self, principal: Principal) -> bool:
        """Return whether a principal is in the audience; being a default does not count here (see `Profiles.of`)."""
        return self._audience.includes(principal)

    @cached_property
    def _audience(self) -> PrincipalSelector:
        return PrincipalSelector(
            groups=self.groups, scopes=self.scopes, principals=self.principals, everyone=self.everyone
        )

    def shows(
        self, tool: Tool, metadata: Metadata, formerly: Iterable[ToolId] = (), lineage: Lineage = NO_LINEAGE
    ) -> bool:
        """Return whether the profile contains a tool with this effective metadata and these former ids."""
        if lineage.perhaps and self._excludes(lineage.denied_as):
            return False
        before: tuple[ToolId | Unfolded, ...] = (*formerly, *unfolded(tool.id, tool.origin))
        return self._names(tool.id, tool.origin.server, before, lineage.same) and self._fits(tool, metadata)

    def _excludes(self, ids: frozenset[ToolId]) -> bool:
        return bool(self.excluded) and _excluded(self.excluded, ids)

    def shows_absent(self, id: ToolId, server: str) -> bool:
        """Return whether the profile contains an absent tool; never if it depends on the tool's definition."""
        return not (self.annotations or self.families or self.owners) and self._names(id, server, ())

    def shows_prompts(self, server: str) -> bool:
        """Return whether the profile contains the prompts of a server."""
        return _any(self.servers if self.prompts is None else self.prompts, server)

    def shows_resources(self, server: str) -> bool:
        """Return whether the profile contains the resources of a server."""
        return _any(self.servers if self.resources is None else self.resources, server)

    def shows_server(self, server: str) -> bool:
        """Return whether the profile contains a server by its key, whatever tools it has now."""
        return _any(self.servers, server) or self.shows_prompts(server) or self.shows_resources(server)

    def _names(
        self, id: ToolId, server: str, formerly: Iterable[ToolId | Unfolded], same: tuple[ToolId, ...] = ()
    ) -> bool:
        # Exclusions also apply under former ids; inclusions only under those that were accepted as this tool's own.
        if any(fits_id(glob, one) for glob in self.excluded for one in (id, *formerly)):
            return False
        if not self.tools and not self.servers:
            return bool(self.annotations or self.families or self.owners)
        return _any(self.servers, server) or any(fits_id(glob, one) for glob in self.tools for one in (id, *same))

    def _fits(self, tool: Tool, metadata: Metadata) -> bool:
        return (
            all(
                hint(name, given) is expected
                for name, expected in self.annotations.items()
                for given in claims_of(tool)
            )
            and (not self.families or metadata.family in self.families)
            and (not self.owners or metadata.owner in self.owners)
        )


_ALL: Final = Profile(servers=("*",))


class Choice(NamedTuple):
    """The union of several profiles, limited to these ``servers`` (None: no limit)."""

    profiles: tuple[Profile, ...]
    servers: frozenset[str] | None = None

    def shows(
        self, tool: Tool, metadata: Metadata, formerly: Iterable[ToolId] = (), lineage: Lineage = NO_LINEAGE
    ) -> bool:
        """Return whether one of the profiles contains this tool."""
        return self._has(tool.origin.server) and any(
            one.shows(tool, metadata, formerly, lineage) for one in self.profiles
        )

    def shows_as_all(
        self,
        tool: Tool,
        metadata_of: Callable[[Tool, tuple[ToolId, ...]], Metadata],
        formerly: tuple[ToolId, ...] = (),
        lineage: Lineage = NO_LINEAGE,
    ) -> bool:
        """Return whether the profiles contain this tool, and each one that it perhaps was before a rename."""
        return self.shows(tool, metadata_of(tool, formerly), formerly, lineage) and all(
            self.shows(one, metadata_of(one, before), before, lineage.of_former(one, tool.id))
            for one, before in ((each, lineage.formerly(each)) for each in lineage.judged_as)
        )

    def shows_absent(self, id: ToolId, server: str) -> bool:
        """Return whether one of the profiles contains this absent tool."""
        return self._has(server) and any(one.shows_absent(id, server) for one in self.profiles)

    def shows_prompts(self, server: str) -> bool:
        """Return whether one of the profiles contains the prompts of a server."""
        return self._has(server) and any(one.shows_prompts(server) for one in self.profiles)

    def shows_resources(self, server: str) -> bool:
        """Return whether one of the profiles contains the resources of a server."""
        return self._has(server) and any(one.shows_resources(server) for one in self.profiles)

    def shows_server(self, server: str) -> bool:
        """Return whether one of the profiles contains a server by its key."""
        return self._has(server) and any(one.shows_server(server) for one in self.profiles)

    def _has(self, server: str) -> bool:
        return self.servers is None or server in self.servers


class Profiles(Mapping[str, Profile]):
    """The profiles of a configuration by name. Without any profile, nothing is hidden.

    >>> from truename.policy.principal import LOCAL
    >>> known = Profiles({"all": Profile(tools=("*",), groups=("ops",)), "rest": Profile(tools=("a/*",), default=True)})
    >>> known.of(LOCAL)
    ('rest',)
    """

    def __init__(self, profiles: Mapping[str, Profile] = MappingProxyType({})) -> None:
        self._profiles = dict(profiles)

    def __getitem__(self, name: str) -> Profile:
        return self._profiles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._profiles)

    def __len__(self) -> int:
        return len(self._profiles)

    def __hash__(self) -> int:
        return hash(tuple(self._profiles))

    def of(self, principal: Principal) -> tuple[str, ...] | None:
        """Return the names of a principal's profiles, sorted; None if no profiles are defined at all."""
        if not self._profiles:
            return None
        named = tuple(sorted(name for name, one in self._profiles.items() if one.is_for(principal)))
        return named or tuple(sorted(name for name, one in self._profiles.items() if one.default))

    def choice(self, names: Iterable[str] | None, servers: Iterable[str] | None = None) -> Choice:
        """Return the union of the profiles with these names (None: everything), limited to these servers (None: all).

        A name without a profile contributes nothing.
        """
        known = (_ALL,) if names is None else tuple(self._profiles[name] for name in names if name in self._profiles)
        return Choice(known, None if servers is None else frozenset(servers))


# The new tools of one list share the set of those that they may be.
@lru_cache(maxsize=256)
def _excluded(globs: tuple[str, ...], ids: frozenset[ToolId]) -> bool:
    return any(fits_id(glob, id) for glob in globs for id in ids)


def _any(globs: Iterable[str], text: str) -> bool:
    return any(fits(glob, text) for glob in globs)
