"""Export names to other gateways: what to put where, which names they will list, and what they cannot express."""

from truename.clients.exporters.api import (
    ApiPlan,
    ApiRequest,
    FormerValues,
    GatewayApi,
    GatewayState,
    ReplacedName,
    RestorePlan,
    SoughtServer,
    read_undo,
)
from truename.clients.exporters.comparison import ListComparison, compare
from truename.clients.exporters.export import Export, ExportedTool, ExportSource, InexpressibleTool
from truename.clients.exporters.gateways import GATEWAYS, ExportKind
from truename.clients.exporters.shapes import choose_prefixes

__all__ = [
    "GATEWAYS",
    "ApiPlan",
    "ApiRequest",
    "Export",
    "ExportKind",
    "ExportSource",
    "ExportedTool",
    "FormerValues",
    "GatewayApi",
    "GatewayState",
    "InexpressibleTool",
    "ListComparison",
    "ReplacedName",
    "RestorePlan",
    "SoughtServer",
    "choose_prefixes",
    "compare",
    "read_undo",
]
