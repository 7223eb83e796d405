"""The SDK's server side, where it announces or admits something else than is meant here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.lowlevel.server import NotificationOptions, Server

from truename.gateway.protocol.tracing import Traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_types import ServerCapabilities

__all__ = ["ViewServer"]


class ViewServer(Server[Any]):
    """The SDK's low-level server, announcing what ``offered`` says, and list changes on every transport.

    Over HTTP the SDK builds the handshake's capabilities itself, without asking for notification options; and it
    announces whatever there is a handler for.
    """

    offered: Callable[[str], bool]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.middleware = [Traced() if isinstance(one, OpenTelemetryMiddleware) else one for one in self.middleware]

    def get_capabilities(self, *args: Any, **more: Any) -> ServerCapabilities:
        """Return the SDK's capabilities without those that nothing behind this server has."""
        found = super().get_capabilities(*args, **more)
        for name in ("prompts", "resources", "completions", "logging"):
            if not self.offered(name):
                setattr(found, name, None)
        return found

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> Any:
        """Build the options with all changes of lists announced."""
        chosen = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(chosen, experimental_capabilities, extensions)
