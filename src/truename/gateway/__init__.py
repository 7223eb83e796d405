"""A real MCP server in front of many: `Gateway`, served over stdio or HTTP."""

from truename.gateway.background import background
from truename.gateway.events import Event, OnEvent
from truename.gateway.faults import UpstreamError
from truename.gateway.gateway import Gateway, fetch_catalog
from truename.gateway.http import listening, require_guard, reserve, serve_http
from truename.gateway.report import Report, ServerReport
from truename.gateway.stdio_server import serve_stdio
from truename.gateway.views import UnknownView

__all__ = [
    "Event",
    "Gateway",
    "OnEvent",
    "Report",
    "ServerReport",
    "UnknownView",
    "UpstreamError",
    "background",
    "fetch_catalog",
    "listening",
    "require_guard",
    "reserve",
    "serve_http",
    "serve_stdio",
]
