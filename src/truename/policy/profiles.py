"""Define profiles: the tools, prompts and resources that a principal sees.

A profile says what there is, and for whom. Somebody who is in several sees what any of them shows; somebody who is in
none sees nothing. What no profile of somebody shows does not exist for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog import unfolded
from truename.catalog.globs import fits, fits_id
from truename.policy.call import claims_of
from truename.policy.rules import hint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.catalog import Tool, Unfolded
    from truename.conventions.metadata import Metadata
    from truename.identity import ToolId
    from truename.policy.principal import Principal

__all__ = ["Choice", "Profile", "Profiles"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A set of tools for an audience.

    ``tools`` (globs on ids) and ``servers`` (globs on keys) say which tools are in it; of these only such that have
    these ``annotations``, one of these ``families`` and one of these ``owners``, each if it is said. Where only the
    latter are said, it is all such tools. What fits ``excluded`` (``except``) is not, under a former id neither.
    ``prompts`` and ``resources`` are of these servers (globs on keys), of ``servers`` unless said.

    It is for who has one of the ``groups`` or ``scopes`` or fits one of ``principals`` (globs on `Principal.key`), for
    ``everyone``, or, as a ``default``, for those who are in no other.

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
        """Tell whether somebody is in it; a default one is for nobody by itself (`Profiles.of`)."""
        return (
            self.everyone
            or not principal.groups.isdisjoint(self.groups)
            or not principal.scopes.isdisjoint(self.scopes)
            or any(fits(glob, principal.key) for glob in self.principals)
        )

    def shows(self, tool: Tool, metadata: Metadata, formerly: Iterable[ToolId] = ()) -> bool:
        """Tell whether a tool is in it; ``metadata`` is what counts of it, ``formerly`` the ids that it had."""
        before: tuple[ToolId | Unfolded, ...] = (*formerly, *unfolded(tool.id, tool.origin))
        return self._names(tool.id, tool.origin.server, before) and self._fits(tool, metadata)

    def shows_absent(self, id: ToolId, server: str) -> bool:
        """Tell whether a tool that is not there now would be in it: where its definition has to say so, it is not."""
        return not (self.annotations or self.families or self.owners) and self._names(id, server, ())

    def shows_prompts(self, server: str) -> bool:
        """Tell whether the prompts of a server are in it."""
        return _any(self.servers if self.prompts is None else self.prompts, server)

    def shows_resources(self, server: str) -> bool:
        """Tell whether the resources of a server are in it."""
        return _any(self.servers if self.resources is None else self.resources, server)

    def shows_server(self, server: str) -> bool:
        """Tell whether a server is in it by its key, whatever tools it has now."""
        return _any(self.servers, server) or self.shows_prompts(server) or self.shows_resources(server)

    def _names(self, id: ToolId, server: str, formerly: Iterable[ToolId | Unfolded]) -> bool:
        # What was kept out stays out under another id; what was let in was another tool.
        if any(fits_id(glob, one) for glob in self.excluded for one in (id, *formerly)):
            return False
        if not self.tools and not self.servers:
            return bool(self.annotations or self.families or self.owners)
        return _any(self.servers, server) or any(fits_id(glob, id) for glob in self.tools)

    def _fits(self, tool: Tool, metadata: Metadata) -> bool:
        return (
            all(hint(name, said) is wanted for name, wanted in self.annotations.items() for said in claims_of(tool))
            and (not self.families or metadata.family in self.families)
            and (not self.owners or metadata.owner in self.owners)
        )


_ALL: Final = Profile(servers=("*",))


class Choice(NamedTuple):
    """Profiles of which any may show a thing; of these ``servers`` only, unless they are None."""

    profiles: tuple[Profile, ...]
    servers: frozenset[str] | None = None

    def shows(self, tool: Tool, metadata: Metadata, formerly: Iterable[ToolId] = ()) -> bool:
        """Tell whether one of them has this tool."""
        return self._has(tool.origin.server) and any(one.shows(tool, metadata, formerly) for one in self.profiles)

    def shows_absent(self, id: ToolId, server: str) -> bool:
        """Tell whether one of them would have this tool, which is not there now."""
        return self._has(server) and any(one.shows_absent(id, server) for one in self.profiles)

    def shows_prompts(self, server: str) -> bool:
        """Tell whether one of them has the prompts of a server."""
        return self._has(server) and any(one.shows_prompts(server) for one in self.profiles)

    def shows_resources(self, server: str) -> bool:
        """Tell whether one of them has the resources of a server."""
        return self._has(server) and any(one.shows_resources(server) for one in self.profiles)

    def shows_server(self, server: str) -> bool:
        """Tell whether one of them has a server by its key."""
        return self._has(server) and any(one.shows_server(server) for one in self.profiles)

    def _has(self, server: str) -> bool:
        return self.servers is None or server in self.servers


class Profiles(Mapping[str, Profile]):
    """The profiles of a configuration, by name. None at all hide nothing.

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
        """Return the names of the profiles that somebody is in, sorted; None where there are no profiles at all."""
        if not self._profiles:
            return None
        named = tuple(sorted(name for name, one in self._profiles.items() if one.is_for(principal)))
        return named or tuple(sorted(name for name, one in self._profiles.items() if one.default))

    def choice(self, names: Iterable[str] | None, servers: Iterable[str] | None = None) -> Choice:
        """Return the profiles with these names (None: no profile hides anything), of these servers (None: of all).

        A profile that is not known any more shows nothing.
        """
        known = (_ALL,) if names is None else tuple(self._profiles[name] for name in names if name in self._profiles)
        return Choice(known, None if servers is None else frozenset(servers))


def _any(globs: Iterable[str], text: str) -> bool:
    return any(fits(glob, text) for glob in globs)
