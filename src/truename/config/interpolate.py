"""References in a configuration: ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``; ``$${`` is a plain ``${``.

In the gateway's own also ``${file:PATH}`` and ``${keyring:SERVICE/NAME}`` (`Sources`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.config.sources import KINDS, NoValue, Sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.errors import ConfigErrors

__all__ = ["interpolate", "literal"]

_REFERENCE: Final = re.compile(r"\$(?P<escape>\$(?=\{))|\$\{(?P<inside>[^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_PLACE: Final = "Write the path itself; cwd may be relative to this file."
# What editors fill in themselves: as no environment variable it would be a riddle why it is not set.
_EDITORS: Final = {
    "workspaceFolder": _PLACE,
    "workspaceFolderBasename": "Write the directory's name itself.",
    "workspaceRoot": _PLACE,
    "fileWorkspaceFolder": _PLACE,
    "extensionPath": _PLACE,
    "userHome": "Write ${HOME}.",
    "pathSeparator": "Write / itself.",
}


def _remedy(inside: str) -> str:
    kind, _, name = inside.partition(":")
    if kind in {"input", "command"}:
        return "No editor is here to ask: put the value into an environment variable and write ${NAME}."
    return _EDITORS.get(kind) or _EDITORS.get(name) or "Write ${NAME} or ${NAME:-default}; $${ is a plain ${."


def literal(text: str) -> str:
    """Return the text as it has to be written so that it is read as it is, whatever it looks like.

    >>> literal("echo ${HOME}")
    'echo $${HOME}'
    """
    return text.replace("${", "$${")


def interpolate(text: str, environ: Mapping[str, str], faults: ConfigErrors, key: str) -> str:
    """Return the text with its references replaced, once; what they bring in is not looked through again.

    Faults: a variable that is not set and has no default, and references of other kinds (VS Code's ``${input:...}``).
    """

    def replacement(match: re.Match[str]) -> str:
        return "$" if match["escape"] else _replacement(match, environ, faults, key)

    return _REFERENCE.sub(replacement, text)


def _replacement(match: re.Match[str], environ: Mapping[str, str], faults: ConfigErrors, key: str) -> str:
    variable = _VARIABLE.fullmatch(match["inside"])
    kind, _, what = match["inside"].partition(":")
    if variable is None and kind in KINDS and isinstance(environ, Sources):
        return _elsewhere(environ, kind, what, faults, key)
    if variable is None:
        faults.add(key, f"{match[0]} is not an environment variable", _remedy(match["inside"]))
        return ""
    name, default = variable["name"], variable["default"]
    value = environ.get(name, "")
    if value or (default is None and name in environ):
        return value
    return default if default is not None else _missing(match[0], name, environ, faults, key)


def _missing(said: str, name: str, environ: Mapping[str, str], faults: ConfigErrors, key: str) -> str:
    if remedy := _EDITORS.get(name):
        faults.add(key, f"{said} is known to an editor only", remedy)
    elif isinstance(environ, Sources) and (standin := environ.without(name)) is not None:
        return standin
    else:
        faults.add(key, f"the environment variable {name} is not set", f"Set it, or write ${{{name}:-default}}.")
    return ""


def _elsewhere(sources: Sources, kind: str, what: str, faults: ConfigErrors, key: str) -> str:
    try:
        return sources.value(kind, what)
    except NoValue as error:
        faults.add(key, error.problem, error.remedy)
        return ""
