"""Truename: one canonical identity for every agent tool, a legal name for every client, never a guess back."""

from truename import dialects
from truename.catalog import Catalog, Origin, Tool
from truename.identity import ToolId, ToolRef
from truename.ledger import Ledger
from truename.naming import Explanation, NameTable, Resolution, Style, WireName, project, resolve

__all__ = [
    "Catalog",
    "Explanation",
    "Ledger",
    "NameTable",
    "Origin",
    "Resolution",
    "Style",
    "Tool",
    "ToolId",
    "ToolRef",
    "WireName",
    "dialects",
    "project",
    "resolve",
]
