"""Know characters that hide text from readers, and letters that look like others (Unicode UTS 39, section 4)."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CONTROL_CHARACTERS",
    "HIDDEN_CHARACTERS",
    "INVISIBLE",
    "LOOKS_LIKE",
    "TURNING_MARKS",
    "SuspiciousCharacters",
    "concealed",
    "described",
    "masked_words",
    "revealed",
    "skeleton",
    "unmasked",
]

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


class SuspiciousCharacters(NamedTuple):
    """A kind of suspicious characters: their pattern, the test whether one hides something, and a clause about them."""

    pattern: re.Pattern[str]
    is_bad: Callable[[str, int], bool]
    clause: str

    def places(self, whole: str) -> list[int]:
        """Return where in a text such characters hide something; of very many the first 10,000."""
        if self.pattern.search(whole) is None:
            return []
        flags = {at for flag in _FLAG.finditer(whole) for at in range(*flag.span())}
        places = (match.start() for match in islice(self.pattern.finditer(whole), _MOST))
        return [at for at in places if at not in flags and self.is_bad(whole, at)]


def concealed(text: str) -> str:
    r"""Return a clause about the first character that hides something in a text; "" if there is none.

    >>> concealed("Lists files.\u202esdnammoc"), concealed("Deploy \U0001f469\u200d\U0001f4bb")
    ('it has U+202E (right-to-left override), which changes the direction of writing', '')
    """
    for kind in _KINDS:
        if bad := kind.places(text):
            return f"it has {described(text[bad[0]])}, {kind.clause}"
    return ""


def revealed(text: str) -> str:
    r"""Return a text in which the characters that hide something are replaced by escape sequences.

    >>> revealed("Lists files.\u202esdnammoc"), revealed("Deploy \U0001f469\u200d\U0001f4bb")
    ('Lists files.\\u202esdnammoc', 'Deploy \U0001f469\u200d\U0001f4bb')
    """
    if text.isascii() and text.isprintable():
        return text
    for kind in _KINDS:
        # A text with very many of them is not legitimate; all are escaped without checking each.
        many = any(islice(kind.pattern.finditer(text), _MANY, None))
        bad = {found.start() for found in kind.pattern.finditer(text)} if many else set(kind.places(text))
        if bad:
            text = "".join(ascii(one)[1:-1] if at in bad else one for at, one in enumerate(text))
    return text


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


def described(character: str) -> str:
    """Return the code point of a character, with its name if it has one.

    >>> described("\u200b")
    'U+200B (zero width space)'
    """
    name = unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X} ({name})" if name else f"U+{ord(character):04X}"


HIDDEN_CHARACTERS: Final = SuspiciousCharacters(INVISIBLE, _is_hidden, "which is invisible")
TURNING_MARKS: Final = SuspiciousCharacters(_DIRECTION, _is_turned, "which changes the direction of writing")
CONTROL_CHARACTERS: Final = SuspiciousCharacters(_CONTROL, lambda _whole, _at: True, "which a terminal executes")
_KINDS: Final = (HIDDEN_CHARACTERS, TURNING_MARKS, CONTROL_CHARACTERS)
