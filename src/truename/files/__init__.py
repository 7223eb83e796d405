"""Files on a disk: written so that they are whole after a power cut, replaced only where nobody else is in the way."""

from truename.files.private import read_own, sync_directory, write_new
from truename.files.replacing import ReplacementObstacle, absolute, dress, obstacle, read_plain

__all__ = [
    "ReplacementObstacle",
    "absolute",
    "dress",
    "obstacle",
    "read_own",
    "read_plain",
    "sync_directory",
    "write_new",
]
