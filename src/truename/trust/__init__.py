"""Trust: definitions are what they were when they were trusted, and newcomers are not taken for anybody else."""

from truename.trust.pins import PinnedTool, PinStore, SeenDefinition
from truename.trust.quarantine import Drift, OfferedTools, Quarantine, admit

__all__ = ["Drift", "OfferedTools", "PinStore", "PinnedTool", "Quarantine", "SeenDefinition", "admit"]
