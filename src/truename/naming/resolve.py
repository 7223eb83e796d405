"""Resolve a name to exactly one tool, or raise an error that says what to do; never guess.

The first step that knows the text decides. The steps are: the table, the ledger, canonical ids, other exact spellings;
these four once more for the decoded text; the folded spellings. A step in which two tools match raises `AmbiguousName`.
A retired, broken or absent name stops the search too; otherwise a later step would find a similar tool, and a call
would do something else than before. A text never runs a tool that only has its fold if another tool has it exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, overload

from truename.errors import AmbiguousName, InvalidToolId, RetiredName, UnknownTool
from truename.identity import LATEST, MAX_FOREIGN, ToolId, ToolRef, decode, fold
from truename.naming.client_prefixes import strip_affixes
from truename.naming.spellings import folded
from truename.naming.table import Passthrough, Resolution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from truename.ledger import Standing
    from truename.naming.table import NameTable

__all__ = ["resolve"]

_LONGEST: Final = 4 * MAX_FOREIGN
# Longer chains of redirects are not followed.
_MOST_REDIRECTS: Final = 32


@overload
def resolve(text: str, names: NameTable, *, on_unknown: Literal["raise"] = "raise") -> Resolution: ...


@overload
def resolve(text: str, names: NameTable, *, on_unknown: Literal["passthrough"]) -> Resolution | Passthrough: ...


def resolve(
    text: str, names: NameTable, *, on_unknown: Literal["raise", "passthrough"] = "raise"
) -> Resolution | Passthrough:
    """Return the tool that this text means in this table, with the steps that were tried.

    These texts are accepted:

    - the table's names, and older names on record
    - canonical ids in any spelling: any case, omitted versions, ``@v1``, ``@latest``, percent- or tilde-encoded
    - if exactly one tool has them: the server's own name for the tool, ``Server:tool``, and names of other styles
    - any of these with the prefix or suffix that a client adds

    In a table of some of a catalogue's tools (`NameTable.among`), the hidden tools keep their names and ids, and these
    are unknown.

    Chains of redirects are followed; a circular chain makes the tool absent. A name that a clean break removed
    matches nothing, in any spelling. The steps in their order are in docs/concepts/resolution.md.

    Raises `UnknownTool` (with the nearest names; with reason ``moved``, the present name), `AmbiguousName` and
    `RetiredName`. With ``passthrough``, an unknown name returns a `Passthrough`, whose id is None.

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
        return _Resolver(text, names, suggests=on_unknown == "raise").run()
    except UnknownTool as error:
        if on_unknown == "passthrough" and error.reason == "unknown":
            return Passthrough((*error.trail, "passthrough: used unchanged"))
        raise


def _is_superseded(text: str, hit: Resolution, names: NameTable) -> bool:
    ledger = names.whole.ledger
    standing = None if ledger is None else ledger.withdrawn.get(text)
    return standing is not None and (standing.status, standing.id) != ("redirected", hit.id)


def _on_record(text: str, hit: Resolution, names: NameTable) -> bool:
    ledger = names.whole.ledger
    return ledger is not None and (ledger.standing(text) is not None or str(hit.id) in ledger.withdrawn)


class _Resolver:
    """The resolution of one text, with the trail of its steps.

    ``names`` is the table that the caller sees; ``whole`` also has the hidden tools, so that a name or id of theirs
    never resolves to another tool. With ``suggests``, an error has the nearest names, which are slow to find.
    """

    __slots__ = ("names", "suggests", "text", "trail", "whole")

    def __init__(self, text: str, names: NameTable, *, suggests: bool) -> None:
        self.text = text
        self.suggests = suggests
        self.names = names
        self.whole = names.whole
        self.trail: list[str] = []

    def run(self) -> Resolution:
        if len(self.text) > _LONGEST:
            raise self._malformed(f"it is longer than {_LONGEST:,} characters")
        found = self._exactly(self.text)
        if found is None:
            try:
                plain = decode(self.text)
            except InvalidToolId as error:
                raise self._malformed(error.reason) from error
            if plain.count("/") > 1:
                raise self._malformed("there is more than one '/'")
            if plain != self.text:
                self.trail.append(f"decode: {plain!r}")
            found = (self._exactly(plain) if plain != self.text else None) or self._folded(plain)
        if found is None:
            raise self._unknown()
        return found

    def _exactly(self, text: str) -> Resolution | None:
        return self._table(text) or self._ledger(text) or self._canonical(text) or self._spelled(text)

    def _found(self, step: str, id: ToolId, reason: str) -> Resolution:
        return Resolution(id, step, (*self.trail, f"{step}: {reason}"))

    def _table(self, text: str) -> Resolution | None:
        hit = self.whole.exact.get(text)
        if hit is not None and hit.id is not None and not self._is_withdrawn(text):
            self._require_visible(hit.id)
            # `resolve` looks the unchanged text up before it starts a search, so this text was decoded.
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
        """Return the ledger's record of exactly this text. Raises `UnknownTool` if the caller must not learn of it."""
        ledger = self.names.ledger
        standing = None if ledger is None else ledger.standing(text)
        if ledger is not None and standing is None and ledger.hides(text):
            raise self._unknown()
        return standing

    def _standing(self, standing: Standing) -> Resolution:
        standing = self._followed(standing)
        self._refuse_withdrawn(standing)
        id = self._held_by(standing)
        self._require_present(id)
        return self._found("ledger", id, standing.status)

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
        """Follow redirects of ids, and return the last record: held, redirected, retired or broken."""
        for _ in range(_MOST_REDIRECTS):
            leads_on = standing.status == "redirected" or (standing.status == "held" and standing.id not in self.whole)
            following = self._withdrawal(standing.id) if leads_on else None
            # A redirect of an id to itself cancels an earlier redirect.
            if following is None or (following.status, following.id) == ("redirected", standing.id):
                return standing
            relation = "redirected to" if standing.status == "redirected" else "held by"
            self.trail.append(f"ledger: {relation} {standing.id}, which is withdrawn too")
            standing = following
        self.trail.append(f"ledger: a chain of more than {_MOST_REDIRECTS} redirects")
        raise self._absent(standing.id)

    def _withdrawal(self, id: ToolId | None) -> Standing | None:
        """Return the withdrawal of an id. Raises `UnknownTool` if it leads to a tool that the caller must not see."""
        return self._recorded(str(id)) if self._is_withdrawn(str(id)) else None

    def _successor(self, standing: Standing) -> str | None:
        """Return the present name, for this client, of a retired name's successor or, without one, of its tool.

        If this client sees neither, return the successor as recorded, or None.
        """
        successor = standing.successor or (None if standing.id is None else str(standing.id))
        try:
            return None if successor is None else self.names[successor]
        except KeyError:
            return standing.successor

    def _moved(self, standing: Standing) -> UnknownTool:
        self.trail.append("ledger: removed by a clean break")
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

    def _require_told(self, id: ToolId) -> None:
        """Raise `UnknownTool` for a hidden tool, and for an absent one of which the caller must not learn."""
        ledger = self.names.ledger
        if id not in self.names and (id in self.whole or ledger is None or not ledger.tells_of(id)):
            raise self._unknown()

    def _require_present(self, id: ToolId) -> None:
        if id in self.names:
            return
        self._require_told(id)
        self.trail.append("ledger: its tool is not available now")
        raise self._absent(id)

    def _canonical(self, text: str) -> Resolution | None:
        """Look the text up as an id in its exact form: lower case, versions omitted or in digits."""
        if "/" not in text:
            self.trail.append("canonical: it has no '/'")
            return None
        ref = self._ref(text)
        if ref is None:
            return None
        if LATEST in (ref.integration_version, ref.version) or str(ref) != text:
            self.trail.append("canonical: not in exact form (case, 'v' or 'latest')")
            return None
        found = self._identified(ref.complete(), "canonical")
        if found is None and "@" in text and self.whole.spellings.family(ref):
            # Only the tool's own server can provide a further version, not another server with a tool of this name.
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
        if self.whole.spellings.is_absent(id):
            self._require_present(id)
        self.trail.append(f"{step}: {id} does not exist")
        return None

    def _spelled(self, text: str) -> Resolution | None:
        """Find the tool that has exactly this spelling.

        A name with a client's affixes is tried first: it is how that client shows a name of the table. A server that
        imitates the affixes in a tool's name can therefore neither take over the name nor make it ambiguous.
        """
        inside = self._inside(text, exact=True)
        ids = {*self.whole.spellings.shown_as(text), *(id for one in inside for id in self._with_name(one))}
        if not ids:
            index = self.names.spellings
            ids = {*index.exact(text), *(id for one in inside for id in index.exact(one))}
            if ids:
                ids |= self._referred(text, *inside, exact=True)
        if not ids:
            self.trail.append("spelling: no tool has it exactly")
            return None
        if self.whole.keys().isdisjoint(ids):
            self._refuse_broken((text, *inside))
        return self._only("spelling", ids)

    def _referred(self, *texts: str, exact: bool) -> set[ToolId]:
        """Return the known tools, hidden or not, whose ids these texts are: a tool that is called so does not get them.

        With ``exact``, a reference without versions counts only as it stands: encoded or in other case, a tool's own
        name goes before it. Raises `UnknownTool` for a version that does not exist, as for the same text without a
        client's affixes.
        """
        ids = set()
        for text in texts:
            try:
                ref = ToolRef.parse(text)
            except InvalidToolId:
                continue
            is_versioned, is_canonical = (ref.integration_version, ref.version) != (None, None), str(ref) == text
            if exact and not (is_versioned or is_canonical):
                continue
            id = self._version_of(ref, self.whole)
            if id in self.whole or self.whole.spellings.is_absent(id) or self._is_withdrawn(str(id)):
                ids.add(id)
            elif is_versioned and (not exact or (is_canonical and self.whole.spellings.family(ref))):
                raise self._unknown()
        return ids

    def _with_name(self, inside: str) -> tuple[ToolId, ...]:
        """Return the tool that has this name in the table or in the ledger."""
        hit = self.whole.exact.get(inside)
        if hit is not None and hit.id is not None and not self._is_withdrawn(inside):
            return (hit.id,)
        standing = self._recorded(inside)
        if standing is None:
            return ()
        self._refuse_withdrawn(self._followed(standing))
        return (self._held_by(standing),)

    def _inside(self, text: str, *, exact: bool) -> list[str]:
        return [inside for name in self.whole.server_names for inside in strip_affixes(text, name, exact=exact)]

    def _held_by(self, standing: Standing) -> ToolId:
        """Follow the redirects of a name that is neither retired nor broken, and return the last tool."""
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
            self.trail.append("folded: no tool has a name or spelling with its fold")
            return None
        if any(self.names.spellings.belongs_to_older(text) for text in texts):
            raise self._unknown()
        ids |= self._referred(*texts, exact=False)
        return self._only("folded", ids)

    def _refuse_broken(self, texts: Iterable[str]) -> None:
        """Raise `UnknownTool` if one of the texts is a spelling of a name that a clean break removed."""
        for text in texts:
            if (broken := self.names.broken.standing(text)) is not None:
                raise self._moved(broken)

    def _canonical_folded(self, plain: str) -> Resolution | None:
        ref = self._ref(plain)
        if ref is None:
            return None
        found = self._identified(self._version_of(ref, self.names), "folded")
        if found is None and "@" in plain:
            # An explicit version that does not exist never falls back to another one.
            raise self._unknown()
        return found

    def _folded_like(self, text: str) -> set[ToolId]:
        """Return the tools that have a name or a spelling with this fold, including recorded names."""
        ids = set(self.names.spellings.folded(text))
        ledger = self.names.ledger
        key = fold(text)
        alike = ledger is not None and any(folded(name) == folded(text) for name in ledger.spellings(key))
        standing = ledger.standing_folded(key) if ledger is not None and alike else None
        if ledger is None or standing is None:
            return ids
        self._refuse_withdrawn(self._followed(standing))
        if standing.status != "held":
            # The name was redirected, so the tool that held it first no longer counts.
            ids.discard(ledger.held_first(key) or self._held_by(standing))
        return ids | {self._held_by(standing)}

    def _version_of(self, ref: ToolRef, names: NameTable) -> ToolId:
        """Return the id of a reference: an omitted version is 1, ``latest`` the highest in which this tool exists."""
        variants = [id for id in names.spellings.family(ref) if id in names]
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
        """Return the only tool of a step. Raises for several, and for one that is absent, withdrawn or hidden."""
        now = sorted({self._successor_of(id, ids) for id in ids})
        for id in now:
            self._require_told(id)
        if len(now) == 1:
            (id,) = now
            if id not in self.whole and (standing := self._withdrawal(id)) is not None:
                return self._standing(standing)
            self._require_present(id)
            return self._found(step, id, f"another spelling of {self._name_of(id)}")
        self.trail.append(f"{step}: {len(now)} tools have this spelling")
        raise AmbiguousName(text=self.text, trail=tuple(self.trail), candidates=tuple(map(self._name_of, now)))

    def _successor_of(self, id: ToolId, spelled: Collection[ToolId]) -> ToolId:
        """Return the successor of an absent tool; after a clean break only if it has the spelling too."""
        standing = None if id in self.whole else self._withdrawal(id)
        last = None if standing is None else self._followed(standing)
        if last is None or last.id is None or not (last.status == "redirected" or last.id in spelled):
            return id
        return last.id

    def _name_of(self, id: ToolId) -> str:
        return self.names.get(id, str(id))

    def _absent(self, id: ToolId | None) -> UnknownTool:
        return UnknownTool(text=self.text, trail=tuple(self.trail), reason="absent", id=id)

    def _malformed(self, detail: str) -> UnknownTool:
        return UnknownTool(text=self.text, trail=tuple(self.trail), reason="malformed", detail=detail)

    def _unknown(self) -> UnknownTool:
        nearest = self.names.suggester.nearest(self.text) if self.suggests else ()
        return UnknownTool(text=self.text, trail=tuple(self.trail), suggestions=nearest)
