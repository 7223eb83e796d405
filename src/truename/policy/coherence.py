"""What one clause of a convention means for another: contradictions, and what would make every name wrong."""

from __future__ import annotations

from string import digits
from typing import TYPE_CHECKING, NamedTuple

from truename.errors import excerpt
from truename.policy.clauses import step
from truename.policy.formats import CASINGS, characters_of, format_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.policy.convention import Convention

__all__ = ["Contradiction", "contradictions"]


class Contradiction(NamedTuple):
    """One clause that does not go with the others: its key, what is wrong, what to do ("" for the usual)."""

    key: str
    problem: str
    remedy: str = ""


def contradictions(convention: Convention) -> Iterator[Contradiction]:
    """Yield what is wrong with a convention whose clauses can be read, each by itself."""
    found = [*_of_owners(convention), *_of_formats(convention)]
    yield from found
    # The rest asks what names look like, and that is known only then.
    for look in () if found else (_of_version, _of_characters, _of_platforms):
        yield from look(convention)


def _of_owners(convention: Convention) -> Iterator[Contradiction]:
    for key in convention.owners:
        if "{" in key and key not in convention.categories.values():
            yield Contradiction(f"owners{step(key)}", "it is the format of no category", "Copy one of the formats.")
    for number, entry in enumerate(convention.reserved):
        if "{" in entry and entry not in convention.categories.values():
            yield Contradiction(f"reserved[{number}]", "it is the format of no category", "Copy one of the formats.")


def _of_formats(convention: Convention) -> Iterator[Contradiction]:
    casings = {convention.casing} - {""}
    for name, text in convention.categories.items():
        try:
            casings.add(format_of(name, text, convention.separator).casing)
        except ValueError as error:
            yield Contradiction(f"categories{step(name)}", str(error))
    if len(casings) > 1:
        yield Contradiction("casing", "the formats of the categories are written otherwise", "Use one casing.")


def _of_version(convention: Convention) -> Iterator[Contradiction]:
    if strange := convention.foreign.intersection(convention.version_suffix):
        problem = f"{''.join(strange)!r} stands nowhere else in names"
        yield Contradiction("version_suffix", problem, f"Begin it with {convention.separator!r}.")


def _of_characters(convention: Convention) -> Iterator[Contradiction]:
    try:
        characters_of(convention.characters)
    except ValueError as error:
        yield Contradiction("characters", str(error))
        return
    if lacking := _lacking(convention):
        problem = f"{excerpt(convention.characters)} lacks {lacking}, which names need here"
        yield Contradiction("characters", problem, "Add it, or change separator, casing or version_suffix.")


def _lacking(convention: Convention) -> str:
    """Return what names are made of that is none of the convention's characters, "" if nothing is."""
    if convention.alphabet is None:
        return ""
    head, _, _ = convention.version_suffix.partition("{")
    inside = CASINGS[convention.word_casing].inside if convention.word_casing else ""
    # Where several may stand inside of words, none has to.
    needed = {*convention.separator, *head, *(inside if len(inside) == 1 else "")}
    lacking = [repr(char) for char in sorted(needed - convention.alphabet)]
    return " and ".join(lacking) or ("digits" if head and not convention.alphabet.issuperset(digits) else "")


def _of_platforms(convention: Convention) -> Iterator[Contradiction]:
    if not any(part.kind == "platform" for one in convention.formats for part in one.parts):
        return
    for number, word in enumerate(convention.platforms):
        if not convention.is_part(word):
            problem = f"{excerpt(word)} can't be a part of a name, for it has a separator in it"
            yield Contradiction(f"platforms[{number}]", problem, "Write it as one word, here and at the tools.")
