"""Find the MCP servers and tool names in each client's configuration files, and connect clients to the gateway.

`find` searches a whole `Machine`, `read_source` reads one named file; both return `FoundFile` values with the servers
and the tool names (allow lists, hooks, agents) in each file.
"""

from truename.clients.find import ClientServer, FoundFile, find, read_source
from truename.clients.kept_names import KeptName, matches, respell
from truename.clients.machine import Machine
from truename.clients.server_entries import read_entry, speaks_http, write_entry
from truename.clients.table import ConfigFile, config_files, name_files

__all__ = [
    "ClientServer",
    "ConfigFile",
    "FoundFile",
    "KeptName",
    "Machine",
    "config_files",
    "find",
    "matches",
    "name_files",
    "read_entry",
    "read_source",
    "respell",
    "speaks_http",
    "write_entry",
]
