"""Represent the available tools (`Tool`, `Origin`, `Catalog`), and read dumps of tools/list results."""

from truename.catalog.admit import label_of
from truename.catalog.catalog import BUILT_IN_ALIASES, Catalog, usable_aliases
from truename.catalog.declared import (
    UNDECLARED,
    Bindings,
    IdentityChange,
    ServerIdentity,
    identity_changes,
    identity_mismatch,
    integration_error,
)
from truename.catalog.globs import Unfolded, unfolded
from truename.catalog.tool import AdmissionNotice, Origin, Tool, estimated_tokens

__all__ = [
    "BUILT_IN_ALIASES",
    "UNDECLARED",
    "AdmissionNotice",
    "Bindings",
    "Catalog",
    "IdentityChange",
    "Origin",
    "ServerIdentity",
    "Tool",
    "Unfolded",
    "estimated_tokens",
    "identity_changes",
    "identity_mismatch",
    "integration_error",
    "label_of",
    "unfolded",
    "usable_aliases",
]
