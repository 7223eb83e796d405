"""What looks like a secret in an entry, so that it is told but never shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.config import ServerConfig

__all__ = ["MASK", "Leaf", "literal_secrets", "masked", "would_start"]

MASK: Final = "***"
_DEEPEST: Final = 8
_LONGEST: Final = 10_000
_NAME: Final = re.compile(
    r"token(?!iz)|secret|passw|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth(?:orization|_|\Z)|bearer",
    re.IGNORECASE,
)
# Whose values are names or places of secrets, not secrets.
_HARMLESS: Final = re.compile(
    r"(?:_|-)?(?:file|path|url|uri|env|var|name|helper|type|provider|limit|count)\Z", re.IGNORECASE
)
_VALUE: Final = re.compile(
    r"(?:Bearer |Basic |token )?(?:gh[opsur]_|github_pat_|glpat-|sk-|sk_|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|"
    r"pypi-|dop_v1_|shpat_|secret_|ntn_|lin_api_|eyJ)[A-Za-z0-9_./+=-]{12,}",
)
# ${VAR}, $VAR, %VAR%, {env:VAR}, {{VAR}}, $(...), op://..., and what stands in for a value in documentation.
_REFERENCE: Final = re.compile(
    r"\$\{|\$\(|\$[A-Za-z_]|%\w+%|\{env:|\{file:|\{\{|\b(?:op|vault|keychain|keyring|secret)://|<[^<>]*>|\bYOUR[_-]|\.\.\.|x{4,}",
    re.IGNORECASE,
)
_LOGIN: Final = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
# A parameter of an address that is called so: ?access_token=..., and the user's key in front of an @ is _LOGIN's.
_PARAMETER: Final = re.compile(
    r"(?<=[?&;])([^=&#?\s]{0,40}(?:token|secret|passw|key|credential|signature|auth)[^=&#?\s]{0,40}=)([^&#\s'\"]+)",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(r"(--?[A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text in an entry: the path to it from the entry, and what it is called."""

    where: tuple[str | int, ...]
    name: str
    text: str


def literal_secrets(entry: Any) -> Iterator[Leaf]:
    """Return the texts of an entry that look like secrets written out, by their names or their shapes.

    >>> entry = {"env": {"API_KEY": "k3y-9f2c", "KEY_FILE": "/x", "TOKEN": "${TOKEN}"}, "args": ["--token", "s3cret"]}
    >>> [leaf.name for leaf in literal_secrets(entry)]
    ['API_KEY', '--token']
    """
    return (leaf for leaf in _leaves(entry, (), "") if _is_secret(leaf.name, leaf.text))


def masked(text: str, name: str = "") -> str:
    """Return a text with nothing in it that looks like a secret.

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
    """Return what starting this server would do, on one line and without secrets: the command line, or the address."""
    if server.url is not None:
        headers = f" (headers {', '.join(server.headers)})" if server.headers else ""
        return f"{server.type.upper()} {_address(server.url)}{headers}"
    environment = [f"{name}={MASK}" for name in server.env]
    names = ["", *server.args]
    words = [masked(word, _option_before(before)) for before, word in zip(names, server.args, strict=False)]
    where = f" (in {server.cwd})" if server.cwd else ""
    return " ".join([*environment, *map(_quoted, [server.command or "", *words])]) + where


def _leaves(value: Any, where: tuple[str | int, ...], name: str) -> Iterator[Leaf]:
    if len(where) > _DEEPEST:
        return
    if isinstance(value, str):
        yield from _of_text(value, where, name)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, (*where, key), str(key))
    elif isinstance(value, list):
        yield from _of_list(value, where, name)


def _of_text(text: str, where: tuple[str | int, ...], name: str) -> Iterator[Leaf]:
    option = _OPTION.fullmatch(text) if len(text) <= _LONGEST else None
    yield Leaf(where, option[1], option[2]) if option and option[2] else Leaf(where, name, text)


def _of_list(items: Sequence[Any], where: tuple[str | int, ...], name: str) -> Iterator[Leaf]:
    before = ""
    for number, item in enumerate(items):
        yield from _leaves(
            item, (*where, number), _option_before(before) or (name if not isinstance(item, str) else "")
        )
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
