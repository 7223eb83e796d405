"""Match globs on names in the MCP registry, which the owner of a configuration wrote beside its servers.

A name is metadata of a server's entry. No server states its own, and no tool's id has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.catalog.globs import fits, is_wild

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["REGISTRY_NAME", "names_registered", "registry_glob_error"]

REGISTRY_NAME: Final = re.compile(r"(?=.{3,200}\Z)[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
"""The whole form of a server's name in the MCP registry: reverse DNS, a slash, and the server."""
_LONGEST: Final = 200
_FRONT: Final = re.compile(r"[a-zA-Z0-9.*?-]+")
_CHARACTERS: Final = re.compile(r"[a-zA-Z0-9._*?-]+")


def registry_glob_error(glob: str) -> str:
    """Return why a glob cannot match any name in the MCP registry; "" if it can.

    >>> registry_glob_error("io.github.acme/*"), registry_glob_error("io.github.*"), registry_glob_error("tickets")
    ('', '', 'a name has the form io.github.owner/server')
    """
    if len(glob.replace("*", "")) > _LONGEST:
        return f"a name has {_LONGEST} characters at most"
    front, slash, server = glob.partition("/")
    # A wildcard also matches the slash.
    parts = [(_FRONT, front), (_CHARACTERS, server)] if slash else [(_CHARACTERS, glob)]
    can_match = (slash or is_wild(glob)) and all(form.fullmatch(part) for form, part in parts)
    return "" if can_match else "a name has the form io.github.owner/server"


def names_registered(globs: Iterable[str], name: str) -> bool:
    """Return whether one of the globs matches a name, in any case; a server without a name ("") matches none.

    >>> names_registered(["io.github.acme/*"], "io.github.Acme/tickets"), names_registered(["*"], "")
    (True, False)
    """
    return bool(name) and any(fits(glob.lower(), name.lower()) for glob in globs)
