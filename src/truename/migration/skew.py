"""Version skew: what becomes of a call between two sides that know different sets of names (seed 002)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from truename.errors import MigrationError, UnknownTool, excerpt
from truename.migration.versions import compare_versions, version_parts
from truename.naming import resolve

if TYPE_CHECKING:
    from truename.naming import NameTable, Resolution

__all__ = ["Skew", "resolve_between", "skew"]

# What a peer can have known for certain: names that were shown, and ids.
_EXACT: Final = frozenset({"table", "ledger", "canonical"})


@dataclass(frozen=True, kw_only=True)
class Skew:
    """Two versions of one protocol: whether they are the same, and whether every name means the same to both.

    ``compatible`` sides have no breaking change between them: the same first number, and below 1.0 the same second
    one, for there that is the one which a rename counts up.
    """

    server: str
    peer: str
    same: bool
    compatible: bool

    def __str__(self) -> str:
        versions = f"the server speaks protocol {self.server}, the peer {excerpt(self.peer, 40)[1:-1]}"
        if self.compatible:
            return f"{versions}: names mean the same to both."
        return f"{versions}: names may have changed between them. Upgrade the older side, or both together."


def skew(*, server: str, peer: str) -> Skew:
    """Compare the versions of two sides, number by number. A peer's version that can't be read fits no other.

    Raises `MigrationError` (``invalid_version``) for the server's own.

    >>> skew(server="0.3", peer="0.2").compatible, skew(server="1.10", peer="1.9").compatible
    (False, True)
    >>> skew(server="0.3", peer="newest").compatible
    False
    """
    own = _breaking(version_parts(server))
    try:
        same = compare_versions(server, peer) == 0
        compatible = own == _breaking(version_parts(peer))
    except MigrationError:
        return Skew(server=server, peer=peer, same=False, compatible=False)
    return Skew(server=server, peer=peer, same=same, compatible=compatible)


def resolve_between(text: str, names: NameTable, *, server: str, peer: str) -> Resolution:
    """Return the tool that a peer of another version means by a name; only what was shown, or an id, counts.

    A spelling that a peer made up by other rules than today's could mean another tool by now. Raises what `resolve`
    raises; what is unknown, or known by a derived spelling only, is `UnknownTool` (``moved``) with both versions.

    >>> from truename import Catalog, project
    >>> agent = project(Catalog.from_mcp({"kenny": ["powershell.exec"]}), "native", style="declared")
    >>> resolve_between("powershell_exec", agent, server="0.2", peer="0.3")
    Traceback (most recent call last):
        ...
    truename.errors.UnknownTool: Tool 'powershell_exec' does not exist in protocol 0.2 (the call is of 0.3); ...
    """
    both = skew(server=server, peer=peer)
    if both.same:
        return resolve(text, names)
    detail = f" in protocol {server} (the call is of {excerpt(peer, 40)[1:-1]})"
    try:
        found = resolve(text, names)
    except UnknownTool as error:
        raise (replace(error, detail=detail) if error.reason in {"unknown", "moved"} else error) from error
    is_id = found.step == "folded" and "/" in text
    if both.compatible or found.step in _EXACT or is_id or found.id is None:
        return found
    raise UnknownTool(
        text=text, trail=found.trail, reason="moved", suggestions=(names[found.id],), id=found.id, detail=detail
    )


def _breaking(parts: tuple[int, ...]) -> tuple[int, ...]:
    padded = (*parts, 0)
    return padded[:2] if padded[0] == 0 else padded[:1]
