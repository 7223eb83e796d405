"""One canonical identity for every agent tool, a legal name for every client, and an exact way back.

Clients of MCP servers rewrite tool names: they add prefixes, replace characters and cut long names. Two tools can then
have one name. Truename gives each tool one id, makes the names that each client sees, and resolves each name that comes
back to exactly one tool or to an error.

**Names.** A `Catalog` gives each tool a `ToolId`. `project` makes the names that one client sees, all at once, so that
no two tools share one. The second argument is the client: "openai", "cursor", or "universal" for names that every known
client accepts.

>>> from truename import Catalog, project, resolve
>>> catalog = Catalog.from_mcp({"weather": ["get_data"], "database": ["get_data"]})
>>> names = project(catalog, "openai")
>>> names["weather@1/get_data@1"]
'weather_get_data'
>>> names.explain("weather@1/get_data@1").reason
"the server's name, weather"

``from_mcp`` also takes whole results of ``tools/list``; ``catalog[id].origin`` is the server and the name there, by
which the tool is called.

**The way back.** `resolve` takes the text that a model sent: a name, an id, or another spelling of either.

>>> resolve("database_get_data", names).id
ToolId('database@1/get_data@1')
>>> catalog[resolve("database/get_data", names).id].origin.server
'database'

A name that several tools have is never guessed, and a name that no tool has runs nothing. Each error says how to go on,
in words that a model understands:

>>> from truename import ResolutionError
>>> try:
...     resolve("get_data", names)
... except ResolutionError as error:
...     print(error)
'get_data' is not unique: 'database_get_data' and 'weather_get_data'. Call one of these exactly.

**The memory.** A `Ledger` records each name, so that a name once shown never means another tool, whichever servers come
and go. Without one, names depend on the present catalogue alone. ``Ledger.open("names.db")`` keeps them in a file.

>>> from truename import Ledger
>>> ledger = Ledger.memory()
>>> before = project(Catalog.from_mcp({"notes": ["search"]}), "openai", style="on-conflict", ledger=ledger)
>>> after = Catalog.from_mcp({"tickets": ["search"], "notes": ["search"]})
>>> names = project(after, "openai", style="on-conflict", ledger=ledger)
>>> names["notes@1/search@1"], names["tickets@1/search@1"]
('search', 'tickets_search')

**Clients.** `dialects` has the rules of each client, framework and model API:

>>> from truename import dialects
>>> [reason.text for reason in dialects.get("anthropic").check("fs.list")]
["'.' at 2 is not in [a-zA-Z0-9_-]"]

Where to go on:

- `truename.dialects`: limits and behaviour of clients and providers
- `truename.policy`: rules and approvals, bound to ids
- `truename.conventions`: naming conventions of a team, and declared tools
- `truename.migration`: diff, rename, lock, replay
- `truename.adapters`: agent frameworks and model APIs
- `truename.gateway`: the MCP gateway (needs the extra ``gateway``)
- `truename.errors`: all errors, as a tree

The words are explained in docs/glossary.md, the rules of names in docs/concepts/names.md, and the steps of `resolve` in
docs/concepts/resolution.md. The command line is ``truename --help``.
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
