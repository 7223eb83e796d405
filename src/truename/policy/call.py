"""Represent a call as policy sees it: the tool (whatever name was used), the caller, the arguments, and the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from dataclasses import field as field_of
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, get_args

from truename.catalog.tool import overlaid
from truename.conventions.metadata import NO_PATCH, MetadataPatch, declared_metadata
from truename.errors import ConfigError, InvalidCall, UnknownTool, excerpt
from truename.identity import MAX_FOREIGN, definition_digest, lower_ascii
from truename.identity.keys import LookupKey, call_id, lookup_key, payload_field, qualified_name, text
from truename.naming import resolve
from truename.policy.arguments import json_digest, read_arguments
from truename.policy.former_ids import formerly
from truename.policy.lineage import NO_LINEAGE, Lineage, no_lineage
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from truename.catalog import Origin, Tool
    from truename.identity import ToolId
    from truename.identity.keys import CallId
    from truename.naming import NameTable
    from truename.policy.lineage import LineageOf
    from truename.policy.principal import Principal

__all__ = [
    "ORIGINS",
    "Call",
    "CallEvent",
    "CallOrigin",
    "Caller",
    "Context",
    "OnCall",
    "Outcome",
    "annotations_of",
    "bound_call",
    "call_of",
    "claims_of",
    "digested",
    "digests_of",
    "shape_of",
]

CallOrigin = Literal["llm", "replay", "internal"]
ORIGINS: Final[tuple[CallOrigin, ...]] = get_args(CallOrigin)
_WORDS: Final = ("platform", "app", "origin")
_LONGEST: Final = 4 * MAX_FOREIGN


def _refuse(key: str, problem: str, remedy: str) -> NoReturn:
    raise ConfigError(file="context", key=key, problem=problem, remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of a session: ``platform`` and ``app`` ("" is unknown), and the ``origin`` of its calls.

    Origins are ``llm`` (a model calls), ``replay`` (a recording is replayed) and ``internal`` (a program's own step).
    Texts may have any case and are stored in lower case. Raises `ConfigError` for an unknown origin, since it must not
    be treated as one with more rights (docs/gateway/contexts.md).

    >>> Context(platform="iOS", app="payments") == Context(platform="ios", app="Payments")
    True
    """

    platform: str = ""
    app: str = ""
    origin: CallOrigin = "llm"

    def __post_init__(self) -> None:
        for name in _WORDS:
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > MAX_FOREIGN:
                _refuse(
                    name,
                    f"it is not a text of at most {MAX_FOREIGN:,} characters",
                    "Write the name of a platform or an app.",
                )
            object.__setattr__(self, name, lower_ascii(value))
        if self.origin not in ORIGINS:
            _refuse("origin", f"{excerpt(self.origin)} is not an origin", f"Use one of: {', '.join(ORIGINS)}.")

    @classmethod
    def parse(cls, text: str) -> Context:
        """Parse ``platform=ios, app=payments`` strictly, since an ignored word could be one that limits the session.

        Raises `ConfigError` with the word that is unknown, empty or duplicated, or has an invalid value.

        >>> Context.parse("Platform=IOS")
        Traceback (most recent call last):
            ...
        truename.errors.ConfigError: context: 'Platform': it is not a field of a context. Use one of: platform, ...
        >>> Context.parse("app = payments, platform=IOS").platform
        'ios'
        """
        if len(text) > _LONGEST:
            _refuse("", f"it is longer than {_LONGEST:,} characters", "Write platform=ios, app=payments.")
        values: dict[str, str] = {}
        for part in text.split(","):
            word, _, value = (piece.strip(" \t") for piece in part.partition("="))
            if word not in _WORDS:
                _refuse(excerpt(word), "it is not a field of a context", f"Use one of: {', '.join(_WORDS)}.")
            if not value or not value.isprintable():
                _refuse(word, "it is empty or cannot be printed", f"Write {word}=VALUE, or omit it.")
            if word in values:
                _refuse(word, "it occurs twice", "Write it once.")
            values[word] = value
        return cls(**values)  # type: ignore[arg-type]


# The fields of a function call, or of a hosted server's approval request, in the model APIs.
_KNOWN: Final = frozenset(
    {
        *("type", "id", "call_id", "name", "namespace", "arguments", "parsed_arguments"),
        *("status", "caller", "created_by", "server_label", "async", "async_"),
    }
)
_TEXTS: Final = ("call_id", "digest", "wire_name", "shape", "endpoint")
_CALLER: Final = ("principal", "agent", "session", "client", "platform", "app", "origin")
_REQUEST: Final = "mcp_approval_request"


def _optional(payload: object, name: str, where: str = "") -> str | None:
    value = payload_field(payload, name)
    if value is not None and not isinstance(value, str):
        raise InvalidCall(field=f"{where}{name}", problem=f"is of type {type(value).__name__}, not text")
    if value is not None and len(value) > MAX_FOREIGN:
        raise InvalidCall(field=f"{where}{name}", problem=f"has {len(value):,} characters, more than {MAX_FOREIGN:,}")
    return text(value)


def _check_texts(where: str, owner: object, names: Iterable[str]) -> None:
    for name in names:
        value = getattr(owner, name)
        # A fast path, since this runs for every call and nearly all values are short texts.
        if type(value) is str and len(value) <= MAX_FOREIGN:
            continue
        if _optional(owner, name, where) is None and value != "":
            raise InvalidCall(field=f"{where}{name}", problem="is missing")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The caller of a tool; "" is unknown.

    ``principal`` is the person or account, ``agent`` the agent that acts for it, ``session`` the conversation within
    which call ids are unique, ``client`` a dialect, ``platform`` and ``app`` the environment it runs in.
    """

    principal: str = ""
    agent: str = ""
    session: str = ""
    client: str = ""
    platform: str = ""
    app: str = ""
    origin: CallOrigin = "llm"

    def __post_init__(self) -> None:
        _check_texts("caller.", self, _CALLER)
        if self.origin not in ORIGINS:
            raise InvalidCall(field="caller.origin", problem=f"is none of {', '.join(ORIGINS)}")

    @property
    def context(self) -> Context:
        """The context of the caller: platform, app and origin."""
        return Context(platform=self.platform, app=self.app, origin=self.origin)

    def within(self, context: Context) -> Self:
        """Return a copy of the caller in this context."""
        return replace(self, platform=context.platform, app=context.app, origin=context.origin)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool; made by `call_of` or `bound_call`.

    ``digest`` is the digest of the tool's whole definition, ``shape`` that of the definition without its name.
    ``endpoint`` is a digest of the server's command or URL, "" if the user of this library does not provide it.
    ``wire_name`` is the name that the caller used; it is never used as a key. ``annotations`` are the server's, with
    the operator's replacements. ``declared`` is the metadata that the tool's author declares. ``formerly`` are ids that
    an operator redirected to the tool. ``offered`` are the annotations that the server gives now, if an earlier
    definition is shown. ``lineage`` is what the tool was, or may have been, before its server renamed it.
    """

    id: ToolId
    call_id: CallId
    arguments: Mapping[str, Any] = field_of(hash=False)
    origin: Origin
    digest: str
    wire_name: str
    key: LookupKey
    caller: Caller = Caller()
    shape: str = ""
    endpoint: str = ""
    annotations: Mapping[str, Any] = field_of(default_factory=dict, hash=False)
    formerly: tuple[ToolId, ...] = ()
    declared: MetadataPatch = NO_PATCH
    offered: Mapping[str, Any] | None = field_of(default=None, hash=False)
    lineage: Lineage = NO_LINEAGE

    def __post_init__(self) -> None:
        _check_texts("", self, _TEXTS)

    @property
    def claims(self) -> tuple[Mapping[str, Any], ...]:
        """All annotations that rules check: the shown ones, and those that the server gives now."""
        return (self.annotations,) if self.offered is None else (self.annotations, self.offered)

    def copied(self) -> Call:
        """Return a copy of the call with its own copies of arguments and annotations."""
        return replace(self, arguments=deepcopy(self.arguments), annotations=dict(self.annotations))

    def again(self, *, call_id: str, arguments: object) -> Call:
        """Return another call of the same tool by the same caller, under the same name.

        Raises `InvalidCall` as `bound_call` does.
        """
        if not 0 < len(call_id) <= MAX_FOREIGN:
            _text({"call_id": call_id}, "call_id")
        other = object.__new__(Call)
        # `dataclasses.replace` would set and check every field anew, at ten times the cost.
        vars(other).update(
            vars(self), call_id=call_id, arguments=read_arguments(arguments), annotations=dict(self.annotations)
        )
        return other

    @property
    def arguments_digest(self) -> str:
        """The digest of the present arguments; a call owner arguments are changed after an approval is another call."""
        return json_digest(self.arguments)

    @property
    def fingerprint(self) -> str:
        """The identity of the call: a digest of tool id, origin, definition and arguments, not of the wire name."""
        return json_digest([str(self.id), self.origin.server_id, self.origin.name, self.digest, self.arguments])


def call_of(
    payload: object,
    names: NameTable,
    caller: Caller = Caller(),
    *,
    keys: Mapping[LookupKey, ToolId] | None = None,
    endpoints: Mapping[str, str] | None = None,
) -> Call:
    """Build the call from a provider's payload (a mapping or a library's typed object).

    The payload has ``name``, ``call_id`` and ``arguments`` (JSON text or an object), and may have ``namespace``; a
    hosted server's approval request is identified by its ``id``. The name is resolved like any name, so aliases, old
    names and ids lead to the tool itself. ``keys`` are the lookup keys of an adapter that shows namespaces; a namespace
    that equals the name only marks deferred loading. ``endpoints`` are digests of command or URL by server id.

    Raises `InvalidCall` with the field, and the errors of `resolve`.

    >>> from truename import Catalog, project
    >>> names = project(Catalog.of("github@1/search@1"), "openai")
    >>> payload = {"name": "GitHub/search", "call_id": "c1", "arguments": '{"b": 1.0, "a": []}'}
    >>> str(call_of(payload, names).id)
    'github@1/search@1'
    >>> call_of({**payload, "call_id": 12}, names)
    Traceback (most recent call last):
        ...
    truename.errors.InvalidCall: Invalid call: call_id is of type int, not text; nothing was run. ...
    """
    _check_fields(payload)
    name, namespace = _text(payload, "name"), _optional(payload, "namespace")
    return bound_call(
        name=name,
        namespace=namespace,
        call_id=_text(payload, "id" if payload_field(payload, "type") == _REQUEST else "call_id"),
        arguments=payload_field(payload, "arguments"),
        names=names,
        caller=caller,
        keys=keys,
        endpoints=endpoints,
    )


def bound_call(
    *,
    name: object,
    call_id: object,
    arguments: object,
    names: NameTable,
    caller: Caller = Caller(),
    namespace: str | None = None,
    keys: Mapping[LookupKey, ToolId] | None = None,
    endpoints: Mapping[str, str] | None = None,
    digests: Callable[[Tool], tuple[str, str]] | None = None,
    tool: Tool | None = None,
    lineage: LineageOf = no_lineage,
) -> Call:
    """Build a call from its parts, for an adapter whose payloads have another shape; else like `call_of`.

    ``digests`` may return cached digests of a tool's definition, with and without its name, if definitions are never
    changed in place. ``tool`` is the tool of the catalogue, if the caller has already resolved the name. ``lineage``
    returns what a tool was before its server renamed it.
    """
    parts = {"name": name, "call_id": call_id, "namespace": namespace}
    called, identifier = _text(parts, "name"), _text(parts, "call_id")
    key = lookup_key(called, _optional(parts, "namespace"))
    assert key is not None  # noqa: S101 - the name was checked
    read = read_arguments(arguments)
    if tool is None:
        tool = names.catalog[_tool_of(key, names, keys or {})]
    digest, shape = digests_of(tool) if digests is None else digests(tool)
    shown, *offered = map(dict, claims_of(tool))
    return Call(
        id=tool.id,
        call_id=_identifier(identifier),
        arguments=read,
        origin=tool.origin,
        digest=digest,
        wire_name=called,
        key=key,
        caller=caller,
        shape=shape,
        endpoint=(endpoints or {}).get(tool.origin.server_id, ""),
        annotations=shown,
        formerly=formerly(tool.id, names.ledger),
        declared=declared_metadata(tool),
        offered=offered[0] if offered else None,
        lineage=lineage(tool.id),
    )


def digests_of(tool: Tool) -> tuple[str, str]:
    """Return the digests of a definition with its name and without."""
    return tool.digest, shape_of(tool)


def shape_of(tool: Tool) -> str:
    """Return the digest of a definition without its name, which does not change when a tool is only renamed."""
    return definition_digest({key: value for key, value in tool.current.items() if key != "name"})


def annotations_of(tool: Tool) -> Mapping[str, object]:
    """Return a tool's annotations with the operator's replacements; empty if missing or not an object."""
    return claims_of(tool)[0]


def claims_of(tool: Tool) -> tuple[Mapping[str, object], ...]:
    """Return all annotations of a tool that rules check: the shown ones, and those that the server gives now."""
    definitions = (tool.shown,) if tool.offered is None else (tool.shown, overlaid(tool.offered, tool.presented))
    return tuple(found if isinstance(found := one.get("annotations"), Mapping) else {} for one in definitions)


def _tool_of(key: LookupKey, names: NameTable, keys: Mapping[LookupKey, ToolId]) -> ToolId:
    found = keys.get(key)
    if found is None and key.kind != "namespaced":
        found = resolve(key.name, names).id
    if found is None or found not in names:
        # The qualified name is for display only; it cannot be used to call a tool.
        raise UnknownTool(
            text=qualified_name(key.name, key.namespace) or key.name,
            trail=("keys: no tool has this name and namespace",),
            suggestions=names.suggester.nearest(key.name),
        )
    return found


def _identifier(value: str) -> CallId:
    found = call_id({"call_id": value})
    assert found is not None  # noqa: S101 - it was checked
    return found


def _check_fields(payload: object) -> None:
    if not isinstance(payload, Mapping) and not hasattr(payload, "name"):
        raise InvalidCall(field="the payload", problem=f"is of type {type(payload).__name__}, not a call")
    # A typed object stores fields that its class does not declare in ``model_extra``.
    given = payload if isinstance(payload, Mapping) else getattr(payload, "model_extra", None)
    for name in given or ():
        if name not in _KNOWN:
            raise InvalidCall(field=name if isinstance(name, str) else repr(name), problem="is not a field of a call")


def _text(payload: object, name: str) -> str:
    found = _optional(payload, name)
    if found is None:
        problem = "is empty" if payload_field(payload, name) == "" else "is missing"
        raise InvalidCall(field=name, problem=problem)
    return found


@dataclass(frozen=True, kw_only=True)
class DigestedCall(Call):
    """A call with precomputed digests; ``known`` are its arguments digest and its fingerprint.

    It is made by `digested`, and its arguments must not be changed. A copy (`copied`) is a plain `Call` again.
    """

    known: tuple[str, str] = field(repr=False)

    def copied(self) -> Call:
        """Return a plain copy of the call with its own copies of arguments and annotations."""
        return Call(**_parts(self)).copied()

    @property
    def arguments_digest(self) -> str:
        """The precomputed digest of the arguments."""
        return self.known[0]

    @property
    def fingerprint(self) -> str:
        """The precomputed `Call.fingerprint`."""
        return self.known[1]


def digested(call: Call) -> DigestedCall:
    """Return the call with its digests computed now; its arguments must not be changed afterwards."""
    return DigestedCall(**_parts(call), known=(call.arguments_digest, call.fingerprint))


def _parts(call: Call) -> dict[str, Any]:
    return {one.name: getattr(call, one.name) for one in fields(Call)}


Outcome = Literal[
    "ok", "tool_error", "protocol_error", "refused", "unknown", "failed", "cancelled", "input_required", "begun"
]


@dataclass(frozen=True, kw_only=True)
class CallEvent:
    """The record of a call from its arrival to its result.

    ``id`` is None if the name did not resolve; then only ``wire_name``, the caller's text, is known.

    ``outcome``: ``ok`` or ``tool_error`` (the tool returned a result, or one with ``isError``); ``protocol_error`` (a
    JSON-RPC error, from the server or because the request is invalid); ``refused`` (by policy); ``unknown`` (no tool
    has the name); ``failed`` (the server could not be called, or returned no result); ``cancelled`` (by the client, or
    because the gateway stopped); ``input_required`` (an approval or other input is needed first); ``begun`` (about to
    be sent). ``code`` is the typed error's code or the JSON-RPC number, "" on success.

    ``call_id`` is the client's request id, unique only within a session; ``serial`` counts the calls of one gateway
    process.

    ``rule`` is the rule that decided and ``grant`` the key of a person's decision, "" if there was none. ``findings``
    are the rules that the server's result violates, if results are inspected.
    ``began`` is in seconds since 1970, ``seconds`` the duration, ``trace`` the W3C ``traceparent`` of the call.
    ``arguments`` are the caller's; record them only where the configuration says so.
    """

    wire_name: str
    outcome: Outcome
    began: float
    seconds: float
    id: ToolId | None = None
    digest: str = ""
    origin: Origin | None = None
    principal: Principal = LOCAL
    agent: str = ""
    client: str = ""
    session: str = ""
    view: str = ""
    call_id: str = ""
    serial: int = 0
    arguments_digest: str = ""
    code: str = ""
    decision: str = ""
    rule: str = ""
    grant: str = ""
    trace: str = ""
    arguments: Mapping[str, Any] | None = None
    findings: tuple[str, ...] = ()


OnCall = Callable[[CallEvent], None]
"""A callback that gets each finished call. It must not block; an exception in it is logged and otherwise ignored."""
