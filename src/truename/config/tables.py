"""What a schema says of the tables of a configuration that have rows of their own: policy and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from truename.policy import HINTS, Outcome

__all__ = ["METADATA", "POLICY", "TEXTS"]

Schema = Mapping[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_RULE: Final[Mapping[str, Schema]] = {
    "name": _TEXT,
    "outcome": {"enum": list(get_args(Outcome))},
    "reason": _TEXT,
    "annotations": {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in HINTS},
        "additionalProperties": False,
    },
    **dict.fromkeys(
        ("tools", "except", "servers", "upstream", "principals", "agents", "clients", "platforms", "apps"), TEXTS
    ),
}
POLICY: Final[Schema] = {
    "type": "object",
    "properties": {
        "default": {
            **_RULE["outcome"],
            "description": "What is done with a call that no rule is about: allow, or ask if a rule allows.",
        },
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _RULE,
                "required": ["outcome"],
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
_WORDS: Final[Schema] = {"type": ["array", "null"], "items": {"type": "string"}}
METADATA: Final[Schema] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            **{name: {"type": ["boolean", "null"]} for name in ("is_for_llm", "is_recordable")},
            **{name: {"type": ["string", "null"]} for name in ("app", "owner", "family")},
            "platforms": _WORDS,
            "parameter_platforms": {"type": ["object", "null"], "additionalProperties": {**_WORDS, "type": "array"}},
        },
        "additionalProperties": False,
    },
}
