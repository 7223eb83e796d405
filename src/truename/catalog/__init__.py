"""What there is: `Tool`, `Origin`, `Catalog`, and the reading of dumps."""

from truename.catalog.admit import label_of
from truename.catalog.aliases import BUILT_IN_ALIASES, usable_aliases
from truename.catalog.catalog import Catalog
from truename.catalog.declared import (
    UNDECLARED,
    Bindings,
    IdentityChange,
    ServerIdentity,
    identity_changes,
    identity_mismatch,
    integration_fault,
)
from truename.catalog.globs import Unfolded, unfolded
from truename.catalog.size import estimated_tokens
from truename.catalog.tool import Notice, Origin, Tool

__all__ = [
    "BUILT_IN_ALIASES",
    "UNDECLARED",
    "Bindings",
    "Catalog",
    "IdentityChange",
    "Notice",
    "Origin",
    "ServerIdentity",
    "Tool",
    "Unfolded",
    "estimated_tokens",
    "identity_changes",
    "identity_mismatch",
    "integration_fault",
    "label_of",
    "unfolded",
    "usable_aliases",
]
