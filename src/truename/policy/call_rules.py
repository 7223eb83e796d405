"""Rules about calls: for which tools and callers they are, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from truename.catalog import unfolded
from truename.errors import ConfigError
from truename.policy.decision import Decision, Outcome
from truename.policy.globs import fits, fits_id
from truename.policy.terms import TERMS, Annotations, hint

if TYPE_CHECKING:
    from truename.catalog import Origin
    from truename.identity import ToolId
    from truename.policy.call import Caller

__all__ = ["CallRule"]

_NEEDED = frozenset({"name", "outcome", "tools"})


@dataclass(frozen=True, kw_only=True)
class CallRule:
    """What to do with some calls: allow, ask or deny.

    A rule applies where all that it names fits: ``tools`` (globs on ids) and not ``but`` (globs, ``except`` in
    TOML), ``servers`` (globs on server ids), ``upstream`` (globs on the server's own name of the tool),
    ``annotations`` (the protocol's hints), and of the caller ``principals``, ``agents``, ``clients``, ``platforms``
    and ``apps`` (globs, in any case for the last three). A field that is empty is about all.

    Where a caller is unknown ("") in a field that a rule names, a rule that allows does not apply, and one that
    denies or asks does: what is not known counts against the call. A tool to which another id was redirected is
    denied or asked about as that one was, and allowed under its own id only. So is a tool under each id that it would
    have had without a digest or a fold: which of two look-alikes has the plain id is chance. Annotations are the
    server's own word where the operator says nothing (`Presentation`): to allow by them is to trust it.

    Raises `ConfigError` with the field for a glob that could fit no tool, or anything else that is not understood.

    >>> from truename import Catalog
    >>> from truename.policy import Caller
    >>> tool = Catalog.of("git@2/push@3")["git@2/push@3"]
    >>> CallRule(name="gate", outcome="deny", tools=("git/push",)).applies(tool.id, tool.origin, {}, Caller())
    True
    """

    name: str
    outcome: Outcome
    tools: tuple[str, ...] = ("*",)
    but: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    annotations: Mapping[str, bool] = field(default_factory=dict, hash=False)
    principals: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        for term, read in TERMS.items():
            value = getattr(self, term)
            if term not in _NEEDED and isinstance(value, str | tuple | list | Mapping) and not value:
                continue
            try:
                object.__setattr__(self, term, read(value))
            except ValueError as error:
                key = f"{self.name}.{term}"
                raise ConfigError(file="policy", key=key, problem=str(error), remedy="Mend the rule.") from error

    @property
    def decision(self) -> Decision:
        """What it says of a call to which it applies."""
        return Decision(outcome=self.outcome, rule=self.name, reason=self.reason)

    def applies(
        self,
        id: ToolId,
        origin: Origin,
        annotations: Annotations,
        caller: Caller,
        formerly: tuple[ToolId, ...] = (),
    ) -> bool:
        """Tell whether it is about calls of this tool by this caller; ``formerly`` are ids redirected to it."""
        return (
            (self.names(id) or self._restricts(id, origin, formerly))
            and _any(self.servers, origin.server_id)
            and _any(self.upstream, origin.name)
            and all(hint(name, annotations) is wanted for name, wanted in self.annotations.items())
            and self._is_for(caller)
        )

    def names(self, id: ToolId) -> bool:
        """Tell whether its globs are about this id."""
        return any(fits_id(glob, id) for glob in self.tools) and not any(fits_id(glob, id) for glob in self.but)

    def _restricts(self, id: ToolId, origin: Origin, formerly: tuple[ToolId, ...]) -> bool:
        # What was forbidden stays so under another id; what was allowed was allowed of another tool.
        if self.outcome == "allow" or any(fits_id(glob, id) for glob in self.but):
            return False
        if any(self.names(old) for old in formerly):
            return True
        return any(fits_id(glob, one) for one in unfolded(id, origin) for glob in self.tools)

    def _is_for(self, caller: Caller) -> bool:
        known = (
            (self.principals, caller.principal),
            (self.agents, caller.agent),
            (_folded(self.clients), caller.client.casefold()),
            (_folded(self.platforms), caller.platform.casefold()),
            (_folded(self.apps), caller.app.casefold()),
        )
        return all(_any(globs, value) if value else not globs or self.outcome != "allow" for globs, value in known)


def _any(globs: tuple[str, ...], value: str) -> bool:
    return not globs or any(fits(glob, value) for glob in globs)


def _folded(globs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(glob.casefold() for glob in globs)
