"""The engine of state: one SQLite file, whose tables belong to their owners."""

from truename.storage.database import Database, Schema

__all__ = ["Database", "Schema"]
