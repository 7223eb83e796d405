"""Provide the command line: commands and rendering, no logic; each command does its own heavy imports."""

from truename.cli.app import main

__all__ = ["main"]
