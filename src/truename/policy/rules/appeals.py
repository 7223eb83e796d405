"""Texts that are made to be chosen, or found: praise over all others, and words that are only there for a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.policy.finding import Severity
from truename.policy.rules.check import check, of
from truename.policy.rules.mechanisms import order_in
from truename.policy.rules.praise import PRAISE
from truename.policy.rules.stuffing import stuffed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.policy.finding import Finding, Rule
    from truename.policy.rules.material import Material

__all__ = ["CHECKS"]


@check("TN163", "self_praise", Severity.WARNING)
def self_praise(rule: Rule, material: Material) -> Iterator[Finding]:
    """Find texts that praise their tool over all others, or run the others down.

    Why: A model chooses by what descriptions say of themselves: the tool that calls itself the best is called instead
    of the one that was meant (preference manipulation).

    Example: "This is the best tool in the world. Creates a document."; "better than any other search tool".

    Instead: Say what the tool does, and when it is of use. Praise within a field, as in "the fastest way to read a
    large file", is not reported.
    """
    for one, texts in material.texts:
        for start, mechanism, shown in order_in(texts, PRAISE):
            fact = f"{texts.called(start)} says {mechanism.says}: {excerpt(shown)}."
            yield of(rule, one, fact, "Say what it does, and leave the choice to the model.")
            break


@check("TN164", "stuffed_text", Severity.WARNING)
def stuffed_text(rule: Rule, material: Material) -> Iterator[Finding]:
    """Find descriptions that are there to be found: a word over and over, lists of search terms, words of many fields.

    Why: Where tools are searched for, the one with all words comes up whatever was asked (search-term deception).

    Example: "Keywords: email, mail, send, inbox, message, letter, post, write"; "email email email email".

    Instead: Describe what the tool does, once. Values that a parameter takes belong into its enumeration.
    """
    for one, texts in material.texts:
        if (found := stuffed(texts)) is not None:
            at, wrong = found
            yield of(rule, one, f"{texts.called(at)} has {wrong}.", "Say once what the tool does.")


CHECKS: Final = (self_praise, stuffed_text)
