"""Check a client's files: text that it refuses, servers that it ignores, secrets in plain text."""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from truename.clients.doctor.rules import RULES
from truename.clients.server_entries import speaks_http
from truename.config.servers import misspelt, strange
from truename.conventions import Finding, Location
from truename.dialects.transformation import compile_transformation
from truename.editing import value_at
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.clients import ClientServer, FoundFile
    from truename.config import ServerConfig
    from truename.dialects import Dialect


__all__ = ["MASK", "check_files", "dotted", "literal_secrets", "location_of", "masked", "would_start"]

MASK: Final = "***"
_DEEPEST: Final = 8
_LONGEST: Final = 10_000
_NAME: Final = re.compile(
    r"token(?!iz)|secret|passw|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth(?:orization|_|\Z)|bearer",
    re.IGNORECASE,
)
# Endings of names whose values are names or locations of secrets.
_HARMLESS: Final = re.compile(
    r"(?:_|-)?(?:file|path|url|uri|env|var|name|helper|type|provider|limit|count)\Z", re.IGNORECASE
)
_VALUE: Final = re.compile(
    r"(?:Bearer |Basic |token )?(?:gh[opsur]_|github_pat_|glpat-|sk-|sk_|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|"
    r"pypi-|dop_v1_|shpat_|secret_|ntn_|lin_api_|eyJ)[A-Za-z0-9_./+=-]{12,}",
)
# ${VAR}, $VAR, %VAR%, {env:VAR}, {{VAR}}, $(...), op://..., and placeholders of documentation.
_REFERENCE: Final = re.compile(
    r"\$\{|\$\(|\$[A-Za-z_]|%\w+%|\{env:|\{file:|\{\{|\b(?:op|vault|keychain|keyring|secret)://|<[^<>]*>|\bYOUR[_-]|\.\.\.|x{4,}",
    re.IGNORECASE,
)
_LOGIN: Final = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
# A URL parameter with the name of a secret: ?access_token=...
_PARAMETER: Final = re.compile(
    r"(?<=[?&;])([^=&#?\s]{0,40}(?:token|secret|passw|key|credential|signature|auth)[^=&#?\s]{0,40}=)([^&#\s'\"]+)",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(r"(--?[A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SecretLeaf:
    """A string in an entry: its path relative to the entry, and the name of its key or option."""

    where: tuple[str | int, ...]
    name: str
    text: str


def literal_secrets(entry: object) -> Iterator[SecretLeaf]:
    """Return the strings of an entry that look like secrets in plain text, by their names or their forms.

    >>> entry = {"env": {"API_KEY": "k3y-9f2c", "KEY_FILE": "/x", "TOKEN": "${TOKEN}"}, "args": ["--token", "s3cret"]}
    >>> [leaf.name for leaf in literal_secrets(entry)]
    ['API_KEY', '--token']
    """
    return (leaf for leaf in _leaves(entry, (), "") if _is_secret(leaf.name, leaf.text))


def masked(text: str, name: str = "") -> str:
    """Mask everything in a text that looks like a secret.

    >>> masked("--api-key=abc123"), masked("ghp_0123456789abcdef0123"), masked("stdio")
    ('--api-key=***', '***', 'stdio')
    """
    option = _OPTION.fullmatch(text)
    if option and option[2] and (_is_secret(option[1], option[2]) or _NAME.search(option[1])):
        return f"{option[1]}={MASK}"
    if not (_LOGIN.search(text) or _PARAMETER.search(text)) and _is_secret(name, text):
        return MASK
    return _PARAMETER.sub(rf"\1{MASK}", _LOGIN.sub(MASK, _VALUE.sub(MASK, text)))


def would_start(server: ServerConfig) -> str:
    """Return the command line that would be started, or the URL that would be connected, with secrets masked."""
    if server.url is not None:
        headers = f" (headers {', '.join(server.headers)})" if server.headers else ""
        return f"{server.type.upper()} {_address(server.url)}{headers}"
    environment = [f"{name}={MASK}" for name in server.env]
    names = ["", *server.args]
    words = [masked(word, _option_before(before)) for before, word in zip(names, server.args, strict=False)]
    where = f" (in {server.cwd})" if server.cwd else ""
    return " ".join([*environment, *map(_quoted, [server.command or "", *words])]) + where


def _leaves(value: object, where: tuple[str | int, ...], name: str) -> Iterator[SecretLeaf]:
    if len(where) > _DEEPEST:
        return
    if isinstance(value, str):
        option = _OPTION.fullmatch(value) if len(value) <= _LONGEST else None
        yield SecretLeaf(where, option[1], option[2]) if option and option[2] else SecretLeaf(where, name, value)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, (*where, key), str(key))
    elif isinstance(value, list):
        before = ""
        for number, item in enumerate(value):
            inherited = "" if isinstance(item, str) else name
            yield from _leaves(item, (*where, number), _option_before(before) or inherited)
            before = item if isinstance(item, str) else ""


def _option_before(word: str) -> str:
    return word if len(word) <= _LONGEST and (found := _OPTION.fullmatch(word)) and found[2] is None else ""


def _is_secret(name: str, text: str) -> bool:
    if not text or len(text) > _LONGEST or text.startswith("-") or _REFERENCE.search(text):
        return False
    if _VALUE.match(text) or _LOGIN.search(text) or _PARAMETER.search(text):
        return True
    return len(text) > 3 and bool(_NAME.search(name)) and not _HARMLESS.search(name)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return MASK
    who = f"{MASK}@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, who + host, _VALUE.sub(MASK, parts.path), MASK if parts.query else "", ""))


def _quoted(word: str) -> str:
    plain = word.replace(MASK, "")
    return word if word and not re.search(r"[\s'\"$`\\;&|<>()*?]", plain) else "'" + word.replace("'", "'\\''") + "'"


_PLACE: Final = re.compile(r"line (\d+)(?:, column (\d+))?")
# Kind of quirk -> rule, fact, remedy.
_QUIRKS: Final = {
    "comment": ("comment_refused", "it has a comment, which {client} does not accept", "Remove the comment."),
    "trailing-comma": (
        "trailing_comma_refused",
        "it has a trailing comma, which {client} does not accept",
        "Remove the comma.",
    ),
    "bom": (
        "byte_order_mark_refused",
        "it begins with a byte order mark, which {client} does not accept",
        "Save it as UTF-8 without one.",
    ),
    "duplicate-key": ("duplicate_key", "an object has the same key twice", "Remove or rename one of the two."),
}
_WORDS: Final = {"comment": "comment", "trailing-comma": "trailing comma", "bom": "byte order mark"}
_TOLD_OF_ONE_KIND: Final = 3
_LONGEST_KEY: Final = 80
_LOOPBACK_NAMES: Final = ("localhost", "host.docker.internal")


def check_files(files: Sequence[FoundFile], dialect: Dialect) -> Iterator[Finding]:
    """Yield findings about one client's files and the entries in them. Starts nothing."""
    for found in files:
        yield from _about_reading(found)
        for client_server in found.servers:
            yield from _about_entry(found, client_server, dialect)
    yield from _about_scopes(files)


def location_of(found: FoundFile, where: tuple[str | int, ...] = ()) -> Location:
    """Return the location of a path in a file, with line and column if the file could be parsed."""
    line, column = 0, 0
    if found.document is not None and where:
        try:
            line, column = found.document.position(where)
        except (ConfigError, LookupError, ValueError, TypeError):
            line, column = 0, 0
    return Location(file=str(found.path), line=line, column=column, key=dotted(where))


def dotted(where: Sequence[str | int]) -> str:
    """Return a path into a file as a dotted text, printable and bounded."""
    return excerpt(".".join(map(str, where))[:_LONGEST_KEY])[1:-1] if where else ""


def _about_reading(found: FoundFile) -> Iterator[Finding]:
    if found.problem is not None:
        at = _PLACE.search(found.problem.key)
        line, column = (int(at[1]), int(at[2] or 0)) if at else (0, 0)
        location = Location(file=str(found.path), line=line, column=column, key="" if at else found.problem.key)
        problem = found.problem.problem
        reason = (
            problem.removeprefix("it cannot be read") if problem.startswith("it cannot be read") else f": {problem}"
        )
        fact = f"{found.path.name} cannot be read{reason}."
        yield _finding("unreadable_file", found, location, fact, found.problem.remedy)
    if found.document is None:
        return
    told: defaultdict[str, int] = defaultdict(int)
    for quirk in found.document.quirks:
        row = _QUIRKS.get(quirk.kind)
        if row is None or (quirk.kind != "duplicate-key" and quirk.kind not in found.file.refuses):
            continue
        told[quirk.kind] += 1
        if told[quirk.kind] > _TOLD_OF_ONE_KIND:
            continue
        rule, fact, remedy = row
        location = Location(file=str(found.path), line=quirk.line, column=quirk.column)
        fact = f"{found.path.name}: {fact.format(client=found.file.title)}.{_known(found, quirk.kind)}"
        yield _finding(rule, found, location, fact, remedy)


def _known(found: FoundFile, kind: str) -> str:
    """Return the table's note on how the client treats such a file; some clients move it away."""
    notes = (note for note in found.file.notes if kind in _WORDS and _WORDS[kind] in note.lower())
    return f" {note}" if (note := next(notes, "")) else ""


def _about_entry(found: FoundFile, client_server: ClientServer, dialect: Dialect) -> Iterator[Finding]:
    server, key = client_server.server, excerpt(client_server.server.key, 64)
    here = location_of(found, client_server.where)
    if compile_transformation(dialect.mangling).ignores(server.key):
        fact = f"{found.file.title} never connects to {key}: it does not accept all characters of this key."
        yield _finding(
            "server_ignored", found, here, fact, "Use letters, digits, _ and - in the key.", server=server.key
        )
    if server.disabled:
        return
    if server.command is None and server.url is None:
        fact = f"The entry {key} has neither a command nor a URL."
        yield _finding("server_not_understood", found, here, fact, "Give it a command or a URL.", server=server.key)
    if server.url is not None and not speaks_http(found.file.shape):
        fact = f"{found.file.title} cannot connect to {key}: it accepts only commands, not URLs."
        remedy = f"`truename connect {found.file.client}` gives it a command that connects to the URL."
        yield _finding("server_ignored", found, here, fact, remedy, server=server.key)
    if server.url is not None and _is_open(server.url):
        fact = f"{key} is reached over the network without TLS."
        yield _finding("unencrypted_server", found, here, fact, "Use https, or a tunnel.", server=server.key)
    entry = None if found.document is None else value_at(found.document.value, client_server.where)
    yield from _about_keys(found, client_server, entry)
    yield from _about_secrets(found, client_server, entry)


def _about_keys(found: FoundFile, client_server: ClientServer, entry: object) -> Iterator[Finding]:
    for word in strange(entry) if isinstance(entry, dict) else ():
        if meant := misspelt(word):
            fact = f"{excerpt(client_server.server.key, 64)} has the key {excerpt(word, 64)}, which has no effect."
            here = location_of(found, (*client_server.where, word))
            yield _finding(
                "unknown_key", found, here, fact, f"Did you mean {meant!r}?", server=client_server.server.key
            )


def _about_secrets(found: FoundFile, client_server: ClientServer, entry: object) -> Iterator[Finding]:
    leaves = list(literal_secrets(entry))
    if not leaves:
        return
    names = ", ".join(dict.fromkeys(excerpt(leaf.name or "a text", 40) for leaf in leaves))
    fact = f"{excerpt(client_server.server.key, 64)} seems to have a secret in plain text: {names}."
    remedy = "Move it to an environment variable, and write a reference to the variable."
    here = location_of(found, (*client_server.where, *leaves[0].where))
    yield _finding("literal_secret", found, here, fact, remedy, server=client_server.server.key)


def _is_open(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if parts.scheme != "http" or not host or host in _LOOPBACK_NAMES or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _about_scopes(files: Sequence[FoundFile]) -> Iterator[Finding]:
    """Yield a finding for each server that several files of the client configure."""
    seen: defaultdict[str, list[tuple[FoundFile, ClientServer]]] = defaultdict(list)
    for found in files:
        for client_server in found.servers:
            path, where, others = client_server.path, client_server.where, seen[client_server.server.key]
            # Entries of two projects in one file are never used together.
            if not any(other.path == path and other.where[:-1] != where[:-1] for _, other in others):
                others.append((found, client_server))
    for key, client_servers in seen.items():
        if len(client_servers) > 1:
            yield _several(key, client_servers)


def _several(key: str, client_servers: Sequence[tuple[FoundFile, ClientServer]]) -> Finding:
    first = client_servers[0][1].server
    same = all(client_server.server == first for _, client_server in client_servers)
    where = " and ".join(f"{found.path} ({client_server.scope})" for found, client_server in client_servers[:3])
    found, client_server = client_servers[-1]
    fact = f"{excerpt(key, 64)} is configured {'alike' if same else 'differently'} in {where}."
    remedy = "Keep one of them." if same else "Keep one of them, or give one another key."
    rule = "repeated_server" if same else "shadowed_server"
    return _finding(rule, found, location_of(found, client_server.where), fact, remedy, server=key)


def _finding(rule: str, found: FoundFile, location: Location, *texts: str, server: str = "") -> Finding:
    fact, remedy = texts
    return Finding(
        rule=RULES[rule],
        fact=fact,
        remedy=remedy,
        location=location,
        client=found.file.client,
        confidence=found.file.confidence,
        server=server,
    )
