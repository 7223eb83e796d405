"""One canonical identity for every agent tool, a legal name for every client, and an exact way back.

A catalogue gives each tool a `ToolId`. `project` makes the names that one client sees, `resolve` brings a name back to
exactly one tool, or raises an error that says what to do. A `Ledger` records each name, so that a name once shown never
means another tool.

>>> from truename import Catalog, project, resolve
>>> catalog = Catalog.from_mcp({"weather": ["get_data"], "database": ["get_data"]})
>>> names = project(catalog, "openai")
>>> names["weather@1/get_data@1"]
'weather_get_data'
>>> resolve("database_get_data", names).id
ToolId('database@1/get_data@1')

A name that several tools have is never guessed:

>>> from truename import AmbiguousName
>>> try:
...     resolve("get_data", names)
... except AmbiguousName as error:
...     print(error)
'get_data' is not unique: 'database_get_data' and 'weather_get_data'. Call one of these exactly.

Further packages, each with a page of its own: `truename.dialects` (limits and behaviour of clients and providers),
`truename.policy` (rules and approvals), `truename.conventions` (naming conventions), `truename.migration` (diff,
rename, lock), `truename.adapters` (agent frameworks and model APIs), `truename.gateway` (the MCP gateway; needs the
extra ``gateway``). All errors are in `truename.errors`.
"""

from truename import dialects, errors
from truename.catalog import Catalog, Origin, Tool
from truename.errors import (
    AmbiguousName,
    ConfigError,
    DuplicateTool,
    InvalidName,
    InvalidToolId,
    LedgerError,
    NoLegalName,
    ResolutionError,
    RetiredName,
    TruenameError,
    UnknownDialect,
    UnknownTool,
    UnknownToolId,
)
from truename.identity import ToolId, ToolRef
from truename.ledger import Ledger
from truename.naming import Explanation, NameTable, Passthrough, Resolution, Style, WireName, project, resolve

__all__ = [
    "AmbiguousName",
    "Catalog",
    "ConfigError",
    "DuplicateTool",
    "Explanation",
    "InvalidName",
    "InvalidToolId",
    "Ledger",
    "LedgerError",
    "NameTable",
    "NoLegalName",
    "Origin",
    "Passthrough",
    "Resolution",
    "ResolutionError",
    "RetiredName",
    "Style",
    "Tool",
    "ToolId",
    "ToolRef",
    "TruenameError",
    "UnknownDialect",
    "UnknownTool",
    "UnknownToolId",
    "WireName",
    "dialects",
    "errors",
    "project",
    "resolve",
]

__version__ = "0.1.0"
