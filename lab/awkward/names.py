"""The awkward names, by the construct that makes them awkward: the rows of "Can I use this tool name?"."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import partial
from typing import Final

__all__ = ["CONSTRUCTS", "Construct", "awkward_names", "construct_of", "many_names", "sized"]


@dataclass(frozen=True)
class Construct:
    """One thing that a name may have about it, the question for readers, and names that have it."""

    name: str
    title: str
    names: tuple[str, ...]


def sized(length: int) -> str:
    """Return a name of that length which says it at both ends, so that a cut one can be told."""
    head, tail = f"n{length:03d}_", f"_e{length:03d}"
    return head + ("abcdefghij" * 20)[: length - len(head) - len(tail)] + tail


_MIDDLE: Final = ("confluence_page_attachments_and_permissions_", "_for_all_spaces_in_the_whole_site_recursive")
_LONG: Final = ("shared_prefix_of_a_very_long_name_" * 3)[:70]
_CAMEL: Final = "synchronise_all_of_the_attachments_and_permissions_ofEvery_page"
_NFC: Final = partial(unicodedata.normalize, "NFC")
_NFD: Final = partial(unicodedata.normalize, "NFD")
# Once the composed one is listed first, once the decomposed one.
_FORMS: Final = (_NFC("café_open"), _NFD("café_open"), _NFD("naïve_scan"), _NFC("naïve_scan"))

CONSTRUCTS: Final = (
    Construct("plain", "a plain name", ("get_weather",)),
    Construct("dot", "a dot", ("fs.list",)),
    Construct("slash", "a slash", ("list/items",)),
    Construct("space", "a space", ("has space",)),
    Construct("other-script", "letters of another script", ("天気取得",)),
    Construct("accent", "letters with accents", ("größe_ändern",)),
    Construct("decomposed", "an accent that is a character of its own (NFD)", (_NFD("crème_brûlée"),)),
    Construct("form-twins", "names that are one text in NFC and in NFD", _FORMS),
    Construct("emoji", "an emoji", ("rocket🚀launch",)),
    Construct("colon", "a colon", ("colon:name",)),
    Construct("percent", "a percent sign", ("pct%41name",)),
    Construct("tilde", "a tilde", ("tilde~1name",)),
    Construct("identity", "an @ and a slash", ("salesforce@1/get_leads@1",)),
    Construct("capitals", "capitals", ("getUserByID",)),
    Construct("case-twins", "two names that differ in case only", ("CamelCase", "camelcase")),
    Construct("dash", "a dash", ("dash-ed",)),
    Construct("dash-twins", "two names that differ in - and _ only", ("with-dash", "with_dash")),
    Construct("double-underscore", "two underscores in a row", ("with__double",)),
    Construct("leading-underscore", "an underscore in front", ("_lead",)),
    Construct("trailing-underscore", "an underscore at the end", ("trail_",)),
    Construct("leading-digit", "a digit in front", ("1digit",)),
    Construct("built-in", "the name of a tool that clients have themselves", ("web_search", "read_file", "Bash")),
    Construct("prototype", "a name that every JavaScript object has", ("constructor", "__proto__", "toString")),
    Construct("equal-after", "names equal once / and . are _", ("a/b", "a_b", "a.b")),
    Construct("sign-twins", "names that differ in a sign only", ("p.q", "p/q", "p:q")),
    Construct(
        "middle",
        "long names that differ in the first word or in the middle",
        (
            "createConfluencePageWithAttachmentsAndPermissions",
            "deleteConfluencePageWithAttachmentsAndPermissions",
            _MIDDLE[0] + "create" + _MIDDLE[1],
            _MIDDLE[0] + "delete" + _MIDDLE[1],
        ),
    ),
    Construct("tail", "long names that differ at the end", (_LONG + "_one", _LONG + "_two")),
    Construct(
        "cut-twins",
        "names of 64 characters that are equal once words are split",
        (_CAMEL, _CAMEL.replace("Every", "_every"), _CAMEL.replace("Every", "-every")),
    ),
    Construct("up-to-64", "46 to 64 characters", tuple(map(sized, (46, 49, 50, 57, 58, 59, 60, 63, 64)))),
    Construct("up-to-128", "65 to 128 characters", tuple(map(sized, (65, 100, 128)))),
    Construct("over-128", "129 characters", (sized(129),)),
)


def awkward_names() -> tuple[str, ...]:
    """Return all awkward names, in the order of the constructs."""
    return tuple(name for construct in CONSTRUCTS for name in construct.names)


def construct_of(name: str) -> Construct | None:
    """Return the construct that a name is an example of."""
    return next((construct for construct in CONSTRUCTS if name in construct.names), None)


def many_names(count: int) -> tuple[str, ...]:
    """Return that many harmless names."""
    return tuple(f"tool_{number:03d}" for number in range(1, count + 1))
