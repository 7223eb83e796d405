"""Read a client with an optional version from the command line: ``codex`` or ``codex@0.50``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename import dialects
from truename.cli._rendering import say, styled

if TYPE_CHECKING:
    from truename.dialects import Dialect

__all__ = ["client_rules"]


def client_rules(name: str) -> Dialect:
    """Return the rules of a client, with a note on stderr if its version was not run. Raises `UnknownDialect`."""
    found = dialects.get(name)
    if found.unrun:
        say(styled("note: ", "cyan"), styled(found.unrun))
    return found
