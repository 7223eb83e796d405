"""Assign one name to each tool, so that no client confuses two names.

Order of claims: names that the operator fixed; names that the ledger holds; plain names, those that are legal verbatim
before those that were adapted or transliterated; names that give way (shortened, or a word left out that server and
tool share). A tool that got none of these gets, in this order: a number, if it is a further version; other words of
its server's key; a digest. Within each, canonical order: so the result is a function of the set of tools and the
ledger, never of the order of arrival.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from itertools import count, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from truename.dialects import Reason
from truename.errors import DuplicateTool, InvalidName, InvalidToolId, NoLegalName, TruenameError
from truename.identity import ToolId, ToolRef, decode, digest_of, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.catalog import Catalog, Tool
    from truename.naming.spell import NameCandidate, NameGenerator

__all__ = ["AssignedName", "Assignment", "HeldNames"]

Family = tuple[str, str | None, str]
_DIGEST_LENGTHS: Final = (4, 6, 8, 16)
_ID_SYNTAX: Final = re.compile(r"[/~%]")
_log = logging.getLogger("truename.naming")


class AssignedName(NamedTuple):
    """A tool's name and why: the rung, the server's part that it begins with, how it was made, who was in the way.

    ``number`` stands at its end if it tells a further version of a tool apart.
    """

    name: str
    rung: str
    prefix: str = ""
    how: str = ""
    clash: ToolId | None = None
    shortened: bool = False
    number: int | None = None

    @property
    def unnumbered(self) -> str:
        """The name without its number."""
        return self.name if self.number is None else self.name.removesuffix(f"_{self.number}")


class _Obstacle(NamedTuple):
    """Why a tool did not get what it wished: who was in the way, what was not legal, what another version has."""

    holder: ToolId | None = None
    reason: Reason | None = None
    sibling: AssignedName | None = None


class HeldNames(Protocol):
    """What assignment asks a ledger."""

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold."""
        ...

    def bars(self, name: str, id: ToolId) -> bool:
        """Tell whether a name was withdrawn, and not redirected to this tool."""
        ...

    def is_heir(self, key: str, id: ToolId) -> bool:
        """Tell whether the name with this fold, or the tool that holds it, was redirected to this tool."""
        ...

    def parts(self, name: str) -> tuple[str, int | None]:
        """Return the server's part that a name on record begins with, and its number."""
        ...


class Assignment:
    """One run over a catalogue; `run` returns the names or raises everything that is wrong as one group."""

    def __init__(self, speller: NameGenerator, memory: HeldNames | None) -> None:
        self._speller = speller
        self._memory = memory
        self._taken: dict[str, ToolId] = {}
        self._names: dict[ToolId, AssignedName] = {}
        self._errors: list[TruenameError] = []
        self._numbers: defaultdict[Family, int] = defaultdict(lambda: 2)

    def run(self, fixed: Mapping[ToolId, str], held: Mapping[ToolId, str]) -> dict[ToolId, AssignedName]:
        """Assign all. Raises an `ExceptionGroup` of `InvalidName`, `DuplicateTool` and `NoLegalName`."""
        catalog = self._speller.catalog
        for id in sorted(fixed):
            self._fix(catalog, id, fixed[id])
        for id in sorted(held):
            if id in catalog and id not in self._names:
                self._keep(id, held[id])
        wishes = {id: self._speller.wishes(tool) for id, tool in catalog.items() if id not in self._names}
        if self._speller.style.spelling == "canonical":
            self._identify(wishes)
        elif self._speller.style.on_clash == "error":
            self._declare(wishes)
        else:
            self._resolve(catalog, wishes)
        if self._errors:
            message = f"{len(self._errors)} names can't be made"
            raise ExceptionGroup(message, self._errors)
        return {id: self._names[id] for id in catalog}

    def _fix(self, catalog: Catalog, id: ToolId, name: str) -> None:
        if id not in catalog:
            return
        reasons = self._speller.dialect.check(name, self._speller.server_name) or self._unfit(name, id)
        if reasons:
            self._errors.append(InvalidName(name=name, dialect=self._speller.dialect.name, reasons=reasons))
        elif (holder := self._holder(fold(name), id)) is not None:
            self._errors.append(DuplicateTool(existing=str(holder), duplicate=str(id), name=name))
        else:
            self._give(id, AssignedName(name, "override", how="fixed by the operator"))

    def _keep(self, id: ToolId, name: str) -> None:
        """Keep a name that was shown; one that a client no longer takes is kept too, and told: nobody is renamed."""
        key = fold(name)
        if key in self._taken or self._withdrawn(name, id) or self._holder(key, id) is not None:
            return
        speller = self._speller
        how = "held since it was first shown"
        if reasons := speller.dialect.check(name, speller.server_name):
            how += f", but no longer legal for {speller.dialect.name}: {reasons[0].text}"
            _log.warning("%s, the name of %s, is %s", name, id, how)
        prefix, number = ("", None) if self._memory is None else self._memory.parts(name)
        self._give(id, AssignedName(name, "held", prefix, how, number=number))

    def _identify(self, wishes: Mapping[ToolId, tuple[NameCandidate, ...]]) -> None:
        # An id is its own claim: it can't mean another tool, so nobody has to be asked.
        for id, (wish,) in wishes.items():
            if self._speller.dialect.check(wish.text, self._speller.server_name):
                self._errors.append(self._no_legal_name(id, wish.text))
            self._names[id] = AssignedName(wish.text, "canonical", how=wish.how)

    def _declare(self, wishes: Mapping[ToolId, tuple[NameCandidate, ...]]) -> None:
        speller = self._speller
        for id in sorted(wishes):
            wish = wishes[id][0]
            holder = self._holder(fold(wish.text), id)
            if speller.dialect.check(wish.text, speller.server_name):
                self._errors.append(self._no_legal_name(id, wish.text))
            elif reasons := self._unfit(wish.text, id):
                self._errors.append(InvalidName(name=wish.text, dialect=speller.dialect.name, reasons=reasons))
            elif holder is not None:
                self._errors.append(DuplicateTool(existing=str(holder), duplicate=str(id), name=wish.text))
            else:
                self._give(id, AssignedName(wish.text, "declared", how=wish.how))

    def _resolve(self, catalog: Catalog, wishes: Mapping[ToolId, tuple[NameCandidate, ...]]) -> None:
        crowded = self._crowded(catalog, wishes) if self._speller.style.prefix == "on-conflict" else frozenset[ToolId]()
        order = sorted(wishes, key=lambda id: (wishes[id][0].rank, id.sort_key))
        obstacles: dict[ToolId, _Obstacle] = {}
        for id in order:
            bare = fold(wishes[id][0].text)
            # Where server and tool share a word, the name with the server in front can be the bare one again.
            options = tuple(one for one in wishes[id] if id not in crowded or fold(one.text) != bare)
            obstacles[id] = self._wish(id, options, namespaced=len(options) < len(wishes[id]))
        left = sorted(id for id in order if id not in self._names)
        if not left:
            return
        families = {id.family for id in left}
        bases: dict[Family, ToolId] = {}
        for id in sorted(id for id in self._names if id.family in families):
            bases.setdefault(id.family, id)
        for id in left:
            self._tell_apart(catalog[id], bases.get(id.family), obstacles[id])
            bases.setdefault(id.family, id)

    def _crowded(self, catalog: Catalog, wishes: Mapping[ToolId, tuple[NameCandidate, ...]]) -> frozenset[ToolId]:
        """Return the tools whose plain name clashes at first sight with one of another server."""
        groups: defaultdict[str, list[ToolId]] = defaultdict(list)
        for id, options in wishes.items():
            groups[fold(options[0].text)].append(id)
        crowded: set[ToolId] = set()
        for key, ids in groups.items():
            holder = self._holder(key, ids[0])
            present = [holder] if holder is not None and holder in catalog else []
            if not self._clash(catalog, [*ids, *present]):
                continue
            # Who is called so itself is not driven from the name by others that would have to be adapted to it.
            first = min(wishes[id][0].rank for id in ids)
            best = [id for id in ids if wishes[id][0].rank == first]
            crowded.update(ids if self._clash(catalog, [*best, *present]) else set(ids) - set(best))
            labels = ", ".join(repr(catalog[id].origin.server) for id in [*ids, *present])
            _log.info("name conflict: %r is a tool of %s", catalog[ids[0]].origin.name, labels)
        return frozenset(crowded)

    @staticmethod
    def _clash(catalog: Catalog, ids: list[ToolId]) -> bool:
        return len({catalog[id].origin.server_id for id in ids}) > 1 and len({id.family for id in ids}) > 1

    def _wish(self, id: ToolId, options: tuple[NameCandidate, ...], *, namespaced: bool) -> _Obstacle:
        """Give the tool the first of its wishes that is free and legal; else return what was in the way."""
        speller = self._speller
        clash: ToolId | None = None
        illegal: Reason | None = None
        for option in options:
            holder = self._holder(fold(option.text), id)
            if holder is not None and holder.family == id.family:
                # A further version of the same tool is told apart by a number, not by its server.
                return _Obstacle(holder, sibling=AssignedName(option.text, "natural", option.prefix))
            if holder is not None or self._withdrawn(option.text, id):
                clash = clash or holder
            elif reasons := speller.dialect.check(option.text, speller.server_name):
                illegal = illegal or reasons[0]
            else:
                rung = "namespaced" if namespaced or option is not options[0] else "natural"
                self._give(id, AssignedName(option.text, rung, option.prefix, option.how, clash, option.shortened))
                return _Obstacle()
        return _Obstacle(clash, illegal)

    def _tell_apart(self, tool: Tool, sibling: ToolId | None, obstacle: _Obstacle) -> None:
        speller, id = self._speller, tool.id
        base = obstacle.sibling if sibling is None else self._names[sibling]
        if base is not None and self._number(tool, sibling or obstacle.holder or id, base):
            return
        for option in speller.others(tool):
            if self._free(option.text, id) and self._fits(option.text):
                clash, short = obstacle.holder, option.shortened
                self._give(id, AssignedName(option.text, "namespaced", option.prefix, option.how, clash, short))
                return
        found = next((one for one in self._with_digest(tool) if self._free(one.text, id)), None)
        if found is None:
            self._errors.append(self._no_legal_name(id, speller.wishes(tool)[0].text))
            self._names[id] = AssignedName("", "none")
            return
        kept = found.prefix if found.text.startswith(found.prefix) else ""
        how = "told apart by a digest of its id"
        if obstacle.reason is not None:
            how += f", since the plain name is not legal for {speller.dialect.name}: {obstacle.reason.text}"
        self._give(id, AssignedName(found.text, "digest", kept, how, obstacle.holder))

    def _with_digest(self, tool: Tool) -> Iterator[NameCandidate]:
        """Yield legal names with a digest, without an end where any is legal: a server may call its tools like some."""
        whole = digest_of(str(tool.id), _DIGEST_LENGTHS[-1])
        first = (self._speller.fitted(tool, f"_{whole[:n]}") for n in _DIGEST_LENGTHS)
        yield from (one for one in first if self._fits(one.text))
        more = (self._speller.fitted(tool, f"_{digest_of(f'{tool.id} {n}', 8)}") for n in count(2))
        yield from takewhile(lambda one: self._fits(one.text), more)

    def _number(self, tool: Tool, sibling: ToolId, base: AssignedName) -> bool:
        """Give a further version of one tool the next free number behind its sibling's name."""
        named = ((number, self._numbered(tool, base, number)) for number in count(self._numbers[tool.id.family]))
        number, name = next(pair for pair in named if self._free(pair[1], tool.id))
        self._numbers[tool.id.family] = number + 1
        if not self._fits(name) or not name.endswith(f"_{number}"):
            return False
        kept = base.prefix if name.startswith(base.prefix) else ""
        how = f"variant {number} of {sibling}"
        self._give(tool.id, AssignedName(name, "numbered", kept, how, sibling, number=number))
        return True

    def _numbered(self, tool: Tool, base: AssignedName, number: int) -> str:
        suffix = f"_{number}"
        name = self._speller.led(base.unnumbered + suffix)
        if base.rung == "digest" or len(name) > self._speller.room:
            return self._speller.fitted(tool, suffix).text
        return name

    def _holder(self, key: str, id: ToolId) -> ToolId | None:
        """Return the other tool that has this name, here or in the ledger."""
        holder = self._taken.get(key) or (self._memory.holder(key) if self._memory else None)
        return None if holder is None or holder == id or self._leaves(holder, key, id) else holder

    def _leaves(self, holder: ToolId, key: str, id: ToolId) -> bool:
        """Tell whether a tool that is no longer here left the name to this one, by an operator's redirect."""
        return holder not in self._speller.catalog and self._memory is not None and self._memory.is_heir(key, id)

    def _withdrawn(self, name: str, id: ToolId) -> bool:
        return self._memory is not None and self._memory.bars(name, id)

    def _unfit(self, name: str, id: ToolId) -> tuple[Reason, ...]:
        """Return why a name that was not made here, but given, can't be shown."""
        if self._withdrawn(name, id):
            return (Reason("withdrawn", "it was retired or redirected"),)
        return (Reason("identity", "it reads as the id of another tool"),) if _reads_as_another(name, id) else ()

    def _fits(self, name: str) -> bool:
        """Tell whether a name with a number or a digest can be shown; its end may be one that a client puts there."""
        speller = self._speller
        return not speller.dialect.check(name, speller.server_name) and not any(speller.framed(name))

    def _free(self, name: str, id: ToolId) -> bool:
        key = fold(name)
        return self._holder(key, id) is None and not self._withdrawn(name, id)

    def _give(self, id: ToolId, assigned: AssignedName) -> None:
        self._taken[fold(assigned.name)] = id
        self._names[id] = assigned

    def _no_legal_name(self, id: ToolId, text: str) -> NoLegalName:
        speller = self._speller
        return NoLegalName(
            id=id,
            dialect=speller.dialect.name,
            style=speller.style.name,
            styles=tuple(style for style in speller.dialect.styles if style != speller.style.name),
            reasons=speller.dialect.check(text, speller.server_name),
        )


def _reads_as_another(text: str, id: ToolId) -> bool:
    """Tell whether the text reads as another tool's id, or as no clean text at all: such a name would lie."""
    if not _ID_SYNTAX.search(text):
        return False
    try:
        plain = decode(text)
    except InvalidToolId:
        return True
    try:
        return "/" in plain and ToolRef.parse(plain).complete() != id
    except InvalidToolId:
        return False
