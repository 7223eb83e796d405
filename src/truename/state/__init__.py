"""State of a gateway that processes share: small SQLite files of our own, whole after any kill."""

from truename.state.file import Schema, StateFile

__all__ = ["Schema", "StateFile"]
