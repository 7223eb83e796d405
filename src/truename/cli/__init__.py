"""The command line: commands and rendering, no logic. Heavy imports are left to the commands that need them."""

from truename.cli.app import main

__all__ = ["main"]
