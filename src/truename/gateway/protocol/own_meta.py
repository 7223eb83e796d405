"""The gateway's own keys in ``_meta``: what clients read there is the gateway's word, so servers have none of them."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

__all__ = ["OWN_PREFIX", "without_own_meta"]

OWN_PREFIX: Final = "dev.truename/"
_WRITTEN: Final = OWN_PREFIX.encode()
_encode: Final = msgspec.json.Encoder().encode

Content = TypeVar("Content")


def without_own_meta(content: Content) -> Content:
    """Return what a server sent without the gateway's own keys in any ``_meta``, at whatever depth.

    What has none is returned as it is, and nothing is changed in place.

    >>> without_own_meta({"_meta": {"dev.truename/error": "x", "a/b": 1}, "list": [{"_meta": {"dev.truename/": 0}}]})
    {'_meta': {'a/b': 1}, 'list': [{'_meta': {}}]}
    """
    return _cleaned(content) if _may_have_any(content) else content


def _may_have_any(content: object) -> bool:
    """Look in the written form: that costs a fraction of going through all values, and hardly anything has any."""
    try:
        return _WRITTEN in _encode(content)
    except (ValueError, TypeError, OverflowError, RecursionError):
        # It has a number or a text that cannot be written.
        return True


def _cleaned(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _cleaned(_without_own(one) if key == "_meta" else one) for key, one in content.items()}
    return [_cleaned(one) for one in content] if isinstance(content, list) else content


def _without_own(meta: Any) -> Any:
    if not isinstance(meta, dict):
        return meta
    return {key: one for key, one in meta.items() if not (isinstance(key, str) and key.startswith(OWN_PREFIX))}
