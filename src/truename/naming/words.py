"""Split names into words, and shorten them by dropping the least important words."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["VERBS", "distinguishing_words", "drop_words", "prefix_words", "snake", "split", "without_fillers", "words"]

SNAKE: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_LOWER_THEN_UPPER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# "HTTPServer" is two words, "getURLs" has "URLs" as one.
_ACRONYM_THEN_WORD: Final = re.compile(r"(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
# "urlV1" and "URLV1" end with a version; "CSV2" and "ENV1" don't.
_THEN_VERSION: Final = re.compile(r"(?<=[A-Z]{2})(?<!EN|CS|TS|DE|DI|HI|RE)(?=V[0-9]+(?![A-Za-z0-9]))")
_NOT_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
# Single words that contain capitals or dots: brands, protocols, units.
_ONE_WORD: Final = re.compile(
    r"(?:(?<![A-Z0-9])(?:[1-4]D|[248]K)|(?:(?<![A-Za-z])|(?<=[a-z0-9])(?=[A-Z]))(?:"
    r"AirTable|ArXiv|BigQuery|BitBucket|ChatGPT|CircleCI|ClickUp|CloudFlare|CloudFormation|CloudFront|CloudWatch"
    r"|CoinGecko|CoinMarketCap|DeepSeek|DevOps|DigitalOcean|DocuSign|DuckDB|DuckDuckGo|DynamoDB|ElasticSearch|FastAPI"
    r"|FireStore|GitHub|GitLab|GraphQL|HubSpot|HuggingFace|IPv[46]|IPV[46]|InfluxDB|JavaScript|JetBrains|LangChain|LaTeX"
    r"|LinkedIn|MariaDB|MongoDB|MySQL|NoSQL|NumPy|OAuth[12]?|OneDrive|OneNote|OpenAI|OpenAPI|OpenSearch|PayPal|PostgreSQL"
    r"|PostGIS|PowerBI|PowerPoint|PowerShell|PubMed|PyPI|PyTorch|QuickBooks|SQLite|SalesForce|SendGrid|ServiceNow"
    r"|SharePoint|SoundCloud|StackOverflow|TeamCity|TensorFlow|TikTok|TypeScript|VSCode|WeChat|WebSocket|WhatsApp|WooCommerce"
    r"|WordPress|YouTube|iCloud|iOS|iPhone|macOS|eBay|[kMG]Hz|[kMG]Wh|(?i:(?:next|node|nuxt|vue)\.js)"
    r"))(?![a-z0-9])"
)


@lru_cache(maxsize=65_536)
def split(text: str) -> tuple[str, ...]:
    """Return the words with their case; other scripts are transliterated.

    >>> split("createPage"), split("天気 取得"), split("getURLs-HTTPServer2")
    (('create', 'Page'), ('Tian', 'Qi', 'Qu', 'De'), ('get', 'URLs', 'HTTP', 'Server2'))
    >>> split("getWordPressPosts"), split("create3DModel"), split("Node.js"), split("fetchURLV1")
    (('get', 'WordPress', 'Posts'), ('create', '3D', 'Model'), ('Nodejs',), ('fetch', 'URL', 'V1'))
    """
    if SNAKE.fullmatch(text):
        return tuple(text.split("_"))
    plain = text if text.isascii() else _transliterated(text)
    pieces: list[str] = []
    end = 0
    for found in _ONE_WORD.finditer(plain):
        pieces += (*_pieces(plain[end : found.start()]), found.group().replace(".", ""))
        end = found.end()
    return (*pieces, *_pieces(plain[end:]))


def _pieces(text: str) -> list[str]:
    marked = _THEN_VERSION.sub("_", _ACRONYM_THEN_WORD.sub("_", _LOWER_THEN_UPPER.sub("_", text)))
    return [word for word in _NOT_WORD.split(marked) if word]


def _transliterated(text: str) -> str:
    # Imported here because it takes a seventh of the core's import time, and most catalogues are ASCII only.
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


_ARTICLES: Final = frozenset({"a", "an", "the"})
_FIRST_VERSION: Final = "v1"
_VAGUE: Final = frozenset({"available", "existing", "given", "its", "provided", "specific", "specified", "their"})
_PREPOSITIONS: Final = frozenset({"as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with"})
# Without them two nouns would read as one: "page template" for "page from template".
_DIRECTIONS: Final = frozenset({"from", "into", "to"})
_FILLERS: Final = _PREPOSITIONS | {"and", "are", "be", "been", "can", "has", "if", "is", "or"}
_COMPOUND: Final = ("pull", "request")
# Negations reverse the meaning of a name.
_NEGATIONS: Final = frozenset({"no", "not", "without"})
# Verbs say what a tool does: alone they do not identify a server, and they are dropped last.
VERBS: Final = frozenset(
    {
        *("add", "analyze", "browse", "build", "call", "check", "clear", "close", "convert", "copy", "count", "create"),
        *("delete", "describe", "download", "edit", "execute", "export", "extract", "fetch", "find", "generate", "get"),
        *("import", "insert", "install", "launch", "list", "load", "make", "manage", "open", "play", "post", "publish"),
        *("query", "read", "remove", "render", "run", "save", "scan", "search", "send", "set", "show", "start", "stop"),
        *("submit", "test", "track", "translate", "update", "upload", "use", "validate", "view", "watch", "write"),
    }
)

_FEWEST: Final = 2
_KEPT: Final = 6
# No client has room for more words; a longer name loses its middle first.
_MOST_WORDS: Final = 32

Words = tuple[str, ...]


def without_fillers(words: Words, keep: frozenset[str] = frozenset()) -> Words:
    """Return the words without articles and without a final ``v1``, except those in ``keep``.

    >>> without_fillers(("get", "the", "state", "v1")), without_fillers(("get", "v1"), frozenset({"v1"}))
    (('get', 'state'), ('get', 'v1'))
    """
    if words[-1].lower() != _FIRST_VERSION and _ARTICLES.isdisjoint(map(str.lower, words)):
        return words
    weights = _weights(words)
    return tuple(word for word, weight in zip(words, weights, strict=True) if weight or word.lower() in keep)


def drop_words(words: Words, room: int, keep: frozenset[str] = frozenset()) -> Words | None:
    """Drop the least important words until the rest fits; return None if that is not possible.

    >>> drop_words(("create", "or", "update", "a", "custom", "property"), 22, frozenset({"update"}))
    ('create', 'update', 'property')
    >>> drop_words(("list", "available", "php", "versions", "for", "website", "v1"), 30)
    ('list', 'php', 'versions', 'for', 'website')
    """
    if len(words) > _MOST_WORDS:
        words = words[: _MOST_WORDS // 2] + words[-_MOST_WORDS // 2 :]
    weights = _weights(words)
    centre = (len(words) - 1) / 2
    droppable = [i for i, weight in enumerate(weights) if weight < _KEPT and words[i].lower() not in keep]
    droppable.sort(key=lambda i: (weights[i], abs(i - centre)))
    length, dropped = len("_".join(words)), []
    for i in droppable:
        if length <= room:
            break
        length -= len(words[i]) + 1
        dropped.append(i)
    if length > room:
        # Shorten the words before the first preposition, unless a word after it must be kept.
        place = next((i for i, word in enumerate(words) if word.lower() in _PREPOSITIONS), 0)
        if place < _FEWEST or not keep.isdisjoint(word.lower() for word in words[place:]):
            return None
        return drop_words(words[:place], room, keep)
    return tuple(words[i] for i in _filled_up(words, weights, dropped, room - length))


def _filled_up(words: Words, weights: list[int], dropped: list[int], room: int) -> list[int]:
    """Return the indexes of the words to keep: those not dropped, and dropped ones that fit after all.

    The word that was dropped last returns first; fillers return last, and only between the two words that they join.
    """
    left = {i for i in range(len(words)) if i not in dropped}
    for i in sorted(dropped, key=lambda i: (words[i].lower() in _FILLERS, -dropped.index(i))):
        joins = words[i].lower() not in _FILLERS or {i - 1, _next(weights, i)} <= left
        if weights[i] > 1 and joins and len(words[i]) < room:
            room -= len(words[i]) + 1
            left.add(i)
    return sorted(left)


def _next(weights: list[int], i: int) -> int:
    """Return the index of the next word with a weight above 0."""
    return next(later for later in range(i + 1, len(weights)) if weights[later])


def _weights(words: Words) -> list[int]:
    """Return the importance of each word, from 0 (articles) over vague words and qualifiers to 6 (never dropped)."""
    low = [word.lower() for word in words]
    last = len(low) - 1 - (len(low) > _FEWEST and low[-1] == _FIRST_VERSION)
    return [_KEPT if i in {0, last} else _weight(low, i, last) for i in range(len(low))]


def _weight(low: list[str], i: int, last: int) -> int:
    word, following = low[i], low[i + 1] if i < last else ""
    if word in _ARTICLES or i > last:
        return 0
    if word in _VAGUE or (len(word) == 1 and word.isalpha()):
        return 1
    if word in _FILLERS:
        return 4 if word in _DIRECTIONS else 3
    is_object = _PREPOSITIONS.isdisjoint(low[1:i])
    if (following in _PREPOSITIONS and is_object) or (word in VERBS and VERBS.isdisjoint(low[:i])):
        return _KEPT
    if {word, following} & _NEGATIONS or (word, following) == _COMPOUND:
        return 5
    # A word that qualifies a noun after a preposition is less important than one that qualifies the object.
    return 4 if following in _FILLERS else 3 if is_object else 2


def prefix_words(words: Words, room: int) -> Words:
    """Return as many whole words from the start as fit; a single word that is too long is cut."""
    kept: list[str] = []
    for word in words:
        if len("_".join([*kept, word])) > room:
            break
        kept.append(word)
    return tuple(kept) or (words[0][:room],)


def distinguishing_words(siblings: Iterable[Words]) -> dict[Words, frozenset[str]]:
    """Return for each tool the words that distinguish it from a sibling whose name differs only in that word.

    >>> distinguishing_words([("get", "all", "users"), ("get", "new", "users")])[("get", "all", "users")]
    frozenset({'all'})
    """
    lists = [each for each in dict.fromkeys(siblings) if len(each) <= _MOST_WORDS]
    # Store hashes instead of word lists, which a hostile server could make large enough to fill the memory.
    without: Counter[int] = Counter()
    for each in lists:
        without.update({hash(each), *_leaving_one_out(each)})
    return {
        each: frozenset(
            word.lower() for word, key in zip(each, _leaving_one_out(each), strict=True) if without[key] > 1
        )
        for each in lists
    }


def _leaving_one_out(words: Words) -> Iterator[int]:
    return (hash(words[:i] + words[i + 1 :]) for i in range(len(words)))
