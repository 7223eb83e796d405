"""Assign one name to each tool, so that no client confuses two names.

Names are claimed in this order: names that the operator fixed; names that the ledger holds; plain names, first those
that are legal verbatim, then those that were adapted or transliterated; last names that are shortened or omit a word
that server and tool share. A tool that got none of these gets a number if it is a further version of a tool, else other
words of its server's key, else a digest. Each step takes the tools in canonical order. The result is therefore a
function of the set of tools and the ledger, and does not depend on the order of arrival.
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
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from truename.catalog import Catalog, Tool
    from truename.naming.candidates import NameCandidate, NameGenerator

__all__ = ["AssignedName", "Assignment", "HeldNames"]

Family = tuple[str, str | None, str]
_DIGEST_LENGTHS: Final = (4, 6, 8, 16)
_ID_SYNTAX: Final = re.compile(r"[/~%]")
_log = logging.getLogger("truename.naming")


class AssignedName(NamedTuple):
    """A tool's name and the reason for it.

    ``rung`` is the step of the assignment that gave it, ``prefix`` the server's part that it begins with, ``how`` the
    derivation in words, ``clash`` the tool that has the better name. ``number`` is the number at the end of a name of a
    further version.
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
    """The reason why no candidate name was possible for a tool.

    ``holder`` has one of the names, ``reason`` says why one is not legal, ``sibling`` is the name of another version.
    """

    holder: ToolId | None = None
    reason: Reason | None = None
    sibling: AssignedName | None = None


class HeldNames(Protocol):
    """A protocol for the part of a ledger that the assignment uses."""

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold."""
        ...

    def bars(self, name: str, id: ToolId) -> bool:
        """Return whether a name was withdrawn and not redirected to this tool."""
        ...

    def is_heir(self, key: str, id: ToolId) -> bool:
        """Return whether the name with this fold, or the tool that holds it, was redirected to this tool."""
        ...

    def parts(self, name: str) -> tuple[str, int | None]:
        """Return the server's part and the number of a recorded name."""
        ...

    def expect(self, names: Collection[str]) -> None:
        """Read at once what is on record about these names, each of which will be asked about."""
        ...


class Assignment:
    """One assignment of names to the tools of a catalogue; `run` returns the names or raises all errors at once."""

    def __init__(
        self, generator: NameGenerator, memory: HeldNames | None, known: Mapping[ToolId, AssignedName] | None = None
    ) -> None:
        """Create the assignment; ``known`` are the names that tools have already, all of which the memory holds."""
        self._generator = generator
        self._memory = memory
        self._taken: dict[str, ToolId] = {}
        self._known: Mapping[ToolId, AssignedName] = known or {}
        self._names: dict[ToolId, AssignedName] = dict(self._known)
        self._errors: list[TruenameError] = []
        self._numbers: defaultdict[Family, int] = defaultdict(lambda: 2)

    def run(self, fixed: Mapping[ToolId, str], held: Mapping[ToolId, str]) -> dict[ToolId, AssignedName]:
        """Assign a name to every tool. Raises an `ExceptionGroup` of `InvalidName`, `DuplicateTool`, `NoLegalName`."""
        catalog = self._generator.catalog
        self._assign(catalog.values(), fixed, held)
        return {id: self._names[id] for id in catalog}

    def run_for(
        self, ids: Collection[ToolId], fixed: Mapping[ToolId, str], held: Mapping[ToolId, str]
    ) -> dict[ToolId, AssignedName]:
        """Assign a name to each of these tools, where all others of the catalogue have theirs; raises as `run` does.

        `run` gives the same names, since it gives held names first.
        """
        tools = [self._generator.catalog[id] for id in ids]
        self._assign(tools, fixed, {id: name for id in ids if (name := held.get(id)) is not None})
        return {id: self._names[id] for id in ids}

    def _assign(self, tools: Iterable[Tool], fixed: Mapping[ToolId, str], held: Mapping[ToolId, str]) -> None:
        catalog = self._generator.catalog
        for id in sorted(fixed):
            self._fix(catalog, id, fixed[id])
        if self._memory is not None:
            self._memory.expect(held.values())
        for id in sorted(held):
            if id in catalog and id not in self._names:
                self._keep(id, held[id])
        first_candidate = self._generator.first_candidate
        first = {tool.id: first_candidate(tool) for tool in tools if tool.id not in self._names}
        if self._memory is not None and self._generator.style.spelling != "canonical":
            self._memory.expect([candidate.text for candidate in first.values()])
        if self._generator.style.spelling == "canonical":
            self._identify(first)
        elif self._generator.style.on_clash == "error":
            self._declare(first)
        else:
            self._resolve(catalog, first)
        if self._errors:
            message = f"{len(self._errors)} tools cannot be named"
            raise ExceptionGroup(message, self._errors)

    def _fix(self, catalog: Catalog, id: ToolId, name: str) -> None:
        if id not in catalog:
            return
        reasons = self._generator.dialect.check(name, self._generator.server_name) or self._reasons_against(name, id)
        if reasons:
            self._errors.append(InvalidName(name=name, dialect=self._generator.dialect.name, reasons=reasons))
        elif (holder := self._holder(fold(name), id)) is not None:
            self._errors.append(DuplicateTool(existing=str(holder), duplicate=str(id), name=name))
        else:
            self._give(id, AssignedName(name, "override", how="fixed by the operator"))

    def _keep(self, id: ToolId, name: str) -> None:
        """Keep a name that the ledger holds, even if it is no longer legal; that is logged, and no tool is renamed."""
        key = fold(name)
        if key in self._taken or self._withdrawn(name, id) or self._holder(key, id) is not None:
            return
        generator = self._generator
        how = "held since it was first shown"
        if reasons := generator.dialect.check(name, generator.server_name):
            how += f", but no longer legal for {generator.dialect.name}: {reasons[0].text}"
            _log.warning("%s, the name of %s, is %s", name, id, how)
        prefix, number = ("", None) if self._memory is None else self._memory.parts(name)
        self._give(id, AssignedName(name, "held", prefix, how, number=number))

    def _identify(self, first: Mapping[ToolId, NameCandidate]) -> None:
        # An id cannot mean another tool, so neither the other names nor the ledger are checked.
        for id, candidate in first.items():
            if self._generator.dialect.check(candidate.text, self._generator.server_name):
                self._errors.append(self._no_legal_name(id, candidate.text))
            self._names[id] = AssignedName(candidate.text, "canonical", how=candidate.how)

    def _declare(self, first: Mapping[ToolId, NameCandidate]) -> None:
        generator = self._generator
        for id in sorted(first):
            candidate = first[id]
            holder = self._holder(fold(candidate.text), id)
            if generator.dialect.check(candidate.text, generator.server_name):
                self._errors.append(self._no_legal_name(id, candidate.text))
            elif reasons := self._reasons_against(candidate.text, id):
                self._errors.append(InvalidName(name=candidate.text, dialect=generator.dialect.name, reasons=reasons))
            elif holder is not None:
                self._errors.append(DuplicateTool(existing=str(holder), duplicate=str(id), name=candidate.text))
            else:
                self._give(id, AssignedName(candidate.text, "declared", how=candidate.how))

    def _resolve(self, catalog: Catalog, first: Mapping[ToolId, NameCandidate]) -> None:
        is_on_conflict = self._generator.style.prefix == "on-conflict"
        clashing = self._clashing(catalog, first) if is_on_conflict else frozenset[ToolId]()
        order = [id for _, _, id in sorted((one.rank, id.sort_key, id) for id, one in first.items())]
        obstacles: dict[ToolId, _Obstacle] = {}
        for id in order:
            candidate = first[id]
            if id not in clashing and self._claim(id, candidate):
                continue
            options = self._generator.candidates(catalog[id])
            count = len(options)
            if id in clashing:
                bare = fold(candidate.text)
                # If server and tool share a word, the name with the server's part may equal the bare name again.
                options = tuple(one for one in options if fold(one.text) != bare)
            obstacle = self._claim_first(id, options, namespaced=len(options) < count)
            if obstacle is not None:
                obstacles[id] = obstacle
        left = sorted(obstacles)
        if not left:
            return
        families = {id.family for id in left}
        bases: dict[Family, ToolId] = {}
        for id in sorted(id for id in self._names if id.family in families):
            bases.setdefault(id.family, id)
        for id in left:
            self._disambiguate(catalog[id], bases.get(id.family), obstacles[id])
            bases.setdefault(id.family, id)

    def _clashing(self, catalog: Catalog, first: Mapping[ToolId, NameCandidate]) -> frozenset[ToolId]:
        """Return the tools whose plain name equals that of another server's tool."""
        groups: defaultdict[str, list[ToolId]] = defaultdict(list)
        for id, candidate in first.items():
            groups[fold(candidate.text)].append(id)
        clashing: set[ToolId] = set()
        for key, ids in groups.items():
            holder = self._holder(key, ids[0])
            present = [holder] if holder is not None and holder in catalog else []
            if not self._clash(catalog, [*ids, *present]):
                continue
            # A tool whose own name this is does not lose it to tools whose names had to be adapted to it.
            lowest = min(first[id].rank for id in ids)
            best = [id for id in ids if first[id].rank == lowest]
            clashing.update(ids if self._clash(catalog, [*best, *present]) else set(ids) - set(best))
            labels = ", ".join(repr(catalog[id].origin.server) for id in [*ids, *present])
            _log.info("name conflict: %r is a tool of %s", catalog[ids[0]].origin.name, labels)
        return frozenset(clashing)

    @staticmethod
    def _clash(catalog: Catalog, ids: list[ToolId]) -> bool:
        return len({catalog[id].origin.server_id for id in ids}) > 1 and len({id.family for id in ids}) > 1

    def _claim(self, id: ToolId, candidate: NameCandidate) -> bool:
        """Give the tool its first candidate, if nobody has it and it is legal: the way of nearly all tools."""
        text, generator = candidate.text, self._generator
        key = fold(text)
        if key in self._taken or not generator.is_legal(text):
            return False
        if self._memory is not None and (self._holder(key, id) is not None or self._memory.bars(text, id)):
            return False
        self._taken[key] = id
        self._names[id] = AssignedName(text, "natural", candidate.prefix, candidate.how, None, candidate.shortened)
        return True

    def _claim_first(self, id: ToolId, options: tuple[NameCandidate, ...], *, namespaced: bool) -> _Obstacle | None:
        """Give the tool its first candidate that is free and legal, and return None; else return what prevented it."""
        generator = self._generator
        clash: ToolId | None = None
        illegal: Reason | None = None
        for option in options:
            key = fold(option.text)
            holder = self._holder(key, id)
            if holder is not None and holder.family == id.family:
                # A further version of the same tool gets a number, not its server's part.
                return _Obstacle(holder, sibling=AssignedName(option.text, "natural", option.prefix))
            if holder is not None or self._withdrawn(option.text, id):
                clash = clash or holder
            elif reasons := generator.dialect.check(option.text, generator.server_name):
                illegal = illegal or reasons[0]
            else:
                rung = "namespaced" if namespaced or option is not options[0] else "natural"
                self._taken[key] = id
                self._names[id] = AssignedName(
                    option.text, rung, option.prefix, option.how, clash, option.shortened, None
                )
                return None
        return _Obstacle(clash, illegal)

    def _disambiguate(self, tool: Tool, sibling: ToolId | None, obstacle: _Obstacle) -> None:
        generator, id = self._generator, tool.id
        base = obstacle.sibling if sibling is None else self._base(sibling)
        if base is not None and self._number(tool, sibling or obstacle.holder or id, base):
            return
        for option in generator.fallbacks(tool):
            if self._free(option.text, id) and self._fits(option.text):
                clash, short = obstacle.holder, option.shortened
                self._give(id, AssignedName(option.text, "namespaced", option.prefix, option.how, clash, short))
                return
        found = next((one for one in self._with_digest(tool) if self._free(one.text, id)), None)
        if found is None:
            self._errors.append(self._no_legal_name(id, generator.first_candidate(tool).text))
            self._names[id] = AssignedName("", "none")
            return
        kept = found.prefix if found.text.startswith(found.prefix) else ""
        how = "with a digest of its id"
        if obstacle.reason is not None:
            how += f", since the plain name is not legal for {generator.dialect.name}: {obstacle.reason.text}"
        self._give(id, AssignedName(found.text, "digest", kept, how, obstacle.holder))

    def _base(self, id: ToolId) -> AssignedName:
        """Return the name that a number is put behind: one that a tool had before is held, however it came by it."""
        one = self._names[id]
        return one._replace(rung="held") if id in self._known and one.rung != "override" else one

    def _with_digest(self, tool: Tool) -> Iterator[NameCandidate]:
        """Yield legal names with a digest, without end if any is legal: a server may have tools with such names."""
        whole = digest_of(str(tool.id), _DIGEST_LENGTHS[-1])
        first = (self._generator.fit_with_suffix(tool, f"_{whole[:n]}") for n in _DIGEST_LENGTHS)
        yield from (one for one in first if self._fits(one.text))
        more = (self._generator.fit_with_suffix(tool, f"_{digest_of(f'{tool.id} {n}', 8)}") for n in count(2))
        yield from takewhile(lambda one: self._fits(one.text), more)

    def _number(self, tool: Tool, sibling: ToolId, base: AssignedName) -> bool:
        """Give a further version of a tool its sibling's name with the next free number; return False if not legal."""
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
        name = self._generator.with_filler(base.unnumbered + suffix)
        if base.rung == "digest" or len(name) > self._generator.room:
            return self._generator.fit_with_suffix(tool, suffix).text
        return name

    def _holder(self, key: str, id: ToolId) -> ToolId | None:
        """Return the other tool that has this name, in this assignment or in the ledger."""
        holder = self._taken.get(key) or (self._memory.holder(key) if self._memory else None)
        if holder is None or holder is id or holder == id:
            return None
        return None if self._was_passed_on(holder, key, id) else holder

    def _was_passed_on(self, holder: ToolId, key: str, id: ToolId) -> bool:
        """Return whether an operator redirected the name, or its absent holder, to this tool."""
        return holder not in self._generator.catalog and self._memory is not None and self._memory.is_heir(key, id)

    def _withdrawn(self, name: str, id: ToolId) -> bool:
        return self._memory is not None and self._memory.bars(name, id)

    def _reasons_against(self, name: str, id: ToolId) -> tuple[Reason, ...]:
        """Return the reasons why a name that the operator or the server chose cannot be shown."""
        if self._withdrawn(name, id):
            return (Reason("withdrawn", "it was retired or redirected"),)
        return (Reason("identity", "it can be read as the id of another tool"),) if _reads_as_another(name, id) else ()

    def _fits(self, name: str) -> bool:
        """Return whether a name made to resolve a clash is legal, and has no client's prefix or suffix."""
        generator = self._generator
        return not generator.dialect.check(name, generator.server_name) and not any(generator.has_client_affixes(name))

    def _free(self, name: str, id: ToolId) -> bool:
        key = fold(name)
        return self._holder(key, id) is None and not self._withdrawn(name, id)

    def _give(self, id: ToolId, assigned: AssignedName) -> None:
        self._taken[fold(assigned.name)] = id
        self._names[id] = assigned

    def _no_legal_name(self, id: ToolId, text: str) -> NoLegalName:
        generator = self._generator
        return NoLegalName(
            id=id,
            dialect=generator.dialect.name,
            style=generator.style.name,
            styles=tuple(style for style in generator.dialect.styles if style != generator.style.name),
            reasons=generator.dialect.check(text, generator.server_name),
        )


def _reads_as_another(text: str, id: ToolId) -> bool:
    """Return whether the text is another tool's id, or has a broken encoding: such a name would be misleading."""
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
