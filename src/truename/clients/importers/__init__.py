"""Configurations of other gateways, read as ours: servers, renames, and a list of all that can't be carried over."""

from truename.clients.importers.kinds import KINDS, detect, read_peer
from truename.clients.importers.overrides import OverrideNames, names_of
from truename.clients.importers.reading import RULES, ImportedConfig, ImportedRename

__all__ = ["KINDS", "RULES", "ImportedConfig", "ImportedRename", "OverrideNames", "detect", "names_of", "read_peer"]
