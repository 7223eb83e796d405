"""Define a check: a rule, the function that finds what breaks it, and the context that all rules share."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from truename import dialects
from truename.conventions.classification import classify
from truename.conventions.findings import Finding, Rule, Severity
from truename.conventions.rules.texts import mentions, read_texts
from truename.dialects.dialect import DEFAULT_SERVER
from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.conventions.classification import Classification, SpellingFault
    from truename.conventions.convention import Convention
    from truename.conventions.declarations import Declaration
    from truename.conventions.rules.texts import ToolMention, ToolTexts
    from truename.dialects import Dialect, Reason

__all__ = ["LENGTH", "Check", "LintContext", "check", "listed", "of", "owner_of", "renaming"]

# The code of the reason that a name is too long.
LENGTH: Final = "length"


class Refusal(NamedTuple):
    """A name that some clients do not take, with those clients, and what is wrong with it by client."""

    declaration: Declaration
    clients: Sequence[Dialect]
    reasons: Mapping[str, tuple[Reason, ...]]

    @property
    def for_length(self) -> Sequence[Dialect]:
        """The clients for which the name is too long."""
        return [one for one in self.clients if any(reason.code == LENGTH for reason in self.reasons[one.name])]

    @property
    def for_spelling(self) -> Sequence[Dialect]:
        """The clients that would not take the name if it were shorter, either."""
        return [one for one in self.clients if any(reason.code != LENGTH for reason in self.reasons[one.name])]


@dataclass(frozen=True)
class LintContext:
    """All that is linted together. ``peers`` are tools beside which these will stand: nothing is found about them."""

    declarations: tuple[Declaration, ...]
    convention: Convention
    peers: tuple[Declaration, ...] = ()

    @cached_property
    def everything(self) -> tuple[Declaration, ...]:
        """The declarations and their peers."""
        return self.declarations + self.peers

    @cached_property
    def alike(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by its name folded: what some clients take for the same."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[fold(one.name)].append(one)
        return found

    @cached_property
    def called(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by what it is called, folded: by its name, and by those that clients are shown."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            for name in {fold(one.name), *map(fold, one.shown)}:
                found[name].append(one)
        return found

    @cached_property
    def classes(self) -> Mapping[str, Classification]:
        """What each name says under the convention, by the name."""
        return {name: classify(name, self.convention) for name in {one.name for one in self.everything}}

    @cached_property
    def faults(self) -> Mapping[str, Sequence[tuple[Declaration, SpellingFault]]]:
        """What is wrong with the spelling of names, by the name of the rule that says so."""
        found: defaultdict[str, list[tuple[Declaration, SpellingFault]]] = defaultdict(list)
        for one in self.declarations:
            for fault in self.classes[one.name].faults:
                found[fault.rule].append((one, fault))
        return found

    @cached_property
    def refusals(self) -> Sequence[Refusal]:
        """The declarations whose names some client of the convention does not take as they are."""
        clients = [dialects.get(name) for name in self.convention.clients]
        found = []
        for one in self.declarations if clients else ():
            server = one.server or DEFAULT_SERVER
            reasons = {client.name: client.check(one.name, server) for client in clients}
            if any(reasons.values()):
                found.append(Refusal(one, [client for client in clients if reasons[client.name]], reasons))
        return found

    @cached_property
    def scopes(self) -> Sequence[Sequence[Declaration]]:
        """Everything, parted into what has to have different names."""
        if self.convention.unique == "everywhere":
            return (self.everything,) if self.everything else ()
        return tuple(self.by_server.values())

    @cached_property
    def own(self) -> frozenset[int]:
        """The declarations that something may be found about, by their place in memory."""
        return frozenset(map(id, self.declarations))

    @cached_property
    def by_server(self) -> Mapping[str, Sequence[Declaration]]:
        """Everything by its server."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[one.server].append(one)
        return found

    @cached_property
    def texts(self) -> Sequence[tuple[Declaration, ToolTexts]]:
        """Each declaration with all that a model may read of it; of peers nothing is read."""
        return [(one, read_texts(one)) for one in self.declarations]

    @cached_property
    def mentions(self) -> Sequence[tuple[Declaration, ToolTexts, Sequence[ToolMention]]]:
        """Each declaration with the tools that its texts tell a model to use."""
        return [(one, texts, mentions(texts)) for one, texts in self.texts]


_MOST: Final = 4


def listed(words: Sequence[str], word: str = "and") -> str:
    """Return words in a row, the first few of many.

    >>> listed(["a"]), listed(["a", "b"], "or"), listed(["a", "b", "c", "d", "e", "f"])
    ('a', 'a or b', 'a, b, c, d and 2 more')
    """
    shown = [text if text.isprintable() else excerpt(text) for text in words[:_MOST]]
    if len(words) > _MOST:
        return f"{', '.join(shown)} and {len(words) - _MOST:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def owner_of(declaration: Declaration) -> str:
    """Return by whom a tool is declared, as far as that is known: team, server, place.

    >>> from truename.conventions import Declaration, Metadata
    >>> owner_of(Declaration(name="tap", metadata=Metadata(owner="core"))), owner_of(Declaration(name="tap"))
    ('core', 'an unnamed source')
    """
    at = declaration.location
    place = f"{at.file}:{at.line}" if at and at.line else at.file if at else ""
    who = declaration.metadata.owner or declaration.server
    found = f"{who} ({place})" if who and place else who or place
    return (found if found.isprintable() else excerpt(found)) or "an unnamed source"


Finder = Callable[["LintContext"], Iterator[Finding]]

_HEADINGS: Final = ("Why", "Example", "Instead")
_PART: Final = re.compile(rf"^({'|'.join(_HEADINGS)}): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, and the function that looks for what breaks it in all that is linted together."""

    rule: Rule
    find: Finder


def check(code: str, name: str, severity: Severity) -> Callable[[Callable[..., Iterator[Finding]]], Check]:
    """Make a check of a function that is given the rule and the material.

    Its docstring is the rule's page: a sentence of what is found, then paragraphs that begin with ``Why:``,
    ``Example:`` and ``Instead:``. Raises `ValueError` for one that lacks any of them.
    """

    def made(function: Callable[..., Iterator[Finding]]) -> Check:
        what, *parts = _PART.split(inspect.getdoc(function) or "")
        told = {heading.lower(): _joined(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}
        if not what.strip() or len(told) != len(_HEADINGS):
            message = f"the docstring of {code} has to say what, {', '.join(_HEADINGS)}"
            raise ValueError(message)
        rule = Rule(code=code, name=name, severity=severity, what=_joined(what), **told)
        return Check(rule, lambda material: function(rule, material))

    return made


def of(rule: Rule, declaration: Declaration, fact: str, remedy: str, *others: Declaration) -> Finding:
    """Return the finding that a declaration breaks a rule, together with others."""
    return Finding(
        rule=rule,
        fact=fact,
        remedy=remedy,
        location=declaration.location,
        server=declaration.server,
        tools=(declaration.name, *(other.name for other in others)),
    )


def renaming(rule: Rule, declaration: Declaration, fact: str, suggested: str, otherwise: str) -> Finding:
    """Return the finding that a tool needs another name: the suggested one, or ("") what else there is to do."""
    remedy = f"Write {excerpt(suggested)}." if suggested else otherwise
    return replace(of(rule, declaration, fact, remedy), suggested=suggested)


def _joined(text: str) -> str:
    return " ".join(text.split())
