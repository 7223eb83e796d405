"""Load all dialects from ``table.json`` at first use, and derive the universal one.

``universal`` is computed from the other rows: the characters that are legal in all of them (in lower case), the word
form that no client rewrites, and the length that is legal for every server key of at most ten characters.

A row holds for the newest versions of a client. Its ``versions`` are the rules that older ones had, as differences from
the row: each has a ``key``, which never changes because ledgers and addresses hold it, and the ``runs`` that saw it.
"""

from __future__ import annotations

import difflib
import json
import re
import string
from dataclasses import fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truename.dialects.client_versions import ClientRun, ClientVersion, speaks_for
from truename.dialects.dialect import DEFAULT_SERVER, Dialect
from truename.dialects.transformation import DigestSuffix, NameTransformation
from truename.errors import UnknownDialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["fold", "get", "index", "names", "own", "table", "versions"]

_LONGEST_KEY = "x" * 10
_LONGEST_NAME = 100
# The length that the MCP specification allows; used for a client without a limit.
_MOST = 128
_ASSUMED = ("chars", "first", "last", "words")
_SEPARATORS = re.compile(r"[\s_-]+")
_DIALECT = frozenset(field.name for field in fields(Dialect)) - {"mangling", "release"}
_MANGLING = frozenset(field.name for field in fields(NameTransformation))
_VERSIONS = "versions"
# Fields of a row that say nothing about older versions.
_OF_NEWEST = frozenset({_VERSIONS, "runs", "version", "date", "lab", "client_info", "user_agents", "notes"})
_VERSIONED = frozenset({"client", "framework"})
_LATEST = "latest"
_COMPUTED = "Computed from all other dialects: a name that is legal in this one is legal in each of them, unchanged."
_OWN = Dialect(name="", kind="own", title="", source="Truename", confidence="run", date="2026-11-22")


def _frozen(value: object) -> Any:
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value


@cache
def _charset(spec: str) -> frozenset[str]:
    """Return the characters of a specification such as ``a-zA-Z_-``; a hyphen between two characters is a range."""
    pattern = re.compile(f"[{spec}]")
    return frozenset(char for char in map(chr, range(128)) if pattern.match(char))


def _mangling(row: Mapping[str, Any]) -> NameTransformation:
    values = {key: _frozen(row[key]) for key in _MANGLING & row.keys()}
    for field in {"digest", "keys"} & values.keys():
        values[field] = DigestSuffix(**{key: _frozen(value) for key, value in row[field].items()})
    if values.get("once"):
        values["avoid"] = (values.get("server", ()),)
    return NameTransformation(**values)


def _dialect(row: Mapping[str, Any]) -> Dialect:
    unknown = row.keys() - _DIALECT - _MANGLING - {_VERSIONS}
    if unknown:
        message = f"{row['name']}: unknown fields {sorted(unknown)}"
        raise ValueError(message)
    values = {key: _frozen(row[key]) for key in _DIALECT & row.keys()}
    values["runs"] = _runs(row)
    values["reserved"] = frozenset(row.get("reserved", ()))
    if row.get("chars") is not None:
        values["chars"] = _charset(row["chars"])
        values["first"] = _charset(row.get("first", row["chars"]))
        values["last"] = _charset(row.get("last", row["chars"]))
    return Dialect(**values, mangling=_mangling(row))


def _runs(row: Mapping[str, Any]) -> tuple[ClientRun, ...]:
    """Return the versions with which a row's rules were seen; a version may be followed by those of libraries."""
    seen: dict[str, str] = dict(row.get("runs", {}))
    if row.get("confidence") == "run" and row.get("version"):
        seen[re.split(r"[ ,]", row["version"], maxsplit=1)[0]] = row["date"]
    runs = (ClientRun(version, date) for version, date in seen.items())
    return tuple(sorted(runs, key=lambda run: ClientVersion.parse(run.version)))


def _former(row: Mapping[str, Any]) -> Iterable[Dialect]:
    """Yield the rules that older versions of a client had, oldest first; they are recognised by no client info."""
    shared = {key: value for key, value in row.items() if key not in _OF_NEWEST}
    for former in row.get(_VERSIONS, ()):
        changed = {key: value for key, value in former.items() if key != "key"}
        newest = max(former["runs"], key=ClientVersion.parse)
        seen = {"version": newest, "date": former["runs"][newest], "confidence": "run"}
        values = {**shared, **seen, **changed, "name": f"{row['name']}@{former['key']}"}
        yield _dialect({key: value for key, value in values.items() if value is not None})


def _common(sets: Iterable[frozenset[str] | None]) -> frozenset[str]:
    return frozenset(string.ascii_lowercase + string.digits + "_").intersection(
        *(one for one in sets if one is not None)
    )


def _universal(rows: tuple[Dialect, ...], row_of_universal: Mapping[str, Any]) -> Dialect:
    known = [row for row in rows if "chars" not in row.unknown]
    rooms = [row.room(_LONGEST_KEY) for row in rows if "max_length" not in row.unknown]
    snake = any(row.words == "snake" for row in known)
    return replace(
        _OWN,
        name="universal",
        title="Universal",
        aliases=("all", "everyone", "default"),
        chars=_common(row.chars for row in known),
        first=_common(row.first for row in known),
        last=_common(row.last for row in known),
        max_length=min(room for room in rooms if room is not None),
        reserved=frozenset().union(*(row.reserved for row in rows)),
        case_sensitive=False,
        words="snake" if snake else "keep",
        mangling=NameTransformation(avoid=tuple(dict.fromkeys(steps for row in rows for steps in row.mangling.avoid))),
        notes=(_COMPUTED, *row_of_universal["notes"]),
        **{field: _frozen(value) for field, value in row_of_universal.items() if field != "notes"},
    )


def _own(universal: Dialect) -> Dialect:
    letters = frozenset(string.ascii_letters)
    return replace(
        universal,
        name="own",
        client_info=(),
        lab=(),
        version="",
        source=_OWN.source,
        date=_OWN.date,
        title="A server's own names",
        aliases=(),
        chars=(universal.chars or frozenset()) | letters | {"-"},
        first=letters,
        last=letters | frozenset(string.digits),
        words="keep",
        notes=("Names of a server that no client shortens, drops or refuses; capitals and hyphens are legal.",),
    )


def _with_assumed(row: Dialect, universal: Dialect) -> Dialect:
    assumed = [field for field in row.unknown if field != "chars"]
    if "chars" in row.unknown:
        assumed += _ASSUMED
    values: dict[str, Any] = {field: getattr(universal, field) for field in assumed}
    return replace(row, unknown=tuple(sorted(assumed)), **values)


def _rows(content: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from content["rows"]
    group = content["recognised"]
    common = {"kind": "client", "unknown": ["chars", "max_length"], "notes": [group["note"]]}
    for client in group["clients"]:
        yield {**common, "source": group["source"], "date": group["date"], **client}


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(Path(__file__).with_name("table.json").read_bytes())
    return content


@cache
def _former_rules() -> Mapping[str, tuple[Dialect, ...]]:
    """Return the rules of older versions by client, oldest first, for those clients whose rules changed."""
    return {row["name"]: tuple(_former(row)) for row in _content()["rows"] if _VERSIONS in row}


@cache
def index() -> Mapping[str, Dialect]:
    """Return all dialects by name, ``universal``, ``native`` and ``own`` first, then in the order of the table."""
    content = _content()
    read = tuple(_dialect(row) for row in _rows(content))
    older = tuple(one for several in _former_rules().values() for one in several)
    universal = _universal((*read, *older), content["universal"])
    title, note = "Native", "A client that asks for canonical names; any printable text is legal."
    rows = (
        universal,
        replace(_OWN, name="native", title=title, aliases=("canonical", "conduit"), notes=(note,)),
        _own(universal),
        *(_with_assumed(row, universal) for row in read),
    )
    return {row.name: row for row in rows}


@cache
def versions(client: str) -> tuple[Dialect, ...]:
    """Return the rules of a client by version, oldest first; the last ones are those of its newest version.

    Raises :class:`truename.errors.UnknownDialect`.

    >>> [one.name for one in versions("cursor")]
    ['cursor']
    """
    row = get(client)
    newest = index()[row.client]
    universal = index()["universal"]
    return (*(_with_assumed(one, universal) for one in _former_rules().get(newest.name, ())), newest)


def table(*, older: bool = False) -> tuple[Dialect, ...]:
    """Return all dialects, for ``truename clients``; with ``older``, also the rules that older versions had."""
    rows = tuple(index().values())
    return tuple(one for row in rows for one in versions(row.name)) if older else rows


def names(*, older: bool = False) -> tuple[str, ...]:
    """Return the names of all dialects, in the table's order; with ``older``, also those of older versions' rules.

    >>> names()[:2], "cursor" in names()
    (('universal', 'native'), True)
    """
    return tuple(one.name for one in table(older=True)) if older else tuple(index())


@cache
def own(client: str | None = None, server: str = DEFAULT_SERVER) -> Dialect:
    """Return the rules for a server's own names: a legal name is shown unchanged by every client, or by the given one.

    With ``client``, the limit is that client's room under this server key, and only its reserved words count.
    Raises :class:`truename.errors.UnknownDialect`.

    >>> own().room(), own("claude-code", "github").room()
    (46, 115)
    """
    everyones = index()["own"]
    if client is None:
        return everyones
    row = get(client)
    room = row.room(server)
    return replace(everyones, name=f"own-{row.name}", max_length=_MOST if room is None else room, reserved=row.reserved)


def fold(name: str) -> str:
    """Fold a dialect's name for comparison: lower case, without spaces, hyphens and underscores."""
    return _SEPARATORS.sub("", name[:_LONGEST_NAME]).lower()


@cache
def _by_alias() -> Mapping[str, Dialect]:
    found: dict[str, Dialect] = {}
    for dialect in table():
        for name in (dialect.name, dialect.title, *dialect.aliases):
            found.setdefault(fold(name), dialect)
    return found


def get(name_or_alias: str) -> Dialect:
    """Return a dialect by its name, title or alias; case and separators are ignored.

    Behind ``@`` stands a version of the client: the rules are then those of the nearest older version that was run, and
    ``unrun`` says so if that is not certain. Without a version, the rules are those of the newest.
    Raises :class:`truename.errors.UnknownDialect` with the nearest names.

    >>> get("Claude Desktop").name, get("VS_Code").name, get("OpenAI API clients").name
    ('claude-desktop', 'vscode-copilot', 'openai')
    """
    known = _by_alias()
    # Names of npm's packages begin with @ too.
    name, versioned, version = name_or_alias[1:].partition("@")
    name = name_or_alias[:1] + name
    wanted = fold(name)
    found = known.get(wanted) if len(name_or_alias) <= _LONGEST_NAME else None
    if found is None:
        near = difflib.get_close_matches(wanted, known, n=5)
        suggestions = tuple(dict.fromkeys(known[one].name for one in near))[:3]
        raise UnknownDialect(name=name_or_alias, suggestions=suggestions)
    return _of_version(found, version) if versioned else found


@lru_cache(maxsize=1024)
def _of_version(row: Dialect, text: str) -> Dialect:
    """Return the rules of a client's version. Raises `UnknownDialect` for what is no version, or has none."""
    if row.kind not in _VERSIONED:
        raise UnknownDialect(name=f"{row.name}@{text}", version=text, suggestions=(row.name,))
    if text.strip().lower() == _LATEST:
        return row
    try:
        version = ClientVersion.parse(text.strip())
    except ValueError as error:
        raise UnknownDialect(name=f"{row.name}@{text}", version=text, suggestions=(row.name,)) from error
    release = str(version).lstrip("vV")
    several = versions(row.name)
    runs = [(run, at) for at, one in enumerate(several) for run in one.runs]
    if not runs:
        return replace(row, release=release, confidence="read")
    runs.sort(key=lambda one: ClientVersion.parse(one[0].version))
    run, at, seen = speaks_for(version, runs)
    confidence = "run" if seen else "read"
    return replace(several[at], release=release, version=run.version, date=run.date, confidence=confidence)
