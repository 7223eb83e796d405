"""The index of what is there now: made at the first search, beside the calls, and made anew when the tools change."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from truename.errors import ConfigError
from truename.gateway.protocol.turns import in_thread
from truename.gateway.views.search import ToolIndex, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.catalog import Catalog
    from truename.config.settings import SearchRanking
    from truename.gateway.views.meaning import MeaningIndex
    from truename.identity import ToolId

__all__ = ["Discovery", "check_ranking"]

# Places of the order by words that count where it is joined with the one by meaning.
_MOST_JOINED: Final = 200


class _Indexed(NamedTuple):
    """Tools of one catalogue, by the same number in both indexes; None where only words are searched."""

    ids: tuple[ToolId, ...]
    words: ToolIndex
    meaning: MeaningIndex | None


class Discovery:
    """One index for all views and contexts: identities are searched, whatever they are called for whom."""

    def __init__(self, ranking: SearchRanking = "lexical") -> None:
        self._ranking = ranking
        self._lock = anyio.Lock()
        self._catalog: Catalog | None = None
        self._indexed = _Indexed((), ToolIndex(()), None)

    async def search(self, catalog: Catalog, query: str) -> Iterator[ToolId]:
        """Return the tools of a catalogue that a query finds, the best first; read them at once."""
        if catalog is not self._catalog:
            async with self._lock:
                await self._follow(catalog)
        ids, words, meaning = self._indexed
        if meaning is None:
            return (ids[number] for number in words.search(query))
        # Both are of one moment; the first is read before anything else can close it.
        by_words = list(islice(words.search(query), _MOST_JOINED)) if self._ranking == "both" else []
        return (ids[number] for number in await in_thread(partial(_joined, by_words, meaning, query)))

    async def _follow(self, catalog: Catalog) -> None:
        if catalog is self._catalog:
            return
        if self._catalog is None or list(self._catalog.items()) != list(catalog.items()):
            before = self._indexed
            self._indexed = await in_thread(partial(_index, catalog, self._ranking, before.meaning))
            before.words.close()
        self._catalog = catalog


def check_ranking(ranking: SearchRanking) -> None:
    """Raise `ConfigError` where a ranking needs packages that are not installed."""
    if ranking == "lexical":
        return
    try:
        from truename.gateway.views.word_vectors import load  # noqa: PLC0415 - optional packages

        load()
    except (ModuleNotFoundError, OSError) as error:
        name = error.name if isinstance(error, ModuleNotFoundError) else "wordllama"
        raise ConfigError(
            file="settings",
            key="search_ranking",
            problem=f"the package {(name or '').partition('.')[0]} is not installed",
            remedy="Run `pip install 'truename[search]'`, or leave it out.",
        ) from error


def _joined(by_words: list[int], meaning: MeaningIndex, query: str) -> Iterable[int]:
    from truename.gateway.views.meaning import fused  # noqa: PLC0415 - optional packages

    by_meaning = meaning.search(query)
    return fused(by_words, by_meaning) if by_words else by_meaning


def _index(catalog: Catalog, ranking: SearchRanking, before: MeaningIndex | None) -> _Indexed:
    rows = [words_of(tool) for tool in catalog.values()]
    words = ToolIndex(rows)
    if ranking == "lexical":
        return _Indexed(tuple(catalog), words, None)
    from truename.gateway.views.meaning import MeaningIndex  # noqa: PLC0415 - optional packages
    from truename.gateway.views.word_vectors import load  # noqa: PLC0415 - optional packages

    return _Indexed(tuple(catalog), words, MeaningIndex(rows, load(), before))
