"""Words of names: how ``createPage``, ``create-page`` and ``Create Page`` become the same readable words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["SNAKE", "snake", "split", "words"]

SNAKE: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_LOWER_THEN_UPPER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# "HTTPServer" is two words, "getURLs" has "URLs" as one.
_ACRONYM_THEN_WORD: Final = re.compile(r"(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
_NOT_WORD: Final = re.compile(r"[^A-Za-z0-9]+")


@lru_cache(maxsize=65_536)
def split(text: str) -> tuple[str, ...]:
    """Return the words with their case; other scripts are transliterated.

    >>> split("createPage"), split("天気 取得"), split("getURLs-HTTPServer2")
    (('create', 'Page'), ('Tian', 'Qi', 'Qu', 'De'), ('get', 'URLs', 'HTTP', 'Server2'))
    """
    if SNAKE.fullmatch(text):
        return tuple(text.split("_"))
    plain = text if text.isascii() else _transliterated(text)
    marked = _ACRONYM_THEN_WORD.sub("_", _LOWER_THEN_UPPER.sub("_", plain))
    return tuple(word for word in _NOT_WORD.split(marked) if word)


def _transliterated(text: str) -> str:
    # Imported at need: it is a seventh of the time to import the core, and most catalogues are ASCII.
    from anyascii import anyascii  # noqa: PLC0415 - see above

    return anyascii(text)


def words(text: str) -> tuple[str, ...]:
    """Return the words in lower case."""
    return tuple(word for word in snake(text).split("_") if word)


@lru_cache(maxsize=65_536)
def snake(text: str) -> str:
    """Return the words in lower case, joined by single underscores; the empty text if there are none.

    >>> snake("createPage"), snake("___")
    ('create_page', '')
    """
    return text if SNAKE.fullmatch(text) else "_".join(split(text)).lower()
