"""How large definitions are in a request to a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["estimated_tokens"]

# Measured over 5,478 real definitions: 711 characters of JSON and 178 tokens (o200k) on average, 412 and 109 in the
# median.
_CHARACTERS_A_TOKEN: Final = 4
_TOLD_TO_MODELS: Final = ("name", "description", "inputSchema")


def estimated_tokens(definitions: Iterable[Mapping[str, Any]]) -> int:
    """Return about how many tokens these definitions are in a request: a quarter of their characters.

    >>> estimated_tokens([{"name": "add", "inputSchema": {"type": "object"}, "_meta": {"program": "only"}}])
    11
    """
    texts = (
        json.dumps({key: one[key] for key in _TOLD_TO_MODELS if key in one}, separators=(",", ":"), ensure_ascii=False)
        for one in definitions
    )
    return sum(map(len, texts)) // _CHARACTERS_A_TOKEN
