"""Environment variables in a configuration: ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.faults import Faults

__all__ = ["interpolate"]

_REFERENCE: Final = re.compile(r"\$\{(?P<inside>[^{}]*)\}")
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
    return _EDITORS.get(kind) or _EDITORS.get(name) or "Write ${NAME} or ${NAME:-default}."


def interpolate(text: str, environ: Mapping[str, str], faults: Faults, key: str) -> str:
    """Return the text with its references replaced, once; what they bring in is not looked through again.

    Faults: a variable that is not set and has no default, and references of other kinds (VS Code's ``${input:...}``).
    """

    def replacement(match: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(match["inside"])
        if variable is None:
            faults.add(key, f"{match[0]} is not an environment variable", _remedy(match["inside"]))
            return ""
        value = environ.get(variable["name"], "")
        if value or (variable["default"] is None and variable["name"] in environ):
            return value
        if variable["default"] is not None:
            return variable["default"]
        name = variable["name"]
        if remedy := _EDITORS.get(name):
            faults.add(key, f"{match[0]} is known to an editor only", remedy)
            return ""
        faults.add(key, f"the environment variable {name} is not set", f"Set it, or write ${{{name}:-default}}.")
        return ""

    return _REFERENCE.sub(replacement, text)
