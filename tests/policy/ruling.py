"""What tests of rules share: linting a few names, and what of a finding is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.conventions import Convention, Declaration, Metadata, Severity, lint

if TYPE_CHECKING:
    from truename.conventions import Finding

__all__ = ["SEED", "found", "linted", "takes", "texts_of", "tool"]

SEED = Convention.of("trailblaze", apps=["myapp", "payments"])
_LETTERS = {Severity.ERROR: "E", Severity.WARNING: "W", Severity.NOTE: "N"}


def tool(name: str, **changes: Any) -> Declaration:
    """Return a declaration; what is metadata becomes some."""
    known = {key: changes.pop(key) for key in tuple(changes) if key in Metadata.__dataclass_fields__}
    return Declaration(name=name, metadata=Metadata(**known), **changes)


def takes(name: str, /, **parameters: Any) -> dict[str, Any]:
    """Return a definition that takes these parameters, name -> schema."""
    return {"name": name, "inputSchema": {"type": "object", "properties": parameters}}


def linted(*tools: str | Declaration, convention: Convention = SEED) -> tuple[Finding, ...]:
    """Return what is found about these tools, declared together."""
    return lint([tool(one) if isinstance(one, str) else one for one in tools], convention).findings


def found(*tools: str | Declaration, convention: Convention = SEED) -> list[str]:
    """Return what is found, each as the letter of its severity and the rule's name: ``E separator``."""
    return [f"{_LETTERS[one.rule.severity]} {one.rule.name}" for one in linted(*tools, convention=convention)]


def texts_of(*tools: str | Declaration, convention: Convention = SEED) -> list[str]:
    """Return the sentences of what is found."""
    return [str(one) for one in linted(*tools, convention=convention)]
