"""Files on a disk: written so that they are whole after a power cut, replaced only where nobody else is in the way."""

from truename.files.durable import read_own, sync_directory, write_new
from truename.files.standing import Obstacle, absolute, dress, obstacle, read_plain

__all__ = ["Obstacle", "absolute", "dress", "obstacle", "read_own", "read_plain", "sync_directory", "write_new"]
