"""Compute every identifier of a tool and of a call; no other module does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NewType, Self, cast

__all__ = [
    "ApprovalKey",
    "CallId",
    "LookupKey",
    "ToolNames",
    "TraceName",
    "approval_keys",
    "call_id",
    "call_key",
    "call_trace_name",
    "default_agent_tool_name",
    "default_handoff_name",
    "displayed_id",
    "is_reserved",
    "lookup_key",
    "normalized",
    "payload_field",
    "qualified_name",
    "required_key",
    "restored",
    "text",
]

_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9_]")


def default_agent_tool_name(agent: str) -> str:
    """Return the default name of the tool that calls an agent.

    >>> default_agent_tool_name("Billing Agent")
    'billing_agent'
    """
    return _OUTSIDE.sub("_", agent).lower()


def default_handoff_name(agent: str) -> str:
    """Return the default name of the tool that hands over to an agent, in realtime and other runs.

    >>> default_handoff_name("Billing Agent")
    'transfer_to_billing_agent'
    """
    return default_agent_tool_name(f"transfer_to_{agent}")


Kind = Literal["bare", "namespaced", "deferred_top_level"]
ApprovalKey = NewType("ApprovalKey", str)
TraceName = NewType("TraceName", str)
CallId = NewType("CallId", str)

_DEFERRED: Final = "deferred_top_level"
# The length of a key without a namespace.
_BARE: Final = 2
# A hosted server's approval request is a call itself: its own id is the call id.
_REQUEST: Final = "mcp_approval_request"


def text(value: object) -> str | None:
    """Return a non-empty string unchanged, and None for any other value.

    >>> text(" "), text(""), text(12)
    (' ', None, None)
    """
    return value if isinstance(value, str) and value else None


def payload_field(payload: object, name: str) -> object:
    """Return a field of a payload (a mapping or an object with attributes); None if it is missing."""
    return payload.get(name) if isinstance(payload, Mapping) else getattr(payload, name, None)


class LookupKey(tuple[str, ...]):
    """The key by which a call is dispatched; unique within a set of tools.

    It is the tagged tuple of the OpenAI Agents SDK (kind, namespace if any, name) with named parts: it equals that
    tuple and can be used in its place.

    >>> LookupKey("namespaced", "lookup", "crm") == lookup_key("lookup", "crm") == ("namespaced", "crm", "lookup")
    True
    """

    __slots__ = ()

    def __new__(cls, kind: Kind, name: str, namespace: str | None = None) -> Self:
        """Build the key from its parts."""
        return super().__new__(cls, (kind, name) if namespace is None else (kind, namespace, name))

    def __getnewargs__(self) -> tuple[Kind, str, str | None]:
        """Return the arguments from which a copy is built."""
        return self.kind, self.name, self.namespace

    def __repr__(self) -> str:
        return f"LookupKey(kind={self.kind!r}, name={self.name!r}, namespace={self.namespace!r})"

    @property
    def kind(self) -> Kind:
        """The kind of the tool: without namespace, in a namespace, or deferred without namespace."""
        return cast("Kind", self[0])

    @property
    def name(self) -> str:
        """The tool's public name."""
        return self[-1]

    @property
    def namespace(self) -> str | None:
        """The namespace; None for a tool without one."""
        return self[1] if len(self) > _BARE else None

    @property
    def call_namespace(self) -> str | None:
        """The namespace in a call of this tool; for a deferred tool its own name, as the provider demands."""
        return self.name if self.kind == _DEFERRED else self.namespace

    @property
    def qualified_name(self) -> str:
        """``namespace.name``, or the name alone: for display and selection by name, never for dispatching a call."""
        return self.name if self.namespace is None else f"{self.namespace}.{self.name}"

    @property
    def tagged(self) -> tuple[str, ...]:
        """The key as a plain tuple, the form of the OpenAI Agents SDK: kind, namespace if any, name.

        >>> LookupKey("namespaced", "lookup", "crm").tagged
        ('namespaced', 'crm', 'lookup')
        """
        return tuple(self)

    def plain(self) -> dict[str, str]:
        """Return the key as a JSON object, the form in which it is stored."""
        stored = {"kind": self.kind, "name": self.name}
        return stored if self.namespace is None else {**stored, "namespace": self.namespace}

    @classmethod
    def of(cls, tagged: object) -> LookupKey | None:
        """Build a key from a tagged tuple; return None for anything else.

        >>> LookupKey.of(("bare", "lookup")), LookupKey.of(("namespaced", "lookup"))
        (LookupKey(kind='bare', name='lookup', namespace=None), None)
        """
        match tagged:
            case LookupKey():
                return tagged
            case (kind, name) if isinstance(tagged, tuple):
                return cls.parse({"kind": kind, "name": name})
            case ("namespaced", namespace, name) if isinstance(tagged, tuple):
                return cls.parse({"kind": "namespaced", "name": name, "namespace": namespace})
        return None

    @classmethod
    def parse(cls, stored: object) -> LookupKey | None:
        """Read a stored key; return None for an invalid one. A namespace of a kind that has none is ignored.

        >>> LookupKey.parse({"kind": "namespaced", "name": "x"}) is None
        True
        """
        if not isinstance(stored, Mapping) or (name := text(stored.get("name"))) is None:
            return None
        match stored.get("kind"):
            case "bare" | "deferred_top_level" as kind:
                return cls(kind, name)
            case "namespaced" if (namespace := text(stored.get("namespace"))) is not None:
                return cls("namespaced", name, namespace)
        return None


def lookup_key(name: object, namespace: object = None) -> LookupKey | None:
    """Build the key of a call from its name and namespace; return None if the name is missing.

    A namespace that equals the name is how the provider marks a deferred top-level tool.

    >>> lookup_key("lookup", "lookup")
    LookupKey(kind='deferred_top_level', name='lookup', namespace=None)
    """
    own, space = text(name), text(namespace)
    if own is None:
        return None
    if space is None:
        return LookupKey("bare", own)
    return LookupKey(_DEFERRED, own) if space == own else LookupKey("namespaced", own, space)


def required_key(name: str, namespace: str | None = None, *, deferred: bool = False) -> LookupKey:
    """Build the key of a tool from its name and namespace. Raises `ValueError` for an empty name.

    >>> required_key("lookup", deferred=True).kind, required_key("lookup", "crm", deferred=True).kind
    ('deferred_top_level', 'namespaced')
    """
    found = ToolNames(name=name, namespace=namespace, defer_loading=deferred).lookup_key
    if found is None:
        message = "a tool needs a name"
        raise ValueError(message)
    return found


def is_reserved(name: object, namespace: object) -> bool:
    """Return whether the namespace equals the name: this marks deferred loading and cannot be a real namespace."""
    return (own := text(name)) is not None and own == text(namespace)


def qualified_name(name: object, namespace: object = None) -> str | None:
    """Return ``namespace.name``, or the name alone; None if the name is missing.

    >>> qualified_name("lookup", "crm"), qualified_name("", "crm")
    ('crm.lookup', None)
    """
    own, space = text(name), text(namespace)
    return own if own is None or space is None else f"{space}.{own}"


def call_trace_name(name: object, namespace: object = None) -> TraceName | None:
    """Return the trace name of a call: its qualified name, without a namespace that only marks deferred loading."""
    label = qualified_name(name, None if is_reserved(name, namespace) else namespace)
    return None if label is None else TraceName(label)


def call_key(payload: object) -> LookupKey | None:
    """Return the lookup key of a provider's call payload.

    >>> call_key({"name": "lookup", "namespace": ""})
    LookupKey(kind='bare', name='lookup', namespace=None)
    """
    return lookup_key(payload_field(payload, "name"), payload_field(payload, "namespace"))


def call_id(payload: object) -> CallId | None:
    """Return the id of one invocation; None unless it is a non-empty string. No other function extracts call ids.

    An approval request of a hosted server is identified by its own ``id``, any other call by ``call_id``. The id of an
    item is never used instead: it does not identify a call.

    >>> call_id({"call_id": 42, "id": "fc_1"}) is None
    True
    """
    found = text(payload_field(payload, "id" if payload_field(payload, "type") == _REQUEST else "call_id"))
    return None if found is None else CallId(found)


def displayed_id(payload: object) -> str | None:
    """Return the id that openai-agents displays with a pending call: ``call_id``, or the item's ``id`` if it is empty.

    Use it for display only. Approvals, executions and records use `call_id` alone.

    >>> displayed_id({"id": "fc_1"}), displayed_id({"call_id": 42, "id": "fc_1"})
    ('fc_1', None)
    """
    return text(payload_field(payload, "call_id") or payload_field(payload, "id"))


def approval_keys(
    name: object,
    namespace: object = None,
    *,
    key: LookupKey | None = None,
    bare_alias: bool = False,
    legacy: bool = False,
) -> tuple[ApprovalKey, ...]:
    """Return the approval keys of a call: the bare name if permitted (``bare_alias``), then the exact key.

    A resolved ``key`` overrides name and namespace. ``legacy`` adds the key that older records have for a deferred
    tool, ``name.name`` or the bare name.

    >>> approval_keys("lookup", "lookup", bare_alias=True)
    ('lookup', 'deferred_top_level:lookup')
    """
    exact = key or lookup_key(name, namespace)
    if exact is None:
        return ()
    deferred = exact.kind == _DEFERRED
    keys = [f"{_DEFERRED}:{exact.name}" if deferred else exact.qualified_name]
    if deferred and bare_alias:
        keys.insert(0, exact.name)
    if deferred and legacy:
        keys.append(qualified_name(name, namespace) or exact.name)
    return tuple(ApprovalKey(one) for one in dict.fromkeys(keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNames:
    """All names and keys of one tool, computed from its declaration.

    ``label`` is an explicit trace name. A deferred tool in a namespace counts as an ordinary namespaced tool. Blanks
    around a namespace are removed.

    >>> ToolNames(name="lookup", defer_loading=True).lookup_key
    LookupKey(kind='deferred_top_level', name='lookup', namespace=None)
    >>> ToolNames(name="lookup", namespace=" crm ").qualified_name
    'crm.lookup'
    """

    name: str
    namespace: str | None = None
    defer_loading: bool = False
    label: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.namespace, str):
            object.__setattr__(self, "namespace", self.namespace.strip() or None)

    @property
    def is_deferred_top_level(self) -> bool:
        """Whether the tool has no namespace and models find it by tool search only."""
        return self.defer_loading and text(self.namespace) is None and text(self.name) is not None

    @property
    def qualified_name(self) -> str | None:
        """``namespace.name``, or the name alone; None if the name is empty."""
        return qualified_name(self.name, self.namespace)

    @property
    def lookup_key(self) -> LookupKey | None:
        """The key by which calls are dispatched to the tool."""
        return LookupKey(_DEFERRED, self.name) if self.is_deferred_top_level else lookup_key(self.name, self.namespace)

    @property
    def trace_name(self) -> TraceName | None:
        """The explicit label, else the public name."""
        found = text(self.label) or text(self.name)
        return None if found is None else TraceName(found)

    def approval_keys(self, *, bare_alias: bool = False) -> tuple[ApprovalKey, ...]:
        """Return the approval keys of the tool's calls, the exact one last."""
        return approval_keys(self.name, self.namespace, key=self.lookup_key, bare_alias=bare_alias)


def normalized(names: ToolNames, payload: Mapping[str, object]) -> dict[str, Any]:
    """Copy a call for the tool itself, without a namespace that only marks deferred loading.

    Approvals, interruptions and traces keep the original payload.

    >>> normalized(ToolNames(name="a", defer_loading=True), {"name": "a", "namespace": "a", "call_id": "c"})
    {'name': 'a', 'call_id': 'c'}
    """
    synthetic = names.is_deferred_top_level and call_key(payload) == names.lookup_key
    return {name: value for name, value in payload.items() if not (synthetic and name == "namespace")}


def restored(payload: Mapping[str, object], key: LookupKey | None) -> dict[str, Any]:
    """Copy a recorded call, with the namespace of its stored key if the record lost its own.

    >>> restored({"name": "a"}, LookupKey("deferred_top_level", "a"))
    {'name': 'a', 'namespace': 'a'}
    """
    lost = key is not None and key.name == payload.get("name") and text(payload.get("namespace")) is None
    namespace = key.call_namespace if key is not None and lost else None
    return dict(payload) if namespace is None else {**payload, "namespace": namespace}
