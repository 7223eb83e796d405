"""The tools that no client is shown: pending reviews, those that a rule denies to all, and those for no model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.policy import Context
from truename.policy.call import Caller
from truename.policy.former_ids import former_ids

if TYPE_CHECKING:
    from truename.gateway import Gateway
    from truename.identity import ToolId

__all__ = ["withheld_tools"]


def withheld_tools(gateway: Gateway) -> frozenset[ToolId]:
    """Return the tools that are in no list at /mcp, whoever asks for it and whatever profiles there are."""
    registry, policy = gateway.registry, gateway.config.settings.policy
    hidden, exposure, former = registry.vetting.hidden, registry.access.exposure, former_ids(registry.ledger)
    caller, context = Caller(), Context()

    def is_withheld(id: ToolId) -> bool:
        tool, before = gateway.catalog[id], former(id)
        denied = policy is not None and policy.hides(tool, caller, before, registry.vetting.lineage(id))
        return denied or not exposure.visible(tool, context, before)

    return frozenset(id for id in gateway.catalog if id in hidden or is_withheld(id))
