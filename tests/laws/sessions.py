"""A life of one table or one ledger: what happens to the product and to the oracle, and a script to do it again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from tests.laws.oracle import Oracle, ToolRecord
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import LedgerError, ResolutionError, TruenameError
from truename.ledger import SeenLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.laws.oracle import Verdict
    from truename import NameTable

__all__ = ["Answer", "Broken", "Impossible", "Lists", "Redirect", "Retire", "Script", "Session", "shrunk"]


class Lists(NamedTuple):
    """These servers list these tools, beside them are bare ids with versions, and a client asks for its table."""

    servers: tuple[tuple[str, tuple[str, ...]], ...]
    ids: tuple[str, ...]
    client: str
    style: str = ""


class Retire(NamedTuple):
    """An operator retires a name."""

    name: str


class Redirect(NamedTuple):
    """An operator redirects a name, or an id, to the tool with this id."""

    old: str
    new: str


class Answer(NamedTuple):
    """What a text led to: a tool, or an error with its code and reason."""

    id: str | None
    code: str = ""
    reason: str = ""


class Impossible(Exception):
    """The step cannot be done: no legal name, say. It says nothing about the law."""


@dataclass(frozen=True)
class Script:
    """All that happened, in order; ``style`` is that of the ledger, or of the one table without."""

    style: str
    remembers: bool
    steps: tuple[Lists | Retire | Redirect, ...] = ()

    def __str__(self) -> str:
        lines = [f"style {self.style!r}, {'one ledger' if self.remembers else 'no ledger'}"]
        for step in self.steps:
            if isinstance(step, Lists):
                listed = [f"{label}{list(names)}" for label, names in step.servers] + list(step.ids)
                lines.append(
                    f"  {step.client} lists {', '.join(listed) or 'nothing'}{step.style and ' as ' + step.style}"
                )
            elif isinstance(step, Retire):
                lines.append(f"  retire {step.name!r}")
            else:
                lines.append(f"  redirect {step.old!r} to {step.new}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Broken:
    """A text, or a table (the text is empty then), that breaks the law."""

    script: Script
    text: str
    why: str
    # The tools that are hidden from whoever asks.
    hidden: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """Name what it has in common with others: the rule that is broken, and whether a tool ran."""
        way = re.match("it (runs|fails|meant)", self.why)
        rule = re.search(r"\((step \d[^:]*: .*)", self.why)
        return f"{way[1] if way else 'table'} {re.sub('[^ ]*@[^ ]*', '...', rule[1]) if rule else ''}"

    def __str__(self) -> str:
        if not self.text:
            return f"{self.script}\n  {self.why}"
        hidden = f", {' and '.join(sorted(self.hidden))} hidden" if self.hidden else ""
        return f"{self.script}\n  text {self.text!r}{hidden}: {self.why}"


@dataclass
class Session:
    """The product and the oracle, side by side."""

    style: str
    remembers: bool
    ledger: Ledger | None = None
    table: NameTable | None = None
    steps: list[Lists | Retire | Redirect] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger.memory() if self.remembers else None
        self.oracle = Oracle(self.remembers)

    @property
    def script(self) -> Script:
        return Script(self.style, self.remembers, tuple(self.steps))

    def do(self, step: Lists | Retire | Redirect) -> None:
        """Do a step. Raises `Impossible`; what it breaks by itself stands in `broken`."""
        self.steps.append(step)
        if isinstance(step, Lists):
            self._list(step)
            return
        assert self.ledger is not None
        try:
            if isinstance(step, Retire):
                self.ledger.retire(step.name)
            else:
                self.ledger.redirect(step.old, ToolId.parse(step.new))
        except TruenameError as error:
            raise Impossible from error
        self.table = None
        if isinstance(step, Retire):
            self.oracle.retire(step.name)
        else:
            self.oracle.redirect(step.old, step.new)

    def _list(self, step: Lists) -> None:
        catalog = self.catalog(step)
        style = step.style or self.style
        try:
            self.table = project(catalog, step.client, style=style, ledger=self.ledger)
        except (ExceptionGroup, LedgerError) as error:
            raise Impossible from error
        tools = [ToolRecord(str(id), tool.origin.server, tool.origin.name) for id, tool in catalog.items()]
        names = {str(id): str(name) for id, name in self.table.items()}
        self.broken = self.oracle.projected(tools, names, canonical=style == "canonical")
        is_first = sum(isinstance(one, Lists) for one in self.steps) == 1 or not self.remembers
        if is_first and style in {"prefixed", "on-conflict"} and step.client in {"universal", "openai"}:
            self.broken += self.oracle.usurped(style)

    def catalog(self, step: Lists) -> Catalog:
        bound = self.ledger.bindings() if self.ledger is not None else None
        catalog = Catalog.from_mcp([(label, list(names)) for label, names in step.servers], bound=bound)
        return catalog.with_tools(tool for id, tool in Catalog.of(*step.ids).items() if id not in catalog)

    def part(self, hidden: frozenset[str]) -> NameTable:
        """Return the table as it is for somebody from whom these tools are hidden."""
        assert self.table is not None
        if not hidden:
            return self.table
        ledger = None if self.ledger is None else SeenLedger(self.ledger, lambda id: str(id) not in hidden)
        return self.table.among([id for id in self.table if str(id) not in hidden], ledger)

    def answer(self, text: str, names: NameTable | None = None) -> Answer:
        """Return what a text leads to in a table; in the whole one, if no other is given."""
        assert self.table is not None
        try:
            found = resolve(text, self.table if names is None else names)
        except ResolutionError as error:
            return Answer(None, error.code, getattr(error, "reason", ""))
        return Answer(str(found.id))

    def judged(
        self, text: str, hidden: frozenset[str] = frozenset(), names: NameTable | None = None
    ) -> tuple[Verdict, str]:
        """Return the oracle's verdict on a text, and what is wrong with the product's answer."""
        verdict = self.oracle.verdict(text, hidden)
        return verdict, verdict.objection(*self.answer(text, names))


def replayed(script: Script, text: str, hidden: frozenset[str] = frozenset()) -> str:
    """Do it all again; return what is wrong at the end, if anything."""
    session = Session(script.style, script.remembers)
    try:
        for step in script.steps:
            session.do(step)
            if session.broken and not text:
                return "; ".join(session.broken)
    except Impossible:
        return ""
    if session.table is None or not text:
        return ""
    return session.judged(text, hidden, session.part(hidden))[1]


def shrunk(broken: Broken) -> Broken:
    """Leave out, one after the other, all without which the law is still broken."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for script in _smaller(broken.script):
            why = replayed(script, broken.text, broken.hidden)
            smaller = Broken(script, broken.text, why, broken.hidden)
            if smaller.why and smaller.kind == broken.kind:
                broken = smaller
                is_smaller = True
                break
    return broken


def _smaller(script: Script) -> Iterator[Script]:
    steps = script.steps
    for i, step in enumerate(steps):
        yield replace(script, steps=steps[:i] + steps[i + 1 :])
        if not isinstance(step, Lists):
            continue
        for j, (label, names) in enumerate(step.servers):
            others = step.servers[:j], step.servers[j + 1 :]
            choices = [(*others[0], *others[1])]
            if len(names) > 1:
                choices += [(*others[0], (label, names[:k] + names[k + 1 :]), *others[1]) for k in range(len(names))]
            for servers in choices:
                yield replace(script, steps=(*steps[:i], step._replace(servers=servers), *steps[i + 1 :]))
        for j in range(len(step.ids)):
            yield replace(
                script, steps=(*steps[:i], step._replace(ids=step.ids[:j] + step.ids[j + 1 :]), *steps[i + 1 :])
            )
        if step.client != "universal":
            yield replace(script, steps=(*steps[:i], step._replace(client="universal"), *steps[i + 1 :]))
    if script.remembers and len(steps) == 1:
        yield replace(script, remembers=False)
