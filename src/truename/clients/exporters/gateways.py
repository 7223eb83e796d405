"""The gateways to which names can be exported."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.clients.exporters.contextforge import CONTEXTFORGE, ContextForgeApi, contextforge
from truename.clients.exporters.fastmcp import FASTMCP, fastmcp
from truename.clients.exporters.litellm import LITELLM, LiteLlmApi, litellm
from truename.clients.exporters.toolhive import TOOLHIVE, TOOLHIVE_OPERATOR, toolhive, toolhive_operator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.clients.exporters.api import GatewayApi
    from truename.clients.exporters.export import Export, ExportSource
    from truename.ledger import Claim

__all__ = ["GATEWAYS", "ExportKind"]


@dataclass(frozen=True, kw_only=True)
class ExportKind:
    """A gateway to which names can be exported.

    ``version`` is the one whose rules the exporter follows, and ``evidence`` whether it was run or read. ``api`` is set
    if the gateway keeps renames in its database.
    """

    title: str
    version: str
    evidence: Literal["run", "read"]
    export: Callable[[ExportSource], tuple[Export, list[Claim]]]
    api: GatewayApi | None = None


GATEWAYS: Final[Mapping[str, ExportKind]] = MappingProxyType(
    {
        FASTMCP: ExportKind(title="FastMCP", version="4.2.3", evidence="run", export=fastmcp),
        LITELLM: ExportKind(title="LiteLLM", version="1.109.1", evidence="run", export=litellm, api=LiteLlmApi()),
        CONTEXTFORGE: ExportKind(
            title="ContextForge", version="1.0.7", evidence="run", export=contextforge, api=ContextForgeApi()
        ),
        TOOLHIVE: ExportKind(title="ToolHive", version="0.44.0", evidence="read", export=toolhive),
        TOOLHIVE_OPERATOR: ExportKind(
            title="ToolHive operator", version="0.44.0", evidence="read", export=toolhive_operator
        ),
    }
)
