"""Define the rules about calls: which tools and callers a rule matches, and what it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from truename.catalog import unfolded
from truename.catalog.globs import fits, fits_id, glob_error
from truename.errors import ConfigError, excerpt
from truename.policy.principal import principal_error
from truename.policy.registry_names import names_registered, registry_glob_error

if TYPE_CHECKING:
    from truename.catalog import Origin
    from truename.identity import ToolId
    from truename.policy.approval_validity import Grant
    from truename.policy.call import Caller

__all__ = ["HINTS", "STRICTNESS", "TERMS", "CallRule", "Decision", "Outcome", "Term", "hint"]

Outcome = Literal["allow", "ask", "deny"]
STRICTNESS: Final[Mapping[Outcome, int]] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision on a call: allow it, ask for an approval first, or deny it.

    ``rule`` is the name of the rule that decided, ``reason`` a clause for people, ``grant`` a person's decision on the
    call, in force or suspended.
    """

    outcome: Outcome
    rule: str = ""
    reason: str = ""
    grant: Grant | None = None


Annotations = Mapping[str, Any]
_Reader = Callable[[object], Any]
_MOST: Final = 1_000
_LONGEST: Final = 1_024


def _hint_reader(name: str, default: Callable[[Annotations], bool]) -> Callable[[Annotations], bool]:
    def read(annotations: Annotations) -> bool:
        value = annotations.get(name)
        return value if isinstance(value, bool) else default(annotations)

    return read


_read_only: Final = _hint_reader("readOnlyHint", lambda _: False)
# The defaults are those of the Model Context Protocol; any value but true or false is ignored.
HINTS: Final[Mapping[str, Callable[[Annotations], bool]]] = MappingProxyType(
    {
        "readOnlyHint": _read_only,
        "destructiveHint": _hint_reader("destructiveHint", lambda annotations: not _read_only(annotations)),
        "idempotentHint": _hint_reader("idempotentHint", lambda _: False),
        "openWorldHint": _hint_reader("openWorldHint", lambda _: True),
    }
)


def hint(name: str, annotations: Annotations) -> bool:
    """Return the value of a hint in a tool's annotations, else the protocol's default.

    >>> hint("destructiveHint", {}), hint("destructiveHint", {"readOnlyHint": True})
    (True, False)
    >>> hint("readOnlyHint", {"readOnlyHint": "yes"})
    False
    """
    return HINTS[name](annotations)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        message = f"it is not a text of 1 to {_LONGEST:,} characters"
        raise ValueError(message)
    return value


def _outcome(value: object) -> str:
    if not isinstance(value, str) or value not in get_args(Outcome):
        message = f"it is not one of {', '.join(get_args(Outcome))}"
        raise ValueError(message)
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST:
        message = f"it is not a list of 1 to {_MOST:,} texts"
        raise ValueError(message)
    return tuple(_text(item) for item in value)


def _glob_reader(error_of: Callable[[str], str], fact: str = "") -> _Reader:
    """Return a reader of globs; ``error_of`` returns why a glob cannot match anything, ``fact`` says what."""

    def read(value: object) -> tuple[str, ...]:
        globs = _texts(value)
        for glob in globs:
            if problem := error_of(glob):
                message = f"{excerpt(glob)}{fact}: {problem}"
                raise ValueError(message)
        return globs

    return read


_globs: Final = _glob_reader(glob_error, " cannot match any tool")


def _hints(value: object) -> Mapping[str, bool]:
    if not isinstance(value, Mapping) or not value:
        message = "it is not an object of hints"
        raise ValueError(message)
    for name, wanted in value.items():
        if name not in HINTS or not isinstance(wanted, bool):
            wrong = "neither true nor false" if name in HINTS else f"not one of: {', '.join(HINTS)}"
            message = f"{excerpt(str(name))} is {wrong}"
            raise ValueError(message)
    return MappingProxyType(dict(value))


class Term(NamedTuple):
    """A term of policy rules: its reader, which raises `ValueError`, its meaning, and its key in configurations."""

    read: _Reader
    kind: Literal["text", "texts", "outcome", "annotations"]
    meaning: str
    key: str = ""


TERMS: Final[Mapping[str, Term]] = MappingProxyType(
    {
        "name": Term(_text, "text", "Name of the rule, for decisions and the audit log."),
        "outcome": Term(_outcome, "outcome", "How a call to which the rule applies is handled."),
        "reason": Term(_text, "text", "Reason that the caller is given."),
        "tools": Term(_globs, "texts", "Globs on tool ids to which the rule applies; without it all tools."),
        # The field of `CallRule` is called "but", because "except" is a keyword of Python.
        "but": Term(_globs, "texts", "Globs on tool ids to which it does not apply.", "except"),
        "servers": Term(_texts, "texts", "Globs on ids of servers."),
        "registry_names": Term(
            _glob_reader(registry_glob_error, " cannot match any name in the MCP registry"),
            "texts",
            "Globs on names in the MCP registry, in any case: servers with a `registry_name` that matches.",
        ),
        "upstream": Term(_texts, "texts", "Globs on the server's own names of tools."),
        "annotations": Term(_hints, "annotations", "Annotations that the tool has, as readOnlyHint = false."),
        "principals": Term(_glob_reader(principal_error), "texts", "Globs on principals."),
        "agents": Term(
            _texts,
            "texts",
            "Globs on agents, as a Python program names them. At the gateway the agent is unknown: a rule that allows "
            "never applies, any other does.",
        ),
        "clients": Term(_texts, "texts", "Globs on clients, in any case."),
        "platforms": Term(_texts, "texts", "Globs on platforms, in any case."),
        "apps": Term(_texts, "texts", "Globs on apps, in any case."),
    }
)
"""All terms by their field of `CallRule`; the reader, the schema and the page of settings derive from this table."""

_NEEDED = frozenset({"name", "outcome", "tools"})


@dataclass(frozen=True, kw_only=True)
class CallRule:
    """A rule that allows, asks about, or denies certain calls.

    A rule applies if all its conditions match: ``tools`` (globs on ids) and not ``but`` (globs; ``except`` in TOML),
    ``servers`` (globs on server ids), ``registry_names`` (globs on the server's name in the MCP registry, in any case),
    ``upstream`` (globs on the server's own name of the tool), ``annotations`` (the protocol's hints), and the caller's
    ``principals``, ``agents``, ``clients``, ``platforms`` and ``apps`` (globs, in any case for the last three). An
    empty condition matches everything.

    ``registered`` has the names in the MCP registry of the configured servers, by server id; a `Policy` sets it. A
    server without one matches no glob of ``registry_names``.

    If the caller's value for a condition is unknown (""), a rule that allows does not apply, and a rule that denies or
    asks does: missing information counts against the call. Rules that deny or ask also apply to a tool by its former
    ids, and by the ids that it would have without a digest or folding, since it is chance which of two look-alikes has
    the plain id. Rules that allow apply by the present id only. Annotations are the server's own unless the operator
    replaces them (`Presentation`): to allow by them is to trust the server.

    Raises `ConfigError` with the field for a glob that cannot match any tool, and for any other invalid value.

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
    registry_names: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    annotations: Mapping[str, bool] = field(default_factory=dict, hash=False)
    principals: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    reason: str = ""
    registered: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        for term, about in TERMS.items():
            value = getattr(self, term)
            if term not in _NEEDED and isinstance(value, str | tuple | list | Mapping) and not value:
                continue
            try:
                object.__setattr__(self, term, about.read(value))
            except ValueError as error:
                key = f"{self.name}.{term}"
                raise ConfigError(file="policy", key=key, problem=str(error), remedy="Fix the rule.") from error

    @property
    def decision(self) -> Decision:
        """The decision on a call to which the rule applies."""
        return Decision(outcome=self.outcome, rule=self.name, reason=self.reason)

    def applies(  # noqa: PLR0917 - all that a rule reads
        self,
        id: ToolId,
        origin: Origin,
        annotations: Annotations,
        caller: Caller,
        formerly: tuple[ToolId, ...] = (),
        same: tuple[ToolId, ...] = (),
    ) -> bool:
        """Return whether the rule applies to a call of this tool by this caller.

        ``formerly`` are redirected ids, ``same`` those of them that somebody accepted as this tool's own former ones.
        """
        return self.concerns(id, origin, annotations, formerly, same) and self._is_for(caller)

    def concerns(
        self,
        id: ToolId,
        origin: Origin,
        annotations: Annotations,
        formerly: tuple[ToolId, ...] = (),
        same: tuple[ToolId, ...] = (),
    ) -> bool:
        """Return whether the rule applies to calls of this tool by any callers."""
        return (
            (self._names_any(id, origin, same) or self._restricts(id, origin, formerly))
            and self.concerns_server(origin.server_id)
            and _any(self.upstream, origin.name)
            and all(hint(name, annotations) is expected for name, expected in self.annotations.items())
        )

    def concerns_server(self, server_id: str) -> bool:
        """Return whether the rule may apply to tools of this server, by its id and its name in the MCP registry."""
        if not _any(self.servers, server_id):
            return False
        return not self.registry_names or names_registered(self.registry_names, self.registered.get(server_id, ""))

    def names(self, id: ToolId) -> bool:
        """Return whether the rule's globs match this id."""
        return any(fits_id(glob, id) for glob in self.tools) and not any(fits_id(glob, id) for glob in self.but)

    def _names_any(self, id: ToolId, origin: Origin, same: tuple[ToolId, ...]) -> bool:
        # An exception is about all that the tool was.
        if any(fits_id(glob, one) for glob in self.but for one in (id, *same)):
            return False
        # One from a permission also by the ids that the tool would have without a digest or folding.
        is_excepted = self.outcome == "allow" and self.but
        if is_excepted and any(fits_id(glob, one) for one in unfolded(id, origin) for glob in self.but):
            return False
        return any(fits_id(glob, one) for glob in self.tools for one in (id, *same))

    def _restricts(self, id: ToolId, origin: Origin, formerly: tuple[ToolId, ...]) -> bool:
        # Restrictions also apply by former ids; permissions do not, since they were given to another tool.
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
