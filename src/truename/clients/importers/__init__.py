"""Import the configurations of other gateways: servers, renames, and findings for all that cannot be imported."""

from truename.clients.importers.kinds import KINDS, detect, read_peer
from truename.clients.importers.overrides import OverrideNames, names_of
from truename.clients.importers.reading import RULES, ImportedConfig, ImportedRename, read_plain
from truename.clients.importers.registry_entry import PACKAGES, registry_entry

__all__ = [
    "KINDS",
    "PACKAGES",
    "RULES",
    "ImportedConfig",
    "ImportedRename",
    "OverrideNames",
    "detect",
    "names_of",
    "read_peer",
    "read_plain",
    "registry_entry",
]
