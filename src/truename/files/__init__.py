"""Lock, write and replace files safely: durable after a power cut, and never over somebody else's change."""

from truename.files.private import read_own, sync_directory, write_new
from truename.files.replacing import ReplacementObstacle, absolute, copy_metadata, find_obstacle, read_plain

__all__ = [
    "ReplacementObstacle",
    "absolute",
    "copy_metadata",
    "find_obstacle",
    "read_own",
    "read_plain",
    "sync_directory",
    "write_new",
]
