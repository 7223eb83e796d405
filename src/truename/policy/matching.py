"""Matching the parts of a name against the formats of a convention: exactly, else mended, else what hinders it."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import excerpt
from truename.identity import lower_ascii
from truename.naming.words import split
from truename.policy.formats import CASINGS, Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.policy.convention import Convention
    from truename.policy.formats import Format

__all__ = ["Fault", "Match", "match", "parts_in_front", "respelled"]

_ANY_APP: Final = re.compile(r"[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*")
_WORDS: Final = re.compile(r"[a-zA-Z0-9]+")


class Fault(NamedTuple):
    """One thing that is wrong: the name of the rule that it breaks, what to say, and whether it is only a hint."""

    rule: str
    text: str
    is_hint: bool = False


class Match(NamedTuple):
    """What the parts of a name are; ``mended`` is what they should have been, "" where only a person can tell."""

    category: str = ""
    platform: str = ""
    app: str = ""
    words: str = ""
    mended: str = ""
    faults: tuple[Fault, ...] = ()


def match(segments: Sequence[str], convention: Convention) -> Match:
    """Return what the parts of a name are, in the category that asks for most."""
    exact = _first(segments, convention, is_exact=True)
    if exact is not None:
        return exact
    loose = _first(segments, convention, is_exact=False)
    if loose is not None:
        example = CASINGS[convention.word_casing].example
        front = ", with the parts in front in lower case" if len(segments) > 1 else ""
        return loose._replace(faults=(Fault("casing", f"is not written like {example}{front}"),))
    return _hindered(segments, convention)


def parts_in_front(segments: Sequence[str], convention: Convention) -> int:
    """Return how many segments of a name are a known app, a platform or another prefix, before the first that is none.

    >>> from truename.policy import Convention
    >>> parts_in_front(["org", "ios", "phone", "ios"], Convention.of("trailblaze"))
    2
    """
    return sum(1 for _ in takewhile(lambda text: _whole_part(text, convention), segments))


def respelled(text: str, casing: str) -> str:
    """Return words in a casing, the empty text if that can't be done.

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


def _first(segments: Sequence[str], convention: Convention, *, is_exact: bool) -> Match | None:
    fits = (_fit(one, segments, convention, is_exact=is_exact) for one in convention.formats)
    return next((fit for fit in fits if fit is not None), None)


def _fit(form: Format, segments: Sequence[str], convention: Convention, *, is_exact: bool) -> Match | None:
    number = len(form.parts)
    is_open = bool(convention.separator) and convention.separator in CASINGS[form.casing].inside
    if len(segments) <= number or (len(segments) > number + 1 and not is_open):
        return None
    front = [_part(part, text, convention) for part, text in zip(form.parts, segments, strict=False)]
    words = convention.separator.join(segments[number:])
    mended = _words(words, form.casing, convention, is_exact=is_exact)
    if not mended or not all(front) or (is_exact and front != list(segments[:number])):
        return None
    found = {part.kind: text for part, text in zip(form.parts, front, strict=True)}
    whole = convention.separator.join([*front, mended])
    return Match(form.category, found.get("platform", ""), found.get("app", ""), mended, whole)


def _part(part: Part, text: str, convention: Convention) -> str:
    """Return what a part in front should be, "" if it is none of this kind."""
    lower = lower_ascii(text)
    if part.kind == "literal":
        return part.word if lower == part.word.lower() else ""
    if part.kind == "platform":
        return lower if lower in convention.platforms else ""
    if convention.apps is None:
        return lower if _ANY_APP.fullmatch(lower) and lower not in convention.taken else ""
    return convention.known_apps.get(lower, "")


def _words(text: str, casing: str, convention: Convention, *, is_exact: bool) -> str:
    """Return a tool's own words as they should be, "" if they can't be any."""
    if is_exact:
        found = text if CASINGS[casing].pattern.fullmatch(text) else ""
    else:
        found = respelled(text, casing) if text.isascii() else ""
    lower = lower_ascii(found)
    return "" if lower in convention.taken or lower in convention.known_apps else found


def _hindered(segments: Sequence[str], convention: Convention) -> Match:
    """Tell why a name is of no category."""
    alone = _whole_part(segments[0], convention)
    if len(segments) == 1 and alone:
        return _none(Fault("no_category", f"is {alone} and nothing more"))
    if reordered := _reordered(segments, convention):
        if lower_ascii(segments[-1]) in convention.platforms:
            fault = Fault("platform_in_name", f"has the platform {excerpt(segments[-1], 64)} behind, not in front")
        else:
            fault = Fault("no_category", "has its parts in another order than the convention")
        return reordered._replace(faults=(fault,))
    if len(segments) > 1 and not alone and not _part(Part("app"), segments[0], convention):
        return _none(Fault("unknown_prefix", f"begins with {excerpt(segments[0], 64)}, {_not_known(convention)}"))
    formats = ", ".join(dict.fromkeys(convention.categories.values()))
    return _none(Fault("no_category", f"has the form of no category ({formats})"))


def _none(fault: Fault) -> Match:
    return Match(faults=(fault,))


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
        return f"which is no {', '.join(most)} or {last}" if most else f"which is no {last}"
    return f"which can't be an app: one word in lower case, none of {', '.join(sorted(convention.taken))}"


def _reordered(segments: Sequence[str], convention: Convention) -> Match | None:
    """Return the match of the same parts in another order, if there is exactly one that is certain."""
    known = [text for text in segments if _whole_part(text, convention)]
    rest = [text for text in segments if not _whole_part(text, convention)]
    if len(rest) != 1 or not known or len(known) > len(("literal", "app", "platform")):
        return None
    literals = [text for text in known if _whole_part(text, convention) == "a prefix"]
    apps = [text for text in known if _whole_part(text, convention) == "an app"]
    platforms = [text for text in known if _whole_part(text, convention) == "a platform"]
    return _first([*literals, *apps, *platforms, *rest], convention, is_exact=True)
