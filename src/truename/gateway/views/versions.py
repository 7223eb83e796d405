"""Which versions travel with lists and calls: the catalogue's digest, and the protocol version of the names.

They stand in ``_meta``, where an agent that knows them sends them back: where a name of another version is not found,
the error has both versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.gateway.views.descriptors import META_PREFIX
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.views.view import View
    from truename.naming import NameTable, Resolution

__all__ = ["CATALOG_KEY", "PROTOCOL_KEY", "Versions"]

CATALOG_KEY: Final = f"{META_PREFIX}catalog"
PROTOCOL_KEY: Final = f"{META_PREFIX}protocol"


class Versions:
    """What is said of versions, and what a client's word means; ``protocol`` None says nothing of a protocol."""

    def __init__(self, protocol: str | None) -> None:
        self._protocol = protocol

    def on_list(self, page: Mapping[str, Any], view: View) -> dict[str, Any]:
        """Return the page of a list with the versions in its ``_meta``."""
        return {**page, "_meta": {**_meta_of(page), **self._said(view)}}

    def on_result(self, result: Mapping[str, Any], view: View) -> dict[str, Any]:
        """Return the result of a call with them, where there is a protocol; a server's own are not ours to pass on."""
        if self._protocol is None and "_meta" not in result and type(result) is dict:
            return result
        meta = {key: value for key, value in _meta_of(result).items() if key not in {CATALOG_KEY, PROTOCOL_KEY}}
        if self._protocol is not None:
            meta |= self._said(view)
        return {**{key: value for key, value in result.items() if key != "_meta"}, **({"_meta": meta} if meta else {})}

    def resolve(self, name: str, names: NameTable, meta: Mapping[str, Any]) -> Resolution:
        """Return the tool that a client means by a name. Raises what `resolve_between` raises."""
        peer = meta.get(PROTOCOL_KEY)
        if self._protocol is None or not isinstance(peer, str):
            return resolve(name, names)
        from truename.migration.protocol_versions import resolve_between  # noqa: PLC0415 - only for a named protocol

        return resolve_between(name, names, server=self._protocol, peer=peer)

    def without(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a call without what the client said of our versions: a server has its own."""
        meta = params.get("_meta")
        if not isinstance(meta, dict) or not meta.keys() & {CATALOG_KEY, PROTOCOL_KEY}:
            return dict(params)
        kept = {key: value for key, value in meta.items() if key not in {CATALOG_KEY, PROTOCOL_KEY}}
        return {**params, "_meta": kept}

    def _said(self, view: View) -> dict[str, str]:
        return {CATALOG_KEY: view.digest, **({} if self._protocol is None else {PROTOCOL_KEY: self._protocol})}


def _meta_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = body.get("_meta")
    return meta if isinstance(meta, dict) else {}
