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
# "urlV1" and "URLV1" end with a version; "CSV2" and "ENV1" don't.
_THEN_VERSION: Final = re.compile(r"(?<=[A-Z]{2})(?<!EN|CS|TS|DE|DI|HI|RE)(?=V[0-9]+(?![A-Za-z0-9]))")
_NOT_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
# What is written with capitals inside, or with a dot, and is one word all the same: brands, protocols, units.
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
