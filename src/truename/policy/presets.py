"""Conventions to begin with, as the tables that a configuration would hold; ``preset = "trailblaze"`` takes one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PRESETS"]

_TRAILBLAZE: Final = {
    "universal": "{verbNoun}",
    "platform": "{platform}_{verbNoun}",
    "org": "org_{verbNoun}",
    "org_platform": "org_{platform}_{verbNoun}",
    "app": "{app}_{verbNoun}",
    "app_platform": "{app}_{platform}_{verbNoun}",
}

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        # What every MCP server has to keep to, and the default (SEP-986; specification of 2025-11-25, "Tool Names").
        "mcp": {
            "characters": "A-Za-z0-9_.-",
            "max_length": 128,
        },
        # Seed 003: several teams, one catalogue, names that tell whose and for what. Its ceiling leaves the
        # providers' 64 characters a margin.
        "trailblaze": {
            "clients": ["openai"],
            "characters": "A-Za-z0-9_",
            "separator": "_",
            "categories": _TRAILBLAZE,
            # "Reserved Names": primitives, platforms, the organisation and the prefixes of apps are owned centrally.
            "reserved": [*_TRAILBLAZE.values()],
            "platforms": ["ios", "android"],
            "version_suffix": "_v{n}",
            "device_words": ["phone", "tablet"],
            "max_length": 60,
            "unique": "everywhere",
        },
        # Seed 002: one name for every layer, which every provider takes as it is; no dots, no translation.
        "provider-safe": {
            "clients": [
                "anthropic",
                "openai",
                "azure-openai",
                "google-gemini",
                "google-vertex",
                "bedrock-converse",
                "mistral",
                "groq",
            ],
            "characters": "a-z0-9_",
            "separator": "_",
            "casing": "snake",
            "max_length": 64,
        },
        # Names that become the tool and suite of a canonical id as they are (specification of identity, section 1).
        "canonical": {
            "characters": "a-z0-9_.-",
            "casing": "canonical",
            "max_length": 128,
        },
    }
)
