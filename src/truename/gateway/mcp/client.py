"""What a client says of itself when its session begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from truename.gateway.mcp.schema import wrong_params
from truename.gateway.protocol.app_capability import UI_EXTENSION, shows_apps

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ClientDescription"]

# Icons, descriptions and other extensions are not read.
_READ: Final = ("elicitation", "sampling", "roots", "tasks")


@dataclass(frozen=True)
class ClientDescription:
    """A client: its name and version, the protocol version that it asks for, and what it can be asked.

    >>> client = {"name": "x", "version": "1", "icons": []}
    >>> said = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {"a": None}, "b": {}}, "clientInfo": client}
    >>> ClientDescription.of(said).said()["capabilities"], ClientDescription.of({})
    ({'roots': {}}, None)
    """

    protocol_version: str
    name: str
    version: str
    title: str | None
    capabilities: Mapping[str, Any]

    @classmethod
    def of(cls, params: object) -> Self | None:
        """Return the client that the parameters of ``initialize`` describe; None for parameters that are none."""
        if not isinstance(params, dict) or wrong_params("2025-11-25", "initialize", params) is not None:
            return None
        info, said = params["clientInfo"], params["capabilities"]
        capabilities = {key: _without_null(said[key]) for key in _READ if said.get(key) is not None}
        if shows_apps(said):
            capabilities["extensions"] = {UI_EXTENSION: {}}
        return cls(params["protocolVersion"], info["name"], info["version"], info.get("title"), capabilities)

    def said(self) -> dict[str, Any]:
        """Return the parameters of ``initialize``, as far as something of them is kept."""
        info = {"name": self.name, "version": self.version, **({} if self.title is None else {"title": self.title})}
        return {"protocolVersion": self.protocol_version, "capabilities": self.capabilities, "clientInfo": info}


def _without_null(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_null(one) for key, one in value.items() if one is not None}
