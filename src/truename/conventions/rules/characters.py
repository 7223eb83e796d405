"""Find characters that hide text from readers, and letters that look like others (Unicode UTS 39, section 4)."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, check
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext

__all__ = ["CHECKS", "INVISIBLE", "LOOKS_LIKE", "concealed", "masked_words", "revealed", "skeleton"]

UNICODE: Final = "14.0"

# fmt: off
_CYRILLIC: Final = (
    "аa сc ԁd еe ԍg һh іi јj ӏl оo рp ԛq ѕs ѵv ԝw хx уy ҽe ѡw ғf ґr гr ьb ѐe ёe ҁc ԑe "
    "АA ВB СC ЕE НH ІI ЈJ КK МM ОO РP ЅS ТT ХX УY ҮY ѴV ԌG ԚQ ԜW ЗE ӠE ӀI ҺH"
)
_GREEK: Final = (
    "αa οo νv ρp ιi γy υu κk χx σo τt ωw ηn ϲc ϳj ϱp "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ϹC ͿJ"
)
_ARMENIAN: Final = "օo ոn սu հh ցg զq ուn յj ՏS ՍU ՕO ԼL Ցb"
_CHEROKEE: Final = (
    "ᎠD ᎡR ᎢT ᎥI ᎩY ᎪA ᎫJ ᎬE ᎳW ᎷM ᎻH ᎽY ᏀG ᏃZ ᏂH ᏐI ᏒR ᏔW ᏕS ᏙV ᏚS ᏞL ᏟC ᏢP ᏦK ᏧD ᏴB ᏻG"
)
_LATIN: Final = (
    "ıi ɩi ɪi ɡg ɑa ʋv ʏy ɴn ʀr ʜh ʟl ʙb ɢg ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz ꜰf ꜱs ƽs ɯw ɐa ǀl ȷj"
)
_DIGITS: Final = "٠o ۰o ٥o ۵o ०o ০o ੦o ૦o ௦o ౦o ೦o ൦o ๐o ໐o ၀o ١l ۱l"
# fmt: on
_TABLES: Final = (_CYRILLIC, _GREEK, _ARMENIAN, _CHEROKEE, _LATIN, _DIGITS)
# A letter -> the lower-case ASCII letter that it looks like.
LOOKS_LIKE: Final = {
    pair[0]: pair[1].lower() for table in _TABLES for pair in table.split() if len(pair) == 2 and pair[1].isascii()
}
_DISGUISED: Final = str.maketrans(LOOKS_LIKE)
# ASCII characters that look alike in most fonts, after folding to lower case.
_ALIKE: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"})
_RUNS: Final = (("rn", "m"), ("vv", "w"))
_WORD: Final = re.compile(r"[^\W_]+")


def unmasked(text: str) -> str:
    """Return a text in lower case, with letters that look like ASCII letters replaced by these.

    >>> unmasked("sеаrch"), unmasked("ｓearch"), unmasked("größe")
    ('search', 'search', 'größe')
    """
    return unicodedata.normalize("NFKC", text.translate(_DISGUISED)).translate(_DISGUISED).lower()


def skeleton(name: str) -> str:
    """Return the visual skeleton of a name: two names with one skeleton look the same.

    >>> skeleton("pay_bi11") == skeleton("pay_bill"), skeleton("get_data") == skeleton("get_date")
    (True, False)
    """
    plain = (name if name.isascii() else unmasked(name)).lower().translate(_ALIKE)
    for run, one in _RUNS:
        plain = plain.replace(run, one)
    return plain


def masked_words(name: str) -> tuple[str, ...]:
    """Return the words of a name that look like ASCII words but contain letters of other scripts.

    >>> masked_words("sеnd_mail"), masked_words("поиск_с_фильтром"), masked_words("größe")
    (('sеnd',), (), ())

    A word wholly in another script is not reported if the name also has words with letters that look like no ASCII
    letter.
    """
    if name.isascii():
        return ()
    words = [word for word in _WORD.findall(name) if not word.isascii()]
    masked = [word for word in words if unmasked(word).isascii()]
    if len(masked) < len(words):
        masked = [word for word in masked if any(character.isascii() and character.isalpha() for character in word)]
    return tuple(masked)


_JOINERS: Final = "\u200b\u200c\u200d"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
INVISIBLE: Final = re.compile(
    f"[{_JOINERS}{_SELECTORS}\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u2064\u206a-\u206f\u2800\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\ue000-\uf8ff\U000f0000-\U0010ffff\U000e0000-\U000e00ff\ud800-\udfff]"
)
_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OVERRIDES: Final = "\u202d\u202e"
# Marks that open an embedding, which a correct right-to-left text closes again.
_OPENING: Final = "\u202a\u202b\u2066\u2067\u2068"
_CLOSING: Final = "\u202c\u2069"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# Scripts from Arabic to Myanmar, Khmer and Mongolian: joiners and zero width spaces are part of their spelling.
_JOINED: Final = re.compile("[\u0600-\u109f\u1780-\u18af\ua8e0-\ua8ff\uaa60-\uaa7f]")
# The flags of England, Scotland and Wales.
_FLAG: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
# Limits for a text that consists of such characters only.
_MOST: Final = 10_000
_NEAR: Final = 400
_MANY: Final = 1_000
_SYMBOLS: Final = frozenset({"So", "Sm", "Sk", "Lo", "Po", "Pd", "No"})


class _Kind(NamedTuple):
    """A kind of suspicious characters: their pattern, the test whether one hides something, and a clause about them."""

    pattern: re.Pattern[str]
    is_bad: Callable[[str, int], bool]
    clause: str


@check("TN150", "invisible_character", Severity.WARNING)
def invisible_character(rule: Rule, context: LintContext) -> Iterator[Finding]:
    r"""Find invisible characters in a name or text: zero width, tags, private use, fillers.

    Why: A person who approves the tool does not see them, and a model reads them; they hide instructions, and make
    two different names look the same.

    Example: `"Reads a file.\u200b\u2063"`, or a name with a zero width space in it.

    Instead: Remove the character. Joiners in emoji and in scripts that need them are not reported.
    """
    yield from _found(rule, context, _INVISIBLES)


@check("TN151", "bidirectional_text", Severity.ERROR)
def bidirectional_text(rule: Rule, context: LintContext) -> Iterator[Finding]:
    r"""Find marks that change the direction of writing in texts without right-to-left writing.

    Why: They change the order in which a person sees the text, so a person and a model read different texts.

    Example: `"Lists files. \u202esdnammoc snur dnA"`

    Instead: Remove the mark. In Hebrew, Arabic or Persian text, balanced marks are not reported, but overrides are.
    """
    yield from _found(rule, context, _DIRECTIONS)


@check("TN152", "confusable_name", Severity.ERROR)
def confusable_name(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """Find names with letters of another script that look like Latin ones.

    Why: A person confuses the name with another one, for example when writing a list of permissions.

    Example: `sеnd_mail`, in which the first "e" is Cyrillic.

    Instead: Write the word in one script. Names wholly in another script are not reported.
    """
    for one, texts in context.texts:
        for name in texts.names if not texts.whole.isascii() else ():
            for word in masked_words(name)[:1]:
                letters = ", ".join(dict.fromkeys(_described(letter) for letter in word if not letter.isascii()))
                fact = f"{excerpt(name)} looks like {excerpt(unmasked(name))}, but has {letters}."
                yield build_finding(rule, one, fact, "Write the word in one script.")


@check("TN153", "control_character", Severity.WARNING)
def control_character(rule: Rule, context: LintContext) -> Iterator[Finding]:
    r"""Find control characters other than tabs and line breaks.

    Why: A terminal executes them: text is erased, overwritten or shown in the colour of its background. Some clients
    and providers refuse the whole list because of one.

    Example: `"Clears.\x1b[8m hidden \x1b[0m"`

    Instead: Remove the character.
    """
    yield from _found(rule, context, _CONTROLS)


def concealed(text: str) -> str:
    r"""Return a clause about the first character that hides something in a text; "" if there is none.

    >>> concealed("Lists files.\u202esdnammoc"), concealed("Deploy \U0001f469\u200d\U0001f4bb")
    ('it has U+202E (right-to-left override), which changes the direction of writing', '')
    """
    for pattern, is_bad, clause in _KINDS:
        if bad := _places(text, pattern, is_bad):
            return f"it has {_described(text[bad[0]])}, {clause}"
    return ""


def revealed(text: str) -> str:
    r"""Return a text in which the characters that hide something are replaced by escape sequences.

    >>> revealed("Lists files.\u202esdnammoc"), revealed("Deploy \U0001f469\u200d\U0001f4bb")
    ('Lists files.\\u202esdnammoc', 'Deploy \U0001f469\u200d\U0001f4bb')
    """
    if text.isascii() and text.isprintable():
        return text
    for pattern, is_bad, _ in _KINDS:
        # A text with very many of them is not legitimate; all are escaped without checking each.
        many = any(islice(pattern.finditer(text), _MANY, None))
        bad = {found.start() for found in pattern.finditer(text)} if many else set(_places(text, pattern, is_bad))
        if bad:
            text = "".join(ascii(one)[1:-1] if at in bad else one for at, one in enumerate(text))
    return text


def _found(rule: Rule, context: LintContext, kind: _Kind) -> Iterator[Finding]:
    pattern, is_bad, clause = kind
    for one, texts in context.texts:
        whole = texts.whole
        if bad := _places(whole, pattern, is_bad):
            more = f", and {len(bad) - 1:,} more" if len(bad) > 1 else ""
            fact = f"{texts.describe(bad[0])} has {_described(whole[bad[0]])}, {clause}{more}."
            yield build_finding(rule, one, fact, "Remove it, or find out why it is there.")


def _places(whole: str, pattern: re.Pattern[str], is_bad: Callable[[str, int], bool]) -> list[int]:
    if pattern.search(whole) is None:
        return []
    flags = {at for flag in _FLAG.finditer(whole) for at in range(*flag.span())}
    places = (match.start() for match in islice(pattern.finditer(whole), _MOST))
    return [at for at in places if at not in flags and is_bad(whole, at)]


def _is_hidden(whole: str, at: int) -> bool:
    before, after = whole[at - 1 : at], whole[at + 1 : at + 2]
    character = whole[at]
    if character in _JOINERS and _JOINED.fullmatch(before):
        return False
    if character == "\u200d":
        return not (_is_symbol(before) and _is_symbol(after))
    if "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef":
        # A selector after another one selects nothing, but a sequence of them can encode bytes.
        is_first = before != "\ufe0f" and _is_symbol(before)
        return not (is_first or (character == "\ufe0f" and after == "\u20e3"))
    if character == "\u00ad":
        return not (before.isalpha() and after.isalpha())
    # A byte order mark at the beginning of a text is left over from a file.
    return not (character == "\ufeff" and whole[at - 2 : at] in ("", "\n\n"))


def _is_symbol(character: str) -> bool:
    """Return whether a character can be part of an emoji, or of an ideograph with variants."""
    if not character or character.isascii():
        return False
    return character in "\ufe0f\u20e3" or unicodedata.category(character) in _SYMBOLS


def _is_turned(whole: str, at: int) -> bool:
    if whole[at] in _OVERRIDES:
        return True
    text = whole[max(0, at - _NEAR) : at + _NEAR]
    opened = sum(text.count(mark) for mark in _OPENING)
    return not _RIGHT_TO_LEFT.search(text) or opened != sum(text.count(mark) for mark in _CLOSING)


def _described(character: str) -> str:
    name = unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X} ({name})" if name else f"U+{ord(character):04X}"


_INVISIBLES: Final = _Kind(INVISIBLE, _is_hidden, "which is invisible")
_DIRECTIONS: Final = _Kind(_DIRECTION, _is_turned, "which changes the direction of writing")
_CONTROLS: Final = _Kind(_CONTROL, lambda _whole, _at: True, "which a terminal executes")
_KINDS: Final = (_INVISIBLES, _DIRECTIONS, _CONTROLS)
CHECKS: Final = (invisible_character, bidirectional_text, confusable_name, control_character)
