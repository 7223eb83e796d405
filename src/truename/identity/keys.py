"""Compute every identifier of a tool and of a call, here and nowhere else (seed 001)."""

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
    """Return the name of the tool that calls this agent.

    >>> default_agent_tool_name("Billing Agent")
    'billing_agent'
    """
    return _OUTSIDE.sub("_", agent).lower()


def default_handoff_name(agent: str) -> str:
    """Return the name of the tool that hands over to this agent, the same for realtime and other runs.

    >>> default_handoff_name("Billing Agent")
    'transfer_to_billing_agent'
    """
    return default_agent_tool_name(f"transfer_to_{agent}")


Kind = Literal["bare", "namespaced", "deferred_top_level"]
ApprovalKey = NewType("ApprovalKey", str)
TraceName = NewType("TraceName", str)
CallId = NewType("CallId", str)

_DEFERRED: Final = "deferred_top_level"
# The parts of a key without a namespace.
_BARE: Final = 2
# A hosted server's request for an approval is one itself: its own id is the call's.
_REQUEST: Final = "mcp_approval_request"


def text(value: object) -> str | None:
    """Return a value that counts as a name: a string that is not empty, as it is; anything else is none.

    >>> text(" "), text(""), text(12)
    (' ', None, None)
    """
    return value if isinstance(value, str) and value else None


def payload_field(payload: object, name: str) -> Any:
    """Return a field of a payload, which may be a mapping or a library's typed object; None if it has none."""
    return payload.get(name) if isinstance(payload, Mapping) else getattr(payload, name, None)


class LookupKey(tuple[str, ...]):
    """What a call is dispatched by; two tools of one set never share one.

    It is the tagged tuple of seed 001 (kind, namespace if any, name), with names for its parts: it equals that tuple,
    and is taken for one by whatever takes such a tuple.

    >>> LookupKey("namespaced", "lookup", "crm") == lookup_key("lookup", "crm") == ("namespaced", "crm", "lookup")
    True
    """

    __slots__ = ()

    def __new__(cls, kind: Kind, name: str, namespace: str | None = None) -> Self:
        """Return the key of these parts."""
        return super().__new__(cls, (kind, name) if namespace is None else (kind, namespace, name))

    def __getnewargs__(self) -> tuple[Kind, str, str | None]:
        """Return what a copy is made of."""
        return self.kind, self.name, self.namespace

    def __repr__(self) -> str:
        return f"LookupKey(kind={self.kind!r}, name={self.name!r}, namespace={self.namespace!r})"

    @property
    def kind(self) -> Kind:
        """Whether a tool stands alone, in a namespace, or is deferred and stands alone."""
        return cast("Kind", self[0])

    @property
    def name(self) -> str:
        """The tool's public name."""
        return self[-1]

    @property
    def namespace(self) -> str | None:
        """The namespace; None for a tool that stands alone."""
        return self[1] if len(self) > _BARE else None

    @property
    def call_namespace(self) -> str | None:
        """The namespace that a call of this tool carries: for a deferred one its own name, by the provider's rule."""
        return self.name if self.kind == _DEFERRED else self.namespace

    @property
    def qualified_name(self) -> str:
        """``namespace.name``, or the name alone: for display and for choosing by name, never for a call."""
        return self.name if self.namespace is None else f"{self.namespace}.{self.name}"

    @property
    def tagged(self) -> tuple[str, ...]:
        """The key as a plain tuple, which is how seed 001 writes it: kind, namespace if any, name.

        >>> LookupKey("namespaced", "lookup", "crm").tagged
        ('namespaced', 'crm', 'lookup')
        """
        return tuple(self)

    def plain(self) -> dict[str, str]:
        """Return the key as it is stored."""
        stored = {"kind": self.kind, "name": self.name}
        return stored if self.namespace is None else {**stored, "namespace": self.namespace}

    @classmethod
    def of(cls, tagged: object) -> LookupKey | None:
        """Return the key that a tagged tuple is; None for what is none.

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
        """Read a stored key; None for what is none. A namespace that has no place there is left out.

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
    """Return the key of a call by its name and namespace; None if it names nothing.

    A namespace that equals the name is the provider's sign for a deferred top-level tool.

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
    """Return the key of a tool by its names, which have to be there. Raises `ValueError` for an empty name.

    >>> required_key("lookup", deferred=True).kind, required_key("lookup", "crm", deferred=True).kind
    ('deferred_top_level', 'namespaced')
    """
    found = ToolNames(name=name, namespace=namespace, defer_loading=deferred).lookup_key
    if found is None:
        message = "a tool needs a name"
        raise ValueError(message)
    return found


def is_reserved(name: object, namespace: object) -> bool:
    """Tell whether a namespace is the one that stands for deferred loading, and so can't be a tool's own."""
    return (own := text(name)) is not None and own == text(namespace)


def qualified_name(name: object, namespace: object = None) -> str | None:
    """Return ``namespace.name``, or the name alone.

    >>> qualified_name("lookup", "crm"), qualified_name("", "crm")
    ('crm.lookup', None)
    """
    own, space = text(name), text(namespace)
    return own if own is None or space is None else f"{space}.{own}"


def call_trace_name(name: object, namespace: object = None) -> TraceName | None:
    """Return the label of a call: its qualified name, without the namespace that only stands for deferred loading."""
    label = qualified_name(name, None if is_reserved(name, namespace) else namespace)
    return None if label is None else TraceName(label)


def call_key(payload: object) -> LookupKey | None:
    """Return the lookup key of a provider's call payload.

    >>> call_key({"name": "lookup", "namespace": ""})
    LookupKey(kind='bare', name='lookup', namespace=None)
    """
    return lookup_key(payload_field(payload, "name"), payload_field(payload, "namespace"))


def call_id(payload: object) -> CallId | None:
    """Return the id of one invocation, the only extractor there is; only a string counts, and it is never made up.

    A request of a hosted server for an approval is identified by its own ``id``, any other call by ``call_id``. The
    id of an item is not the id of a call, so there is no falling back to it.

    >>> call_id({"call_id": 42, "id": "fc_1"}) is None
    True
    """
    found = text(payload_field(payload, "id" if payload_field(payload, "type") == _REQUEST else "call_id"))
    return None if found is None else CallId(found)


def displayed_id(payload: object) -> str | None:
    """Return the id that openai-agents shows with a pending call: ``call_id``, or the item's own where that is empty.

    It identifies a line on a screen. Nothing is approved, executed or remembered by it: that is `call_id` alone.

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
    """Return the texts under which a decision on a call is filed: a permitted bare alias, then the exact key.

    A ``key`` that was resolved goes before name and namespace. ``legacy`` adds the ``name.name`` or bare form that
    older records have for a deferred tool.

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
    """All that one tool is called by, from what it declares.

    ``label`` is an explicit trace name. A deferred tool in a namespace of its own is an ordinary namespaced one. Blanks
    around a namespace are no part of it: what declares a tool with them means the one without (seed 001).

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
        """Whether a model finds it by search only, outside any namespace."""
        return self.defer_loading and text(self.namespace) is None and text(self.name) is not None

    @property
    def qualified_name(self) -> str | None:
        """``namespace.name``, or the name alone."""
        return qualified_name(self.name, self.namespace)

    @property
    def lookup_key(self) -> LookupKey | None:
        """The one key that dispatches to it."""
        return LookupKey(_DEFERRED, self.name) if self.is_deferred_top_level else lookup_key(self.name, self.namespace)

    @property
    def trace_name(self) -> TraceName | None:
        """The explicit label, else the public name."""
        found = text(self.label) or text(self.name)
        return None if found is None else TraceName(found)

    def approval_keys(self, *, bare_alias: bool = False) -> tuple[ApprovalKey, ...]:
        """Return the texts under which decisions on its calls are filed, the exact one last."""
        return approval_keys(self.name, self.namespace, key=self.lookup_key, bare_alias=bare_alias)


def normalized(names: ToolNames, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as the tool itself is to see it: a copy without the namespace that stands for deferred loading.

    Approvals, interruptions and traces keep the payload that came.

    >>> normalized(ToolNames(name="a", defer_loading=True), {"name": "a", "namespace": "a", "call_id": "c"})
    {'name': 'a', 'call_id': 'c'}
    """
    synthetic = names.is_deferred_top_level and call_key(payload) == names.lookup_key
    return {name: value for name, value in payload.items() if not (synthetic and name == "namespace")}


def restored(payload: Mapping[str, Any], key: LookupKey | None) -> dict[str, Any]:
    """Return a recorded call with the namespace of its stored key, where the record lost it; one that is there stays.

    >>> restored({"name": "a"}, LookupKey("deferred_top_level", "a"))
    {'name': 'a', 'namespace': 'a'}
    """
    lost = key is not None and key.name == payload.get("name") and text(payload.get("namespace")) is None
    namespace = key.call_namespace if key is not None and lost else None
    return dict(payload) if namespace is None else {**payload, "namespace": namespace}
