"""A real MCP server in front of many: `Gateway`, served over stdio or HTTP."""

from truename.gateway.background import background
from truename.gateway.events import GatewayEvent, OnEvent
from truename.gateway.fetching import fetch_catalog
from truename.gateway.gateway import Gateway
from truename.gateway.http.app import check_listening, listening, require_guard, reserve, serve_http, spare_collector
from truename.gateway.http.workers import WorkerGroup
from truename.gateway.report import Reloaded, Report, ServerReport
from truename.gateway.stdio import serve_stdio
from truename.gateway.upstream.sharing.program_sharing import ProgramSharing
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.view import UnknownView

__all__ = [
    "Gateway",
    "GatewayEvent",
    "OnEvent",
    "ProgramSharing",
    "Reloaded",
    "Report",
    "ServerReport",
    "UnknownView",
    "UpstreamError",
    "WorkerGroup",
    "background",
    "check_listening",
    "fetch_catalog",
    "listening",
    "require_guard",
    "reserve",
    "serve_http",
    "serve_stdio",
    "spare_collector",
]
