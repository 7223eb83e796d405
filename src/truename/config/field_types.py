"""The types that fields of a configuration can have: how each is read, checked, described and written back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from difflib import get_close_matches
from functools import partial
from ipaddress import ip_address, ip_network
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from truename.catalog.globs import glob_error
from truename.config.fields import FieldType, Setting, plain_table, read_table, rows_of, table_schema
from truename.errors import ConfigError, StoreError, excerpt
from truename.files.user import at_home
from truename.policy.principal import WRITTEN, principal_error
from truename.storage import StateLocation, is_server_url

if TYPE_CHECKING:
    from truename.config.fields import Fields, Schema

__all__ = [
    "BOOLEAN",
    "COUNT",
    "COUNT_OR_ZERO",
    "ID_GLOBS",
    "MEMORY",
    "NAME",
    "NETWORKS",
    "ORIGIN_URL",
    "PATH",
    "PERCENT",
    "PRINCIPAL_GLOBS",
    "REFERENCE",
    "SECONDS",
    "SECONDS_OR_ZERO",
    "STORE_PATH",
    "TEXT",
    "TEXTS",
    "TIME",
    "URL",
    "checked_by",
    "choice",
    "each",
    "matching",
    "named_tables",
    "read_named",
    "table",
    "whole",
]

Row = TypeVar("Row")
Read = Callable[["Fields", str], Any]
MEMORY: Final = "memory"
"""The word for state that no file keeps."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# A text with a reference can be checked only when the reference is replaced.
REFERENCE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
_TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_SOME_TEXTS: Final[Schema] = {**_TEXTS, "minItems": 1}
# Looking for words that are like a longer one takes too long.
_LONGEST_WORD: Final = 64
_GLOB_REMEDY: Final = "Write integration/tool, as github/create_*."
_NAME_REMEDY: Final = "Use up to 64 of A-Z, a-z, 0-9, '.', '_', '-'."


def _path(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    return None if text is None else str(fields.base / at_home(text))


def _store_path(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is None or text == MEMORY:
        return text
    if not is_server_url(text):
        return str(fields.base / at_home(text))
    try:
        StateLocation.of(text)
    except StoreError as error:
        fields.add(name, error.problem, error.remedy)
        return None
    return text


def _texts(fields: Fields, name: str) -> tuple[str, ...] | None:
    return fields.texts(name) if name in fields else None


def whole(least: int = 1, most: int | None = None, name: str = "whole number") -> FieldType:
    """Return the type of whole numbers within limits."""

    def read(fields: Fields, name: str) -> int | None:
        return fields.whole(name, least=least, most=most)

    limits = {"minimum": least, **({} if most is None else {"maximum": most})}
    return FieldType(name=name, read=read, schema={"type": "integer", **limits})


TEXT: Final = FieldType(name="text", read=lambda fields, name: fields.text(name), schema={"type": "string"})
TEXTS: Final = FieldType(name="list of texts", read=_texts, schema=_TEXTS)
PATH: Final = FieldType(name="path", read=_path, schema={"type": "string"})
STORE_PATH: Final = FieldType(name="path, `memory` or `postgresql://...`", read=_store_path, schema={"type": "string"})
BOOLEAN: Final = FieldType(
    name="true or false",
    read=lambda fields, name: fields.truth(name) if name in fields else None,
    schema={"type": "boolean"},
)
SECONDS: Final = FieldType(
    name="number above 0",
    read=lambda fields, name: fields.number(name),
    schema={"type": "number", "exclusiveMinimum": 0},
)
SECONDS_OR_ZERO: Final = FieldType(
    name="number, 0 or above",
    read=lambda fields, name: fields.number(name, inclusive=True),
    schema={"type": "number", "minimum": 0},
)
COUNT: Final = whole(name="whole number above 0")
COUNT_OR_ZERO: Final = whole(0, name="whole number, 0 or above")
PERCENT: Final = whole(1, 100, name="whole number from 1 to 100")


def checked_by(read: Read, kind: FieldType) -> FieldType:
    """Return a type that is described as another one, and read by a reader of its own."""
    return FieldType(name=kind.name, read=read, schema=kind.schema, plain=kind.plain)


def choice(words: Iterable[str]) -> FieldType:
    """Return a type whose values are the given words."""
    known = tuple(words)

    def read(fields: Fields, name: str) -> str | None:
        text = fields.text(name)
        if text is not None and text not in known:
            close = get_close_matches(text[:_LONGEST_WORD], known, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else "Write one of these."
            fields.add(name, f"{fields.quoted(text)} is not one of: {', '.join(known)}", remedy)
            return None
        return text

    return FieldType(
        name=" or ".join(f"`{word}`" for word in known),
        read=read,
        schema={"anyOf": [{"enum": list(known)}, REFERENCE]},
    )


def matching(pattern: re.Pattern[str], wanted: str) -> FieldType:
    """Return the type of texts that match a pattern; ``wanted`` describes them, as in "a short name"."""

    def read(fields: Fields, name: str) -> str | None:
        text = fields.text(name)
        if text is not None and pattern.fullmatch(text) is None:
            fields.add(name, f"it is not {wanted}", f"Write {wanted}.")
            return None
        return text

    return checked_by(read, TEXT)


def each(pattern: re.Pattern[str], wanted: str) -> FieldType:
    """Return the type of lists whose texts all match a pattern."""

    def read(fields: Fields, name: str) -> tuple[str, ...] | None:
        texts = _texts(fields, name)
        for text in texts or ():
            if pattern.fullmatch(text) is None:
                fields.add(name, f"{fields.quoted(text)} is not {wanted}", f"Write {wanted}.")
        return texts

    return checked_by(read, TEXTS)


def _each_checked(check: Callable[[str], str | None], problem: str, remedy: str, schema: Schema) -> FieldType:
    """Return a type whose values are lists of texts that pass a check; ``problem`` describes a text that fails."""

    def read(fields: Fields, name: str) -> tuple[str, ...] | None:
        texts = _texts(fields, name)
        if not texts and fields.is_list(name) and schema is _SOME_TEXTS:
            fields.add(name, "the list is empty", "Leave it out, or fill it.")
        for index, text in enumerate(texts or ()):
            if error := check(text):
                fields.add(f"{name}[{index}]", f"{fields.quoted(text)}{problem}: {error}", remedy)
        return texts

    return FieldType(name="list of texts", read=read, schema=schema)


ID_GLOBS: Final = _each_checked(glob_error, " is not a glob on tool ids", _GLOB_REMEDY, _TEXTS)
PRINCIPAL_GLOBS: Final = _each_checked(principal_error, "", WRITTEN, _SOME_TEXTS)


def _networks(fields: Fields, name: str) -> tuple[str, ...] | None:
    found: list[str] = []
    for index, text in enumerate(fields.texts(name)):
        try:
            found.append(str(ip_network(text.strip())))
        except ValueError:
            remedy = "Write it as 10.1.0.0/16, without bits behind its length."
            fields.add(f"{name}[{index}]", f"{excerpt(text)} is not a network", remedy)
    return tuple(found) if name in fields else None


NETWORKS: Final = FieldType(name="list of networks", read=_networks, schema=_TEXTS)


def _url(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and (problem := _url_problem(text)):
        fields.add(name, problem, "Write https://HOST/..., or http:// on a loopback address.")
        return None
    return text


def _origin(fields: Fields, name: str) -> str | None:
    text = _url(fields, name)
    if text is not None and (urlsplit(text).path.rstrip("/") or urlsplit(text).query):
        fields.add(name, "it has a path", "Write scheme, host and port alone: https://HOST.")
        return None
    return None if text is None else text.rstrip("/")


def _url_problem(text: str) -> str | None:
    try:
        found = urlsplit(text)
        host, _ = found.hostname or "", found.port
    except ValueError:
        return "it is not an address"
    if not text.isascii() or not text.isprintable() or " " in text or not host or found.username is not None:
        return "it is not an address"
    if found.fragment or found.scheme not in {"http", "https"}:
        return "it is not an address"
    return "it is plain HTTP to another machine" if found.scheme == "http" and not _is_loopback(host) else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


URL: Final = FieldType(name="HTTPS address", read=_url, schema={"type": "string"})
"""An address that secrets may be sent to."""
ORIGIN_URL: Final = FieldType(name="HTTPS address without a path", read=_origin, schema={"type": "string"})


def _time(fields: Fields, name: str) -> float | None:
    # TOML has days and times of its own.
    given = fields.raw(name)
    text = given.isoformat() if isinstance(given, date) else fields.text(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        fields.add(name, f"{fields.quoted(text)} is not a time", "Write it as in 2027-02-01T00:00:00Z.")
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


TIME: Final = FieldType(
    name="time (ISO 8601; UTC if it has no offset)",
    read=_time,
    schema={"type": "string"},
    plain=lambda value: datetime.fromtimestamp(value, UTC).isoformat(),
)


def table(of: type[Row], check: Callable[[Fields, dict[str, object]], None] | None = None) -> FieldType:
    """Return the type of a table that is read into a dataclass; ``check`` notes errors between its fields."""
    rows = rows_of(of)

    def read(fields: Fields, name: str) -> Row | None:
        inner = fields.table(name)
        if inner is None:
            return None
        before = len(fields.errors)
        found = read_table(inner, rows)
        if check is not None:
            check(inner, found)
        return of(**found) if len(fields.errors) == before else None

    return FieldType(
        name="table", read=read, schema=table_schema(rows), plain=partial(plain_table, rows=rows), rows=rows
    )


def named_tables(
    rows: Mapping[str, Setting],
    build: Callable[[str, Fields, dict[str, Any]], object],
    *,
    key: str = "NAME",
    plain: Callable[[object], object] | None = None,
) -> FieldType:
    """Return the type of tables by name; ``build`` makes the value of one from its name and fields."""

    def one(name: str, table: Fields) -> Any:
        before = len(table.errors)
        found = read_table(table, rows)
        return build(name, table, found) if len(table.errors) == before else None

    written = partial(plain_table, rows=rows) if plain is None else plain
    return FieldType(
        name=f"tables by {key}",
        read=partial(read_named, one=one),
        schema={
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": table_schema(rows),
        },
        plain=lambda tables: {name: written(value) for name, value in sorted(tables.items())},
        rows=rows,
        key=key,
    )


def read_named(
    fields: Fields, name: str, one: Callable[[str, Fields], object], *, any_name: bool = False
) -> Mapping[str, Any] | None:
    """Read tables by name, each with ``one``; a name is short and plain, unless ``any_name`` is accepted."""
    tables = fields.table(name, "an object: NAME -> object")
    if tables is None:
        return None
    found: dict[str, object] = {}
    for key in tables:
        if not any_name and NAME.fullmatch(key) is None:
            tables.add(excerpt(key)[1:-1], f"{excerpt(key)} cannot be a name", _NAME_REMEDY)
            continue
        table = tables.table(key)
        if table is not None and (value := one(key, table)) is not None:
            found[key] = value
    return MappingProxyType(found)


def read_elsewhere(read: Callable[[object], object], fields: Fields, name: str) -> Any:
    """Return the result of another package's reader for a raw value, even null, and record its errors."""
    try:
        return read(fields.raw(name))
    except (ConfigError, ExceptionGroup) as error:
        fields.errors.adopt(error)
        return None
