"""Letters that look like others: the skeleton of a name is what a reader takes it for (Unicode UTS 39, section 4).

The table holds the letters of UTS 39's ``confusables.txt`` (Unicode 14.0) whose prototype is one ASCII letter or
digit, as far as they belong to scripts that people write names in; letters in disguise (full width, mathematical,
circled) are left to NFKC.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["LOOKS_LIKE", "UNICODE", "masked_words", "skeleton"]

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
# A letter -> the ASCII letter, in lower case, that it is taken for.
LOOKS_LIKE: Final = {
    pair[0]: pair[1].lower() for table in _TABLES for pair in table.split() if len(pair) == 2 and pair[1].isascii()
}
_DISGUISED: Final = str.maketrans(LOOKS_LIKE)
# Among ASCII characters: what a reader can't tell apart in most fonts, after folding to lower case.
_ALIKE: Final = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"})
_RUNS: Final = (("rn", "m"), ("vv", "w"))
_WORD: Final = re.compile(r"[^\W_]+")


def unmasked(text: str) -> str:
    """Return a text with letters that stand for ASCII letters replaced by those, in lower case.

    >>> unmasked("sеаrch"), unmasked("ｓearch"), unmasked("größe")
    ('search', 'search', 'größe')
    """
    return unicodedata.normalize("NFKC", text.translate(_DISGUISED)).translate(_DISGUISED).lower()


def skeleton(name: str) -> str:
    """Return what a reader takes a name for: two names with one skeleton look the same.

    >>> skeleton("pay_bi11") == skeleton("pay_bill"), skeleton("get_data") == skeleton("get_date")
    (True, False)
    """
    plain = (name if name.isascii() else unmasked(name)).lower().translate(_ALIKE)
    for run, one in _RUNS:
        plain = plain.replace(run, one)
    return plain


def masked_words(name: str) -> tuple[str, ...]:
    """Return the words of a name that read as ASCII and are not: no writing system has them.

    >>> masked_words("sеnd_mail"), masked_words("поиск_с_фильтром"), masked_words("größe")
    (('sеnd',), (), ())

    A word wholly of another script is that script's word as long as the name has a letter that looks like no other.
    """
    if name.isascii():
        return ()
    words = [word for word in _WORD.findall(name) if not word.isascii()]
    masked = [word for word in words if unmasked(word).isascii()]
    if len(masked) < len(words):
        masked = [word for word in masked if any(character.isascii() and character.isalpha() for character in word)]
    return tuple(masked)
