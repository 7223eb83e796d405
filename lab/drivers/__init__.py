"""Drivers: each writes one client's configuration into a fresh home and says how to start it.

A driver is a module with one function, ``launch(stage) -> Launch``. Adding a client is a row of `clients.toml` and,
if no driver fits, a file here.
"""

from __future__ import annotations

from importlib import import_module

from lab.drivers.stage import PROMPT, Driver, Entry, Launch, Stage

__all__ = ["PROMPT", "Driver", "Entry", "Launch", "Stage", "driver"]


def driver(name: str) -> Driver:
    """Return the driver that a client's row names."""
    found: Driver = import_module(f"{__name__}.{name}").launch
    return found
