"""Define a check (a rule with the function that finds its violations) and the context that all rules share."""

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

    from truename.conventions.classification import Classification, SpellingError
    from truename.conventions.convention import Convention
    from truename.conventions.declarations import Declaration
    from truename.conventions.rules.texts import ToolMention, ToolTexts
    from truename.dialects import Dialect, Reason

__all__ = ["LENGTH", "Check", "LintContext", "build_finding", "build_renaming", "check", "listed", "owner_of"]

# The code of the reason for a name that is too long.
LENGTH: Final = "length"


class Refusal(NamedTuple):
    """A declaration whose name some clients refuse, with these clients, and the reasons by client."""

    declaration: Declaration
    clients: Sequence[Dialect]
    reasons: Mapping[str, tuple[Reason, ...]]

    @property
    def for_length(self) -> Sequence[Dialect]:
        """The clients for which the name is too long."""
        return [one for one in self.clients if any(reason.code == LENGTH for reason in self.reasons[one.name])]

    @property
    def for_spelling(self) -> Sequence[Dialect]:
        """The clients that refuse the name for other reasons than its length."""
        return [one for one in self.clients if any(reason.code != LENGTH for reason in self.reasons[one.name])]


@dataclass(frozen=True)
class LintContext:
    """The declarations that are linted together, with shared indexes.

    ``peers`` are other tools that clients will see together with them; there are no findings about peers.
    """

    declarations: tuple[Declaration, ...]
    convention: Convention
    peers: tuple[Declaration, ...] = ()

    @cached_property
    def everything(self) -> tuple[Declaration, ...]:
        """The declarations and their peers."""
        return self.declarations + self.peers

    @cached_property
    def by_fold(self) -> Mapping[str, Sequence[Declaration]]:
        """Declarations and peers by the fold of their name: clients may confuse those with one fold."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[fold(one.name)].append(one)
        return found

    @cached_property
    def by_shown_name(self) -> Mapping[str, Sequence[Declaration]]:
        """Declarations and peers by the folds of their own name and of the names that clients see."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            for name in {fold(one.name), *map(fold, one.shown)}:
                found[name].append(one)
        return found

    @cached_property
    def classes(self) -> Mapping[str, Classification]:
        """The classification of each name under the convention."""
        return {name: classify(name, self.convention) for name in {one.name for one in self.everything}}

    @cached_property
    def errors(self) -> Mapping[str, Sequence[tuple[Declaration, SpellingError]]]:
        """The spelling errors of all names, by the name of the violated rule."""
        found: defaultdict[str, list[tuple[Declaration, SpellingError]]] = defaultdict(list)
        for one in self.declarations:
            for fault in self.classes[one.name].errors:
                found[fault.rule].append((one, fault))
        return found

    @cached_property
    def refusals(self) -> Sequence[Refusal]:
        """The declarations whose names some client of the convention refuses."""
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
        """Declarations and peers in groups within which names must be unique."""
        if self.convention.unique == "everywhere":
            return (self.everything,) if self.everything else ()
        return tuple(self.by_server.values())

    @cached_property
    def own(self) -> frozenset[int]:
        """The ids (``id()``) of the declarations, to distinguish them from peers."""
        return frozenset(map(id, self.declarations))

    @cached_property
    def by_server(self) -> Mapping[str, Sequence[Declaration]]:
        """Declarations and peers by their server."""
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in self.everything:
            found[one.server].append(one)
        return found

    @cached_property
    def texts(self) -> Sequence[tuple[Declaration, ToolTexts]]:
        """Each declaration, without peers, with all its texts that a model may read."""
        return [(one, read_texts(one)) for one in self.declarations]

    @cached_property
    def mentions(self) -> Sequence[tuple[Declaration, ToolTexts, Sequence[ToolMention]]]:
        """Each declaration, without peers, with its texts and the tools that these tell a model to use."""
        return [(one, texts, mentions(texts)) for one, texts in self.texts]


_MOST: Final = 4


def listed(words: Sequence[str], word: str = "and") -> str:
    """Join words with commas and ``word``; of more than four, give the number of the rest.

    >>> listed(["a"]), listed(["a", "b"], "or"), listed(["a", "b", "c", "d", "e", "f"])
    ('a', 'a or b', 'a, b, c, d and 2 more')
    """
    shown = [text if text.isprintable() else excerpt(text) for text in words[:_MOST]]
    if len(words) > _MOST:
        return f"{', '.join(shown)} and {len(words) - _MOST:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def owner_of(declaration: Declaration) -> str:
    """Describe the origin of a declaration as far as it is known: team or server, and place in the source.

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
    """A rule, and the function that finds its violations in a `LintContext`."""

    rule: Rule
    find: Finder


def check(code: str, name: str, severity: Severity) -> Callable[[Callable[..., Iterator[Finding]]], Check]:
    """Make a check from a function of the rule and the `LintContext`.

    The function's docstring is the rule's page: a sentence on the findings, then paragraphs that begin with ``Why:``,
    ``Example:`` and ``Instead:``. Raises `ValueError` if one of them is missing.
    """

    def made(function: Callable[..., Iterator[Finding]]) -> Check:
        what, *parts = _PART.split(inspect.getdoc(function) or "")
        sections = {heading.lower(): _joined(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}
        if not what.strip() or len(sections) != len(_HEADINGS):
            message = f"the docstring of {code} needs a first sentence and the sections {', '.join(_HEADINGS)}"
            raise ValueError(message)
        rule = Rule(code=code, name=name, severity=severity, what=_joined(what), **sections)
        return Check(rule, lambda context: function(rule, context))

    return made


def build_finding(rule: Rule, declaration: Declaration, fact: str, remedy: str, *others: Declaration) -> Finding:
    """Build the finding that a declaration, perhaps together with others, violates a rule."""
    return Finding(
        rule=rule,
        fact=fact,
        remedy=remedy,
        location=declaration.location,
        server=declaration.server,
        tools=(declaration.name, *(other.name for other in others)),
    )


def build_renaming(rule: Rule, declaration: Declaration, fact: str, suggested: str, otherwise: str) -> Finding:
    """Build the finding that a tool needs another name; without a suggested name, ``otherwise`` is the remedy."""
    remedy = f"Write {excerpt(suggested)}." if suggested else otherwise
    return replace(build_finding(rule, declaration, fact, remedy), suggested=suggested)


def _joined(text: str) -> str:
    return " ".join(text.split())
