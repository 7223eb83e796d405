"""Classifying a name: which category of a convention it is of, its parts, and all that is wrong with its spelling.

A name is read from the left, once: the first separator ends a part (seed 003), so nothing has to be tried again. What
is wrong is mended on the way, so that one mistake is told once and the rest of the name is still understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.identity import lower_ascii
from truename.naming.words import split
from truename.policy.formats import CASINGS, LONGEST, SEPARATORS
from truename.policy.matching import Fault, match, parts_in_front, respelled

if TYPE_CHECKING:
    from truename.policy.convention import Convention

__all__ = ["Classification", "Fault", "classify"]

# Nine digits fit every integer type; Python's own limit on digits is never met.
_VERSION: Final = re.compile(r"[2-9]|[1-9][0-9]{1,8}")
_DIGITS: Final = re.compile(r"[0-9]+")
_NUMBERED: Final = re.compile(r"[vV]?[0-9]+")
_LINKS: Final = frozenset({"on", "for"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """What a name says under a convention; "" for what it does not.

    ``words`` are the tool's own, as written; ``version`` is the number of a team's suffix (``_v2``), 1 without one,
    and ``base`` the name without it. ``suggested`` is the name as the convention would have it, "" where it is right
    already or where only a person can tell.
    """

    name: str
    category: str = ""
    platform: str = ""
    app: str = ""
    words: str = ""
    version: int = 1
    base: str = ""
    faults: tuple[Fault, ...] = ()
    suggested: str = ""

    @property
    def ok(self) -> bool:
        """Whether the spelling is right; hints do not count."""
        return all(fault.is_hint for fault in self.faults)


@dataclass(slots=True)
class _Draft:
    """A name while it is read: what is left to understand, and what was found so far."""

    convention: Convention
    text: str
    faults: list[Fault] = field(default_factory=list)
    version: int = 1
    base: str = ""
    # The name as it should be; "" where only a person knows what was meant.
    mended: str = ""
    is_open: bool = False

    def fault(self, rule: str, text: str, *, is_hint: bool = False) -> None:
        self.faults.append(Fault(rule, text, is_hint))

    @property
    def segments(self) -> list[str]:
        separator = self.convention.separator
        return self.text.split(separator) if separator else [self.text]


def classify(name: str, convention: Convention) -> Classification:
    """Return what a name says under a convention. Total: nothing makes it raise.

    >>> from truename.policy import Convention
    >>> seed = Convention.of("trailblaze", apps=["myapp"])
    >>> found = classify("myapp_ios_scroll_v2", seed)
    >>> found.category, found.app, found.platform, found.version, found.base
    ('app_platform', 'myapp', 'ios', 2, 'myapp_ios_scroll')
    >>> classify("contacts_ios_addPhoneNumber", Convention.of("trailblaze")).ok
    True
    >>> found = classify("MyApp.scroll", seed)
    >>> [fault.rule for fault in found.faults], found.suggested
    (['separator', 'casing'], 'myapp_scroll')
    """
    if len(name) > LONGEST:
        fault = Fault("too_long", f"has {len(name):,} characters, too many to be read")
        return Classification(name=name, base=name, faults=(fault,))
    found, mended = _read(name, convention)
    if found.ok or not mended or mended == name or not _read(mended, convention)[0].ok:
        return found
    return replace(found, suggested=mended)


def _read(name: str, convention: Convention) -> tuple[Classification, str]:
    draft = _Draft(convention, name)
    _separate(draft)
    _take_strange(draft)
    _take_version(draft)
    _take_devices(draft)
    found = _match(draft) if convention.formats else _plain(draft)
    _hint(draft, found)
    suffix = convention.version_suffix.replace("{n}", str(draft.version)) if draft.version > 1 else ""
    found = replace(found, name=name, version=draft.version, base=draft.base, faults=tuple(draft.faults))
    return found, "" if draft.is_open or not draft.mended else draft.mended + suffix


def _separate(draft: _Draft) -> None:
    """Put the convention's separator where another one stands, and only once."""
    separator = draft.convention.separator
    if not separator:
        return
    seen = [char for char in SEPARATORS if char in draft.convention.foreign and char in draft.text]
    text = draft.text
    for char in seen:
        text = text.replace(char, separator)
    mended = separator.join(filter(None, text.split(separator)))
    if mended == draft.text:
        return
    what = f"separates words with {' and '.join(map(repr, seen))}" if seen else f"has a {separator!r} too many"
    draft.fault("separator", f"{what}; here one {separator!r} stands between words")
    draft.text = mended or draft.text


def _take_strange(draft: _Draft) -> None:
    """Leave out characters that no name may have: what is left can be understood, but only a person can mend it."""
    alphabet = draft.convention.alphabet
    if alphabet is None or alphabet.issuperset(draft.text):
        kept = draft.text
    else:
        kept = "".join(char for char in draft.text if char in alphabet)
        shown = "".join(dict.fromkeys(char for char in draft.text if char not in alphabet))
        draft.fault("illegal_name", f"has {excerpt(shown, 8)}, which no name may have")
    if not draft.text:
        draft.fault("illegal_name", "is empty")
    draft.is_open = kept != draft.text
    draft.text = kept


def _take_version(draft: _Draft) -> None:
    suffix, text = draft.convention.version_suffix, draft.text
    if suffix:
        head = suffix.removesuffix("{n}")
        # With a separator in front it can be told from a word in any case: listIpv4 is no fourth version under V{n}.
        at = lower_ascii(text).rfind(lower_ascii(head)) if head[0] in SEPARATORS else text.rfind(head)
        front, written, number = (
            (text[:at], text[at : at + len(head)], text[at + len(head) :]) if at > 0 else (text, "", "")
        )
        if written and _DIGITS.fullmatch(number):
            _judge_version(draft, written + number, number, right=written == head)
            draft.text = front
        _judge_rest(draft, suffix)
    draft.base = draft.text


def _judge_version(draft: _Draft, written: str, number: str, *, right: bool) -> None:
    if right and _VERSION.fullmatch(number):
        draft.version = int(number)
        return
    first, second = (draft.convention.version_suffix.replace("{n}", digit) for digit in "23")
    draft.fault("version_suffix", f"ends with {excerpt(written, 16)}; breaking changes are {first}, then {second}")
    plain = number.lstrip("0")
    if _VERSION.fullmatch(plain):
        draft.version = int(plain)
    elif plain not in ("", "1"):
        draft.is_open = True


def _judge_rest(draft: _Draft, suffix: str) -> None:
    """Look at what is left in front of a version, or is a number without being one."""
    joints = {suffix[0], draft.convention.separator}.intersection(SEPARATORS)
    cut = max((draft.text.rfind(char) for char in joints), default=-1)
    front, last = draft.text[: max(cut, 0)], draft.text[cut + 1 :]
    if _NUMBERED.fullmatch(last):
        draft.fault("version_suffix", f"has {excerpt(last, 16)} as a part; a breaking change is written {suffix}")
        draft.is_open = True
        draft.text = front or draft.text


def _take_devices(draft: _Draft) -> None:
    convention = draft.convention
    segments = draft.segments
    if convention.word_casing and convention.separator in CASINGS[convention.word_casing].inside:
        # What follows may be words: list_phone_numbers.
        segments = segments[: parts_in_front(segments, convention) + 1]
    devices = [part for part in segments if lower_ascii(part) in convention.device_words]
    if not devices:
        return
    draft.fault("device_type", f"has the kind of device {' and '.join(map(repr, devices))} as a part")
    looked_at = len(segments)
    left = [part for at, part in enumerate(draft.segments) if at >= looked_at or part not in devices]
    draft.text = convention.separator.join(left) or draft.text
    draft.is_open |= not left


def _match(draft: _Draft) -> Classification:
    found = match(draft.segments, draft.convention)
    # Of a name of which nothing is left there is no more to say.
    draft.faults += found.faults if draft.text else ()
    draft.mended = found.mended
    return Classification(name="", category=found.category, platform=found.platform, app=found.app, words=found.words)


def _plain(draft: _Draft) -> Classification:
    """Judge a name where no categories are given: it is all words."""
    casing, text = draft.convention.word_casing, draft.text
    draft.mended = text
    if text and casing and not CASINGS[casing].pattern.fullmatch(text):
        draft.fault("casing", f"is not written like {CASINGS[casing].example}")
        draft.mended = respelled(text, casing)
    return Classification(name="", words=text)


def _hint(draft: _Draft, found: Classification) -> None:
    convention = draft.convention
    if not (convention.verbs or convention.device_words or convention.platforms) or not found.words:
        return
    words = [word.lower() for word in split(found.words)]
    if convention.verbs and words and words[0] not in convention.verbs:
        draft.fault("verb_first", f"does not begin with a known verb, but with {excerpt(words[0], 32)}", is_hint=True)
    if len(words) > 1:
        if words[-1] in convention.device_words and words[-2] in _LINKS:
            draft.fault("device_type", f"ends with the kind of device {words[-1]!r}", is_hint=True)
        ends = [word for word in (words[0], words[-1]) if word in convention.platforms]
        if ends and found.category and not found.platform:
            where = "begins" if ends[0] == words[0] else "ends"
            draft.fault("platform_in_name", f"{where} with the platform {ends[0]!r}, not as a part", is_hint=True)
