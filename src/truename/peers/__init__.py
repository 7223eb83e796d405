"""Configurations of other gateways, read as ours: servers, renames, and a list of all that can't be carried over."""

from truename.peers.imported import RULES, Imported, Rename
from truename.peers.kinds import KINDS, detect, read_peer
from truename.peers.overrides import Names, names_of

__all__ = ["KINDS", "RULES", "Imported", "Names", "Rename", "detect", "names_of", "read_peer"]
