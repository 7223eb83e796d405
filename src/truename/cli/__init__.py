"""The command line: commands and their output, without logic of its own. Each command imports heavy modules itself."""

from truename.cli.app import main

__all__ = ["main"]
