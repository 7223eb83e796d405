"""Find, read and connect the servers and the tool names in each client's files.

`find` looks at a whole `Machine`, `read_source` at one file that somebody names; both tell `FoundFile` files with the
servers in them and the tool names that they keep.
"""

from truename.clients.find import FoundFile, Sighting, find, read_source
from truename.clients.kept_names import KeptName, matches, respelled
from truename.clients.machine import Machine
from truename.clients.server_entries import read_entry, speaks_http, write_entry
from truename.clients.table import ConfigFile, config_files, name_files

__all__ = [
    "ConfigFile",
    "FoundFile",
    "KeptName",
    "Machine",
    "Sighting",
    "config_files",
    "find",
    "matches",
    "name_files",
    "read_entry",
    "read_source",
    "respelled",
    "speaks_http",
    "write_entry",
]
