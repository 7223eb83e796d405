"""Classify a name under a convention: its category, its parts, and every error in its spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.conventions.clauses import CASINGS, LONGEST, SEPARATORS, Part
from truename.errors import excerpt
from truename.identity import lower_ascii
from truename.naming.words import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.conventions.clauses import Format
    from truename.conventions.convention import Convention

__all__ = ["Classification", "SpellingError", "classify", "respelled"]

_ANY_APP: Final = re.compile(r"[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*")
_WORDS: Final = re.compile(r"[a-zA-Z0-9]+")


class SpellingError(NamedTuple):
    """An error in the spelling of a name: the name of the violated rule, a clause, and whether it is only a hint."""

    rule: str
    text: str
    is_hint: bool = False


class FormatMatch(NamedTuple):
    """The parts of a name by its format; ``corrected`` is the name with correct parts, "" if only a person can tell."""

    category: str = ""
    platform: str = ""
    app: str = ""
    words: str = ""
    corrected: str = ""
    errors: tuple[SpellingError, ...] = ()


def match(segments: Sequence[str], convention: Convention) -> FormatMatch:
    """Match the segments of a name with the convention's formats, the most specific first."""
    exact = _first(segments, convention, is_exact=True)
    if exact is not None:
        return exact
    loose = _first(segments, convention, is_exact=False)
    if loose is not None:
        example = CASINGS[convention.word_casing].example
        front = ", with the parts before it in lower case" if len(segments) > 1 else ""
        return loose._replace(errors=(SpellingError("casing", f"is not written like {example}{front}"),))
    return _mismatch(segments, convention)


def parts_in_front(segments: Sequence[str], convention: Convention) -> int:
    """Count the segments at the start of a name that are known apps, platforms or other prefixes.

    >>> from truename.conventions import Convention
    >>> parts_in_front(["org", "ios", "phone", "ios"], Convention.of("trailblaze"))
    2
    """
    return sum(1 for _ in takewhile(lambda text: _whole_part(text, convention), segments))


def respelled(text: str, casing: str) -> str:
    """Convert words to a casing; return "" if the result would not have that casing.

    >>> respelled("InputText", "camel"), respelled("URLOpen", "camel"), respelled("inputText", "kebab")
    ('inputText', 'urlOpen', 'input-text')
    """
    if casing == "canonical":
        found = lower_ascii(text)
    else:
        words = split(text)
        lower = [word.lower() for word in words]
        capital = [word[:1].upper() + word[1:] for word in words]
        joined = {
            "camel": lower[:1] + capital[1:],
            "pascal": capital,
            "snake": ["_".join(lower)],
            "kebab": ["-".join(lower)],
        }
        found = "".join(joined[casing])
    return found if CASINGS[casing].pattern.fullmatch(found) else ""


def _first(segments: Sequence[str], convention: Convention, *, is_exact: bool) -> FormatMatch | None:
    fits = (_fit(one, segments, convention, is_exact=is_exact) for one in convention.formats)
    return next((fit for fit in fits if fit is not None), None)


def _fit(form: Format, segments: Sequence[str], convention: Convention, *, is_exact: bool) -> FormatMatch | None:
    number = len(form.parts)
    is_open = bool(convention.separator) and convention.separator in CASINGS[form.casing].inside
    if len(segments) <= number or (len(segments) > number + 1 and not is_open):
        return None
    front = [_part(part, text, convention) for part, text in zip(form.parts, segments, strict=False)]
    words = convention.separator.join(segments[number:])
    corrected = _words(words, form.casing, convention, is_exact=is_exact)
    if not corrected or not all(front) or (is_exact and front != list(segments[:number])):
        return None
    found = {part.kind: text for part, text in zip(form.parts, front, strict=True)}
    whole = convention.separator.join([*front, corrected])
    return FormatMatch(form.category, found.get("platform", ""), found.get("app", ""), corrected, whole)


def _part(part: Part, text: str, convention: Convention) -> str:
    """Return the correct spelling of a part before the tool's own words; "" if the text is not of this kind."""
    lower = lower_ascii(text)
    if part.kind == "literal":
        return part.word if lower == part.word.lower() else ""
    if part.kind == "platform":
        return lower if lower in convention.platforms else ""
    if convention.apps is None:
        return lower if _ANY_APP.fullmatch(lower) and lower not in convention.taken else ""
    return convention.known_apps.get(lower, "")


def _words(text: str, casing: str, convention: Convention, *, is_exact: bool) -> str:
    """Return the correct spelling of a tool's own words; "" if the text cannot be such words."""
    if is_exact:
        found = text if CASINGS[casing].pattern.fullmatch(text) else ""
    else:
        found = respelled(text, casing) if text.isascii() else ""
    lower = lower_ascii(found)
    return "" if lower in convention.taken or lower in convention.known_apps else found


def _mismatch(segments: Sequence[str], convention: Convention) -> FormatMatch:
    """Return the reason why a name matches no category."""
    alone = _whole_part(segments[0], convention)
    if len(segments) == 1 and alone:
        return _none(SpellingError("no_category", f"is only {alone}"))
    if reordered := _reordered(segments, convention):
        if lower_ascii(segments[-1]) in convention.platforms:
            fault = SpellingError(
                "platform_in_name", f"has the platform {excerpt(segments[-1], 64)} at the end, not at the start"
            )
        else:
            fault = SpellingError("no_category", "has its parts in another order than the convention demands")
        return reordered._replace(errors=(fault,))
    if len(segments) > 1 and not alone and not _part(Part("app"), segments[0], convention):
        return _none(
            SpellingError("unknown_prefix", f"begins with {excerpt(segments[0], 64)}, {_not_known(convention)}")
        )
    formats = ", ".join(dict.fromkeys(convention.categories.values()))
    return _none(SpellingError("no_category", f"matches the format of no category ({formats})"))


def _none(fault: SpellingError) -> FormatMatch:
    return FormatMatch(errors=(fault,))


def _whole_part(text: str, convention: Convention) -> str:
    lower = lower_ascii(text)
    if lower in convention.platforms:
        return "a platform"
    if lower in convention.known_apps:
        return "an app"
    return "a prefix" if lower in convention.taken else ""


def _not_known(convention: Convention) -> str:
    kinds = [word for word, there in (("app", True), ("platform", convention.platforms)) if there]
    literals = sorted(convention.taken.difference(convention.platforms))
    if convention.apps is not None:
        *most, last = kinds + literals
        return f"which is not a known {', '.join(most)} or {last}" if most else f"which is not a known {last}"
    return f"which cannot be an app: an app is one word in lower case, not {', '.join(sorted(convention.taken))}"


def _reordered(segments: Sequence[str], convention: Convention) -> FormatMatch | None:
    """Return the match of the same parts in the convention's order; None if that order is not certain."""
    known = [text for text in segments if _whole_part(text, convention)]
    rest = [text for text in segments if not _whole_part(text, convention)]
    if len(rest) != 1 or not known or len(known) > len(("literal", "app", "platform")):
        return None
    literals = [text for text in known if _whole_part(text, convention) == "a prefix"]
    apps = [text for text in known if _whole_part(text, convention) == "an app"]
    platforms = [text for text in known if _whole_part(text, convention) == "a platform"]
    return _first([*literals, *apps, *platforms, *rest], convention, is_exact=True)


# Nine digits fit every integer type, and stay below Python's own limit on digits.
_VERSION: Final = re.compile(r"[2-9]|[1-9][0-9]{1,8}")
_DIGITS: Final = re.compile(r"[0-9]+")
_NUMBERED: Final = re.compile(r"[vV]?[0-9]+")
_LINKS: Final = frozenset({"on", "for"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The parts of a name under a convention; a part that the name does not have is "".

    ``words`` are the tool's own words, as written; ``version`` is the number of a team's suffix (``_v2``), 1 without
    one, and ``base`` the name without the suffix. ``suggested`` is the corrected name, "" if the name is correct or
    only a person can correct it.
    """

    name: str
    category: str = ""
    platform: str = ""
    app: str = ""
    words: str = ""
    version: int = 1
    base: str = ""
    errors: tuple[SpellingError, ...] = ()
    suggested: str = ""

    @property
    def ok(self) -> bool:
        """Whether the spelling is correct; hints do not count."""
        return all(fault.is_hint for fault in self.errors)


@dataclass(slots=True)
class _Draft:
    """A name while it is classified: the text that is left to classify, and the results so far."""

    convention: Convention
    text: str
    errors: list[SpellingError] = field(default_factory=list)
    version: int = 1
    base: str = ""
    # The corrected name; "" if only a person can correct it.
    corrected: str = ""
    is_open: bool = False

    def fault(self, rule: str, text: str, *, is_hint: bool = False) -> None:
        self.errors.append(SpellingError(rule, text, is_hint))

    @property
    def segments(self) -> list[str]:
        separator = self.convention.separator
        return self.text.split(separator) if separator else [self.text]


def classify(name: str, convention: Convention) -> Classification:
    """Classify a name under a convention. It never raises.

    >>> from truename.conventions import Convention
    >>> convention = Convention.of("trailblaze", apps=["myapp"])
    >>> found = classify("myapp_ios_scroll_v2", convention)
    >>> found.category, found.app, found.platform, found.version, found.base
    ('app_platform', 'myapp', 'ios', 2, 'myapp_ios_scroll')
    >>> classify("contacts_ios_addPhoneNumber", Convention.of("trailblaze")).ok
    True
    >>> found = classify("MyApp.scroll", convention)
    >>> [fault.rule for fault in found.errors], found.suggested
    (['separator', 'casing'], 'myapp_scroll')
    """
    if len(name) > LONGEST:
        fault = SpellingError("too_long", f"has {len(name):,} characters, too many to check")
        return Classification(name=name, base=name, errors=(fault,))
    found, corrected = _read(name, convention)
    if found.ok or not corrected or corrected == name or not _read(corrected, convention)[0].ok:
        return found
    return replace(found, suggested=corrected)


def _read(name: str, convention: Convention) -> tuple[Classification, str]:
    draft = _Draft(convention, name)
    _separate(draft)
    _take_illegal_characters(draft)
    _take_version(draft)
    _take_devices(draft)
    found = _match(draft) if convention.formats else _plain(draft)
    _hint(draft, found)
    suffix = convention.version_suffix.replace("{n}", str(draft.version)) if draft.version > 1 else ""
    found = replace(found, name=name, version=draft.version, base=draft.base, errors=tuple(draft.errors))
    return found, "" if draft.is_open or not draft.corrected else draft.corrected + suffix


def _separate(draft: _Draft) -> None:
    """Replace other separators by the convention's, and repeated separators by one."""
    separator = draft.convention.separator
    if not separator:
        return
    seen = [char for char in SEPARATORS if char in draft.convention.foreign and char in draft.text]
    text = draft.text
    for char in seen:
        text = text.replace(char, separator)
    corrected = separator.join(filter(None, text.split(separator)))
    if corrected == draft.text:
        return
    problem = f"separates words with {' and '.join(map(repr, seen))}" if seen else f"has a {separator!r} too many"
    draft.fault("separator", f"{problem}; the convention's separator is one {separator!r}")
    draft.text = corrected or draft.text


def _take_illegal_characters(draft: _Draft) -> None:
    """Remove illegal characters; the rest can be classified, but only a person can correct the name."""
    alphabet = draft.convention.alphabet
    if alphabet is None or alphabet.issuperset(draft.text):
        kept = draft.text
    else:
        kept = "".join(char for char in draft.text if char in alphabet)
        shown = "".join(dict.fromkeys(char for char in draft.text if char not in alphabet))
        draft.fault("illegal_name", f"has {excerpt(shown, 8)}, which is not allowed in names")
    if not draft.text:
        draft.fault("illegal_name", "is empty")
    draft.is_open = kept != draft.text
    draft.text = kept


def _take_version(draft: _Draft) -> None:
    suffix, text = draft.convention.version_suffix, draft.text
    if suffix:
        head = suffix.removesuffix("{n}")
        # A suffix that begins with a separator is recognised in any case; under V{n}, listIpv4 is not version 4.
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
    """Check the rest of the name for a further version, or for a number that is not a version."""
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
        # Later segments may be the tool's own words, as in list_phone_numbers.
        segments = segments[: parts_in_front(segments, convention) + 1]
    devices = [part for part in segments if lower_ascii(part) in convention.device_words]
    if not devices:
        return
    shown = " and ".join(map(repr, devices))
    draft.fault("device_type", f"contains the device type {shown}, which names must not have")
    looked_at = len(segments)
    left = [part for at, part in enumerate(draft.segments) if at >= looked_at or part not in devices]
    draft.text = convention.separator.join(left) or draft.text
    draft.is_open |= not left


def _match(draft: _Draft) -> Classification:
    found = match(draft.segments, draft.convention)
    # If no text is left, the earlier errors are enough.
    draft.errors += found.errors if draft.text else ()
    draft.corrected = found.corrected
    return Classification(name="", category=found.category, platform=found.platform, app=found.app, words=found.words)


def _plain(draft: _Draft) -> Classification:
    """Check a name under a convention without categories, where the whole name is words."""
    casing, text = draft.convention.word_casing, draft.text
    draft.corrected = text
    if text and casing and not CASINGS[casing].pattern.fullmatch(text):
        draft.fault("casing", f"is not written like {CASINGS[casing].example}")
        draft.corrected = respelled(text, casing)
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
            draft.fault("device_type", f"ends with the device type {words[-1]!r}", is_hint=True)
        ends = [word for word in (words[0], words[-1]) if word in convention.platforms]
        if ends and found.category and not found.platform:
            where = "begins" if ends[0] == words[0] else "ends"
            draft.fault("platform_in_name", f"{where} with the platform {ends[0]!r}, not as a part", is_hint=True)
