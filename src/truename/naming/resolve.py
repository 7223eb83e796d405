"""`resolve`: a name that comes back leads to exactly one tool or to an error that says what to do; never a guess.

The first step that answers wins: table, ledger, decode, canonical, derived. A step that finds two stops with
`AmbiguousName`; a retired, broken or absent name stops the search too, or the next step would find a sibling and
yesterday's call would do something else today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from truename.errors import AmbiguousName, InvalidToolId, RetiredName, UnknownTool
from truename.identity import LATEST, MAX_FOREIGN, ToolId, ToolRef, decode, fold
from truename.naming.frames import unframed
from truename.naming.table import Resolution

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from truename.ledger import Standing
    from truename.naming.table import NameTable

__all__ = ["resolve"]

_LONGEST: Final = 4 * MAX_FOREIGN
# More redirects in a row than this are a circle.
_MOST_REDIRECTS: Final = 32


def resolve(text: str, names: NameTable, *, on_unknown: Literal["raise", "passthrough"] = "raise") -> Resolution:
    """Return the tool that this text means in this table, with the steps that were tried.

    Accepted are the table's names, older names on record, canonical ids in any accepted spelling (case, versions left
    out, ``@v1``, ``@latest``, percent- or tilde-encoded) and, if exactly one tool has them, spellings of other styles,
    the server's own name for the tool, and a client's prefix in front.

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
        return _Search(text, names).run()
    except UnknownTool as error:
        if on_unknown == "passthrough" and error.reason == "unknown":
            return Resolution(None, "passthrough", (*error.trail, "passthrough: used as it is"))
        raise


def _is_superseded(text: str, hit: Resolution, names: NameTable) -> bool:
    standing = None if names.ledger is None else names.ledger.withdrawn.get(text)
    return standing is not None and (standing.status, standing.id) != ("redirected", hit.id)


def _on_record(text: str, hit: Resolution, names: NameTable) -> bool:
    ledger = names.ledger
    return ledger is not None and (ledger.standing(text) is not None or str(hit.id) in ledger.withdrawn)


class _Search:
    """One search with its trail."""

    __slots__ = ("names", "text", "trail")

    def __init__(self, text: str, names: NameTable) -> None:
        self.text = text
        self.names = names
        self.trail: list[str] = []

    def run(self) -> Resolution:
        if len(self.text) > _LONGEST:
            raise self._malformed(f"it is longer than {_LONGEST:,} characters")
        self.trail.append("table: no such name")
        found = self._ledger(self.text)
        if found is None:
            plain = self._decode()
            found = (self._again(plain) if plain != self.text else None) or self._canonical(plain)
            found = found or self._derived(plain)
        if found is None:
            raise self._unknown()
        return found

    def _found(self, step: str, id: ToolId, what: str) -> Resolution:
        return Resolution(id, step, (*self.trail, f"{step}: {what}"))

    def _again(self, plain: str) -> Resolution | None:
        hit = self.names.exact.get(plain)
        if hit is not None and hit.id is not None and not self._is_withdrawn(plain):
            return self._found("table", hit.id, f"decoded to {plain!r}")
        return self._ledger(plain)

    def _is_withdrawn(self, name: str) -> bool:
        ledger = self.names.ledger
        return ledger is not None and name in ledger.withdrawn

    def _ledger(self, text: str) -> Resolution | None:
        ledger = self.names.ledger
        standing = None if ledger is None else ledger.standing(text)
        if standing is None:
            self.trail.append("ledger: never shown")
            return None
        return self._standing(standing)

    def _standing(self, standing: Standing) -> Resolution:
        standing = self._followed(standing)
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
        assert standing.id is not None  # noqa: S101 - only a retired name may have none
        self._require_present(standing.id)
        return self._found("ledger", standing.id, standing.status)

    def _followed(self, standing: Standing) -> Standing:
        """Return where the redirects of ids end: held, redirected for the last time, retired or broken."""
        for _ in range(_MOST_REDIRECTS):
            leads_on = standing.status == "redirected" or (standing.status == "held" and standing.id not in self.names)
            following = self._withdrawal(standing.id) if leads_on else None
            # A redirect to itself takes an earlier one back.
            if following is None or (following.status, following.id) == ("redirected", standing.id):
                return standing
            said = "redirected to" if standing.status == "redirected" else "held by"
            self.trail.append(f"ledger: {said} {standing.id}, which is withdrawn too")
            standing = following
        self.trail.append("ledger: its redirects are a circle")
        raise UnknownTool(text=self.text, trail=tuple(self.trail), reason="absent", id=standing.id)

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

    def _require_present(self, id: ToolId) -> None:
        if id not in self.names:
            self.trail.append("ledger: its tool is not here now")
            raise UnknownTool(text=self.text, trail=tuple(self.trail), reason="absent", id=id)

    def _decode(self) -> str:
        try:
            plain = decode(self.text)
        except InvalidToolId as error:
            raise self._malformed(error.reason) from error
        if plain.count("/") > 1:
            raise self._malformed("there is more than one '/'")
        if plain != self.text:
            self.trail.append(f"decode: {plain!r}")
        return plain

    def _canonical(self, plain: str) -> Resolution | None:
        if "/" not in plain:
            self.trail.append("canonical: no '/' in it")
            return None
        hit = self.names.canonical.get(plain)
        try:
            id = self._version_of(ToolRef.parse(plain)) if hit is None or hit.id is None else hit.id
        except InvalidToolId as error:
            self.trail.append(f"canonical: {error.reason}")
            return None
        if self.names.ledger is not None and self._is_withdrawn(str(id)):
            return self._ledger(str(id))
        if id in self.names:
            return self._found("canonical", id, f"read as {id}")
        if id in self.names.derived.absent:
            self._require_present(id)
        self.trail.append(f"canonical: there is no {id}")
        if "@" in plain:
            # A version that is named and missing never falls back to anything.
            raise self._unknown()
        return None

    def _version_of(self, ref: ToolRef) -> ToolId:
        """Return the id meant: an omitted version is 1, ``latest`` the highest in which this tool exists."""
        variants = self.names.derived.families.get((ref.integration, ref.suite, ref.tool), [])
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

    def _derived(self, plain: str) -> Resolution | None:
        inside = [text for name in self.names.server_names for text in unframed(plain, name)]
        for text in (plain, *inside):
            if (broken := self.names.broken.standing(text)) is not None:
                raise self._moved(broken)
        if (shown := self._shown_like(plain)) is not None:
            return shown
        for texts, read in ((inside, self._shown_like), ((plain, *inside), self._standing_like)):
            found = {found.id: found for text in texts if (found := read(text)) is not None}
            if found:
                return self._only(found)
        said = self.names.derived.spelled(plain)
        spelled = {self._now(id, said) for id in said}
        if not spelled:
            self.trail.append("derived: no tool has this spelling")
            return None
        if len(spelled) == 1:
            (id,) = spelled
            if id not in self.names and (standing := self._withdrawal(id)) is not None:
                return self._standing(standing)
            self._require_present(id)
        return self._only({id: self._found("derived", id, f"another spelling of {self._called(id)}") for id in spelled})

    def _now(self, id: ToolId, said: Collection[ToolId]) -> ToolId:
        """Return what a tool that is away was redirected to; after a clean break only a tool that is spelled so too."""
        standing = None if id in self.names else self._withdrawal(id)
        last = None if standing is None else self._followed(standing)
        if last is None or last.id is None or not (last.status == "redirected" or last.id in said):
            return id
        return last.id

    def _called(self, id: ToolId) -> str:
        return self.names.get(id, str(id))

    def _shown_like(self, text: str) -> Resolution | None:
        found = self.names.derived.shown_like(text)
        if found is None or self._is_withdrawn(found[1]):
            return None
        return self._found("derived", found[0], f"another spelling of {found[1]}")

    def _standing_like(self, text: str) -> Resolution | None:
        ledger = self.names.ledger
        standing = None if ledger is None or "/" in text else ledger.standing_folded(fold(text))
        return None if standing is None else self._standing(standing)

    def _only(self, found: Mapping[ToolId | None, Resolution]) -> Resolution:
        if len(found) > 1:
            self.trail.append(f"derived: {len(found)} tools have this spelling")
            candidates = tuple(self._called(id) for id in sorted(id for id in found if id is not None))
            raise AmbiguousName(text=self.text, trail=tuple(self.trail), candidates=candidates)
        return next(iter(found.values()))

    def _malformed(self, detail: str) -> UnknownTool:
        return UnknownTool(text=self.text, trail=tuple(self.trail), reason="malformed", detail=detail)

    def _unknown(self) -> UnknownTool:
        suggestions = self.names.suggester.nearest(self.text)
        return UnknownTool(text=self.text, trail=tuple(self.trail), suggestions=suggestions)
