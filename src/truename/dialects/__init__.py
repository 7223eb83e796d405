"""Describe which tool names providers, clients, frameworks and specifications accept, and how they change them.

A :class:`Dialect` is a row of one table of facts, each with its source, date and version. It checks names, computes
the longest legal name, and simulates how the client shows one name or a whole list of tools.
"""

from truename.dialects.client_versions import ClientRun, ClientVersion
from truename.dialects.detection import Detection, detect
from truename.dialects.dialect import Dialect, Simulation
from truename.dialects.registry import get, names, own, table, versions
from truename.errors import Reason

__all__ = [
    "ClientRun",
    "ClientVersion",
    "Detection",
    "Dialect",
    "Reason",
    "Simulation",
    "detect",
    "get",
    "names",
    "own",
    "table",
    "versions",
]
