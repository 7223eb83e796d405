"""Find characters that hide text from readers, and letters that look like others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.conventions.characters import (
    CONTROL_CHARACTERS,
    HIDDEN_CHARACTERS,
    TURNING_MARKS,
    described,
    masked_words,
    unmasked,
)
from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, check
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions.characters import SuspiciousCharacters
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS"]


@check("TN150", "invisible_character", Severity.WARNING)
def invisible_character(rule: Rule, context: LintContext) -> Iterator[Finding]:
    r"""A name or text has invisible characters: zero width, tags, private use, fillers.

    Why: A person who approves the tool does not see them, and a model reads them; they hide instructions, and make
    two different names look the same.

    Example: `"Reads a file.\u200b\u2063"`, or a name with a zero width space in it.

    Instead: Remove the character. Joiners in emoji and in scripts that need them are not reported.
    """
    yield from _found(rule, context, HIDDEN_CHARACTERS)


@check("TN151", "bidirectional_text", Severity.ERROR)
def bidirectional_text(rule: Rule, context: LintContext) -> Iterator[Finding]:
    r"""A text without right-to-left writing has marks that change the direction of writing.

    Why: They change the order in which a person sees the text, so a person and a model read different texts.

    Example: `"Lists files. \u202esdnammoc snur dnA"`

    Instead: Remove the mark. In Hebrew, Arabic or Persian text, balanced marks are not reported, but overrides are.
    """
    yield from _found(rule, context, TURNING_MARKS)


@check("TN152", "confusable_name", Severity.ERROR)
def confusable_name(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A name has letters of another script that look like Latin ones.

    Why: A person confuses the name with another one, for example when writing a list of permissions.

    Example: `sеnd_mail`, in which the first "e" is Cyrillic.

    Instead: Write the word in one script. Names wholly in another script are not reported.
    """
    for one, texts in context.texts:
        for name in texts.names if not texts.whole.isascii() else ():
            for word in masked_words(name)[:1]:
                letters = ", ".join(dict.fromkeys(described(letter) for letter in word if not letter.isascii()))
                fact = f"{excerpt(name)} looks like {excerpt(unmasked(name))}, but has {letters}."
                yield build_finding(rule, one, fact, "Write the word in one script.")


@check("TN153", "control_character", Severity.WARNING)
def control_character(rule: Rule, context: LintContext) -> Iterator[Finding]:
    r"""A text has control characters other than tabs and line breaks.

    Why: A terminal executes them: text is erased, overwritten or shown in the colour of its background. Some clients
    and providers refuse the whole list because of one.

    Example: `"Clears.\x1b[8m hidden \x1b[0m"`

    Instead: Remove the character.
    """
    yield from _found(rule, context, CONTROL_CHARACTERS)


def _found(rule: Rule, context: LintContext, kind: SuspiciousCharacters) -> Iterator[Finding]:
    for one, texts in context.texts:
        whole = texts.whole
        if bad := kind.places(whole):
            more = f", and {len(bad) - 1:,} more" if len(bad) > 1 else ""
            fact = f"{texts.describe(bad[0])} has {described(whole[bad[0]])}, {kind.clause}{more}."
            yield build_finding(rule, one, fact, "Remove it, or find out why it is there.")


CHECKS: Final = (invisible_character, bidirectional_text, confusable_name, control_character)
