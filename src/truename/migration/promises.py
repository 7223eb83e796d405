"""What a rename enters in the ledger: old names go on, listed until a day if asked, or end in a clean break.

The old name may be one that was shown, or the server's own name of a tool: then the tool has a new identity, and the
old one with all its names is led to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.catalog import Catalog
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.identity import ToolId
    from truename.ledger import Ledger

__all__ = ["Promise", "enter", "promises"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What is to be entered for one name: ``old`` a name or an id, ``new`` what it leads to, ``text`` the new name."""

    old: str
    new: ToolId
    text: str

    def enter(self, ledger: Ledger, *, until: str, clean_break: bool, protocol: str) -> None:
        """Enter it in one scope of a ledger, unless it stands there already."""
        standing = ledger.standing(self.old)
        wanted = ("broken", self.new, "") if clean_break else ("redirected", self.new, until)
        if standing is not None and (standing.status, standing.id, standing.until) == wanted:
            return
        if clean_break:
            # The new name may be the old one in another spelling, which the ledger knows for the old tool yet.
            ledger.break_name(self.old, self.text, id=self.new, protocol=protocol)
        else:
            ledger.redirect(self.old, self.new, until=until)


def promises(renames: Mapping[str, str], ledger: Ledger) -> tuple[tuple[Promise, ...], tuple[str, ...]]:
    """Return what would be entered, and the old names of which the ledger knows nothing."""
    found: list[Promise] = []
    unknown: list[str] = []
    for old, new in renames.items():
        # A server's own name goes before a name that was shown: by that one another tool may be known.
        own = [*_of_tools(old, new, ledger)] or [*_of_names(old, new, ledger)]
        found += own
        unknown += () if own else (old,)
    return tuple(found), tuple(unknown)


def enter(ledger: Ledger, wanted: Iterable[Promise], *, until: str = "", clean_break: bool, protocol: str = "") -> None:
    """Enter them in every naming scope; nobody else writes meanwhile.

    ``until`` is the last day on which the old names are listed. What stands there already is not entered again, so a
    second run completes one that a full disk cut short. Raises `LedgerError`, `InvalidName`.
    """
    with ledger.transaction():
        for scope in ledger.scopes or (ledger.scope,):
            for promise in wanted:
                promise.enter(ledger.scoped(scope), until=until, clean_break=clean_break, protocol=protocol)


def _of_tools(old: str, new: str, ledger: Ledger) -> Iterator[Promise]:
    """Yield the promises for tools that a server itself calls so; for the plain name too, if it is one tool's only."""
    bindings = ledger.bindings()
    own = {server: id for (server, name), id in bindings.items() if name == old}
    for server, id in own.items():
        renamed = next(iter(Catalog.from_mcp([(server, [{"name": new}])], bound=bindings, owners=ledger.origins())))
        yield Promise(str(id), renamed, new)
        if {each for (_, name), each in bindings.items() if fold(name) == fold(old)} <= {id, renamed}:
            standing = ledger.standing_folded(fold(old))
            # What an earlier rename led on to another name is this tool's too.
            if standing is None or standing.id in {id, renamed, *ledger.successors(id)}:
                yield Promise(old, renamed, new)


def _of_names(old: str, new: str, ledger: Ledger) -> Iterator[Promise]:
    standing = ledger.standing(old)
    if standing is None or standing.status != "held" or standing.id is None:
        return
    target = ledger.standing(new)
    id = standing.id if target is None or target.id is None else target.id
    yield Promise(old, id, new)
