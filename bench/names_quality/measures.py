"""What is counted of a list of names: legal, unique, tokens, repeated words, names that read as another server's."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["reads_as_another", "repeats", "says_its_server", "spoken", "token_counter"]

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOISE: Final = frozenset({"mcp", "server"})
_WORD: Final = re.compile(r"[^\W_]+")


def spoken(name: str) -> list[str]:
    """Return the words of a name in lower case, by a rule of its own: not the library's."""
    return [word.lower() for word in _WORD.findall(_CAMEL.sub(" ", name))]


def repeats(name: str) -> bool:
    """Tell whether a word stands twice in a name."""
    words = spoken(name)
    return len(set(words)) < len(words)


def reads_as_another(names: Iterable[tuple[str, str]], keys: Iterable[str]) -> list[tuple[str, str]]:
    """Return the names, given with their server's key, that begin with another's part and with none of their own."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for key in keys:
        for text in _parts_of(key):
            owners[text].add(key)
    return [(name, key) for name, key in names if _is_another_s(name, key, owners)]


def says_its_server(names: Iterable[tuple[str, str]], keys: Iterable[str]) -> int:
    """Return how many names, given with their server's key, contain their own server's part and its alone.

    Several servers may read alike: their names tell nobody which of them is meant.
    """
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for key in keys:
        for text in _parts_of(key):
            owners[text].add(key)
    return sum(_says(name, key, owners) for name, key in names)


def _says(name: str, key: str, owners: Mapping[str, set[str]]) -> bool:
    said = f"_{'_'.join(spoken(name))}_"
    return any(f"_{text}_" in said and owners[text] == {key} for text in _parts_of(key))


def _is_another_s(name: str, key: str, owners: Mapping[str, set[str]]) -> bool:
    words = spoken(name)
    beginnings = ("_".join(words[:end]) for end in range(1, len(words) + 1))
    owned = [owners[text] for text in beginnings if text in owners]
    return bool(owned) and not any(key in those for those in owned)


def _parts_of(key: str) -> set[str]:
    """Return what a reader takes for a server's part: its key whole, without organisation, without "mcp", "server"."""
    whole, own = spoken(key), spoken(key.rpartition("/")[2])
    without = ([word for word in words if word not in _NOISE] or words for words in (whole, own))
    return {"_".join(words) for words in (whole, own, *without)}


def token_counter() -> tuple[str, Callable[[str], int]]:
    """Return what counts the tokens of a name, with its name: o200k where its vocabulary is installed."""
    try:
        encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    except ImportError:
        return "characters / 4 (bpe-openai is not installed)", lambda name: round(len(name) / 4)
    return "o200k", lambda name: len(encoding.encode(name))
