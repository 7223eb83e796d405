"""TOML as clients keep it: the standard library says what it means, a scanner where each part of it stands."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from truename.documents import toml_edits
from truename.documents.spans import Broken, Reading, TooDeep, is_deep
from truename.documents.toml_scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.documents.spans import Splice, Where

__all__ = ["TOML"]

_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


class _Language:
    title = "TOML"

    def read(self, text: str) -> Reading:
        """Return the value.

        The scanner goes first: it stops at keys so long that the standard library would take hours over them.
        """
        try:
            statements = scan(text)
        except TooDeep:
            raise
        except Broken as error:
            # The library says better what is wrong, if it also thinks so.
            end = text.find("\n", error.offset or 0)
            _loaded(text if end < 0 else text[:end])
            raise
        value = _loaded(text)
        if is_deep(value):
            raise TooDeep
        return Reading(text, value, (), statements)

    def offset(self, reading: Reading, where: Where) -> int:
        return toml_edits.offset(reading, where)

    def put(self, reading: Reading, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
        return toml_edits.put(reading, where, value)

    def drop(self, reading: Reading, where: Where) -> Iterator[Sequence[Splice]]:
        return toml_edits.drop(reading, where)


TOML: Final = _Language()


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TooDeep from error
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        place = _PLACE.search(said)
        problem = f"it is not TOML ({_PLACE.sub('', said)})"
        raise Broken(problem, _offset(text, place)) from error
    except ValueError as error:
        raise Broken("it is not TOML (a number has too many digits)") from error


def _offset(text: str, place: re.Match[str] | None) -> int | None:
    if place is None or place[1] is None:
        return len(text) if place else None
    start = 0
    for _ in range(int(place[1]) - 1):
        start = text.find("\n", start) + 1
    return start + int(place[2]) - 1
