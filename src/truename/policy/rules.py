"""Define the rules about calls: which tools and callers a rule matches, and what it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.catalog import unfolded
from truename.catalog.globs import fits, fits_id, glob_error
from truename.errors import ConfigError, excerpt
from truename.policy.principal import principal_fault

if TYPE_CHECKING:
    from truename.catalog import Origin
    from truename.identity import ToolId
    from truename.policy.call import Caller
    from truename.policy.grants import Grant

__all__ = ["HINTS", "STRICTNESS", "TERMS", "CallRule", "Decision", "Outcome", "hint"]

Outcome = Literal["allow", "ask", "deny"]
STRICTNESS: Final[Mapping[Outcome, int]] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What may happen: run it, ask somebody first, or refuse.

    ``rule`` is the name of the rule that decided, ``reason`` a clause for people, ``grant`` the decision of a person
    that was found for the call, in force or suspended.
    """

    outcome: Outcome
    rule: str = ""
    reason: str = ""
    grant: Grant | None = None


Annotations = Mapping[str, Any]
_Reader = Callable[[object], Any]
_MOST: Final = 1_000
_LONGEST: Final = 1_024


def _said(name: str, default: Callable[[Annotations], bool]) -> Callable[[Annotations], bool]:
    def read(annotations: Annotations) -> bool:
        value = annotations.get(name)
        return value if isinstance(value, bool) else default(annotations)

    return read


_read_only: Final = _said("readOnlyHint", lambda _: False)
# The defaults are those of the Model Context Protocol; anything but true or false counts as not said.
HINTS: Final[Mapping[str, Callable[[Annotations], bool]]] = MappingProxyType(
    {
        "readOnlyHint": _read_only,
        "destructiveHint": _said("destructiveHint", lambda annotations: not _read_only(annotations)),
        "idempotentHint": _said("idempotentHint", lambda _: False),
        "openWorldHint": _said("openWorldHint", lambda _: True),
    }
)


def hint(name: str, annotations: Annotations) -> bool:
    """Return what a tool says of itself; what it does not say is what the protocol takes for granted.

    >>> hint("destructiveHint", {}), hint("destructiveHint", {"readOnlyHint": True})
    (True, False)
    >>> hint("readOnlyHint", {"readOnlyHint": "yes"})
    False
    """
    return HINTS[name](annotations)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        message = f"it is no text of 1 to {_LONGEST:,} characters"
        raise ValueError(message)
    return value


def _outcome(value: object) -> str:
    if not isinstance(value, str) or value not in get_args(Outcome):
        message = f"it is none of {', '.join(get_args(Outcome))}"
        raise ValueError(message)
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST:
        message = f"it is no list of 1 to {_MOST:,} texts"
        raise ValueError(message)
    return tuple(_text(item) for item in value)


def _globs(value: object) -> tuple[str, ...]:
    globs = _texts(value)
    for glob in globs:
        if fault := glob_error(glob):
            message = f"{excerpt(glob)} fits no tool: {fault}"
            raise ValueError(message)
    return globs


def _principals(value: object) -> tuple[str, ...]:
    globs = _texts(value)
    for glob in globs:
        if fault := principal_fault(glob):
            message = f"{excerpt(glob)}: {fault}"
            raise ValueError(message)
    return globs


def _hints(value: object) -> Mapping[str, bool]:
    if not isinstance(value, Mapping) or not value:
        message = "it is no object of hints"
        raise ValueError(message)
    for name, wanted in value.items():
        if name not in HINTS or not isinstance(wanted, bool):
            message = f"{excerpt(str(name))} is none of {', '.join(HINTS)}, or is neither true nor false"
            raise ValueError(message)
    return MappingProxyType(dict(value))


TERMS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {
        "name": _text,
        "outcome": _outcome,
        "reason": _text,
        "tools": _globs,
        "but": _globs,
        "servers": _texts,
        "upstream": _texts,
        "annotations": _hints,
        "principals": _principals,
        "agents": _texts,
        "clients": _texts,
        "platforms": _texts,
        "apps": _texts,
    }
)


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
