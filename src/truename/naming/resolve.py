"""Resolve a name to exactly one tool, or to an error that says what to do; never guess.

The first step that knows the text decides: table, ledger, canonical, other exact spellings; then these four once more
for the decoded text; then the folded spellings. A step in which two tools have the text stops with `AmbiguousName`; a
retired, broken or absent name stops the search too, or the next step would find a sibling and yesterday's call would do
something else today. A text never runs a tool for which it is only folded while another tool has it exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from truename.errors import AmbiguousName, InvalidToolId, RetiredName, UnknownTool
from truename.identity import LATEST, MAX_FOREIGN, ToolId, ToolRef, decode, fold
from truename.naming.client_prefixes import unframed
from truename.naming.table import Resolution, folded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from truename.ledger import Standing
    from truename.naming.table import NameTable

__all__ = ["resolve"]

_LONGEST: Final = 4 * MAX_FOREIGN
# More redirects in a row than this are not followed.
_MOST_REDIRECTS: Final = 32


def resolve(text: str, names: NameTable, *, on_unknown: Literal["raise", "passthrough"] = "raise") -> Resolution:
    """Return the tool that this text means in this table, with the steps that were tried.

    Accepted are the table's names, older names on record, canonical ids in any accepted spelling (case, versions left
    out, ``@v1``, ``@latest``, percent- or tilde-encoded) and, if exactly one tool has them, the server's own name for
    the tool, ``Server:tool``, names of other styles, and a client's prefix in front of any of these. Of a table that
    shows a part of a catalogue (`NameTable.among`), the hidden tools keep their names and ids, which are unknown here.

    Redirects of ids are followed, also several in a row; a circle ends with its tool as absent. A name that a clean
    break took away (seed 002) is no spelling of anything, however it is written.

    Raises `UnknownTool` (with the nearest names; ``moved`` with the one that it is now), `AmbiguousName`,
    `RetiredName`. With ``passthrough`` an unknown name gives ``Resolution(id=None, step="passthrough")``.

    >>> from truename import Catalog, project
    >>> names = project(Catalog.of("data-grout@1/prism.refract@1"), "openai")
    >>> resolve("data-grout%401~prism.refract", names).step
    'canonical'
    """
    hit = names.exact.get(text)
    if hit is not None and not _is_superseded(text, hit, names):
        return hit
    if "/" in text and (hit := names.canonical.get(text)) is not None and not _on_record(text, hit, names):
        return hit
    try:
        return _Resolver(text, names).run()
    except UnknownTool as error:
        if on_unknown == "passthrough" and error.reason == "unknown":
            return Resolution(None, "passthrough", (*error.trail, "passthrough: used as it is"))
        raise


def _is_superseded(text: str, hit: Resolution, names: NameTable) -> bool:
    ledger = names.whole.ledger
    standing = None if ledger is None else ledger.withdrawn.get(text)
    return standing is not None and (standing.status, standing.id) != ("redirected", hit.id)


def _on_record(text: str, hit: Resolution, names: NameTable) -> bool:
    ledger = names.whole.ledger
    return ledger is not None and (ledger.standing(text) is not None or str(hit.id) in ledger.withdrawn)


class _Resolver:
    """One search with its trail.

    ``names`` is what the caller sees; ``whole`` has the hidden tools too, whose names and ids never fall to another.
    """

    __slots__ = ("names", "text", "trail", "whole")

    def __init__(self, text: str, names: NameTable) -> None:
        self.text = text
        self.names = names
        self.whole = names.whole
        self.trail: list[str] = []

    def run(self) -> Resolution:
        if len(self.text) > _LONGEST:
            raise self._malformed(f"it is longer than {_LONGEST:,} characters")
        found = self._exactly(self.text)
        if found is None:
            plain = self._decoded()
            found = (self._exactly(plain) if plain != self.text else None) or self._folded(plain)
        if found is None:
            raise self._unknown()
        return found

    def _exactly(self, text: str) -> Resolution | None:
        return self._table(text) or self._ledger(text) or self._canonical(text) or self._spelled(text)

    def _found(self, step: str, id: ToolId, what: str) -> Resolution:
        return Resolution(id, step, (*self.trail, f"{step}: {what}"))

    def _table(self, text: str) -> Resolution | None:
        hit = self.whole.exact.get(text)
        if hit is not None and hit.id is not None and not self._is_withdrawn(text):
            self._require_visible(hit.id)
            # A name that stands in the table as it came is found before a search begins.
            return self._found("table", hit.id, f"decoded to {text!r}")
        self.trail.append("table: no such name")
        return None

    def _is_withdrawn(self, name: str) -> bool:
        ledger = self.whole.ledger
        return ledger is not None and name in ledger.withdrawn

    def _ledger(self, text: str) -> Resolution | None:
        standing = self._recorded(text)
        if standing is None:
            self.trail.append("ledger: never shown")
            return None
        return self._standing(standing)

    def _recorded(self, text: str) -> Standing | None:
        """Return what exactly this text stands for. Raises `UnknownTool` where the caller must not hear of it."""
        ledger = self.names.ledger
        standing = None if ledger is None else ledger.standing(text)
        if ledger is not None and standing is None and ledger.hides(text):
            raise self._unknown()
        return standing

    def _standing(self, standing: Standing) -> Resolution:
        standing = self._followed(standing)
        self._refuse_withdrawn(standing)
        assert standing.id is not None  # noqa: S101 - only a retired name may have none
        self._require_present(standing.id)
        return self._found("ledger", standing.id, standing.status)

    def _refuse_withdrawn(self, standing: Standing) -> None:
        if standing.status == "broken":
            raise self._moved(standing)
        if standing.status == "retired":
            self.trail.append("ledger: retired")
            raise RetiredName(
                text=self.text,
                trail=tuple(self.trail),
                id=standing.id,
                successor=self._successor(standing),
                since=standing.since.partition("T")[0],
            )

    def _followed(self, standing: Standing) -> Standing:
        """Return where the redirects of ids end: held, redirected for the last time, retired or broken."""
        for _ in range(_MOST_REDIRECTS):
            leads_on = standing.status == "redirected" or (standing.status == "held" and standing.id not in self.whole)
            following = self._withdrawal(standing.id) if leads_on else None
            # A redirect to itself takes an earlier one back.
            if following is None or (following.status, following.id) == ("redirected", standing.id):
                return standing
            said = "redirected to" if standing.status == "redirected" else "held by"
            self.trail.append(f"ledger: {said} {standing.id}, which is withdrawn too")
            standing = following
        self.trail.append(f"ledger: more than {_MOST_REDIRECTS} redirects in a row")
        raise self._absent(standing.id)

    def _withdrawal(self, id: ToolId | None) -> Standing | None:
        ledger = self.names.ledger
        return ledger.standing(str(id)) if ledger is not None and str(id) in ledger.withdrawn else None

    def _successor(self, standing: Standing) -> str | None:
        """Say the successor, or what its tool is called now, as this client knows it."""
        successor = standing.successor or (None if standing.id is None else str(standing.id))
        try:
            return None if successor is None else self.names[successor]
        except KeyError:
            return standing.successor

    def _moved(self, standing: Standing) -> UnknownTool:
        self.trail.append("ledger: broken off")
        successor = standing.successor if standing.id is None else self.names.get(standing.id, standing.successor)
        return UnknownTool(
            text=self.text,
            trail=tuple(self.trail),
            reason="moved",
            suggestions=(successor,) if successor else (),
            id=standing.id,
            detail=f" since protocol {standing.protocol}" if standing.protocol else "",
        )

    def _require_visible(self, id: ToolId) -> None:
        if id in self.whole and id not in self.names:
            raise self._unknown()

    def _require_present(self, id: ToolId) -> None:
        if id in self.names:
            return
        if id in self.whole or not self._hears_of(id):
            raise self._unknown()
        self.trail.append("ledger: its tool is not here now")
        raise self._absent(id)

    def _decoded(self) -> str:
        try:
            plain = decode(self.text)
        except InvalidToolId as error:
            raise self._malformed(error.reason) from error
        if plain.count("/") > 1:
            raise self._malformed("there is more than one '/'")
        if plain != self.text:
            self.trail.append(f"decode: {plain!r}")
        return plain

    def _canonical(self, text: str) -> Resolution | None:
        """Read the text as an id as it stands: in lower case, its versions left out or in digits."""
        if "/" not in text:
            self.trail.append("canonical: no '/' in it")
            return None
        ref = self._ref(text)
        if ref is None:
            return None
        if LATEST in (ref.integration_version, ref.version) or str(ref) != text:
            self.trail.append("canonical: not as it stands (case, 'v' or 'latest')")
            return None
        found = self._identified(ref.complete(), "canonical")
        if found is None and "@" in text and self.whole.spellings.knows_family(ref):
            # A further version of a tool is its server's to give: no other server gives it by calling a tool so.
            raise self._unknown()
        return found

    def _ref(self, text: str) -> ToolRef | None:
        try:
            return ToolRef.parse(text)
        except InvalidToolId as error:
            self.trail.append(f"canonical: {error.reason}")
            return None

    def _identified(self, id: ToolId, step: str) -> Resolution | None:
        if self._is_withdrawn(str(id)):
            return self._ledger(str(id))
        if id in self.whole:
            self._require_visible(id)
            return self._found(step, id, f"read as {id}")
        if id in self.whole.spellings.absent:
            self._require_present(id)
        self.trail.append(f"{step}: there is no {id}")
        return None

    def _spelled(self, text: str) -> Resolution | None:
        """Look for tools that have this spelling exactly.

        A name in a client's frame comes first: it is the form in which that client shows the name of the table, so no
        tool of a server that imitates the frame may take it, or make it ambiguous.
        """
        inside = self._inside(text, exact=True)
        ids = {*self.whole.spellings.shown_as(text), *(id for one in inside for id in self._framed(one))}
        index = self.names.spellings
        ids = ids or {*index.exact(text), *(id for one in inside for id in index.exact(one))}
        if not ids:
            self.trail.append("spelling: no tool has it exactly")
            return None
        if self.whole.keys().isdisjoint(ids):
            self._refuse_broken((text, *inside))
        return self._only("spelling", ids)

    def _framed(self, inside: str) -> tuple[ToolId, ...]:
        """Return the tool whose name this is, in the table or on record."""
        hit = self.whole.exact.get(inside)
        if hit is not None and hit.id is not None and not self._is_withdrawn(inside):
            return (hit.id,)
        standing = self._recorded(inside)
        if standing is None:
            return ()
        self._refuse_withdrawn(self._followed(standing))
        return (self._held_by(standing),)

    def _inside(self, text: str, *, exact: bool) -> list[str]:
        return [inside for name in self.whole.server_names for inside in unframed(text, name, exact=exact)]

    def _held_by(self, standing: Standing) -> ToolId:
        """Return the tool of a standing that is neither retired nor broken, where its redirects end."""
        id = self._followed(standing).id
        assert id is not None  # noqa: S101 - only a retired name may have none
        return id

    def _folded(self, plain: str) -> Resolution | None:
        if "/" in plain and (found := self._canonical_folded(plain)) is not None:
            return found
        texts = dict.fromkeys((plain, *self._inside(plain, exact=False), self.text))
        self._refuse_broken(texts)
        ids: set[ToolId] = set()
        for text in texts:
            ids |= self._folded_like(text)
        if not ids:
            self.trail.append("folded: no tool has a name or a spelling like it")
            return None
        return self._only("folded", ids)

    def _refuse_broken(self, texts: Iterable[str]) -> None:
        """Raise for a spelling of a name that a clean break took away."""
        for text in texts:
            if (broken := self.names.broken.standing(text)) is not None:
                raise self._moved(broken)

    def _canonical_folded(self, plain: str) -> Resolution | None:
        ref = self._ref(plain)
        if ref is None:
            return None
        found = self._identified(self._version_of(ref), "folded")
        if found is None and "@" in plain:
            # A version that is named and missing never falls back to anything.
            raise self._unknown()
        return found

    def _folded_like(self, text: str) -> set[ToolId]:
        """Return the tools that have a name or a spelling with this fold, the names on record included."""
        ids = set(self.names.spellings.folded(text))
        ledger = self.names.ledger
        key = fold(text)
        alike = ledger is not None and any(folded(name) == folded(text) for name in ledger.spellings(key))
        standing = ledger.standing_folded(key) if ledger is not None and alike else None
        if ledger is None or standing is None:
            return ids
        self._refuse_withdrawn(self._followed(standing))
        if standing.status != "held":
            # Who held the name has passed it on.
            ids.discard(ledger.held_first(key) or self._held_by(standing))
        return ids | {self._held_by(standing)}

    def _version_of(self, ref: ToolRef) -> ToolId:
        """Return the id meant: an omitted version is 1, ``latest`` the highest in which this tool exists."""
        variants = self.names.spellings.families.get((ref.integration, ref.suite, ref.tool), [])
        integration_version = 1 if ref.integration_version is None else ref.integration_version
        version = 1 if ref.version is None else ref.version
        fitting = [
            id
            for id in variants
            if integration_version in (LATEST, id.integration_version) and version in (LATEST, id.version)
        ]
        if fitting:
            return max(fitting)
        numbers = (1 if v == LATEST else int(v) for v in (integration_version, version))
        return ToolId(ref.integration, next(numbers), ref.suite, ref.tool, next(numbers))

    def _only(self, step: str, ids: set[ToolId]) -> Resolution:
        """Return the one tool of a step. Raises for several, and for one that is absent, withdrawn or hidden."""
        now = sorted({self._now(id, ids) for id in ids})
        for id in now:
            self._require_visible(id)
        if len(now) == 1:
            (id,) = now
            if id not in self.whole and (standing := self._withdrawal(id)) is not None:
                return self._standing(standing)
            self._require_present(id)
            return self._found(step, id, f"another spelling of {self._called(id)}")
        self.trail.append(f"{step}: {len(now)} tools have this spelling")
        raise AmbiguousName(text=self.text, trail=tuple(self.trail), candidates=tuple(map(self._called, now)))

    def _now(self, id: ToolId, spelled: Collection[ToolId]) -> ToolId:
        """Return the successor of a tool that is away; after a clean break only one that is spelled so too."""
        standing = None if id in self.whole else self._withdrawal(id)
        last = None if standing is None else self._followed(standing)
        if last is None or last.id is None or not (last.status == "redirected" or last.id in spelled):
            return id
        return last.id

    def _called(self, id: ToolId) -> str:
        return self.names.get(id, str(id))

    def _hears_of(self, id: ToolId) -> bool:
        ledger = self.names.ledger
        return ledger is not None and ledger.tells_of(id)

    def _absent(self, id: ToolId | None) -> UnknownTool:
        return UnknownTool(text=self.text, trail=tuple(self.trail), reason="absent", id=id)

    def _malformed(self, detail: str) -> UnknownTool:
        return UnknownTool(text=self.text, trail=tuple(self.trail), reason="malformed", detail=detail)

    def _unknown(self) -> UnknownTool:
        nearest = self.names.suggester.nearest(self.text)
        return UnknownTool(text=self.text, trail=tuple(self.trail), suggestions=nearest)
