"""Pin tool definitions, quarantine changed ones, and screen new tools for look-alikes."""

from truename.trust.pins import PinnedTool, PinStore, SeenDefinition
from truename.trust.quarantine import Drift, OfferedTools, Quarantine, admit

__all__ = ["Drift", "OfferedTools", "PinStore", "PinnedTool", "Quarantine", "SeenDefinition", "admit"]
