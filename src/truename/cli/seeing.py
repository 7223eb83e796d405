"""What people see by their profiles, for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from truename.cli.failure import UsageFault
from truename.errors import excerpt, spelling_remedy
from truename.policy.grants import former_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.cli.scene import Scene
    from truename.identity import ToolId
    from truename.naming import NameTable
    from truename.policy.profiles import Choice, Profile

__all__ = ["Seeing", "beside", "whom"]


class Seeing(NamedTuple):
    """The names of a scene, and which of its tools which profiles show."""

    scene: Scene
    table: NameTable

    def by(self, names: Iterable[str] | None) -> NameTable:
        """Return the names that these profiles show; None is everything. Raises `UsageFault` for an unknown one."""
        if names is None:
            return self.table
        known = self.scene.settings.profiles
        for name in names:
            if name not in known:
                advice = spelling_remedy(name, known) if known else "Write [profiles.NAME] into the configuration."
                raise UsageFault(fact=f"there is no profile {excerpt(name)}", advice=advice)
        return self.table.among(self._shown(known.choice(names)), None)

    def _shown(self, choice: Choice) -> frozenset[ToolId]:
        settings, former = self.scene.settings, former_ids(self.scene.ledger)
        given = None if settings.policy is None else settings.policy.exposure
        exposure = given or settings.exposure
        tools = ((id, self.table.catalog[id], former(id)) for id in self.table)
        return frozenset(
            id for id, tool, before in tools if choice.shows(tool, exposure.metadata_of(tool, before), before)
        )


def beside(profile: Profile) -> dict[str, list[str]]:
    """Return the servers whose prompts and resources are in a profile."""
    said = {"prompts": profile.prompts, "resources": profile.resources}
    return {word: list(profile.servers if servers is None else servers) for word, servers in said.items()}


def whom(profile: Profile) -> Mapping[str, object]:
    """Return for whom a profile is, as a configuration says it."""
    words = ("groups", "scopes", "principals", "everyone", "default")
    said = {word: getattr(profile, word) for word in words}
    return {word: list(value) if isinstance(value, tuple) else value for word, value in said.items() if value}
