"""What an example of the text rules is: a tool with the tools of other servers beside it, hostile or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from truename.conventions.convention import Convention
from truename.conventions.declarations import Declaration
from truename.conventions.findings import Severity
from truename.conventions.rules.characters import CHECKS as CHARACTERS
from truename.conventions.rules.check import LintContext
from truename.conventions.rules.prompt_injection import CHECKS as INSTRUCTIONS
from truename.conventions.rules.references import CHECKS as REFERENCES
from truename.conventions.rules.self_promotion import CHECKS as APPEALS
from truename.conventions.rules.shadowing import CHECKS as SHADOWING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.conventions.findings import Finding

__all__ = ["CHECKS", "Category", "Example", "declared", "findings", "flagged", "harmless", "hostile", "material_of"]

Category = Literal[
    "phrase_injection",
    "unicode_smuggling",
    "decoded_payload",
    "shadowing",
    "capability_mismatch",
    "dead_reference",
    "appeal",
    "foreign_parameter",
]
Peer = tuple[str, str, str]
CHECKS = CHARACTERS + SHADOWING + APPEALS + INSTRUCTIONS + REFERENCES


@dataclass(frozen=True)
class Example:
    """One tool of the server ``own``; ``peers`` are (server, name, description)."""

    category: Category
    is_hostile: bool
    name: str
    description: str
    peers: tuple[Peer, ...] = ()
    more: tuple[tuple[str, Any], ...] = ()


def hostile(category: Category, name: str, description: str, *peers: Peer, **more: Any) -> Example:
    return Example(category, True, name, description, peers, tuple(more.items()))


def harmless(category: Category, name: str, description: str, *peers: Peer, **more: Any) -> Example:
    return Example(category, False, name, description, peers, tuple(more.items()))


def declared(name: str, description: str, server: str = "own", **more: Any) -> Declaration:
    definition = {"name": name, "description": description, **more}
    return Declaration(name=name, server=server, definition=definition)


def material_of(example: Example) -> LintContext:
    peers = tuple(declared(name, text, server) for server, name, text in example.peers)
    return LintContext((declared(example.name, example.description, **dict(example.more)),), Convention(), peers)


def findings(material: LintContext) -> tuple[Finding, ...]:
    return tuple(finding for check in CHECKS for finding in check.find(material))


def flagged(found: Iterable[Finding]) -> bool:
    return any(finding.rule.severity is not Severity.NOTE for finding in found)
