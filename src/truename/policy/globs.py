"""Globs on tool ids: ``*`` is any text, ``?`` one character, everything else itself.

A glob has an integration and a tool, ``github/delete_*``; ``*`` alone is every tool. A part without ``@`` is for
every version: a rule about ``github/push`` is about ``github@2/push@3`` too, or a new version would slip by it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from truename.identity import MAX_ID_LENGTH, lower_ascii

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.identity import ToolId

__all__ = ["Globs", "fault_in", "fits", "fits_all", "fits_id"]

_NAME: Final = r"[a-z0-9_.*?-]+"
_VERSION: Final = r"(?:@(?:[1-9][0-9]{0,17}|\*))?"
_WILD: Final = re.compile(r"[*?]")
_LEGAL: Final = re.compile(rf"\*|{_NAME}{_VERSION}/{_NAME}{_VERSION}")


def fault_in(glob: str) -> str:
    """Return what is wrong with a glob on ids, "" if nothing; one that could never fit anything is wrong.

    >>> fault_in("github/*"), fault_in("delete_*")
    ('', "it has no '/' between integration and tool")
    """
    if len(glob) > MAX_ID_LENGTH:
        return f"it is longer than {MAX_ID_LENGTH} characters"
    if _LEGAL.fullmatch(lower_ascii(glob)):
        return ""
    return "it can't fit any tool id" if "/" in glob else "it has no '/' between integration and tool"


def fits_id(glob: str, id: ToolId) -> bool:
    """Tell whether a glob fits an id.

    >>> from truename import ToolId
    >>> fits_id("GitHub/push", ToolId.parse("github@2/push@3")), fits_id("github/push@1", ToolId.parse("github/push@3"))
    (True, False)
    """
    left, slash, right = lower_ascii(glob).partition("/")
    if not slash:
        return left == "*"
    tool = f"{id.suite}.{id.tool}" if id.suite else id.tool
    return _fits_part(left, id.integration, id.integration_version) and _fits_part(right, tool, id.version)


def fits_all(glob: str) -> bool:
    """Tell whether a glob names nothing: whatever there is fits it.

    >>> fits_all("*"), fits_all("*@*/*"), fits_all("*/*_*")
    (True, True, False)
    """
    return not glob.strip("*?@/")


def fits(glob: str, text: str) -> bool:
    """Tell whether a glob fits a text, case and all.

    >>> fits("docs*", "docs (old)"), fits("docs", "Docs")
    (True, False)
    """
    return _compiled(glob).fullmatch(text) is not None


class Globs:
    """Many globs on texts. Only those that begin as a text does are asked, so that many of them cost no more."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._by_front: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, glob in enumerate(globs):
            front = _WILD.split(glob, 1)[0]
            if front == glob:
                self._plain.add(glob)
            else:
                self._by_front[front].append((number, glob))
        self._sizes = frozenset(map(len, self._by_front))

    def first(self, text: str) -> str:
        """Return the glob that fits a text, "" if none does: the text itself, else the first pattern.

        >>> Globs(["ios_*", "*", "tap"]).first("ios_scroll"), Globs(["ios_*", "*", "tap"]).first("tap")
        ('ios_*', 'tap')
        """
        if text in self._plain:
            return text
        if not self._sizes:
            return ""
        near = (entry for size in self._sizes for entry in self._by_front.get(text[:size], ()))
        return next((glob for _, glob in sorted(near) if fits(glob, text)), "")


def _fits_part(glob: str, name: str, version: int) -> bool:
    return fits(glob, f"{name}@{version}" if "@" in glob else name)


@lru_cache(maxsize=4_096)
def _compiled(glob: str) -> re.Pattern[str]:
    # Its patterns never go back over a star, so a hostile name can't make the search long; "[" is itself here.
    return re.compile(translate(glob.replace("[", "[[]")))
