"""Describe the naming limits and habits of providers, clients, frameworks and specifications.

A :class:`Dialect` is a row of one table of facts, each with its source, date and version. It checks names, says how
much room a name has, shows what the client makes of it, and simulates what becomes of a whole list.
"""

from truename.dialects.detection import Detection, detect
from truename.dialects.dialect import Dialect, Simulation
from truename.dialects.registry import get, names, own, table
from truename.errors import Reason

__all__ = ["Detection", "Dialect", "Reason", "Simulation", "detect", "get", "names", "own", "table"]
