"""Lay out the tools of a table for an API with namespaces and deferred tools.

Other APIs call every tool by its wire name, which is the flat layout of a table.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename import Catalog, NameTable, Style, ToolId, project
from truename.identity import LookupKey, ToolNames, ToolSetMember, check, digest_of, required_key
from truename.policy.former_ids import former_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from truename import Tool
    from truename.policy import Caller, Policy

__all__ = ["NamespaceLayout", "namespace_of"]

_INNER: Final = Style("member", prefix="on-conflict")
# A namespace may have 64 characters. A longer name always gets a digest, which no shorter name can have.
_LONGEST: Final = 47
_DIGITS: Final = 16


def namespace_of(integration: str) -> str:
    """Return the namespace of an integration's tools: its name, which is cut and gets a digest if it is too long.

    It depends on the identity alone, so it does not change when servers join or leave.

    >>> namespace_of("crm"), len(namespace_of("a" * 50))
    ('crm', 64)
    """
    if len(integration) <= _LONGEST:
        return integration
    return f"{integration[:_LONGEST]}_{digest_of(integration, _DIGITS)}"


@dataclass(frozen=True)
class NamespaceLayout:
    """The keys of all tools, the descriptions of namespaces, and the tools that a model finds only by tool search.

    ``NamespaceLayout.of(names)`` is flat. `by_server` puts each integration's tools into their own namespace.
    """

    names: NameTable
    keys: Mapping[ToolId, LookupKey]
    deferred: frozenset[ToolId] = frozenset()
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(ToolSetMember(self.names_of(id), owner=self.names.catalog[id].origin.server) for id in self.keys)

    @classmethod
    def of(cls, names: NameTable | NamespaceLayout) -> NamespaceLayout:
        """Return the flat layout of a table, or the layout itself."""
        if isinstance(names, NamespaceLayout):
            return names
        return cls(names, {id: required_key(name) for id, name in names.items()})

    @classmethod
    def by_server(
        cls,
        names: NameTable,
        *,
        defer: bool | Collection[ToolId] = False,
        descriptions: Mapping[str, str] | None = None,
    ) -> NamespaceLayout:
        """Return a layout in which each integration is a namespace, with short names for its tools.

        The ledger records the short names too. A tool may not have the name of its namespace: a key (x, x) marks a
        deferred tool. It gets a longer name.

        >>> from truename import Catalog, project
        >>> catalog = Catalog.of("crm@1/lookup@1", "billing@1/lookup@1")
        >>> [key.tagged for key in NamespaceLayout.by_server(project(catalog, "openai-responses")).keys.values()]
        [('namespaced', 'crm', 'lookup'), ('namespaced', 'billing', 'lookup')]
        """
        groups: defaultdict[str, list[Tool]] = defaultdict(list)
        for id in names:
            groups[id.integration].append(names.catalog[id])
        keys: dict[ToolId, LookupKey] = {}
        for integration, tools in groups.items():
            space = namespace_of(integration)
            # The name of the namespace is reserved, so the projection gives a tool that has it another name.
            rules = replace(names.dialect, reserved=names.dialect.reserved | {space})
            ledger = None if names.ledger is None else names.ledger.scoped(f"namespace {space}")
            members = Catalog(tools, aliases={})
            inner = project(members, rules, style=_INNER, ledger=ledger, server_name=names.server_name)
            keys |= {id: required_key(name, space) for id, name in inner.items()}
        ordered = {id: keys[id] for id in names}
        told = {namespace_of(name): f"Tools of {tools[0].origin.server}" for name, tools in groups.items()}
        if isinstance(defer, bool):
            deferred = frozenset(ordered if defer else ())
        else:
            deferred = frozenset(id for id in defer if id in ordered)
        return cls(names, ordered, deferred, told | dict(descriptions or {}))

    def deferring(self, ids: Collection[ToolId | str] | None = None) -> NamespaceLayout:
        """Return a copy in which these tools (None: all) are deferred; a tool outside a namespace gets another key.

        Raises `KeyError` for a tool that is not in the layout.
        """
        wanted = set(self.keys) if ids is None else {self._id(id) for id in ids}
        keys = {
            id: required_key(key.name, deferred=True) if id in wanted and key.kind == "bare" else key
            for id, key in self.keys.items()
        }
        return replace(self, keys=keys, deferred=self.deferred | wanted)

    def visible_to(self, policy: Policy, caller: Caller) -> NamespaceLayout:
        """Return a copy without the tools that a policy hides from this caller.

        A call to a hidden tool still resolves: `Policy.decide` refuses it.
        """
        former, catalog = former_ids(self.names.ledger), self.names.catalog
        keys = {id: key for id, key in self.keys.items() if policy.visible(catalog[id], caller, former(id))}
        return replace(self, keys=keys, deferred=self.deferred & keys.keys())

    def _id(self, id: ToolId | str) -> ToolId:
        found = ToolId.parse(id) if isinstance(id, str) else id
        if found not in self.keys:
            raise KeyError(id)
        return found

    def names_of(self, id: ToolId) -> ToolNames:
        """Return all names of a tool in this layout."""
        key = self.keys[id]
        return ToolNames(name=key.name, namespace=key.namespace, defer_loading=id in self.deferred)

    @cached_property
    def ids(self) -> Mapping[LookupKey, ToolId]:
        """The tools by key."""
        return {key: id for id, key in self.keys.items()}

    @cached_property
    def qualified(self) -> Mapping[str, ToolId]:
        """The namespaced tools by ``namespace.name``, for tool choices only: calls are not resolved by it."""
        return {key.qualified_name: id for id, key in self.keys.items() if key.namespace}

    @cached_property
    def _spaced(self) -> Mapping[str, frozenset[ToolId]]:
        owners: defaultdict[str, set[ToolId]] = defaultdict(set)
        for id, key in self.keys.items():
            if key.namespace:
                owners[key.name.casefold()].add(id)
                # The qualified text is for display only: it belongs to no tool.
                owners[key.qualified_name.casefold()] |= set()
        return {name: frozenset(ids) for name, ids in owners.items()}

    def is_meant(self, name: str, id: ToolId) -> bool:
        """Return whether a name without its namespace may lead to this tool, to which its flat names lead.

        It may not if it is the short name of other tools in a namespace, or a text ``namespace.name``.
        """
        return id in self._spaced.get(name.casefold(), (id,))
